package transaction

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// The vectors of spec/store.md §17.6.
const (
	halfHex = `
		000000c2daa320a7545457030000000000000007000000000000000000000000000003fa000000000000018bcfe56418
		0a0102030000162e0000018bcfe5687bc0a8000900002a9f00000000000000000000000000000002747818524d515f53
		59535f5452414e535f48414c465f544f504943004d5452414e5f4d53470174727565025245414c5f544f50494301546f
		7069635465737402554e49515f4b4559015554025047524f555001706702544147530154616741025245414c5f5149440131`
	commitHex = `
		000000b3daa320a7545457030000000100000007000000000000000000000000000004bc000000080000018bcfe56418
		0a0102030000162e0000018bcfe5687bc0a8000900002a9f0000000000000000000003fa00000002747809546f706963
		54657374004d5245414c5f544f50494301546f70696354657374025452414e5f4d5347017472756502554e49515f4b45
		59015554025047524f555001706702544147530154616741025245414c5f5149440131`
	opHex = `
		00000087daa320a774dbdf2100000000000000000000000000000000000000000000056f000000000000018bcfe56418
		c0a8000900002a9f0000018bcfe5687bc0a8000900002a9f00000000000000000000000000000001301b524d515f5359
		535f5452414e535f4f505f48414c465f544f504943001057414954017472756502544147530164`
	storeTimeMs = 1700000000123
)

var vectorHost = netip.MustParseAddrPort("192.168.0.9:10911")

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	require.NoError(t, err)
	return b
}

// written is a message as it lies in the log at a place, the first one of its queue.
func written(t *testing.T, m *messages.Message, at messages.PhysicalOffset) string {
	t.Helper()
	b, err := record.Append(nil, m)
	require.NoError(t, err)
	record.SetPlace(b, 0, at, storeTimeMs)
	return hex.EncodeToString(b)
}

func stored(t *testing.T, text string) messages.StoredMessage {
	t.Helper()
	r, _, err := record.Parse(unhex(t, text), true)
	require.NoError(t, err)
	return r.Stored()
}

// What a producer sends, what the store makes of it, and what is committed, are RocketMQ's bytes.
func TestVectorsAreWrittenBitIdentical(t *testing.T) {
	m := &messages.Message{
		Topic: "TopicTest", QueueID: 1, Flag: 7, SysFlag: messages.SysFlagTransactionPrepared, Body: []byte("tx"),
		BornTimestampMs: 1699999999000, BornHost: netip.MustParseAddrPort("10.1.2.3:5678"), StoreHost: vectorHost,
		Properties: "PGROUP\x01pg\x02TAGS\x01TagA\x02TRAN_MSG\x01true\x02UNIQ_KEY\x01UT\x02",
	}
	Halve(m)
	// The map that the vector was written from had held more entries: it has 32 buckets (spec/store.md §2.9).
	const bucketsOfTheVector = 32
	m.Properties = m.Properties.InMapOrder(bucketsOfTheVector)
	require.Equal(t, hex.EncodeToString(unhex(t, halfHex)), written(t, m, 1018))

	half := stored(t, halfHex)
	commit, err := restored(&half)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(unhex(t, commitHex)), written(t, commit, 1212))

	o := op(0, vectorHost, time.UnixMilli(1699999999000))
	require.Equal(t, hex.EncodeToString(unhex(t, opHex)), written(t, o, 1391))
}

func TestOpsName(t *testing.T) {
	r, _, err := record.Parse(unhex(t, opHex), true)
	require.NoError(t, err)
	for body, want := range map[string][]messages.QueueOffset{
		"0": {0}, "17": {17}, "3,4,12": {3, 4, 12}, "": nil, "x": nil, "-1": nil, "5,": {5}, "99999999999999999999": nil,
	} {
		var got []messages.QueueOffset
		r.Body = []byte(body)
		endedBy(&r, func(at messages.QueueOffset) { got = append(got, at) })
		require.Equal(t, want, got, "%q", body)
	}
	r.Properties = []byte("TAGS\x01other")
	endedBy(&r, func(messages.QueueOffset) { t.Fatal("not an op") })
}

func TestADelayIsDroppedFromAHalf(t *testing.T) {
	m := &messages.Message{Topic: "T", QueueID: 3, Properties: "TRAN_MSG\x01TRUE\x02DELAY\x013"}
	Halve(m)
	_, ok := m.Properties.Get(messages.PropertyDelay)
	require.False(t, ok)
}

func TestHalvesThatGoNowhere(t *testing.T) {
	for _, p := range []messages.Properties{
		"", "REAL_TOPIC\x01T", "REAL_TOPIC\x01T\x02REAL_QID\x01x", "REAL_TOPIC\x01T\x02REAL_QID\x01-1", "REAL_QID\x011",
	} {
		half := messages.StoredMessage{Message: messages.Message{Topic: messages.TopicTransactionHalf, Properties: p}}
		_, err := restored(&half)
		require.ErrorIs(t, err, messages.ErrNoHalf)
		_, err = question(&half, 1)
		require.ErrorIs(t, err, messages.ErrNoHalf)
		half.Topic = messages.TopicTransCheckMaxTime
		_, err = Resumed(&half)
		require.ErrorIs(t, err, messages.ErrNoHalf)
	}
}

func TestCopies(t *testing.T) {
	half := stored(t, halfHex)
	half.QueueOffset = 41
	again := renewed(&half, 2)
	require.Equal(t, map[string]string{
		"TRAN_MSG": "true", "REAL_TOPIC": "TopicTest", "REAL_QID": "1", "UNIQ_KEY": "UT", "PGROUP": "pg", "TAGS": "TagA",
		"TRANSACTION_CHECK_TIMES": "2", "TRAN_PREPARED_QUEUE_OFFSET": "41",
	}, again.Properties.Map())
	require.Equal(t, messages.TopicTransactionHalf, again.Topic)

	half.Message, half.QueueOffset = *again, 90
	first, _ := renewed(&half, 2).Properties.Get("TRAN_PREPARED_QUEUE_OFFSET")
	require.Equal(t, "41", first, "it is the first one that all copies name")

	up := moved(&half, messages.TopicTransCheckMaxTime, 15)
	require.Equal(t, messages.QueueKey{Topic: messages.TopicTransCheckMaxTime}, up.Queue())
	given := messages.StoredMessage{Message: *up}
	back, err := Resumed(&given)
	require.NoError(t, err)
	checks, _ := back.Properties.Get("TRANSACTION_CHECK_TIMES")
	require.Equal(t, "0", checks)
	_, chained := back.Properties.Get("TRAN_PREPARED_QUEUE_OFFSET")
	require.False(t, chained, "it begins anew")
	given.Topic = "T"
	_, err = Resumed(&given)
	require.ErrorIs(t, err, messages.ErrNoHalf, "no other message can be smuggled into the half queue")
}

func TestQuestion(t *testing.T) {
	half := stored(t, halfHex)
	q, err := question(&half, 3)
	require.NoError(t, err)
	require.Equal(t, messages.Half{Group: "pg", PhysicalOffset: 1018}, q.Half)
	require.Equal(t, messages.QueueKey{Topic: "TopicTest", QueueID: 1}, q.Message.Queue())
	times, _ := q.Message.Properties.Get("TRANSACTION_CHECK_TIMES")
	require.Equal(t, "3", times)
}
