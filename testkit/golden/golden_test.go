package golden_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/golden"
)

// expectation is RocketMQ's own dump.
func expectation(t *testing.T, name string) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal(golden.Load(name).Expected(), &v))
	return v
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

func TestEveryStoreIsComplete(t *testing.T) {
	require.Len(t, golden.Names(), 54)
	for _, name := range golden.Names() {
		s := golden.Load(name)
		require.True(t, json.Valid(s.Params), name)
		require.True(t, s.Expected() != nil || s.Manifest() != nil, name)
		dir, err := s.Unpack(t.TempDir())
		require.NoError(t, err)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.NotEmpty(t, entries, name)
	}
}

func TestUnpackKeepsContent(t *testing.T) {
	dir, err := golden.Load("basic").Unpack(t.TempDir())
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	require.Equal(t, "lock", string(b))
	b, err = os.ReadFile(filepath.Join(dir, "commitlog", "00000000000000000000"))
	require.NoError(t, err)
	require.Len(t, b, 262144)
	require.True(t, bytes.HasPrefix(b[4:], []byte{0xDA, 0xA3, 0x20, 0xA7}))
}

// TestCheckSeesDifferences plays the checker RocketMQ's own answer, whole and with one thing changed.
func TestCheckSeesDifferences(t *testing.T) {
	queue := func(v map[string]any) map[string]any { return v["queues"].([]any)[0].(map[string]any) }
	tests := map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"nothing":       {func(map[string]any) {}, ""},
		"log end":       {func(v map[string]any) { v["commitLog"].(map[string]any)["maxOffset"] = 1 }, "commitLog"},
		"queue gone":    {func(v map[string]any) { v["queues"] = v["queues"].([]any)[1:] }, "is missing"},
		"queue renamed": {func(v map[string]any) { queue(v)["topic"] = "x" }, "should not be there"},
		"queue min":     {func(v map[string]any) { queue(v)["minOffset"] = 7 }, "7.."},
		"message":       {func(v map[string]any) { queue(v)["messages"].([]any)[0].(map[string]any)["next"] = 9 }, "message 0"},
		"message gone":  {func(v map[string]any) { queue(v)["messages"] = queue(v)["messages"].([]any)[1:] }, "message 0"},
		"record gone":   {func(v map[string]any) { v["records"] = v["records"].([]any)[1:] }, "record 0"},
		"index":         {func(v map[string]any) { v["index"].([]any)[0].(map[string]any)["phyOffsets"] = []int{} }, "index"},
		"not JSON":      {func(v map[string]any) { clear(v); v["queues"] = 3 }, "cannot unmarshal"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := expectation(t, "basic")
			tt.change(v)
			bad := golden.Load("basic").Check(encode(t, v))
			if tt.want == "" {
				require.Empty(t, bad)
				return
			}
			require.NotEmpty(t, bad)
			require.Contains(t, join(bad), tt.want)
		})
	}
}

func join(lines []string) string {
	all := ""
	for _, l := range lines {
		all += l + "\n"
	}
	return all
}

func TestCheckOfWhatMustBeKept(t *testing.T) {
	s := golden.Load("missing-one-queue")
	require.Nil(t, s.Expected())
	require.Contains(t, join(s.Check([]byte(`{"loaded":false,"loadError":"why"}`))), "not loaded: why")

	var m struct {
		Puts []struct {
			Topic       string            `json:"topic"`
			QueueID     int               `json:"queueId"`
			PhyOffset   int64             `json:"phyOffset"`
			QueueOffset int64             `json:"queueOffset"`
			Properties  map[string]string `json:"properties"`
		} `json:"puts"`
	}
	require.NoError(t, json.Unmarshal(s.Manifest(), &m))
	var queues, index []any
	for _, p := range m.Puts {
		msg := map[string]any{"queueOffset": p.QueueOffset, "phyOffset": p.PhyOffset}
		queues = append(queues, map[string]any{
			"topic": p.Topic, "queueId": p.QueueID, "messages": []any{map[string]any{"msg": msg}},
		})
		index = append(index, map[string]any{"topic": p.Topic, "key": p.Properties["KEYS"], "phyOffsets": []int64{p.PhyOffset}})
	}
	require.Empty(t, s.Check(encode(t, map[string]any{"loaded": true, "queues": queues, "index": index})))
	require.Len(t, s.Check(encode(t, map[string]any{"loaded": true, "queues": queues[2:], "index": index})), 2)
	require.Len(t, s.Check(encode(t, map[string]any{"loaded": true, "queues": queues, "index": index[1:]})), 1)
}
