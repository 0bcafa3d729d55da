package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// encoded returns a record whose places are known: body at 88, topic length at 88+5, properties length at 88+5+1+9.
func encoded(t testing.TB) []byte {
	m := message("TopicTest", 3, "Hello", "TAGS|TagA")
	raw, err := record.Append(nil, &m)
	require.NoError(t, err)
	record.SetPlace(raw, 5, 6, storeTimestampMs)
	return raw
}

const (
	bodyLengthAt       = 84
	topicLengthAt      = 88 + 5
	propertiesLengthAt = topicLengthAt + 1 + 9
)

// asV2 rewrites a record in the form of RocketMQ 5: another magic and a topic length of 16 bits (spec/store.md §15).
func asV2(t testing.TB, raw []byte) []byte {
	r, _, err := record.Parse(raw, false)
	require.NoError(t, err)
	at := len(raw) - 2 - len(r.Properties) - 1 - len(r.Topic)
	v2 := append(bytes.Clone(raw[:at]), 0)
	v2 = append(v2, raw[at:]...)
	binary.BigEndian.PutUint32(v2, uint32(len(v2)))
	binary.BigEndian.PutUint32(v2[4:], record.MagicV2)
	return v2
}

func requireKind(t *testing.T, err error, kind record.ErrorKind, offset int, detail string) {
	t.Helper()
	var e *record.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, kind, e.Kind, err)
	require.Equal(t, offset, e.Offset, err)
	require.ErrorContains(t, err, detail)
	for k, sentinel := range map[record.ErrorKind]error{
		record.Unallocated: record.ErrUnallocated, record.BadMagic: record.ErrBadMagic,
		record.NewerVersion: record.ErrNewerVersion, record.BadSize: record.ErrBadSize,
		record.Truncated: record.ErrTruncated, record.BadLengths: record.ErrBadLengths, record.BadCRC: record.ErrBadCRC,
	} {
		require.Equal(t, k == kind, errors.Is(err, sentinel), "%v is %v", err, sentinel)
	}
}

func TestParseCutOff(t *testing.T) {
	for _, raw := range [][]byte{encoded(t), asV2(t, encoded(t)), unhex(t, vectors()[1].hex)} {
		for n := range raw {
			r, kind, err := record.Parse(raw[:n:n], true)
			requireKind(t, err, record.Truncated, 0, "readable")
			require.Zero(t, kind)
			require.Equal(t, record.Record{}, r)
		}
		_, _, err := record.Parse(raw, true)
		require.NoError(t, err)
	}
}

// A record torn by a power cut: the tail is zeros, while the file goes on.
func TestParseTornIntoZeros(t *testing.T) {
	raw := encoded(t)
	for n := range raw {
		torn := append(bytes.Clone(raw[:n]), make([]byte, 512)...)
		if bytes.Equal(torn[:len(raw)], raw) {
			continue // the bytes lost were zeros
		}
		_, kind, err := record.Parse(torn, true)
		switch {
		case n <= 3:
			requireKind(t, err, record.Unallocated, 0, "unallocated")
		case n <= 7:
			requireKind(t, err, record.BadMagic, 4, "")
		case n > propertiesLengthAt+1:
			require.NoError(t, err, "the properties have no checksum")
			require.Equal(t, record.KindMessage, kind)
		default:
			require.ErrorIs(t, err, record.ErrBadLengths, n)
		}
	}
}

func TestParseDamagedMagic(t *testing.T) {
	for _, c := range []struct {
		size, magic string
		kind        record.ErrorKind
		offset      int
	}{
		{"00000000", "00000000", record.Unallocated, 0},
		{"00000001", "00000000", record.BadMagic, 4},
		{"00000074", "00000000", record.BadMagic, 4},
		{"00000074", "daa320a6", record.BadMagic, 4},
		{"00000074", "daa320a8", record.BadMagic, 4},
		{"00000074", "daa320a3", record.BadMagic, 4},
		{"00000074", "daa320ac", record.BadMagic, 4},
		{"00000074", "daa321af", record.BadMagic, 4},
		{"00000074", "5aa320a7", record.BadMagic, 4},
		{"00000074", "cbd43195", record.BadMagic, 4},
		{"00000074", "ffffffff", record.BadMagic, 4},
		{"00000074", "daa320af", record.NewerVersion, 4},
		{"00000074", "daa320ff", record.NewerVersion, 4},
		{"ffffffff", "daa320b3", record.NewerVersion, 4},
	} {
		raw := encoded(t)
		copy(raw, unhex(t, c.size+c.magic))
		r, kind, err := record.Parse(raw, true)
		requireKind(t, err, c.kind, c.offset, "")
		require.Zero(t, kind)
		require.Equal(t, record.Record{}, r)
	}
}

func TestParseDamagedSize(t *testing.T) {
	right := int32(len(encoded(t)))
	for _, c := range []struct {
		size   int32
		kind   record.ErrorKind
		offset int
		detail string
	}{
		{-1, record.BadSize, 0, "-1, at least 91"},
		{math.MinInt32, record.BadSize, 0, "-2147483648"},
		{0, record.BadSize, 0, "0, at least 91"},
		{8, record.BadSize, 0, "8, at least 91"},
		{90, record.BadSize, 0, "90, at least 91"},
		{91, record.BadLengths, bodyLengthAt, "body length 5, room for 0"},
		{right - 1, record.BadLengths, propertiesLengthAt, "properties length 9, the record's size leaves 8"},
		{right + 1, record.BadLengths, propertiesLengthAt, "properties length 9, the record's size leaves 10"},
		{right + 100, record.BadLengths, propertiesLengthAt, "leaves 109"},
		{right + 101, record.Truncated, 0, "readable are"},
		{math.MaxInt32, record.Truncated, 0, "size 2147483647, readable are"},
	} {
		raw := append(encoded(t), make([]byte, 100)...)
		binary.BigEndian.PutUint32(raw, uint32(c.size))
		r, _, err := record.Parse(raw, true)
		requireKind(t, err, c.kind, c.offset, c.detail)
		if c.kind == record.BadLengths {
			require.Equal(t, record.Record{Version: 1, Size: c.size}, r, "what to skip")
		} else {
			require.Equal(t, record.Record{}, r)
		}
	}
}

func TestParseSmallestRecords(t *testing.T) {
	for sysFlag, least := range map[int32]int{0: 91, 0x10: 103, 0x20: 103, 0x30: 115} {
		for version, magic := range []uint32{record.Magic, record.MagicV2} {
			raw := make([]byte, 200)
			binary.BigEndian.PutUint32(raw[4:], magic)
			binary.BigEndian.PutUint32(raw[36:], uint32(sysFlag))
			binary.BigEndian.PutUint32(raw, uint32(least+version))
			r, kind, err := record.Parse(raw, true)
			require.NoError(t, err)
			require.Equal(t, record.KindMessage, kind)
			require.EqualValues(t, least+version, r.Size)
			require.Empty(t, r.Topic)
			binary.BigEndian.PutUint32(raw, uint32(least+version-1))
			_, _, err = record.Parse(raw, true)
			requireKind(t, err, record.BadSize, 0, "at least")
		}
	}
}

func TestParseDamagedLengths(t *testing.T) {
	v1, v2 := encoded(t), asV2(t, encoded(t))
	for _, c := range []struct {
		name   string
		raw    []byte
		at     int
		bytes  string
		offset int
		detail string
	}{
		{"body −1", v1, bodyLengthAt, "ffffffff", bodyLengthAt, "body length -1, room for 23"},
		{"body smallest", v1, bodyLengthAt, "80000000", bodyLengthAt, "body length -2147483648"},
		{"body 0", v1, bodyLengthAt, "00000000", topicLengthAt - 5, "topic length 72"},
		{"body one less", v1, bodyLengthAt, "00000004", topicLengthAt - 1, "topic length 111"},
		{"body one more", v1, bodyLengthAt, "00000006", topicLengthAt + 1, "topic length 84"},
		{"body huge", v1, bodyLengthAt, "7fffffff", bodyLengthAt, "body length 2147483647, room for 23"},
		{"body to the end", v1, bodyLengthAt, "00000018", bodyLengthAt, "body length 24, room for 23"},
		{"topic −1", v1, topicLengthAt, "ff", topicLengthAt, "topic length -1, room for 18"},
		{"topic smallest", v1, topicLengthAt, "80", topicLengthAt, "topic length -128"},
		{"topic 0", v1, topicLengthAt, "00", topicLengthAt + 1, "properties length 21615, the record's size leaves 18"},
		{"topic one less", v1, topicLengthAt, "08", propertiesLengthAt - 1, "properties length 29696"},
		{"topic one more", v1, topicLengthAt, "0a", propertiesLengthAt + 1, "properties length 2388"},
		{"topic huge", v1, topicLengthAt, "7f", topicLengthAt, "topic length 127, room for 18"},
		{"properties −1", v1, propertiesLengthAt, "ffff", propertiesLengthAt, "properties length -1, the record's size leaves 9"},
		{"properties smallest", v1, propertiesLengthAt, "8000", propertiesLengthAt, "properties length -32768"},
		{"properties 0", v1, propertiesLengthAt, "0000", propertiesLengthAt, "properties length 0"},
		{"properties one less", v1, propertiesLengthAt, "0008", propertiesLengthAt, "properties length 8"},
		{"properties one more", v1, propertiesLengthAt, "000a", propertiesLengthAt, "properties length 10"},
		{"properties huge", v1, propertiesLengthAt, "7fff", propertiesLengthAt, "properties length 32767"},
		{"version 2, topic −1", v2, topicLengthAt, "ffff", topicLengthAt, "topic length -1, room for 18"},
		{"version 2, topic huge", v2, topicLengthAt, "7fff", topicLengthAt, "topic length 32767, room for 18"},
		{"version 2, topic one more", v2, topicLengthAt, "000a", propertiesLengthAt + 2, "properties length 2388"},
		{"version 2 as 1", v2, 4, "daa320a7", topicLengthAt + 1, "properties length 2388"},
		{"version 1 as 2", v1, 4, "daa320ab", topicLengthAt, "topic length 2388"},
		{"born host as IPv6", v1, 36, "00000010", bodyLengthAt + 12, "body length 1885954900, room for 11"},
		{"store host as IPv6", v1, 36, "00000020", bodyLengthAt + 12, "body length 1885954900, room for 11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := append(bytes.Clone(c.raw), make([]byte, 64)...)
			copy(raw[c.at:], unhex(t, c.bytes))
			r, kind, err := record.Parse(raw, true)
			requireKind(t, err, record.BadLengths, c.offset, c.detail)
			require.Zero(t, kind)
			require.EqualValues(t, len(c.raw), r.Size)
		})
	}
}

// Each single flipped bit in what a record's shape depends on, or in body and checksum, is found.
func TestParseFindsFlippedBits(t *testing.T) {
	raw := encoded(t)
	covered := func(at int) bool {
		return at < 12 || at >= bodyLengthAt && at <= topicLengthAt || at == propertiesLengthAt || at == propertiesLengthAt+1
	}
	for bit := range 8 * len(raw) {
		damaged := bytes.Clone(raw)
		damaged[bit/8] ^= 0x80 >> (bit % 8)
		_, _, err := record.Parse(damaged, true)
		if covered(bit / 8) {
			require.Error(t, err, "bit %d of byte %d", bit%8, bit/8)
		} else if bit/8 < 36 || bit/8 >= 40 {
			require.NoError(t, err, "bit %d of byte %d is not covered by any check", bit%8, bit/8)
		}
	}
}

func TestParseCRC(t *testing.T) {
	damaged := encoded(t)
	damaged[88] ^= 1
	r, kind, err := record.Parse(damaged, true)
	requireKind(t, err, record.BadCRC, 8, "stored 77d18982, 5 bytes of body have")
	require.Zero(t, kind)
	require.Equal(t, "Iello", string(r.Body), "the record is complete all the same")
	require.Equal(t, "TAGS\x01TagA", string(r.Properties))
	require.EqualValues(t, len(damaged), r.Size)
	_, kind, err = record.Parse(damaged, false)
	require.NoError(t, err)
	require.Equal(t, record.KindMessage, kind)

	topBit := encoded(t)
	topBit[8] |= 0x80
	_, _, err = record.Parse(topBit, true)
	requireKind(t, err, record.BadCRC, 8, "stored f7d18982, 5 bytes of body have 77d18982")

	m := message("T", 0, "", "")
	empty, err := record.Append(nil, &m)
	require.NoError(t, err)
	empty[8] = 0x12
	_, _, err = record.Parse(empty, true)
	require.NoError(t, err, "the checksum of an empty body is not looked at")

	m.Body = []byte("order-1:\xe7\xff\xb7\x12") // its checksum is 0
	zero, err := record.Append(nil, &m)
	require.NoError(t, err)
	zero[88] ^= 1
	_, _, err = record.Parse(zero, true)
	requireKind(t, err, record.BadCRC, 8, "stored 00000000")
}

func TestParseVersion2(t *testing.T) {
	v1, _, err := record.Parse(encoded(t), true)
	require.NoError(t, err)
	v2, kind, err := record.Parse(asV2(t, encoded(t)), true)
	require.NoError(t, err)
	require.Equal(t, record.KindMessage, kind)
	require.EqualValues(t, 2, v2.Version)
	require.Equal(t, v1.Size+1, v2.Size)
	v2.Version, v2.Size = v1.Version, v1.Size
	require.Equal(t, v1, v2)

	long := strings.Repeat("t", 300)
	m := message(long[:127], 0, "b", "a|b")
	raw, err := record.Append(nil, &m)
	require.NoError(t, err)
	raw = asV2(t, raw)
	at := 88 + 1 + 2 // behind a body of one byte and the topic's length
	raw = append(raw[:at:at], append([]byte(long[127:]), raw[at:]...)...)
	binary.BigEndian.PutUint32(raw, uint32(len(raw)))
	binary.BigEndian.PutUint16(raw[at-2:], 300)
	r, _, err := record.Parse(raw, true)
	require.NoError(t, err)
	require.Equal(t, long, string(r.Topic))
}

func TestParseSlicesEndWithTheRecord(t *testing.T) {
	raw := append(encoded(t), "behind"...)
	r, _, err := record.Parse(raw, true)
	require.NoError(t, err)
	_ = append(r.Properties, "overwritten"...)
	require.Equal(t, "behind", string(raw[r.Size:]))
}

func TestParseImpossiblePort(t *testing.T) {
	raw := encoded(t)
	copy(raw[52:], unhex(t, "00010000"))
	copy(raw[68:], unhex(t, "ffffffff"))
	r, _, err := record.Parse(raw, true)
	require.NoError(t, err)
	require.Equal(t, "10.1.2.3:0", r.BornHost.String())
	require.Equal(t, "192.168.0.9:0", r.StoreHost.String())
}

func TestDecodeAll(t *testing.T) {
	none, err := record.DecodeAll(nil)
	require.NoError(t, err)
	require.Empty(t, none)

	var all []byte
	var want []messages.StoredMessage
	for _, v := range vectors() {
		raw := unhex(t, v.hex)
		r, _, err := record.Parse(raw, true)
		require.NoError(t, err)
		want = append(want, r.Stored())
		all = append(all, raw...)
	}
	got, err := record.DecodeAll(all)
	require.NoError(t, err)
	require.Equal(t, want, got)

	got, err = record.DecodeAll(all[:len(all)-1])
	require.ErrorIs(t, err, record.ErrTruncated)
	require.ErrorContains(t, err, "record 7 at byte ")
	require.Equal(t, want[:7], got)

	got, err = record.DecodeAll(record.AppendBlank(all[:167:167], 8))
	require.ErrorIs(t, err, record.ErrBadMagic)
	require.ErrorContains(t, err, "blank")
	require.Equal(t, want[:1], got)

	all[88] ^= 1
	got, err = record.DecodeAll(all)
	require.ErrorIs(t, err, record.ErrBadCRC)
	require.Empty(t, got)
}

// One damaged record does not hide those beside it.
func TestDecodeWholeLeavesOutWhatIsDamaged(t *testing.T) {
	var all []byte
	var want []messages.StoredMessage
	for _, v := range vectors() {
		r, _, err := record.Parse(unhex(t, v.hex), true)
		require.NoError(t, err)
		want = append(want, r.Stored())
		all = append(all, unhex(t, v.hex)...)
	}
	whole, damaged, err := record.DecodeWhole(all)
	require.NoError(t, errors.Join(damaged, err))
	require.Equal(t, want, whole)
	all[88] ^= 1 // in the first body
	whole, damaged, err = record.DecodeWhole(all)
	require.NoError(t, err)
	require.ErrorIs(t, damaged, record.ErrBadCRC)
	require.Equal(t, want[1:], whole)
	whole, _, err = record.DecodeWhole(all[:len(all)-1])
	require.ErrorIs(t, err, record.ErrTruncated)
	require.Equal(t, want[1:len(want)-1], whole)
	_, _, err = record.DecodeWhole(record.AppendBlank(nil, 8))
	require.ErrorIs(t, err, record.ErrBadMagic)
}

func TestErrorText(t *testing.T) {
	_, _, err := record.Parse(make([]byte, 8), true)
	require.EqualError(t, err, "record: unallocated space at byte 0")
	_, _, err = record.Parse(bytes.Repeat([]byte{1}, 8), true)
	require.EqualError(t, err, "record: bad magic at byte 4: 01010101")
	require.NoError(t, errors.Unwrap(&record.Error{}), "no kind, no sentinel")
	require.NoError(t, errors.Unwrap(&record.Error{Kind: 99}))
}

func TestStandsAt(t *testing.T) {
	rec, err := record.Append(nil, &messages.Message{Topic: "T", Body: []byte("body")})
	require.NoError(t, err)
	record.SetPlace(rec, 3, 4711, 1)
	require.True(t, record.StandsAt(rec, 4711))
	require.False(t, record.StandsAt(rec, 4712))
	require.False(t, record.StandsAt(rec[:len(rec)-1], 4711))
	require.False(t, record.StandsAt(append(rec, 0), 4711))
	require.False(t, record.StandsAt(rec[:1], 4711))
	require.False(t, record.StandsAt(nil, 0))
	for i := range 8 { // size and magic
		bad := append([]byte(nil), rec...)
		bad[i] ^= 0x40
		require.False(t, record.StandsAt(bad, 4711), "byte %d", i)
	}
}

// TestIsPlainAt: it is StandsAt, and never true of what stands in the place of a lost record.
func TestIsPlainAt(t *testing.T) {
	rec, err := record.Append(nil, &messages.Message{Topic: "T", Body: []byte("body")})
	require.NoError(t, err)
	record.SetPlace(rec, 3, 4711, 1)
	require.True(t, record.IsPlainAt(rec, 4711))
	for i := range record.PlaceBytes {
		for bit := range 8 {
			bad := append([]byte(nil), rec...)
			bad[i] ^= 1 << bit
			require.Equal(t, record.StandsAt(bad, 4711), record.IsPlainAt(bad, 4711), "byte %d, bit %d", i, bit)
		}
	}
	for n := range len(rec) {
		require.False(t, record.IsPlainAt(rec[:n], 4711))
	}
	require.False(t, record.IsPlainAt(append(rec, 0), 4711))
	lost, err := record.AppendLost(nil, messages.QueueKey{Topic: "T"}, record.Further{}, 200, 1)
	require.NoError(t, err)
	record.SetPlace(lost, 3, 4711, 1)
	require.True(t, record.StandsAt(lost, 4711))
	require.False(t, record.IsPlainAt(lost, 4711))
}
