package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/golden"
)

// appendTo opens a golden store as a node does, puts messages into a new topic, and closes it.
func appendTo(t *testing.T, s golden.Store, dir string, count int) {
	t.Helper()
	var sizes struct {
		CommitLogSize, ConsumeQueueSize int64
		HashSlots, IndexNum             int32
		DelayLevels                     string
	}
	require.NoError(t, json.Unmarshal(s.Params, &sizes))
	store, err := system.Open(system.Options{
		Dir: filepath.ToSlash(dir), SegmentBytes: sizes.CommitLogSize, ConsumeQueueFileBytes: sizes.ConsumeQueueSize, IndexSlots: sizes.HashSlots,
		IndexEntries: sizes.IndexNum, DelayLevels: sizes.DelayLevels,
	})
	require.NoError(t, err)
	for i := range count {
		r, err := store.Put(t.Context(), &messages.Message{
			Topic: "Grown", QueueID: int32(i % 2), Body: []byte(fmt.Sprint("grown ", i)),
			Properties: messages.PropertiesOf(map[string]string{messages.PropertyKeys: fmt.Sprint("grown", i)}),
		})
		require.NoError(t, err)
		require.Equal(t, messages.PutOK, r.Status)
	}
	require.NoError(t, store.Close(t.Context()))
}

// TestGoldenStoresGrow: what RocketMQ wrote, damaged or not, is opened, appended to, closed and opened again; nothing of what was
// readable is lost, the new messages are there, and the store is whole.
func TestGoldenStoresGrow(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			s := golden.Load(name)
			dir, params := unpack(t, s)
			for range 2 {
				appendTo(t, s, dir, 10)
			}
			stdout, _, err := run("store", "dump", dir, "--json", "-", "--params", params)
			require.NoError(t, err)
			require.Empty(t, s.CheckGrown([]byte(stdout)))
			var dump struct {
				Queues []struct {
					Topic    string
					Messages []struct{ Msg *struct{ QueueOffset int64 } }
				}
			}
			require.NoError(t, json.Unmarshal([]byte(stdout), &dump))
			grown := 0
			for _, q := range dump.Queues {
				if q.Topic != "Grown" {
					continue
				}
				for at, m := range q.Messages {
					require.EqualValues(t, at, m.Msg.QueueOffset)
					grown++
				}
			}
			require.Equal(t, 20, grown)
			out, _, err := run("store", "verify", dir, "--params", params)
			switch name {
			case "missing-middle-commitlog": // the segment stays missing
				require.Error(t, err)
			case "crc-corrupt-old-file": // not looked at by a start after a clean stop
				require.Error(t, err)
			default:
				require.NoError(t, err, out)
			}
		})
	}
}
