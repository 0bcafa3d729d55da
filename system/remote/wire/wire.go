package wire

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/actormq/actormq/messages"
)

// Version is that of the envelope.
const Version = 1

// Window is how many ids, from done on, a client may have in flight at one node.
const Window = 4096

// EndpointName is the name of the store endpoint's actor on a node.
const EndpointName = "store-endpoint"

// The kinds of payloads.
const (
	KindHello         = "hello"
	KindWelcome       = "welcome"
	KindRefused       = "refused"
	KindPut           = "put"
	KindPutResult     = "put-result"
	KindGet           = "get"
	KindGetResult     = "get-result"
	KindQuery         = "query"
	KindQueryResult   = "query-result"
	KindOffsets       = "offsets"
	KindOffsetsResult = "offsets-result"
	KindSubscribe     = "subscribe"
	KindDelivery      = "delivery"
	KindAck           = "ack"
	KindUnsubscribe   = "unsubscribe"
)

// EnvelopeName is the full name of the one type that crosses the network.
const EnvelopeName = protoreflect.FullName("actormq.store.v1.Envelope")

// Pack puts a payload into an envelope.
func Pack(kind string, client, id uint64, payload proto.Message) (*Envelope, error) {
	b, err := proto.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	return &Envelope{Version: Version, Kind: kind, Client: client, Id: id, Payload: b}, nil
}

// Unpack reads the payload of an envelope.
func Unpack(e *Envelope, into proto.Message) error {
	if err := proto.Unmarshal(e.GetPayload(), into); err != nil {
		return fmt.Errorf("decode %s: %w", e.GetKind(), err)
	}
	return nil
}

// TagFilter is the filter of consume-queue units for these tags, nil for none. Another tag may have the same code: who reads the
// messages calls HasTag.
func TagFilter(tags []string) messages.TagFilter {
	if len(tags) == 0 {
		return nil
	}
	codes := make([]int64, len(tags))
	for i, tag := range tags {
		codes[i] = int64(messages.JavaHash(tag))
	}
	return func(code int64) bool { return slices.Contains(codes, code) }
}

// HasTag tells whether a message has one of these tags; without any, each message does.
func HasTag(p messages.Properties, tags []string) bool {
	if len(tags) == 0 {
		return true
	}
	tag, _ := p.Get(messages.PropertyTags)
	return slices.Contains(tags, tag)
}
