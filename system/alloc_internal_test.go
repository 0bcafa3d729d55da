//go:build !race

package system

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestGetsOfFarRecordsDoNotAllocate: nor do those that look decides on one by one.
func TestGetsOfFarRecordsDoNotAllocate(t *testing.T) {
	s, err := Open(Options{Dir: "store", Disk: memfs.New(), SegmentBytes: 1 << 20, ConsumeQueueFileBytes: 2000, NoIndex: true, WindowBytes: 64 << 10})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(t.Context())) }()
	m := &messages.Message{Topic: "T", Body: []byte("a body of some length")}
	for range 100 {
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
	}
	require.NoError(t, s.AwaitDispatched(t.Context()))
	s.memoryBytes = 0 // all is far
	ask := messages.GetMessage{Queue: m.Queue(), MaxMessages: 32}
	get := func() {
		r, err := s.Get(t.Context(), ask)
		if err != nil || len(r.Records) == 0 {
			panic(err)
		}
		r.Release()
	}
	get()
	require.Less(t, testing.AllocsPerRun(2000, get), 0.5)
}
