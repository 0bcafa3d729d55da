package record_test

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// The environment of all vectors in spec/store.md §17.
const (
	storeTimestampMs = 1700000000123
	bornTimestampMs  = 1699999999000
)

var (
	bornV4  = netip.MustParseAddrPort("10.1.2.3:5678")
	bornV6  = netip.MustParseAddrPort("[2001:db8::1]:5678")
	storeV4 = netip.MustParseAddrPort("192.168.0.9:10911")
	storeV6 = netip.MustParseAddrPort("[2001:db8::9]:10911")
)

// vector is a record as RocketMQ 4.9.7 wrote it, and the message that it was.
type vector struct {
	name     string
	hex      string
	message  messages.Message
	queueAt  messages.QueueOffset
	at       messages.PhysicalOffset
	tagsCode uint64 // of its consume-queue unit, §17.5 and §17.7
}

// message returns a message of the vectors' environment; properties are written as a|b for a 0x01 b, joined by commas.
func message(topic string, queue int32, body, properties string) messages.Message {
	return messages.Message{
		Topic: topic, QueueID: queue, Flag: 7, Body: []byte(body), Properties: wire(properties),
		BornTimestampMs: bornTimestampMs, BornHost: bornV4, StoreHost: storeV4,
	}
}

func wire(properties string) messages.Properties {
	return messages.Properties(strings.NewReplacer("|", "\x01", ",", "\x02").Replace(properties))
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	require.NoError(t, err)
	return raw
}

func vectors() []vector {
	v6 := message("TopicTest", 3, "Hi6", "TAGS|TagB")
	v6.BornHost, v6.StoreHost = bornV6, storeV6
	mixed := message("TopicTest", 0, "B4S6", "")
	mixed.StoreHost = storeV6
	delayed := message("SCHEDULE_TOPIC_XXXX", 2, "later", "REAL_TOPIC|TopicTest,DELAY|3,TAGS|TagA,REAL_QID|2")
	redelivered := delayed
	redelivered.Topic = "TopicTest"
	half := message("RMQ_SYS_TRANS_HALF_TOPIC", 0, "tx",
		"TRAN_MSG|true,REAL_TOPIC|TopicTest,UNIQ_KEY|UT,PGROUP|pg,TAGS|TagA,REAL_QID|1")
	commit := message("TopicTest", 1, "tx",
		"REAL_TOPIC|TopicTest,TRAN_MSG|true,UNIQ_KEY|UT,PGROUP|pg,TAGS|TagA,REAL_QID|1")
	commit.SysFlag, commit.PreparedTransactionOffset = messages.SysFlagTransactionCommit, 1018
	op := message("RMQ_SYS_TRANS_OP_HALF_TOPIC", 0, "0", "WAIT|true,TAGS|d")
	op.Flag, op.BornHost = 0, storeV4
	return []vector{
		{name: "17.1 v4 and v4", message: message("TopicTest", 3, "Hello",
			"UNIQ_KEY|0A010203000018B4AAC206E2D6190000,TAGS|TagA,KEYS|k1 k2"), queueAt: 0, at: 0, tagsCode: 0x27a807, hex: `
			000000a7daa320a777d18982000000030000000700000000000000000000000000000000000000000000018bcfe56418
			0a0102030000162e0000018bcfe5687bc0a8000900002a9f0000000000000000000000000000000548656c6c6f09546f
			70696354657374003e554e49515f4b45590130413031303230333030303031384234414143323036453244363139303030
			3002544147530154616741024b455953016b31206b32`},
		{name: "17.2 v6 and v6", message: v6, queueAt: 1, at: 167, tagsCode: 0x27a808, hex: `
			00000088daa320a77a4d401d0000000300000007000000000000000100000000000000a7000000300000018bcfe56418
			20010db80000000000000000000000010000162e0000018bcfe5687b20010db800000000000000000000000900002a9f
			000000000000000000000000000000034869360954
			6f706963546573740009544147530154616742`},
		{name: "17.3 born v4, store v6", message: mixed, queueAt: 0, at: 303, hex: `
			00000074daa320a76d1799e800000000000000070000000000000000000000000000012f000000200000018bcfe56418
			0a0102030000162e0000018bcfe5687b20010db800000000000000000000000900002a9f000000000000000000000000
			000000044234533609546f706963546573740000`},
		{name: "17.5 delayed", message: delayed, queueAt: 0, at: 689, tagsCode: 0x18bcfe58f8b, hex: `
			000000a4daa320a76c03b2490000000200000007000000000000000000000000000002b1000000000000018bcfe56418
			0a0102030000162e0000018bcfe5687bc0a8000900002a9f000000000000000000000000000000056c61746572135343
			484544554c455f544f5049435f5858585800315245414c5f544f50494301546f706963546573740244454c4159013302
			544147530154616741025245414c5f5149440132`},
		{name: "17.5 redelivered", message: redelivered, queueAt: 0, at: 1526, tagsCode: 0x27a807, hex: `
			0000009adaa320a76c03b2490000000200000007000000000000000000000000000005f6000000000000018bcfe56418
			0a0102030000162e0000018bcfe5687bc0a8000900002a9f000000000000000000000000000000056c6174657209546f
			7069635465737400315245414c5f544f50494301546f706963546573740244454c415901330254414753015461674102
			5245414c5f5149440132`},
		{name: "17.6 half", message: half, queueAt: 0, at: 1018, tagsCode: 0x27a807, hex: `
			000000c2daa320a7545457030000000000000007000000000000000000000000000003fa000000000000018bcfe56418
			0a0102030000162e0000018bcfe5687bc0a8000900002a9f00000000000000000000000000000002747818524d515f53
			59535f5452414e535f48414c465f544f504943004d5452414e5f4d53470174727565025245414c5f544f50494301546f
			7069635465737402554e49515f4b4559015554025047524f555001706702544147530154616741025245414c5f5149440131`},
		{name: "17.6 commit", message: commit, queueAt: 0, at: 1212, tagsCode: 0x27a807, hex: `
			000000b3daa320a7545457030000000100000007000000000000000000000000000004bc000000080000018bcfe56418
			0a0102030000162e0000018bcfe5687bc0a8000900002a9f0000000000000000000003fa00000002747809546f706963
			54657374004d5245414c5f544f50494301546f70696354657374025452414e5f4d5347017472756502554e49515f4b45
			59015554025047524f555001706702544147530154616741025245414c5f5149440131`},
		{name: "17.6 op", message: op, queueAt: 0, at: 1391, tagsCode: 0x64, hex: `
			00000087daa320a774dbdf2100000000000000000000000000000000000000000000056f000000000000018bcfe56418
			c0a8000900002a9f0000018bcfe5687bc0a8000900002a9f00000000000000000000000000000001301b524d515f5359
			535f5452414e535f4f505f48414c465f544f504943001057414954017472756502544147530164`},
	}
}

// batchVector is §17.4: two members and their records.
const (
	batchWireHex = `0000002d0000000000000000000000000000000262300015554e49515f4b455901553002544147530154616741
		000000180000000000000000000000000000000262310000`
	batchFirstHex = `00000092daa320a730cb2b760000000300000000000000000000000200000000000001a3000000000000018bcfe56418
		0a0102030000162e0000018bcfe5687bc0a8000900002a9f00000000000000000000000000000002623009546f706963
		54657374002c554e49515f4b45590155300254414753015461674102434c55535445520144656661756c74436c7573746572`
	batchSecondHex = `0000007cdaa320a747cc1be0000000030000000000000000000000030000000000000235000000000000018bcfe56418
		0a0102030000162e0000018bcfe5687bc0a8000900002a9f00000000000000000000000000000002623109546f706963
		546573740016434c55535445520144656661756c74436c7573746572`
)

func TestVectorsAreWrittenBitIdentical(t *testing.T) {
	for _, v := range vectors() {
		t.Run(v.name, func(t *testing.T) {
			want := unhex(t, v.hex)
			size, err := record.Size(&v.message)
			require.NoError(t, err)
			require.Len(t, want, size)
			got, err := record.Append(nil, &v.message)
			require.NoError(t, err)
			record.SetPlace(got, v.queueAt, v.at, storeTimestampMs)
			require.Equal(t, want, got)
			require.EqualValues(t, len(want), record.TotalSize(got))
		})
	}
}

func TestVectorsAreRead(t *testing.T) {
	for _, v := range vectors() {
		t.Run(v.name, func(t *testing.T) {
			raw := unhex(t, v.hex)
			r, kind, err := record.Parse(append(raw, "more behind it"...), true)
			require.NoError(t, err)
			require.Equal(t, record.KindMessage, kind)
			require.EqualValues(t, len(raw), r.Size)
			require.EqualValues(t, 1, r.Version)
			require.Equal(t, v.tagsCode, uint64(r.TagsCode(standardDelay)))
			want := messages.StoredMessage{
				Message: v.message, StoreSize: int32(len(raw)), BodyCRC: record.CRC(v.message.Body),
				QueueOffset: v.queueAt, PhysicalOffset: v.at, StoreTimestampMs: storeTimestampMs,
			}
			want.SysFlag |= r.SysFlag & (messages.SysFlagBornHostV6 | messages.SysFlagStoreHostV6)
			require.Equal(t, want, r.Stored())
		})
	}
}

func TestHostBitsOfTheVectors(t *testing.T) {
	for i, want := range []int32{0, 0x30, 0x20} {
		r, _, err := record.Parse(unhex(t, vectors()[i].hex), true)
		require.NoError(t, err)
		require.Equal(t, want, r.SysFlag)
	}
}

func TestBatchVector(t *testing.T) {
	members := []messages.Message{
		{Body: []byte("b0"), Properties: wire("UNIQ_KEY|U0,TAGS|TagA")},
		{Body: []byte("b1")},
	}
	body, err := record.EncodeBatchBody(nil, members)
	require.NoError(t, err)
	require.Equal(t, unhex(t, batchWireHex), body)

	envelope := message("TopicTest", 3, string(body), "CLUSTER|DefaultCluster")
	out, count, err := appendBatch(nil, &envelope, len(body))
	require.NoError(t, err)
	require.Equal(t, 2, count)
	require.Len(t, out, 270)
	first, second := out[:record.TotalSize(out)], out[record.TotalSize(out):]
	record.SetPlace(first, 2, 419, storeTimestampMs)
	record.SetPlace(second, 3, 565, storeTimestampMs)
	require.Equal(t, unhex(t, batchFirstHex), first)
	require.Equal(t, unhex(t, batchSecondHex), second)

	stored, err := record.DecodeAll(out)
	require.NoError(t, err)
	require.Len(t, stored, 2)
	require.Equal(t, "C0A8000900002A9F00000000000001A3", stored[0].OffsetMessageID())
	require.Equal(t, "C0A8000900002A9F0000000000000235", stored[1].OffsetMessageID())
	require.Equal(t, map[string]string{"UNIQ_KEY": "U0", "TAGS": "TagA", "CLUSTER": "DefaultCluster"}, stored[0].Properties.Map())
	require.Equal(t, map[string]string{"CLUSTER": "DefaultCluster"}, stored[1].Properties.Map())
}

// §17.5: level 99 is stored as 18 on queue 17, 165 bytes at 853; §17.9: the first record of a multi-dispatch.
func TestSizesOfOtherVectors(t *testing.T) {
	delayed := message("SCHEDULE_TOPIC_XXXX", 17, "later", "REAL_TOPIC|TopicTest,DELAY|18,TAGS|TagA,REAL_QID|2")
	raw, err := record.Append(nil, &delayed)
	require.NoError(t, err)
	require.Len(t, raw, 165)
	record.SetPlace(raw, 0, 853, storeTimestampMs)
	r, _, err := record.Parse(raw, true)
	require.NoError(t, err)
	require.Equal(t, int64(0x18bd053457b), r.TagsCode(standardDelay))

	light := message("T", 2, "x", "")
	light.Properties = "INNER_MULTI_DISPATCH\x01%LMQ%a,B\x02INNER_MULTI_QUEUE_OFFSET\x010,0"
	size, err := record.Size(&light)
	require.NoError(t, err)
	require.Equal(t, 151, size)
}

// §17.10, and the bodies of a field report: a checksum of 0 is a checksum, not a sign of empty space.
func TestCRC(t *testing.T) {
	for body, want := range map[string]uint32{
		"": 0, "Hello": 0x77d18982, "123456789": 0x4bf43926, "a": 0x68b7be43, "abc": 0x352441c2,
		"\x9d\x0a\xd9\x6d":         0, // CRC-32 is 0
		"order-1:4p\x82\x49":       0, // CRC-32 is 0
		"order-1:\xe7\xff\xb7\x12": 0, // CRC-32 is 0x80000000
	} {
		require.Equal(t, want, record.CRC([]byte(body)), "%q", body)
	}
	require.Zero(t, record.CRC(nil))
}
