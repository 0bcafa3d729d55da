package system_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

var topicT = messages.QueueKey{Topic: "T"}

func putAt(t *testing.T, s *system.Store, topic, body string, want messages.QueueOffset) {
	t.Helper()
	r, err := s.Put(t.Context(), message(topic, 0, body))
	require.NoError(t, err)
	require.Equal(t, want, r.QueueOffset, body)
}

// A deletion that has been answered survives whatever comes: the queue does not come back from the log, and what was put
// since begins at 0.
func TestADeletionSurvivesACrash(t *testing.T) {
	for name, after := range map[string]func(*memfs.Disk) *memfs.Disk{
		"killed":    func(d *memfs.Disk) *memfs.Disk { return d.Clone() },
		"power cut": func(d *memfs.Disk) *memfs.Disk { return d.Crash(7) },
	} {
		for _, anew := range []int{0, 1, 3, 8} {
			t.Run(fmt.Sprint(name, ", made again with ", anew), func(t *testing.T) {
				opt := small(memfs.New())
				opt.FlushDiskType = system.SyncFlush
				s := open(t, opt)
				for i := range 5 {
					putAt(t, s, "T", fmt.Sprint("old ", i), messages.QueueOffset(i))
					putAt(t, s, "Stays", fmt.Sprint(i), messages.QueueOffset(i))
				}
				read(t, s, topicT, 0, 5)
				require.NoError(t, s.DeleteTopic(t.Context(), "T"))
				want := []string{}
				for i := range anew {
					want = append(want, fmt.Sprint("new ", i))
					putAt(t, s, "T", want[i], messages.QueueOffset(i))
				}
				opt.Disk = after(opt.Disk.(*memfs.Disk))
				for range 2 { // unclean, then clean
					next, err := system.Open(opt)
					require.NoError(t, err)
					require.EqualValues(t, anew, next.MaxOffset(topicT))
					if anew > 0 {
						require.Equal(t, want, read(t, next, topicT, 0, anew))
					}
					read(t, next, messages.QueueKey{Topic: "Stays"}, 0, 5)
					require.NoError(t, next.Close(t.Context()))
				}
				report, err := verify.Run(opt.Disk, store.Params{
					Dir: "store", SegmentBytes: opt.SegmentBytes, ConsumeQueueFileBytes: opt.ConsumeQueueFileBytes, CheckCRC: true,
					MessageIndex: true, IndexSlots: opt.IndexSlots, IndexEntries: opt.IndexEntries,
				}, nil)
				require.NoError(t, err)
				require.True(t, report.Whole, "%v", report.Findings)
				// And queues that are built from nothing are the same.
				disk := opt.Disk.(*memfs.Disk)
				require.NoError(t, removeAll(disk, "store/consumequeue"))
				next := open(t, opt)
				require.EqualValues(t, anew, next.MaxOffset(topicT))
				putAt(t, next, "T", "go on", messages.QueueOffset(anew))
			})
		}
	}
}

func removeAll(disk vfs.Disk, dir string) error {
	entries, err := disk.List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := dir + "/" + e.Name
		if e.Dir {
			err = removeAll(disk, name)
		} else {
			err = disk.Remove(name)
		}
		if err != nil {
			return err
		}
	}
	return disk.Remove(dir)
}

// A deletion that is cut off anywhere leaves the topic as it was, or gone; what is put afterwards is readable at its offset.
func TestADeletionIsCutOffAnywhere(t *testing.T) {
	opt := small(memfs.New())
	opt.FlushDiskType = system.SyncFlush
	base := opt.Disk.(*memfs.Disk)
	s, err := system.Open(opt)
	require.NoError(t, err)
	for i := range 5 {
		putAt(t, s, "T", fmt.Sprint("old ", i), messages.QueueOffset(i))
	}
	read(t, s, topicT, 0, 5)
	var cuts []*memfs.Disk
	var mu sync.Mutex // the allocator may be making a segment meanwhile
	base.Inject(func(op memfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.Changes() {
			cuts = append(cuts, base.Crash(uint64(len(cuts))))
		}
		return nil
	})
	require.NoError(t, s.DeleteTopic(t.Context(), "T"))
	base.Inject(nil)
	require.NoError(t, s.Close(t.Context()))
	require.Greater(t, len(cuts), 5)
	for i, disk := range cuts {
		opt.Disk = disk
		s, err := system.Open(opt)
		require.NoError(t, err, "cut %d", i)
		max := s.MaxOffset(topicT)
		require.Contains(t, []messages.QueueOffset{0, 5}, max, "cut %d", i)
		putAt(t, s, "T", "new", max)
		bodies := read(t, s, topicT, 0, int(max)+1)
		require.Equal(t, "new", bodies[max], "cut %d", i)
		require.NoError(t, s.Close(t.Context()))
	}
}

// What is noted of a deletion counts only for the log that it was noted for: RocketMQ, which does not know it, may have cut
// and gone on.
func TestANotedDeletionOfAnotherLogIsIgnored(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	s, err := system.Open(opt)
	require.NoError(t, err)
	for i := range 5 {
		putAt(t, s, "T", fmt.Sprint("old ", i), messages.QueueOffset(i))
	}
	read(t, s, topicT, 0, 5)
	before := disk.Clone()
	for i := range 3 {
		putAt(t, s, "Lost", "the other log has another record here", messages.QueueOffset(i))
	}
	require.NoError(t, s.DeleteTopic(t.Context(), "T"))
	require.NoError(t, s.Close(t.Context()))

	opt.Disk = before
	s, err = system.Open(opt)
	require.NoError(t, err)
	for i := range 20 {
		putAt(t, s, "Other", "another message stands where the deletion was", messages.QueueOffset(i))
	}
	read(t, s, messages.QueueKey{Topic: "Other"}, 0, 20)
	killed := before.Clone() // so that the next start reads the log
	require.NoError(t, s.Close(t.Context()))
	opt.Disk = killed
	fixture.WriteFile(t, killed, "store/queuefloors.json", fixture.ReadFile(t, disk, "store/queuefloors.json"))
	s = open(t, opt)
	require.EqualValues(t, 5, s.MaxOffset(topicT))
	require.Len(t, read(t, s, topicT, 0, 5), 5)
}

// W23: where a queue without a message goes on survives a stop and a kill.
func TestKeptOffsetsSurvive(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.FileReservedTime = time.Minute
		s := openIn(t, opt)
		for i := range 7 {
			putAt(t, s, "T", "m", messages.QueueOffset(i))
		}
		fillTo(t, s, messages.QueueKey{Topic: "Busy"}, 2*seg)
		sleep(2 * time.Minute)
		require.NoError(t, s.DeleteExpiredFiles())
		sleep(10 * time.Second)
		require.NoError(t, s.DeleteExpiredQueues(t.Context()))
		killed := disk.Crash(3)
		closeIn(t, s)
		for name, d := range map[string]*memfs.Disk{"stopped": disk, "cut off": killed} {
			opt.Disk = d
			for round := range messages.QueueOffset(3) {
				s := openIn(t, opt)
				require.Equal(t, 7+round, s.MaxOffset(topicT), name)
				putAt(t, s, "T", "m", 7+round)
				settle()
				require.Len(t, read(t, s, topicT, 7, int(round)+1), int(round)+1, name)
				closeIn(t, s)
			}
		}
	})
}
