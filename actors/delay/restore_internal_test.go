package delay

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// As RocketMQ 4.9.7 stored a delayed message and delivered it: spec/store.md §17.5.
const (
	delayedHex = `
		000000a4daa320a76c03b2490000000200000007000000000000000000000000000002b1000000000000018bcfe56418
		0a0102030000162e0000018bcfe5687bc0a8000900002a9f000000000000000000000000000000056c61746572135343
		484544554c455f544f5049435f5858585800315245414c5f544f50494301546f706963546573740244454c4159013302
		544147530154616741025245414c5f5149440132`
	redeliveredHex = `
		0000009adaa320a76c03b2490000000200000007000000000000000000000000000005f6000000000000018bcfe56418
		0a0102030000162e0000018bcfe5687bc0a8000900002a9f000000000000000000000000000000056c6174657209546f
		7069635465737400315245414c5f544f50494301546f706963546573740244454c415901330254414753015461674102
		5245414c5f5149440132`
	redeliveredAt = 1526
)

func TestWhatIsDeliveredIsRocketMQsByteForByte(t *testing.T) {
	decode := func(text string) []byte {
		raw, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
		require.NoError(t, err)
		return raw
	}
	r, kind, err := record.Parse(decode(delayedHex), true)
	require.NoError(t, err)
	require.Equal(t, record.KindMessage, kind)
	stored := r.Stored()
	m, err := restore(&stored)
	require.NoError(t, err)
	b, err := record.Append(nil, m)
	require.NoError(t, err)
	record.SetPlace(b, 0, redeliveredAt, r.StoreTimestampMs)
	require.Equal(t, decode(redeliveredHex), b)
}

// FuzzRestore: whatever the properties of a record say, it is left out, or delivered as a record that reads back.
func FuzzRestore(f *testing.F) {
	f.Add("REAL_TOPIC\x01T\x02REAL_QID\x010", []byte("body"))
	f.Add("DELAY\x013\x02REAL_TOPIC\x01%RETRY%g\x02REAL_QID\x01-1", []byte(nil))
	f.Add("REAL_QID\x012147483648\x02REAL_TOPIC\x01T", []byte("b"))
	f.Add("REAL_TOPIC\x01SCHEDULE_TOPIC_XXXX\x02REAL_QID\x010", []byte("b"))
	f.Add("REAL_TOPIC\x01"+strings.Repeat("x", 128)+"\x02REAL_QID\x010", []byte("b"))
	f.Fuzz(func(t *testing.T, properties string, body []byte) {
		stored := messages.StoredMessage{Message: messages.Message{
			Topic: messages.TopicSchedule, Body: body, Properties: messages.Properties(properties), PreparedTransactionOffset: 7,
		}}
		m, err := restore(&stored)
		if err != nil {
			require.ErrorIs(t, err, ErrDestination)
			return
		}
		require.NotEqual(t, messages.TopicSchedule, m.Topic, "it would be delayed for ever")
		require.GreaterOrEqual(t, m.QueueID, int32(0))
		b, err := record.Append(nil, m)
		if err != nil {
			return // the store says the same, and it is left out
		}
		r, kind, err := record.Parse(b, true)
		require.NoError(t, err)
		require.Equal(t, record.KindMessage, kind)
		require.Equal(t, m.Topic, string(r.Topic))
		require.Equal(t, properties, string(r.Properties))
		require.Zero(t, r.PreparedTransactionOffset)
	})
}
