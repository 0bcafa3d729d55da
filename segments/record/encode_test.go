package record_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// fields of a record with IPv4 hosts, topic of one byte, body of two, properties of three (spec/store.md §2.1).
func TestEachFieldHasItsPlace(t *testing.T) {
	base := messages.Message{Topic: "T", Body: []byte("bo"), Properties: "a\x01b"}
	plain, err := record.Append(nil, &base)
	require.NoError(t, err)
	require.Len(t, plain, record.MinBytes+1+2+3)

	for _, c := range []struct {
		name   string
		at     int
		want   string
		change func(*messages.Message)
	}{
		{"queue", 12, "81020304", func(m *messages.Message) { m.QueueID = -0x7efdfcfc }},
		{"flag", 16, "81020304", func(m *messages.Message) { m.Flag = -0x7efdfcfc }},
		{"system flag", 36, "80020304", func(m *messages.Message) { m.SysFlag = -0x7ffdfcfc }},
		{"born timestamp", 40, "8102030405060708", func(m *messages.Message) { m.BornTimestampMs = -0x7efdfcfbfaf9f8f8 }},
		{"born host", 48, "010203040000ffff", func(m *messages.Message) { m.BornHost = netip.MustParseAddrPort("1.2.3.4:65535") }},
		{"store host", 64, "0506070800000001", func(m *messages.Message) { m.StoreHost = netip.MustParseAddrPort("5.6.7.8:1") }},
		{"reconsume times", 72, "00000010", func(m *messages.Message) { m.ReconsumeTimes = 16 }},
		{"prepared offset", 76, "0102030405060708", func(m *messages.Message) { m.PreparedTransactionOffset = 0x0102030405060708 }},
		{"topic", 90, "0155", func(m *messages.Message) { m.Topic = "U" }},
		{"properties", 92, "0003630164", func(m *messages.Message) { m.Properties = "c\x01d" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := base
			c.change(&m)
			want := bytes.Clone(plain)
			copy(want[c.at:], unhex(t, c.want))
			require.NotEqual(t, plain, want)
			got, err := record.Append(nil, &m)
			require.NoError(t, err)
			require.Equal(t, want, got)
			stored, err := record.DecodeAll(got)
			require.NoError(t, err)
			require.Equal(t, withDefaultHosts(m), stored[0].Message)
		})
	}
	t.Run("body", func(t *testing.T) {
		m := base
		m.Body = []byte("xy")
		want := bytes.Clone(plain)
		copy(want[84:], unhex(t, "000000027879"))
		binary.BigEndian.PutUint32(want[8:], record.CRC(m.Body))
		got, err := record.Append(nil, &m)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	t.Run("holes", func(t *testing.T) {
		want := bytes.Clone(plain)
		copy(want[20:], unhex(t, "0102030405060708 1112131415161718"))
		copy(want[56:], unhex(t, "2122232425262728"))
		record.SetPlace(plain, 0x0102030405060708, 0x1112131415161718, 0x2122232425262728)
		require.Equal(t, want, plain)
	})
}

// withDefaultHosts returns the message as it reads back: a zero host is written as 0.0.0.0:0.
func withDefaultHosts(m messages.Message) messages.Message {
	for _, host := range []*netip.AddrPort{&m.BornHost, &m.StoreHost} {
		if !host.IsValid() {
			*host = netip.AddrPortFrom(netip.IPv4Unspecified(), host.Port())
		}
	}
	return m
}

func TestHosts(t *testing.T) {
	hosts := []struct {
		host, reads netip.AddrPort
		v6          bool
	}{
		{netip.AddrPort{}, netip.MustParseAddrPort("0.0.0.0:0"), false},
		{netip.AddrPortFrom(netip.Addr{}, 7), netip.MustParseAddrPort("0.0.0.0:7"), false},
		{bornV4, bornV4, false},
		{bornV6, bornV6, true},
		{netip.MustParseAddrPort("[::ffff:10.1.2.3]:9"), netip.MustParseAddrPort("10.1.2.3:9"), false},
		{netip.MustParseAddrPort("[fe80::1%eth0]:65535"), netip.MustParseAddrPort("[fe80::1]:65535"), true},
		{netip.MustParseAddrPort("[::]:0"), netip.MustParseAddrPort("[::]:0"), true},
	}
	for _, born := range hosts {
		for _, store := range hosts {
			wantFlag, wantSize, timestampAt := messages.SysFlagCompressed, record.MinBytes+1, 56
			if born.v6 {
				wantFlag, wantSize, timestampAt = wantFlag|messages.SysFlagBornHostV6, wantSize+12, 68
			}
			if store.v6 {
				wantFlag, wantSize = wantFlag|messages.SysFlagStoreHostV6, wantSize+12
			}
			for _, caller := range []int32{0x1, 0x11, 0x21, 0x31} { // wrong host bits of the caller don't matter
				m := messages.Message{Topic: "T", SysFlag: caller, BornHost: born.host, StoreHost: store.host}
				raw, err := record.Append(nil, &m)
				require.NoError(t, err)
				require.Len(t, raw, wantSize)
				require.Equal(t, timestampAt, record.StoreTimestampOffset(wantFlag))
				record.SetPlace(raw, 1, 2, 0x0102030405060708)
				require.Equal(t, unhex(t, "0102030405060708"), raw[timestampAt:timestampAt+8])
				r, _, err := record.Parse(raw, true)
				require.NoError(t, err)
				require.Equal(t, wantFlag, r.SysFlag)
				require.Equal(t, born.reads, r.BornHost)
				require.Equal(t, store.reads, r.StoreHost)
				require.Equal(t, int64(0x0102030405060708), r.StoreTimestampMs)
			}
		}
	}
}

func TestLimitsOfAMessage(t *testing.T) {
	long := func(n int) messages.Properties { return messages.Properties("a\x01" + strings.Repeat("b", n-2)) }
	for _, c := range []struct {
		name       string
		topic      string
		properties messages.Properties
		want       error
		detail     string
	}{
		{"longest topic", strings.Repeat("t", 127), "", nil, ""},
		{"longest topic beyond ASCII", strings.Repeat("中", 42) + "x", "", nil, ""},
		{"no topic", "", "", record.ErrTopicLength, "0 bytes, want 1 to 127"},
		{"topic too long", strings.Repeat("t", 128), "", record.ErrTopicLength, "128 bytes"},
		{"43 characters, 129 bytes", strings.Repeat("中", 43), "", record.ErrTopicLength, "129 bytes"},
		{"100 characters, 300 bytes", strings.Repeat("中", 100), "", record.ErrTopicLength, "300 bytes"},
		{"topic of 256 bytes", strings.Repeat("t", 256), "", record.ErrTopicLength, "256 bytes"},
		{"topic not UTF-8", "a\xffb", "", record.ErrTopicEncoding, `a\xffb`},
		{"longest properties", "T", long(32767), nil, ""},
		{"properties too long", "T", long(32768), record.ErrPropertiesTooLong, "32768 bytes, at most 32767"},
		{"properties of 70000 bytes", "T", long(70000), record.ErrPropertiesTooLong, "70000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := messages.Message{Topic: c.topic, Properties: c.properties}
			size, err := record.Size(&m)
			before := []byte("before")
			out, appendErr := record.Append(before, &m)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, c.detail)
				require.Equal(t, err, appendErr)
				require.Equal(t, before, out)
				return
			}
			require.NoError(t, err)
			require.NoError(t, appendErr)
			require.Equal(t, size, len(out)-len(before))
			require.Equal(t, before, out[:len(before)])
			stored, err := record.DecodeAll(out[len(before):])
			require.NoError(t, err)
			require.Equal(t, []messages.StoredMessage{{Message: withDefaultHosts(m), StoreSize: int32(size)}}, stored)
		})
	}
}

// A buffer from a pool holds old bytes: each byte of the record has to be written.
func TestAppendIntoADirtyBuffer(t *testing.T) {
	for _, v := range vectors() {
		clean, err := record.Append(nil, &v.message)
		require.NoError(t, err)
		dirty := bytes.Repeat([]byte{0xee}, 4096)
		got, err := record.Append(dirty[:3], &v.message)
		require.NoError(t, err)
		require.Equal(t, clean, got[3:], v.name)
		require.Equal(t, &dirty[0], &got[0], "the buffer was used")
		require.Equal(t, bytes.Repeat([]byte{0xee}, 4096-3-len(clean)), dirty[3+len(clean):], "nothing behind it was written")
	}
}

func TestRoundTripOfBodies(t *testing.T) {
	for _, body := range []string{"", "x", "\x9d\x0a\xd9\x6d", "order-1:4p\x82\x49", "order-1:\xe7\xff\xb7\x12", strings.Repeat("long", 100_000)} {
		m := message("TopicTest", 1, body, "TAGS|a")
		raw, err := record.Append(nil, &m)
		require.NoError(t, err)
		r, kind, err := record.Parse(raw, true)
		require.NoError(t, err)
		require.Equal(t, record.KindMessage, kind)
		require.Equal(t, body, string(r.Body))
		stored := r.Stored()
		clear(raw)
		require.Equal(t, body, string(stored.Body), "a stored message owns its bytes")
		require.Equal(t, m.Properties, stored.Properties)
		require.Equal(t, m.Topic, stored.Topic)
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	m := message("TopicTest", 1, strings.Repeat("body", 100), "TAGS|a,KEYS|b")
	m.BornHost = bornV6
	buffer := make([]byte, 0, 1024)
	raw, err := record.Append(buffer, &m)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		raw, err = record.Append(buffer, &m)
		record.SetPlace(raw, 1, 2, 3)
	}), "writing")
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { recordSink, _, err = record.Parse(raw, true) }), "reading")
	require.NoError(t, err)
	require.EqualValues(t, 2, recordSink.PhysicalOffset)
}

func TestTotalSize(t *testing.T) {
	require.EqualValues(t, -2, record.TotalSize(unhex(t, "fffffffe")))
	require.EqualValues(t, 0x01020304, record.TotalSize(unhex(t, "0102030405")))
	require.Zero(t, record.TotalSize(unhex(t, "010203")))
	require.Zero(t, record.TotalSize(nil))
}

var recordSink record.Record
