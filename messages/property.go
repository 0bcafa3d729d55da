package messages

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unsafe"
)

// Well-known property names (spec/store.md §2.6). The spelling is the wire's.
const (
	PropertyKeys                 = "KEYS"     // the application's keys, separated by spaces; indexed
	PropertyTags                 = "TAGS"     // the tag; its hash goes into the consume queue
	PropertyUniqKey              = "UNIQ_KEY" // the client's own unique id; indexed
	PropertyWait                 = "WAIT"     // "false": do not wait for flush and replica; missing means true
	PropertyDelay                = "DELAY"    // delay level, decimal
	PropertyRealTopic            = "REAL_TOPIC"
	PropertyRealQueueID          = "REAL_QID"
	PropertyRetryTopic           = "RETRY_TOPIC"
	PropertyOriginMessageID      = "ORIGIN_MESSAGE_ID"
	PropertyReconsumeTime        = "RECONSUME_TIME"
	PropertyMaxReconsumeTimes    = "MAX_RECONSUME_TIMES"
	PropertyConsumeStartTime     = "CONSUME_START_TIME"
	PropertyTransactionMessage   = "TRAN_MSG" // "true" marks a half message
	PropertyProducerGroup        = "PGROUP"
	PropertyTransactionChecks    = "TRANSACTION_CHECK_TIMES"
	PropertyCheckImmunitySeconds = "CHECK_IMMUNITY_TIME_IN_SECONDS"
	PropertyPreparedQueueOffset  = "TRAN_PREPARED_QUEUE_OFFSET"
	PropertyMinOffset            = "MIN_OFFSET" // added by clients after a pull, never stored
	PropertyMaxOffset            = "MAX_OFFSET" // added by clients after a pull, never stored
	PropertyCluster              = "CLUSTER"    // added by the broker to each message sent to it
	PropertyMessageRegion        = "MSG_REGION"
	PropertyTraceOn              = "TRACE_ON"
	PropertyMultiDispatch        = "INNER_MULTI_DISPATCH"
	PropertyMultiQueueOffset     = "INNER_MULTI_QUEUE_OFFSET"
	PropertyLost                 = "ACTORMQ_LOST" // marks a record that stands in the place of one that was lost
	PropertyInstanceID           = "INSTANCE_ID"
	PropertyCorrelationID        = "CORRELATION_ID"
	PropertyReplyToClient        = "REPLY_TO_CLIENT"
	PropertyTTL                  = "TTL"
	PropertyArriveTime           = "ARRIVE_TIME"
	PropertyPushReplyTime        = "PUSH_REPLY_TIME"
	PropertyMessageType          = "MSG_TYPE"
	PropertyBuyerID              = "BUYER_ID"
	PropertyTransferFlag         = "TRANSFER_FLAG"
	PropertyCorrectionFlag       = "CORRECTION_FLAG"
	PropertyMQ2Flag              = "MQ2_FLAG"
)

// The two separators of the wire form.
const (
	nameValueSeparator = '\x01'
	propertySeparator  = '\x02'
)

// ErrProperty says that a name or a value can't be written in the wire form; see [CheckProperty].
var ErrProperty = errors.New("property can't be stored")

// Properties are a message's properties in the form that is stored and sent (spec/store.md §2.5): name 0x01 value,
// joined by 0x02; a trailing 0x02, as old releases wrote it, is accepted. The value is immutable and safe to share.
//
// What a reader sees: a pair counts only with a name and a value of at least one byte each, a later 0x01 belongs to the
// value, anything else between two separators is skipped, and of equal names the last one wins.
type Properties string

// PropertiesOf returns the wire form of a map: sorted by name, without a trailing separator, the same for equal maps.
// An empty value is written, though no reader sees it. A pair that [CheckProperty] refuses is left out: it could not be
// read back, and its separators would forge other properties. Check first what comes from outside.
func PropertiesOf(pairs map[string]string) Properties {
	size := 0
	for name, value := range pairs {
		size += len(name) + len(value) + 2
	}
	b := strings.Builder{}
	b.Grow(size)
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		value := pairs[name]
		if CheckProperty(name, value) != nil {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(propertySeparator)
		}
		writePair(&b, name, value)
	}
	return Properties(b.String())
}

// ViewProperties looks at wire bytes without copying them: the result, and every string taken from it, is valid only as
// long as the bytes are neither changed nor unmapped. Clone what outlives them.
func ViewProperties(wire []byte) Properties { return Properties(viewString(wire)) }

// CheckProperty returns an error that wraps [ErrProperty] when the pair would not survive the wire form: an empty name,
// 0x01 or 0x02 in the name, or 0x02 in the value.
func CheckProperty(name, value string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: empty name", ErrProperty)
	case strings.IndexByte(name, nameValueSeparator) >= 0 || strings.IndexByte(name, propertySeparator) >= 0:
		return fmt.Errorf("%w: separator in the name %q", ErrProperty, name)
	case strings.IndexByte(value, propertySeparator) >= 0:
		return fmt.Errorf("%w: separator in the value of %q", ErrProperty, name)
	}
	return nil
}

// Get returns the value of a property, of the last one if there are several. It does not allocate.
func (p Properties) Get(name string) (value string, found bool) {
	if !strings.Contains(string(p), name) {
		return "", false // most messages have none of what is asked for
	}
	for rest := string(p); ; {
		end := strings.IndexByte(rest, propertySeparator)
		pair := rest
		if end >= 0 {
			pair = rest[:end]
		}
		// The separator is looked at first: most pairs end the comparison there.
		if n := len(name); len(pair) > n+1 && pair[n] == nameValueSeparator && pair[:n] == name && n > 0 &&
			strings.IndexByte(name, nameValueSeparator) < 0 {
			value, found = pair[n+1:], true
		}
		if end < 0 {
			return value, found
		}
		rest = rest[end+1:]
	}
}

// Waits tells whether the sender wants to wait for flush and replicas: unless WAIT is false.
func (p Properties) Waits() bool {
	wait, _ := p.Get(PropertyWait)
	return !strings.EqualFold(wait, "false")
}

// Dispatched returns what [Properties.Get] says of KEYS, UNIQ_KEY and TAGS, in one pass. It does not allocate.
func (p Properties) Dispatched() (keys, uniqKey, tags string) {
	const short, long = len(PropertyKeys), len(PropertyUniqKey) // TAGS is as long as KEYS
	for rest := string(p); rest != ""; {
		pair := rest
		if end := strings.IndexByte(rest, propertySeparator); end >= 0 {
			pair, rest = rest[:end], rest[end+1:]
		} else {
			rest = ""
		}
		switch {
		case len(pair) <= short+1:
		case pair[short] == nameValueSeparator:
			if pair[:short] == PropertyTags {
				tags = pair[short+1:]
			} else if pair[:short] == PropertyKeys {
				keys = pair[short+1:]
			}
		case len(pair) > long+1 && pair[long] == nameValueSeparator && pair[:long] == PropertyUniqKey:
			uniqKey = pair[long+1:]
		}
	}
	return keys, uniqKey, tags
}

// WithoutDelivery returns the properties without what a delivery adds (retries, delays, what clients note when they take a message):
// so it can be sent again as a new one. It keeps its keys, its tag, and the topic that it is from.
func (p Properties) WithoutDelivery() Properties {
	return p.Without(PropertyReconsumeTime, PropertyMaxReconsumeTimes, PropertyDelay, PropertyConsumeStartTime, PropertyMinOffset,
		PropertyMaxOffset, PropertyWait)
}

// All yields the pairs that a reader sees, in their order on the wire. A name that occurs twice is yielded twice: the
// last one counts. It does not allocate.
func (p Properties) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for rest := string(p); rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, string(propertySeparator))
			at := strings.IndexByte(pair, nameValueSeparator)
			if at < 1 || at == len(pair)-1 {
				continue
			}
			if !yield(pair[:at], pair[at+1:]) {
				return
			}
		}
	}
}

// Map returns the pairs that a reader sees. Without any byte of properties the map is nil.
func (p Properties) Map() map[string]string {
	if p == "" {
		return nil
	}
	return maps.Collect(p.All())
}

// With returns the properties with name set to value: earlier pairs of that name are gone, the new one stands last.
// A pair that [CheckProperty] refuses is not added (the earlier ones are gone all the same); an empty value is written,
// though no reader sees it.
func (p Properties) With(name, value string) Properties {
	if CheckProperty(name, value) != nil {
		return p.Without(name)
	}
	return ViewProperties(p.AppendWith(make([]byte, 0, len(p)+len(name)+len(value)+2), name, value))
}

// AppendWith appends p.Without(without...).With(name, value) to dst, in one pass and without an allocation if there is room.
func (p Properties) AppendWith(dst []byte, name, value string, without ...string) []byte {
	from := len(dst)
	var few [4]string
	dst = p.appendWithout(dst, append(append(few[:0], without...), name))
	if CheckProperty(name, value) != nil {
		return dst
	}
	if len(dst) > from && dst[len(dst)-1] != propertySeparator {
		dst = append(dst, propertySeparator)
	}
	dst = append(append(dst, name...), nameValueSeparator)
	return append(dst, value...)
}

// Without returns the properties without any pair of these names, those with an empty value included. If there is none,
// the result is p itself, byte for byte, and nothing is allocated.
func (p Properties) Without(names ...string) Properties {
	if !p.mentions(names) {
		return p
	}
	return ViewProperties(p.appendWithout(make([]byte, 0, len(p)), names))
}

// appendWithout appends the properties without the pairs of some names; without any of them, byte for byte as they are.
func (p Properties) appendWithout(dst []byte, names []string) []byte {
	if !p.mentions(names) {
		return append(dst, p...)
	}
	from := len(dst)
	for rest := string(p); rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, string(propertySeparator))
		if pair == "" || named(pair, names) {
			continue
		}
		if len(dst) > from {
			dst = append(dst, propertySeparator)
		}
		dst = append(dst, pair...)
	}
	return dst
}

// mentions tells whether a pair of one of the names is there, whatever its value.
func (p Properties) mentions(names []string) bool {
	for rest := string(p); rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, string(propertySeparator))
		if named(pair, names) {
			return true
		}
	}
	return false
}

// named tells whether the name of a pair is one of names.
func named(pair string, names []string) bool {
	at := strings.IndexByte(pair, nameValueSeparator)
	return at >= 0 && slices.Contains(names, pair[:at])
}

func writePair(b *strings.Builder, name, value string) {
	b.WriteString(name)
	b.WriteByte(nameValueSeparator)
	b.WriteString(value)
}

// viewString looks at bytes as a string without copying them; see [ViewProperties] for the price.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
