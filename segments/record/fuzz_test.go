package record_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// FuzzParse: any bytes give a record that lies inside them, or one of the documented errors; a record of version 1 whose
// topic is legal is written back with the same content.
func FuzzParse(f *testing.F) {
	for _, v := range vectors() {
		raw := unhex(f, v.hex)
		f.Add(raw, true)
		f.Add(raw[:len(raw)-1], true)
		f.Add(asV2(f, raw), false)
	}
	f.Add(unhex(f, "0000009c cbd43194"), true)
	f.Add(make([]byte, 100), true)
	f.Add(unhex(f, "7fffffff daa320a7"), true)
	f.Fuzz(func(t *testing.T, b []byte, checkCRC bool) {
		before := bytes.Clone(b)
		r, kind, err := record.Parse(b, checkCRC)
		head, ok := record.StoreTimestamp(b, r.PhysicalOffset)
		require.Equal(t, before, b, "the input is only read")
		if err != nil {
			var e *record.Error
			require.ErrorAs(t, err, &e)
			require.NotNil(t, e.Unwrap())
			require.Zero(t, kind)
			return
		}
		if kind == record.KindBlank {
			require.Equal(t, record.BlankMagic, binary.BigEndian.Uint32(b[4:]))
			return
		}
		require.Equal(t, record.KindMessage, kind)
		require.True(t, ok)
		require.Equal(t, r.StoreTimestampMs, head, "the head alone says the same")
		require.LessOrEqual(t, int(r.Size), len(b))
		require.GreaterOrEqual(t, int(r.Size), record.MinBytes+len(r.Body)+len(r.Topic)+len(r.Properties))
		again, _, err := record.Parse(b[:r.Size], checkCRC)
		require.NoError(t, err, "nothing behind the record matters")
		require.Equal(t, r, again)
		if closed(string(r.Properties)) == string(r.Properties) {
			requireWrittenBack(t, &r)
		}
	})
}

func requireWrittenBack(t *testing.T, r *record.Record) {
	stored := r.Stored()
	r.TagsCode(standardDelay)
	raw, err := record.Append(nil, &stored.Message)
	if err != nil {
		require.True(t, len(r.Topic) == 0 || len(r.Topic) > messages.MaxTopicBytes || !utf8.Valid(r.Topic), err)
		return
	}
	record.SetPlace(raw, r.QueueOffset, r.PhysicalOffset, r.StoreTimestampMs)
	again, _, err := record.Parse(raw, true)
	require.NoError(t, err)
	want := stored
	want.SysFlag, want.StoreSize, want.BodyCRC = again.SysFlag, again.Size, record.CRC(stored.Body)
	require.Equal(t, want, again.Stored())
	const hostBits = messages.SysFlagBornHostV6 | messages.SysFlagStoreHostV6
	require.Equal(t, r.SysFlag&^hostBits, again.SysFlag&^hostBits)
}

// FuzzAppend: what can be encoded reads back equal.
func FuzzAppend(f *testing.F) {
	f.Add("TopicTest", []byte("Hello"), "TAGS\x01TagA", []byte{10, 1, 2, 3}, int32(8), int64(1018))
	f.Add("T", []byte(nil), "", bytes.Repeat([]byte{0x20}, 16), int32(0x30), int64(-1))
	f.Add("中文", []byte{0}, "\x02", []byte(nil), int32(-1), int64(0))
	f.Fuzz(func(t *testing.T, topic string, body []byte, properties string, ip []byte, number int32, long int64) {
		addr, _ := netip.AddrFromSlice(ip)
		m := messages.Message{
			Topic: topic, QueueID: number, Flag: ^number, SysFlag: number, ReconsumeTimes: number >> 1,
			BornTimestampMs: long, BornHost: netip.AddrPortFrom(addr, uint16(number)), StoreHost: storeV4,
			PreparedTransactionOffset: messages.PhysicalOffset(^long),
			Body:                      body, Properties: messages.Properties(properties),
		}
		raw, err := record.Append(nil, &m)
		if err != nil {
			return
		}
		record.SetPlace(raw, messages.QueueOffset(long), messages.PhysicalOffset(long), long)
		r, _, err := record.Parse(raw, true)
		if strings.Contains(topic, "\x00") || strings.Contains(properties, strings.Repeat("\x00", 512)) {
			return // may look torn
		}
		require.NoError(t, err)
		m.Properties = messages.Properties(closed(properties))
		want := messages.StoredMessage{
			Message: withDefaultHosts(m), StoreSize: int32(len(raw)), BodyCRC: record.CRC(body),
			QueueOffset: messages.QueueOffset(long), PhysicalOffset: messages.PhysicalOffset(long), StoreTimestampMs: long,
		}
		want.BornHost = netip.AddrPortFrom(want.BornHost.Addr().Unmap(), want.BornHost.Port())
		want.SysFlag = number &^ 0x30
		if want.BornHost.Addr().Is6() {
			want.SysFlag |= 0x10
		}
		want.Body = append([]byte(nil), body...)
		require.Equal(t, want, r.Stored())
	})
}

// closed are properties as they are stored: a separator behind a zero byte.
func closed(properties string) string {
	if strings.HasSuffix(properties, "\x00") && len(properties) < messages.MaxPropertiesBytes {
		return properties + "\x02"
	}
	return properties
}

// FuzzAppendBatch: any wire body is either refused whole or gives as many records as members, with the same content.
func FuzzAppendBatch(f *testing.F) {
	f.Add(unhex(f, batchWireHex), "CLUSTER\x01DefaultCluster", true)
	f.Add(append(rawMember(1, "b", "a\x01b\x02"), rawMember(2, "", "")...), "", false)
	f.Add(rawMember(0, "x", "")[:22], "WAIT\x01true", false)
	f.Add([]byte{}, "", false)
	f.Fuzz(func(t *testing.T, body []byte, properties string, v6 bool) {
		envelope := messages.Message{Topic: "T", Body: body, Properties: messages.Properties(properties), BornHost: bornV4, StoreHost: storeV4}
		if v6 {
			envelope.BornHost = bornV6
		}
		size, count, err := record.BatchSize(&envelope, 1<<20)
		if err == nil && size > 64<<20 {
			return // as a caller with small segments would
		}
		if err != nil {
			return
		}
		out := record.AppendBatch(nil, &envelope, size)
		require.Len(t, out, size)
		stored, err := record.DecodeAll(out)
		if bytes.Contains(out, make([]byte, 512)) || len(body) > messages.MaxPropertiesBytes/2 {
			return // may look torn, or has no room for a separator
		}
		require.NoError(t, err)
		require.Len(t, stored, count)
		properties = closed(properties)
		members := make([]messages.Message, count)
		for i := range stored {
			all, own := stored[i].Properties, len(stored[i].Properties)-len(properties)
			require.Equal(t, properties, string(all[own:]))
			members[i] = messages.Message{Flag: stored[i].Flag, Body: stored[i].Body}
			at := len(body) - len(bodyBehind(t, body, i))
			members[i].Properties = messages.Properties(memberProperties(body[at:]))
			require.Contains(t, []messages.Properties{members[i].Properties, members[i].Properties + "\x02"}, all[:own])
		}
		again, err := record.EncodeBatchBody(nil, members)
		require.NoError(t, err)
		require.Equal(t, withoutIgnored(body), again)
	})
}

// bodyBehind returns what follows the first n members of a good wire body.
func bodyBehind(t *testing.T, body []byte, n int) []byte {
	for range n {
		size := int(binary.BigEndian.Uint32(body))
		require.LessOrEqual(t, size, len(body))
		body = body[size:]
	}
	return body
}

// memberProperties returns the properties of the member at the start of a good wire body.
func memberProperties(body []byte) []byte {
	size, length := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[16:])
	return body[20+length+2 : size]
}

// withoutIgnored returns a good wire body with the fields zero that the store ignores.
func withoutIgnored(body []byte) []byte {
	body = bytes.Clone(body)
	for rest := body; len(rest) > 0; rest = rest[binary.BigEndian.Uint32(rest):] {
		clear(rest[4:12])
	}
	return body
}

// FuzzDecodeAll: an answer to a pull is taken apart as far as it is sound.
func FuzzDecodeAll(f *testing.F) {
	raw := encoded(f)
	f.Add([]byte{})
	f.Add(raw)
	f.Add(append(bytes.Clone(raw), raw...))
	f.Add(append(bytes.Clone(raw), record.AppendBlank(nil, 20)...))
	f.Add(append(bytes.Clone(raw), raw[:50]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := record.DecodeAll(b)
		size := 0
		for i := range all {
			size += int(all[i].StoreSize)
		}
		require.LessOrEqual(t, size, len(b))
		if err == nil {
			require.Equal(t, len(b), size)
		}
	})
}
