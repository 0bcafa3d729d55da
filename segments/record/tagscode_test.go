package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// standardDelay answers as RocketMQ's default levels do, 1 s to 2 h.
func standardDelay(level int) (ms int64, highest int) {
	seconds := []int64{1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200}
	if level < 1 || level > len(seconds) {
		return -1, len(seconds)
	}
	return seconds[level-1] * 1000, len(seconds)
}

func TestTagsCode(t *testing.T) {
	const schedule, tagA = "SCHEDULE_TOPIC_XXXX", 2598919
	gap := func(int) (int64, int) { return -1, 5 }
	none := func(int) (int64, int) { return -1, 0 }
	for _, c := range []struct {
		name, topic, properties string
		delay                   func(int) (int64, int)
		want                    int64
	}{
		{"no properties", "T", "", standardDelay, 0},
		{"no tags", "T", "KEYS|a", standardDelay, 0},
		{"empty tags", "T", "TAGS|,KEYS|a", standardDelay, 0},
		{"tags", "T", "KEYS|a,TAGS|TagA", standardDelay, tagA},
		{"last tags win", "T", "TAGS|x,TAGS|TagA", standardDelay, tagA},
		{"sign is extended", "T", "TAGS|polygenelubricants", standardDelay, -2147483648},
		{"delay of another topic", "T", "DELAY|3,TAGS|TagA", standardDelay, tagA},
		{"level", schedule, "DELAY|3,TAGS|TagA", standardDelay, storeTimestampMs + 10_000},
		{"level with a sign", schedule, "DELAY|+3", standardDelay, storeTimestampMs + 10_000},
		{"level without tags", schedule, "DELAY|1", standardDelay, storeTimestampMs + 1000},
		{"level too high", schedule, "DELAY|99", standardDelay, storeTimestampMs + 7_200_000},
		{"level 0", schedule, "DELAY|0,TAGS|TagA", standardDelay, tagA},
		{"level below 0", schedule, "DELAY|-1,TAGS|TagA", standardDelay, tagA},
		{"level is no number", schedule, "DELAY|3x,TAGS|TagA", standardDelay, tagA},
		{"level beyond 32 bits", schedule, "DELAY|2147483648,TAGS|TagA", standardDelay, tagA},
		{"no delay", schedule, "TAGS|TagA", standardDelay, tagA},
		{"level without an entry", schedule, "DELAY|2", gap, storeTimestampMs + 1000},
		{"no levels", schedule, "DELAY|2,TAGS|TagA", none, tagA},
		{"nobody to ask", schedule, "DELAY|2,TAGS|TagA", nil, tagA},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record.Record{Topic: []byte(c.topic), Properties: []byte(wire(c.properties)), StoreTimestampMs: storeTimestampMs}
			require.Equal(t, c.want, r.TagsCode(c.delay))
			r.SysFlag = messages.SysFlagMultiTags
			require.Equal(t, c.want, r.TagsCode(c.delay), "the multi-tags flag changes nothing")
		})
	}
}

func TestTagsCodeDoesNotAllocate(t *testing.T) {
	r, _, err := record.Parse(unhex(t, vectors()[3].hex), true)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { numberSink = r.TagsCode(standardDelay) }))
	require.NotZero(t, numberSink)
}

var numberSink int64
