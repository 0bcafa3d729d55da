package remote

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// errFrame: the bytes of a message are not as the library writes them.
var errFrame = errors.New("bad frame")

// codec is gRPC's codec of protobuf, with a look at the bytes before they become objects: an empty element of a list takes two bytes on
// the wire and some hundred in memory.
type codec struct{}

// Name implements encoding.Codec: it is the content type's.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errFrame, v)
	}
	return proto.Marshal(m)
}

// Unmarshal implements encoding.Codec.
func (codec) Unmarshal(b []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%w: %T", errFrame, v)
	}
	if err := countElements(b); err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}

// The lists of the library's MessageBatch, which is field 1 of its RemoteMessage; all four of its fields are lists.
const (
	fieldBatch  protowire.Number = 1
	fieldHeader protowire.Number = 6 // of an envelope: a map, which we never send
	fieldParts  protowire.Number = 3 // of a batch: the envelopes
)

// countElements refuses a frame with more elements in its lists than a batch has.
func countElements(frame []byte) error {
	left := 4 * maxBatchReceived
	return eachField(frame, func(n protowire.Number, value []byte) error {
		if left--; left < 0 {
			return fmt.Errorf("%w: too many elements", errFrame)
		}
		if n != fieldBatch {
			return nil
		}
		return eachField(value, func(n protowire.Number, part []byte) error {
			if left--; left < 0 {
				return fmt.Errorf("%w: more than %d elements", errFrame, 4*maxBatchReceived)
			}
			if n != fieldParts {
				return nil
			}
			return eachField(part, func(n protowire.Number, _ []byte) error {
				if n == fieldHeader {
					return fmt.Errorf("%w: a header", errFrame)
				}
				return nil
			})
		})
	})
}

// eachField calls fn for each field of a message; value is nil for one that is not bytes.
func eachField(b []byte, fn func(n protowire.Number, value []byte) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", errFrame, protowire.ParseError(n))
		}
		b = b[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(b)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", errFrame, protowire.ParseError(n))
		}
		if err := fn(number, value); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
