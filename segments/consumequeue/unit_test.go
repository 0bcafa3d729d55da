package consumequeue

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// specUnits are the units of spec/store.md §17.7.
var specUnits = map[messages.QueueKey][]string{
	{Topic: "TopicTest", QueueID: 3}: {
		"0000000000000000000000a7000000000027a807", "00000000000000a700000088000000000027a808",
		"00000000000001a300000092000000000027a807", "00000000000002350000007c0000000000000000",
	},
	{Topic: "TopicTest", QueueID: 0}: {"000000000000012f000000740000000000000000"},
	{Topic: "TopicTest", QueueID: 1}: {"00000000000004bc000000b3000000000027a807"},
	{Topic: "TopicTest", QueueID: 2}: {
		"00000000000005f60000009a000000000027a807", "00000000000006900000009b000000000027a807",
	},
	{Topic: "RMQ_SYS_TRANS_HALF_TOPIC"}:         {"00000000000003fa000000c2000000000027a807"},
	{Topic: "RMQ_SYS_TRANS_OP_HALF_TOPIC"}:      {"000000000000056f000000870000000000000064"},
	{Topic: "SCHEDULE_TOPIC_XXXX", QueueID: 2}:  {"00000000000002b1000000a40000018bcfe58f8b"},
	{Topic: "SCHEDULE_TOPIC_XXXX", QueueID: 17}: {"0000000000000355000000a50000018bd053457b"},
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestUnitVectors(t *testing.T) {
	u := DecodeUnit(unhex(t, "00000000000000a700000088000000000027a808"))
	require.Equal(t, Unit{PhysicalOffset: 167, Size: 136, TagsCode: 2598920}, u)
	require.Equal(t, messages.PhysicalOffset(303), u.End())
	for _, list := range specUnits {
		for _, text := range list {
			u := DecodeUnit(unhex(t, text))
			require.True(t, u.Valid(), text)
			require.Equal(t, text, hex.EncodeToString(u.AppendTo(nil)))
		}
	}
	require.Equal(t, "00000000000000007fffffff0000000000000000", hex.EncodeToString(filler.AppendTo(nil)))
	require.Equal(t, Unit{TagsCode: math.MinInt64, Size: 1}, DecodeUnit(unhex(t, "0000000000000000000000018000000000000000")))
}

func TestUnitValid(t *testing.T) {
	for name, c := range map[string]struct {
		u    Unit
		want bool
	}{
		"zeros":         {Unit{}, false},
		"filler":        {filler, false},
		"filler, tags":  {Unit{Size: math.MaxInt32, TagsCode: 7}, false},
		"first record":  {Unit{Size: 91}, true},
		"no size":       {Unit{PhysicalOffset: 5}, false},
		"negative size": {Unit{PhysicalOffset: 5, Size: -1}, false},
		"negative":      {Unit{PhysicalOffset: -1, Size: 5}, false},
		"overflow":      {Unit{PhysicalOffset: math.MaxInt64 - 10, Size: 91}, false},
		"large size":    {Unit{PhysicalOffset: 1, Size: math.MaxInt32}, true},
	} {
		require.Equal(t, c.want, c.u.Valid(), name)
	}
}
