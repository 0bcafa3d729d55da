package system_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// TestPutsThatWaitForTheDiskAndOthersShareIt: with SYNC_FLUSH, messages that do not wait ring the flusher's bell while syncs end all the
// time. Its announcement was queued twice then, the flusher went round in a circle, and no put was answered any more.
func TestPutsThatWaitForTheDiskAndOthersShareIt(t *testing.T) {
	opt := system.Options{Dir: t.TempDir(), SegmentBytes: 64 << 20, NoIndex: true, FlushDiskType: system.SyncFlush}
	s, err := system.Open(opt)
	require.NoError(t, err)
	var all sync.WaitGroup
	for c := range 4 {
		all.Go(func() {
			var answers sync.WaitGroup
			defer answers.Wait()
			for i := range 30_000 {
				answers.Add(1)
				s.PutAsync(message("T", int32(c), "x"), i%50 == 0, time.Time{}, func(_ messages.PutResult, err error) {
					defer answers.Done()
					if err != nil {
						t.Error(err)
					}
				})
				if i%200 == 0 {
					answers.Wait()
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, s.Close(t.Context()))
}
