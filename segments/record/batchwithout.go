package record

import (
	"bytes"

	"github.com/actormq/actormq/messages"
)

// BatchWithout returns a batch without any pair of a name, be it the envelope's or a member's: the envelope itself, and nothing is allocated, where there
// is none, else scratch. A batch that [BatchSize] refuses comes back as it is.
func BatchWithout(envelope, scratch *messages.Message, name string) *messages.Message {
	outer := envelope.Properties.Without(name)
	changed := len(outer) != len(envelope.Properties)
	if !changed && !bytes.Contains(envelope.Body, []byte(name)) {
		return envelope
	}
	var members []messages.Message
	for rest := envelope.Body; len(rest) > 0; {
		var m member
		var err error
		if m, rest, err = nextMember(rest); err != nil {
			return envelope
		}
		inner := messages.ViewProperties(m.properties)
		kept := inner.Without(name)
		changed = changed || len(kept) != len(inner)
		members = append(members, messages.Message{Flag: m.flag, Body: m.body, Properties: kept})
	}
	if !changed { // it was in a body
		return envelope
	}
	body, err := EncodeBatchBody(nil, members)
	if err != nil {
		return envelope
	}
	*scratch = *envelope
	scratch.Properties, scratch.Body = outer, body
	return scratch
}
