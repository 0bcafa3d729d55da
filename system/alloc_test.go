//go:build !race

// The race detector makes sync.Pool drop things at random, so allocations are counted without it.

package system_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestPutAndGetDoNotAllocate pins the steady state of the two hot paths. What the other actors allocate beside it is theirs.
func TestPutAndGetDoNotAllocate(t *testing.T) {
	for name, pool := range map[string]bool{"map": false, "transient store pool": true} {
		t.Run(name, func(t *testing.T) {
			opt := small(memfs.New())
			opt.SegmentBytes, opt.NoIndex, opt.TransientPoolEnable = 64<<20, true, pool
			putAndGetDoNotAllocate(t, opt)
		})
	}
}

func putAndGetDoNotAllocate(t *testing.T, opt system.Options) {
	s := open(t, opt)
	m := message("T", 0, "a body of some length")
	m.Properties = "TAGS\x01a"
	ctx := t.Context()
	put := func() {
		if r, err := s.Put(ctx, m); err != nil || r.Status != messages.PutOK {
			panic(err)
		}
	}
	for range 1000 {
		put()
	}
	read(t, s, m.Queue(), 0, 1000)
	request := messages.GetMessage{Queue: m.Queue(), Offset: 500, MaxMessages: 32}
	get := func() {
		r, err := s.Get(ctx, request)
		if err != nil || len(r.Records) != 32 {
			panic(err)
		}
		r.Release()
	}
	get()
	require.Less(t, testing.AllocsPerRun(2000, get), 0.5)
	// A put that finds the dispatcher idle wakes it, which starts a goroutine: that is the dispatcher's allocation.
	require.Less(t, testing.AllocsPerRun(2000, put), 1.0)
}

func TestQueriedRecordsDoNotAllocate(t *testing.T) {
	s := open(t, small(memfs.New()))
	m := message("T", 0, "a body of some length")
	m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyUniqKey: "7F00000100A518B4"})
	_, err := s.Put(t.Context(), m)
	require.NoError(t, err)
	require.NoError(t, s.AwaitDispatched(t.Context()))
	q := messages.QueryMessage{Topic: "T", Key: "7F00000100A518B4", MaxMessages: 32, EndMs: 1 << 60}
	require.Less(t, testing.AllocsPerRun(1000, func() {
		found, err := s.QueryRecords(t.Context(), q)
		if err != nil || len(found.Records) != 1 {
			panic(err)
		}
		found.Release()
	}), 1.0)
}

func BenchmarkPut(b *testing.B) {
	s, err := system.Open(system.Options{Dir: b.TempDir(), SegmentBytes: 512 << 20, IndexSlots: 1000, IndexEntries: 4000})
	require.NoError(b, err)
	m := message("T", 0, string(make([]byte, 128)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Put(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, s.Close(b.Context()))
}
