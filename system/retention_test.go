package system_test

import (
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

var short = messages.QueueKey{Topic: "Short"}

// retained is a store in which 35 messages of a topic that is kept for an hour have just expired, and five have not, beside 40 of another one.
func retained(t *testing.T) (*system.Store, system.Options) {
	t.Helper()
	opt := small(memfs.New())
	opt.ConsumeQueueFileBytes = 200 // ten units
	opt.FlushDiskType = system.SyncFlush
	opt.Topics = map[string]time.Duration{"Short": time.Hour}
	s := openIn(t, opt)
	for i := range 40 {
		if i == 35 {
			sleep(30 * time.Minute)
		}
		for _, topic := range []string{"Short", "Other"} {
			for q := range int32(2) {
				m := message(topic, q, fmt.Sprint(i))
				m.Properties = messages.PropertiesOf(map[string]string{"KEYS": fmt.Sprint(topic, q, "-", i)})
				_, err := s.Put(t.Context(), m)
				require.NoError(t, err)
			}
		}
	}
	sleep(29*time.Minute + 55*time.Second)
	require.Zero(t, s.MinOffset(short))
	return s, opt
}

// numbered are the texts of the numbers from one to another.
func numbered(from, to int) (texts []string) {
	for i := from; i < to; i++ {
		texts = append(texts, fmt.Sprint(i))
	}
	return texts
}

// holds checks what is left of a retained store, and that everything in its directory is whole.
func holds(t *testing.T, opt system.Options, begins ...messages.QueueOffset) {
	t.Helper()
	s := openIn(t, opt)
	for q := range int32(2) {
		key := messages.QueueKey{Topic: "Short", QueueID: q}
		begin := s.MinOffset(key)
		require.Contains(t, begins, begin)
		require.EqualValues(t, 40, s.MaxOffset(key))
		require.Equal(t, numbered(int(begin), 40), read(t, s, key, begin, 40-int(begin)))
		require.Equal(t, numbered(0, 40), read(t, s, messages.QueueKey{Topic: "Other", QueueID: q}, 0, 40))
	}
	closeIn(t, s)
	report, err := verify.Run(opt.Disk, store.Params{
		Dir: "store", CommitLogDir: "store/commitlog", SegmentBytes: seg, ConsumeQueueFileBytes: opt.ConsumeQueueFileBytes,
		IndexSlots: opt.IndexSlots, IndexEntries: opt.IndexEntries, MessageIndex: true,
	}, nil)
	require.NoError(t, err)
	require.True(t, report.Whole, "%v", report.Findings)
}

// A topic with a shorter retention begins where its messages have not expired, though the log has the others; nothing of it comes
// back after a stop, a kill, a power cut, or when its queues are built again.
func TestATopicIsKeptForItsOwnTime(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		s, opt := retained(t)
		disk := opt.Disk.(*memfs.Disk)
		sleep(20 * time.Second)
		first, _ := s.LogRange()
		require.Zero(t, first)
		require.EqualValues(t, 35, s.MinOffset(short))
		require.EqualValues(t, 35, s.MinOffset(messages.QueueKey{Topic: "Short", QueueID: 1}))
		require.Equal(t, []string{"600"}, files(t, disk, "store/consumequeue/Short/0"), "the file of the last ten")
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: short, Offset: 34, MaxMessages: 1})
		require.NoError(t, err)
		require.Equal(t, messages.OffsetTooSmall, r.Status)
		require.EqualValues(t, 35, r.NextOffset)
		r.Release()
		found, err := s.Query(t.Context(), messages.QueryMessage{Topic: "Short", Key: "Short0-3", MaxMessages: 1, EndMs: time.Now().UnixMilli()})
		require.NoError(t, err)
		require.Len(t, found, 1, "as with a topic that was deleted, the log has it until its file goes")

		for name, now := range map[string]*memfs.Disk{"killed": disk.Clone(), "power cut": disk.Crash(3)} {
			t.Log(name)
			opt.Disk = now
			holds(t, opt, 35)
			require.Equal(t, []string{"600"}, files(t, now, "store/consumequeue/Short/0"), "what has expired is not built again")
			require.NoError(t, removeAll(now, "store/consumequeue/Short"))
			holds(t, opt, 35)
			require.NoError(t, removeAll(now, "store/consumequeue"))
			holds(t, opt, 35)
		}
		closeIn(t, s)
		opt.Disk = disk
		holds(t, opt, 35)

		s = openIn(t, opt)
		putAt(t, s, "Short", "goes on", 40)
		sleep(2 * time.Hour)
		require.EqualValues(t, 41, s.MinOffset(short), "and all of it expires, in the only file of the queue too")
		closeIn(t, s)
		s = openIn(t, opt)
		require.EqualValues(t, 41, s.MinOffset(short))
		putAt(t, s, "Short", "goes on", 41)
		require.Len(t, read(t, s, short, 41, 1), 1)
		closeIn(t, s)
	})
}

// What expires of a topic is cut off anywhere: it is there, or gone.
func TestATopicsExpiryIsCutOffAnywhere(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		s, opt := retained(t)
		disk := opt.Disk.(*memfs.Disk)
		var cuts []*memfs.Disk
		disk.Inject(func(op memfs.Op) error {
			if op.Kind.Changes() {
				cuts = append(cuts, disk.Crash(uint64(len(cuts))))
			}
			return nil
		})
		sleep(20 * time.Second)
		disk.Inject(nil)
		require.EqualValues(t, 35, s.MinOffset(short))
		require.Greater(t, len(cuts), 8)
		closeIn(t, s)
		for i, cut := range cuts {
			t.Log("cut", i)
			opt.Disk = cut
			holds(t, opt, 0, 35)
		}
	})
}

// A topic with a longer retention keeps the files that hold what has not expired of it, and those behind them.
func TestALongerRetentionKeepsFiles(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := small(memfs.New())
		opt.Retention = messages.Retention{
			FileReservedTime: time.Minute, Topics: map[string]time.Duration{"Long": 3 * time.Hour, "None": 9 * time.Hour},
		}
		s := openIn(t, opt)
		begin := func() int64 {
			require.NoError(t, s.DeleteExpiredFiles())
			sleep(time.Minute)
			first, _ := s.LogRange()
			return int64(first)
		}
		fillTo(t, s, topicT, 2*seg+seg/2)
		putAt(t, s, "Long", "kept", 0)
		fillTo(t, s, topicT, 5*seg)
		sleep(2 * time.Hour)
		require.EqualValues(t, 2*seg, begin())
		require.Len(t, read(t, s, messages.QueueKey{Topic: "Long"}, 0, 1), 1)
		retention := s.Retention()
		retention.Topics = maps.Clone(retention.Topics)
		retention.Topics["Long"] = 5 * time.Hour
		require.NoError(t, s.SetRetention(retention))
		sleep(2 * time.Hour)
		require.EqualValues(t, 2*seg, begin())
		sleep(time.Hour)
		require.EqualValues(t, 5*seg, begin())
		require.Zero(t, s.Cleaning().Cleaned.Unexpired)
		for topic, kept := range map[string]time.Duration{"T": 0, messages.TopicSchedule: time.Hour, strings.Repeat("x", 300): time.Hour} {
			retention.Topics = map[string]time.Duration{topic: kept}
			require.ErrorIs(t, s.SetRetention(retention), system.ErrOptions)
		}
		closeIn(t, s)
	})
}

// With KeepUnread a topic begins no later than what a group has still to read.
func TestATopicKeepsWhatIsUnread(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		s, opt := retained(t)
		retention := s.Retention()
		retention.KeepUnread = true
		require.NoError(t, s.SetRetention(retention))
		sleep(20 * time.Second)
		require.Zero(t, s.MinOffset(short), "nobody knows yet who has read what")
		var next atomic.Int64
		next.Store(20)
		s.SetReaders(func(time.Duration) map[messages.QueueKey]messages.Reader {
			return map[messages.QueueKey]messages.Reader{short: {Group: "g", Next: messages.QueueOffset(next.Load())}}
		})
		sleep(20 * time.Second)
		require.EqualValues(t, 20, s.MinOffset(short))
		next.Store(40)
		sleep(20 * time.Second)
		require.EqualValues(t, 35, s.MinOffset(short))
		closeIn(t, s)
		holds(t, opt, 35)
	})
}
