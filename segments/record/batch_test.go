package record_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// rawMember builds a member as a producer does that checks nothing: the properties length is cast to 16 bits.
func rawMember(flag int32, body, properties string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(22+len(body)+len(properties)))
	b = binary.BigEndian.AppendUint64(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(flag))
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(properties)))
	return append(b, properties...)
}

// appendBatch encodes a batch as a store does: once its size is known.
func appendBatch(dst []byte, envelope *messages.Message, maxBody int) (out []byte, count int, err error) {
	size, count, err := record.BatchSize(envelope, maxBody)
	if err != nil {
		return dst, count, err
	}
	return record.AppendBatch(dst, envelope, size), count, nil
}

// requireRefused makes sure that a batch is refused as a whole.
func requireRefused(t *testing.T, envelope *messages.Message, maxBody int, want error, detail string) {
	t.Helper()
	size, count, err := record.BatchSize(envelope, maxBody)
	require.ErrorIs(t, err, want)
	require.ErrorContains(t, err, detail)
	require.Zero(t, size)
	require.Zero(t, count)
}

func TestBatchTakesFromEnvelopeAndMember(t *testing.T) {
	body := append(rawMember(-1, "one", "TAGS\x01a"), rawMember(math.MaxInt32, "", "")...)
	envelope := message("TopicTest", 3, string(body), "CLUSTER|c")
	envelope.Flag, envelope.SysFlag, envelope.ReconsumeTimes = 99, messages.SysFlagCompressed, 4
	envelope.BornHost, envelope.StoreHost = bornV6, storeV6
	envelope.PreparedTransactionOffset = 77 // a batch has none

	size, count, err := record.BatchSize(&envelope, len(body))
	require.NoError(t, err)
	require.Equal(t, 2, count)
	out, count, err := appendBatch([]byte("before"), &envelope, len(body))
	require.NoError(t, err)
	require.Equal(t, 2, count)
	require.Len(t, out, len("before")+size)
	stored, err := record.DecodeAll(out[len("before"):])
	require.NoError(t, err)
	require.Len(t, stored, 2)
	for i, want := range []messages.Message{
		{Flag: -1, Body: []byte("one"), Properties: wire("TAGS|a,CLUSTER|c")},
		{Flag: math.MaxInt32, Properties: wire("CLUSTER|c")},
	} {
		want.Topic, want.QueueID, want.SysFlag, want.ReconsumeTimes = "TopicTest", 3, 0x31, 4
		want.BornHost, want.StoreHost, want.BornTimestampMs = bornV6, storeV6, bornTimestampMs
		require.Equal(t, want, stored[i].Message)
		require.Equal(t, record.CRC(want.Body), stored[i].BodyCRC)
	}
}

// Each member is the record of its message: what is the same for all of them, which is written once, and its own, whatever was in the buffer.
func TestEachMemberIsTheRecordOfItsMessage(t *testing.T) {
	for _, hosts := range [][2]netip.AddrPort{{}, {bornV6, storeV6}, {bornV6, {}}, {{}, storeV6}} {
		envelope := message("TopicTest", 7, "", "")
		envelope.BornHost, envelope.StoreHost, envelope.ReconsumeTimes = hosts[0], hosts[1], 5
		var body, want []byte
		for i, text := range []string{"one", "", "three", "a longer one", "x"} {
			one := envelope
			one.Flag, one.Body, one.Properties = int32(i-2), []byte(text), wire("TAGS|"+text)
			body = append(body, rawMember(one.Flag, text, string(one.Properties))...)
			var err error
			want, err = record.Append(want, &one)
			require.NoError(t, err)
		}
		envelope.Body = body
		size, _, err := record.BatchSize(&envelope, len(body))
		require.NoError(t, err)
		require.Equal(t, want, record.AppendBatch(bytes.Repeat([]byte{0xee}, 4096)[:0], &envelope, size))
	}
}

func TestBatchJoinsProperties(t *testing.T) {
	for _, c := range []struct{ inner, outer, want string }{
		{"", "", ""},
		{"a|b", "", "a|b"},
		{"a|b,", "", "a|b,"},
		{"", "c|d", "c|d"},
		{"a|b", "c|d", "a|b,c|d"},
		{"a|b,", "c|d", "a|b,c|d"},
		{"a|b,,", "c|d,", "a|b,,c|d,"},
		{"WAIT|false", "WAIT|true", "WAIT|false,WAIT|true"},
		{"DELAY|3", "", "DELAY|3"}, // not noticed, as in RocketMQ
	} {
		envelope := message("T", 0, string(rawMember(0, "b", string(wire(c.inner)))), c.outer)
		out, _, err := appendBatch(nil, &envelope, 1000)
		require.NoError(t, err)
		r, _, err := record.Parse(out, true)
		require.NoError(t, err)
		require.Equal(t, string(wire(c.want)), string(r.Properties))
	}
}

// Field report L01: a member's long properties were stored with a negative length, and everything behind was lost.
func TestBatchMemberWithLongProperties(t *testing.T) {
	for _, n := range []int{32766, 32767, 32768, 32769, 65535, 65536, 70000} {
		long := "a\x01" + strings.Repeat("b", n-2)
		wireBody := bytes.Join([][]byte{rawMember(0, "1", ""), rawMember(0, "2", long), rawMember(0, "3", "")}, nil)
		envelope := message("TopicTest", 0, string(wireBody), "")
		producer, err := record.EncodeBatchBody([]byte("x"), []messages.Message{
			{Body: []byte("1")}, {Body: []byte("2"), Properties: messages.Properties(long)}, {Body: []byte("3")},
		})
		if n > messages.MaxPropertiesBytes {
			require.ErrorIs(t, err, record.ErrPropertiesTooLong)
			require.ErrorContains(t, err, "batch member 1: ")
			require.Equal(t, "x", string(producer))
			requireRefused(t, &envelope, 1<<20, record.ErrPropertiesTooLong, "batch member 1 at byte 23: ")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, string(wireBody), string(producer[1:]))
		out, count, err := appendBatch(nil, &envelope, 1<<20)
		require.NoError(t, err)
		require.Equal(t, 3, count)
		stored, err := record.DecodeAll(out)
		require.NoError(t, err)
		require.Len(t, stored, 3)
		require.Equal(t, long, string(stored[1].Properties))
		require.Equal(t, "3", string(stored[2].Body))
	}
}

// The limit is on what is stored: the member's properties, the separator and the envelope's.
func TestBatchJoinedPropertiesLimit(t *testing.T) {
	for _, c := range []struct {
		inner, outer int
		trailing     bool
		fits         bool
	}{
		{32762, 4, false, true},
		{32763, 4, false, false},
		{32763, 4, true, true},
		{32764, 4, true, false},
		{0, 32767, false, true},
		{0, 32768, false, false},
		{32767, 32767, false, false},
	} {
		fill := func(n int) string { return strings.Repeat("x", n) }
		inner := fill(c.inner)
		if c.trailing {
			inner = inner[1:] + "\x02"
		}
		envelope := message("T", 0, string(rawMember(0, "", inner)), fill(c.outer))
		if !c.fits {
			requireRefused(t, &envelope, 1<<20, record.ErrPropertiesTooLong, "at most 32767")
			continue
		}
		out, _, err := appendBatch(nil, &envelope, 1<<20)
		require.NoError(t, err)
		r, _, err := record.Parse(out, true)
		require.NoError(t, err)
		require.Len(t, r.Properties, 32767)
	}
}

func TestBatchEnvelopeRefused(t *testing.T) {
	good := string(rawMember(0, "b", ""))
	change := func(f func(*messages.Message)) *messages.Message {
		m := message("T", 0, good, "")
		f(&m)
		return &m
	}
	for _, c := range []struct {
		name     string
		envelope *messages.Message
		want     error
		detail   string
	}{
		{"no members", change(func(m *messages.Message) { m.Body = nil }), record.ErrBadBatch, "no members"},
		{"too long", change(func(m *messages.Message) { m.Body = append(m.Body, 0) }), record.ErrBatchTooLong, "24 bytes, at most 23"},
		{"prepared", change(func(m *messages.Message) { m.SysFlag = 4 }), record.ErrBatchEnvelope, "0x4"},
		{"commit", change(func(m *messages.Message) { m.SysFlag = 8 }), record.ErrBatchEnvelope, "0x8"},
		{"rollback", change(func(m *messages.Message) { m.SysFlag = 12 }), record.ErrBatchEnvelope, "0xc"},
		{"delay", change(func(m *messages.Message) { m.Properties = wire("DELAY|1") }), record.ErrBatchEnvelope, `DELAY "1"`},
		{"delay no number", change(func(m *messages.Message) { m.Properties = wire("DELAY|x") }), record.ErrBatchEnvelope, `DELAY "x"`},
		{"no topic", change(func(m *messages.Message) { m.Topic = "" }), record.ErrTopicLength, "0 bytes"},
		{"topic too long", change(func(m *messages.Message) { m.Topic = strings.Repeat("中", 43) }), record.ErrTopicLength, "129"},
	} {
		t.Run(c.name, func(t *testing.T) { requireRefused(t, c.envelope, len(good), c.want, c.detail) })
	}
	_, count, err := appendBatch(nil, change(func(m *messages.Message) { m.Properties = wire("DELAY|0") }), len(good))
	require.NoError(t, err, "level 0 is no delay")
	require.Equal(t, 1, count)
}

// Damage to each length of the second member, and a batch cut off at each byte.
func TestBatchMemberDamaged(t *testing.T) {
	first, second := rawMember(0, "first", "a\x01b"), rawMember(0, "second", "c\x01d")
	const bodyLengthAt, propertiesLengthAt = 16, 20 + 6
	for _, c := range []struct {
		name   string
		at     int
		bytes  string
		detail string
	}{
		{"size −1", 0, "ffffffff", "size -1, want 22 to 31"},
		{"size 0", 0, "00000000", "size 0"},
		{"size 21", 0, "00000015", "size 21, want 22"},
		{"size 22", 0, "00000016", "body length 6, room for 0"},
		{"size one less", 0, "0000001e", "properties length 3, size 30 leaves 2"},
		{"size one more", 0, "00000020", "size 32, want 22 to 31"},
		{"size huge", 0, "7fffffff", "size 2147483647"},
		{"body −1", bodyLengthAt, "ffffffff", "body length -1, room for 9"},
		{"body 0", bodyLengthAt, "00000000", "properties length 29541, size 31 leaves 9"},
		{"body one less", bodyLengthAt, "00000005", "properties length 25600"},
		{"body one more", bodyLengthAt, "00000007", "properties length 867, size 31 leaves 2"},
		{"body to the end", bodyLengthAt, "0000000a", "body length 10, room for 9"},
		{"body huge", bodyLengthAt, "7fffffff", "body length 2147483647"},
		{"properties −1", propertiesLengthAt, "ffff", "properties length -1, size 31 leaves 3"},
		{"properties 0", propertiesLengthAt, "0000", "properties length 0"},
		{"properties one less", propertiesLengthAt, "0002", "properties length 2"},
		{"properties one more", propertiesLengthAt, "0004", "properties length 4"},
		{"properties huge", propertiesLengthAt, "7fff", "properties length 32767"},
	} {
		t.Run(c.name, func(t *testing.T) {
			damaged := bytes.Clone(second)
			copy(damaged[c.at:], unhex(t, c.bytes))
			envelope := message("T", 0, string(first)+string(damaged), "CLUSTER|c")
			requireRefused(t, &envelope, 1000, record.ErrBadBatch, "batch member 1 at byte 30: ")
			requireRefused(t, &envelope, 1000, record.ErrBadBatch, c.detail)
		})
	}
	both := string(first) + string(second)
	for n := range len(both) {
		envelope := message("T", 0, both[:n], "")
		if n == len(first) {
			_, count, err := record.BatchSize(&envelope, 1000)
			require.NoError(t, err)
			require.Equal(t, 1, count)
			continue
		}
		requireRefused(t, &envelope, 1000, record.ErrBadBatch, "")
	}
}

// A small wire body under a large envelope would take gigabytes: BatchSize says so before anything is allocated.
func TestBatchSizeOfAHostileBatch(t *testing.T) {
	wireBody := bytes.Repeat(rawMember(0, "", ""), 4<<20/22)
	envelope := message(strings.Repeat("t", 127), 0, string(wireBody), strings.Repeat("x", 5000))
	size, count, err := record.BatchSize(&envelope, 4<<20)
	require.NoError(t, err)
	require.Equal(t, 4<<20/22, count)
	require.Equal(t, count*(record.MinBytes+127+5000), size)
	require.Zero(t, testing.AllocsPerRun(1, func() { _, _, err = record.BatchSize(&envelope, 4<<20) }))

	envelope.Properties = messages.Properties(strings.Repeat("x", 32767))
	_, _, err = record.BatchSize(&envelope, 4<<20)
	require.ErrorIs(t, err, record.ErrRecordTooLong)
}

func TestEncodeBatchBody(t *testing.T) {
	dirty := bytes.Repeat([]byte{0xee}, 1000)
	got, err := record.EncodeBatchBody(dirty[:0], []messages.Message{{Flag: 5, Body: []byte("b"), Properties: "a\x01b"}, {}})
	require.NoError(t, err)
	require.Equal(t, append(rawMember(5, "b", "a\x01b"), rawMember(0, "", "")...), got)
	got, err = record.EncodeBatchBody([]byte("x"), nil)
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

func TestEncodeBatchBodyTooLong(t *testing.T) {
	many := make([]messages.Message, 2048)
	body := make([]byte, 1<<20)
	for i := range many {
		many[i].Body = body
	}
	out, err := record.EncodeBatchBody([]byte("x"), many)
	require.ErrorIs(t, err, record.ErrRecordTooLong)
	require.Equal(t, "x", string(out))
	require.ErrorContains(t, err, "batch member 2047 of 1048598 bytes behind 2146480106")
}

func TestAppendBatchDoesNotAllocate(t *testing.T) {
	envelope := message("TopicTest", 3, strings.Repeat(string(rawMember(1, "body", "TAGS\x01a")), 32), "CLUSTER|c")
	buffer, count := make([]byte, 0, 32<<10), 0
	require.Zero(t, testing.AllocsPerRun(100, func() { _, count, _ = appendBatch(buffer, &envelope, 1<<20) }))
	require.Equal(t, 32, count)
}

// The sizes are those of the records, with joined properties of every kind; a damaged batch has the sizes up to the damage.
func TestBatchSizesAreThoseOfTheRecords(t *testing.T) {
	for _, outer := range []string{"", "CLUSTER|c", "ends|in zero\x00"} {
		var body []byte
		for _, inner := range []string{"", "a\x01b", "a\x01b\x02", "zero\x01\x00"} {
			body = append(body, rawMember(0, strings.Repeat("x", len(body)), inner)...)
		}
		envelope := message("TopicTest", 3, string(body), outer)
		out, count, err := appendBatch(nil, &envelope, len(body))
		require.NoError(t, err)
		sizes := record.AppendBatchSizes(nil, &envelope)
		require.Len(t, sizes, count)
		for _, size := range sizes {
			require.Equal(t, size, record.TotalSize(out))
			out = out[size:]
		}
		require.Empty(t, out)
		envelope.Body = body[:len(body)-1]
		require.Equal(t, sizes[:count-1], record.AppendBatchSizes(nil, &envelope))
	}
}
