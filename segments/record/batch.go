package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/actormq/actormq/messages"
)

// Reasons why a batch is refused, beside those of [Size]; always the whole of it.
var (
	// ErrBatchTooLong: the wire body is longer than allowed.
	ErrBatchTooLong = errors.New("batch is too long")
	// ErrBadBatch: the wire body is empty, cut off, or its lengths contradict each other.
	ErrBadBatch = errors.New("bad batch")
	// ErrBatchEnvelope: transactions and delays do not go with batches.
	ErrBatchEnvelope = errors.New("batch with a transaction or a delay")
)

// The producer's form of one batch member (spec/store.md §2.10): TOTALSIZE, MAGIC, BODYCRC, FLAG, BODYLEN + BODY as i32,
// PROPSLEN + PROPS as i16.
const (
	memberFlagAt     = 12
	memberBodyLenAt  = 16
	memberBodyAt     = 20
	memberFixedBytes = 22
)

// BatchSize checks a batch and returns the bytes that its records take, and their number, without writing or allocating
// anything: a caller compares the size with what a segment holds before it pays for [AppendBatch]. A hostile batch of
// tiny members under a large envelope grows a thousandfold.
//
// The envelope's body is the wire body of the batch, at most maxBody bytes long (the limit for messages). The error
// wraps [ErrBatchTooLong], [ErrBadBatch], [ErrBatchEnvelope] or one of [Size], and names the member.
func BatchSize(envelope *messages.Message, maxBody int) (size, count int, err error) {
	if len(envelope.Body) > maxBody {
		return 0, 0, fmt.Errorf("%w: %d bytes, at most %d", ErrBatchTooLong, len(envelope.Body), maxBody)
	}
	if err = checkEnvelope(envelope); err != nil {
		return 0, 0, err
	}
	fixed := fixedBytes(envelope)
	for rest := envelope.Body; len(rest) > 0; count++ {
		at := len(envelope.Body) - len(rest)
		var m member
		if m, rest, err = nextMember(rest); err != nil {
			return 0, 0, fmt.Errorf("batch member %d at byte %d: %w", count, at, err)
		}
		d := draft{inner: m.properties, outer: envelope.Properties}
		n, err := sizeOf(fixed, len(m.body), d.propertiesBytes())
		if err != nil {
			return 0, 0, fmt.Errorf("batch member %d at byte %d: %w", count, at, err)
		}
		if n > math.MaxInt32-size {
			return 0, 0, fmt.Errorf("%w: batch member %d of %d bytes behind %d", ErrRecordTooLong, count, n, size)
		}
		size += n
	}
	return size, count, nil
}

// AppendBatchSizes appends the bytes of each record that [AppendBatch] makes of a batch; of one that [BatchSize] refuses, those of the
// members before what is wrong.
func AppendBatchSizes(dst []int32, envelope *messages.Message) []int32 {
	fixed := fixedBytes(envelope)
	for rest := envelope.Body; len(rest) > 0; {
		var m member
		var err error
		if m, rest, err = nextMember(rest); err != nil {
			break
		}
		d := draft{inner: m.properties, outer: envelope.Properties}
		dst = append(dst, int32(fixed+len(m.body)+d.propertiesBytes()))
	}
	return dst
}

// AppendBatch encodes each member of a batch, which [BatchSize] has just found good, as a record of its own behind dst; size is what that has
// told, so the members are not looked at once more before the first of them is written. The holes are left as by [Append]. Topic, queue, system flag,
// hosts, born time and reconsume times are the envelope's, flag and body the member's; the properties are the member's followed by the envelope's
// (spec/store.md §2.10).
func AppendBatch(dst []byte, envelope *messages.Message, size int) []byte {
	d := draft{envelope: envelope, sysFlag: hostBits(envelope), outer: envelope.Properties}
	fixed := fixedBytes(envelope)
	out, free := extend(dst, size)
	first, head := free, 0
	for rest := envelope.Body; len(rest) > 0; {
		var m member
		m, rest, _ = nextMember(rest) // was checked by BatchSize
		d.flag, d.body, d.inner = m.flag, m.body, m.properties
		n := fixed + len(d.body) + d.propertiesBytes()
		if head == 0 {
			head = d.writeHead(free[:n])
		} else {
			copy(free[:head], first[:head])
		}
		d.writeOwn(free[:n], head)
		free = free[n:]
	}
	return out
}

// EncodeBatchBody appends the wire body of a batch, the producer's side of [AppendBatch]: flag, body and properties of
// each message. The error wraps [ErrPropertiesTooLong] or [ErrRecordTooLong]; dst then comes back unchanged.
func EncodeBatchBody(dst []byte, msgs []messages.Message) ([]byte, error) {
	size := 0
	for i := range msgs {
		n, err := sizeOf(memberFixedBytes, len(msgs[i].Body), len(msgs[i].Properties))
		if err != nil {
			return dst, fmt.Errorf("batch member %d: %w", i, err)
		}
		if n > math.MaxInt32-size {
			return dst, fmt.Errorf("%w: batch member %d of %d bytes behind %d", ErrRecordTooLong, i, n, size)
		}
		size += n
	}
	out, free := extend(dst, size)
	for i := range msgs {
		m := &msgs[i]
		n := memberFixedBytes + len(m.Body) + len(m.Properties)
		binary.BigEndian.PutUint32(free, uint32(n))
		clear(free[4:memberFlagAt]) // magic and CRC are ignored by the store
		binary.BigEndian.PutUint32(free[memberFlagAt:], uint32(m.Flag))
		binary.BigEndian.PutUint32(free[memberBodyLenAt:], uint32(len(m.Body)))
		behind := free[memberBodyAt+copy(free[memberBodyAt:], m.Body):]
		binary.BigEndian.PutUint16(behind, uint16(len(m.Properties)))
		copy(behind[2:], m.Properties)
		free = free[n:]
	}
	return out, nil
}

// checkEnvelope refuses what can't be true for a batch as a whole.
func checkEnvelope(envelope *messages.Message) error {
	if len(envelope.Body) == 0 {
		return fmt.Errorf("%w: no members", ErrBadBatch)
	}
	if messages.TransactionOf(envelope.SysFlag) != messages.SysFlagTransactionNone {
		return fmt.Errorf("%w: system flag %#x", ErrBatchEnvelope, uint32(envelope.SysFlag))
	}
	if text, found := envelope.Properties.Get(messages.PropertyDelay); found {
		if level, err := strconv.ParseInt(text, 10, 32); err != nil || level > 0 {
			return fmt.Errorf("%w: DELAY %q", ErrBatchEnvelope, text)
		}
	}
	return checkTopic(envelope.Topic)
}

// member is one message of a wire body; its slices point into that.
type member struct {
	flag       int32
	body       []byte
	properties []byte
}

// nextMember splits the first member off a wire body. TOTALSIZE has to agree with the two lengths inside: properties
// whose length was cast to 16 bits are found out by it, even where the remainder is positive.
func nextMember(b []byte) (m member, rest []byte, err error) {
	be := binary.BigEndian
	if len(b) < memberFixedBytes {
		return member{}, nil, fmt.Errorf("%w: %d bytes left, a member has %d", ErrBadBatch, len(b), memberFixedBytes)
	}
	size := int(int32(be.Uint32(b)))
	if size < memberFixedBytes || size > len(b) {
		return member{}, nil, fmt.Errorf("%w: size %d, want %d to %d", ErrBadBatch, size, memberFixedBytes, len(b))
	}
	b, rest = b[:size:size], b[size:]
	bodyLength := int(int32(be.Uint32(b[memberBodyLenAt:])))
	if room := size - memberFixedBytes; bodyLength < 0 || bodyLength > room {
		return member{}, nil, fmt.Errorf("%w: body length %d, room for %d", ErrBadBatch, bodyLength, room)
	}
	bodyEnd := memberBodyAt + bodyLength
	room := size - memberFixedBytes - bodyLength
	if room > messages.MaxPropertiesBytes {
		return member{}, nil, fmt.Errorf("%w: %d bytes, at most %d", ErrPropertiesTooLong, room, messages.MaxPropertiesBytes)
	}
	if propertiesLength := int(int16(be.Uint16(b[bodyEnd:]))); propertiesLength != room {
		return member{}, nil, fmt.Errorf("%w: properties length %d, size %d leaves %d", ErrBadBatch, propertiesLength, size, room)
	}
	m = member{
		flag:       int32(be.Uint32(b[memberFlagAt:])),
		body:       b[memberBodyAt:bodyEnd],
		properties: b[bodyEnd+2:],
	}
	return m, rest, nil
}
