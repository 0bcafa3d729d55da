package system_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// sleep lets so much time pass in a bubble, and everything come to rest.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// settle lets everybody come to rest, the dispatcher too, which hears within a millisecond of what nobody waits for.
func settle() { sleep(time.Millisecond) }

// fillTo puts messages into a queue until the log ends behind an offset.
func fillTo(t *testing.T, s *system.Store, key messages.QueueKey, end messages.PhysicalOffset) {
	t.Helper()
	for i := 0; ; i++ {
		m := message(key.Topic, key.QueueID, strings.Repeat("x", 900))
		m.Properties = messages.PropertiesOf(map[string]string{"KEYS": fmt.Sprintf("k%d", i)})
		r, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		if r.End() > end {
			return
		}
	}
}

func files(t *testing.T, disk *memfs.Disk, dir string) []string {
	t.Helper()
	entries, err := disk.List(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimLeft(e.Name[:len(e.Name)-1], "0")+e.Name[len(e.Name)-1:])
	}
	return names
}

// closeIn closes a store inside a bubble, after which nothing of it may run.
func closeIn(t *testing.T, s *system.Store) {
	t.Helper()
	require.NoError(t, s.Close(t.Context()))
}

const seg = 32 << 10

func openIn(t *testing.T, opt system.Options) *system.Store {
	t.Helper()
	s, err := system.Open(opt)
	require.NoError(t, err)
	return s
}

// A round that deletes segments, and fails in something else, holds up no other one: what is asked for meanwhile is done behind it.
func TestARoundThatFailsInPartDoesNotHoldUpTheNext(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.ConsumeQueueFileBytes = 200 // ten units
		opt.CleanInterval, opt.FileReservedTime = time.Hour, time.Hour
		opt.DeleteWhen = fmt.Sprintf("%02d", time.Now().Add(12*time.Hour).Hour())
		s := openIn(t, opt)
		fillTo(t, s, messages.QueueKey{Topic: "T"}, 30*seg)
		sleep(90 * time.Minute)
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindRemove && strings.HasPrefix(op.Name, "store/consumequeue") {
				return errors.New("injected")
			}
			return nil
		})
		require.NoError(t, s.DeleteExpiredFiles())
		require.NoError(t, s.DeleteExpiredFiles())
		sleep(10 * time.Second)
		first, _ := s.LogRange()
		require.EqualValues(t, 20*seg, first)
		disk.Inject(nil)
		closeIn(t, s)
	})
}

func TestExpiredFilesGoInTheHourOfDeleteWhen(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.ConsumeQueueFileBytes = 200 // ten units
		opt.FileReservedTime = time.Hour
		opt.DeleteWhen = fmt.Sprintf("%02d", time.Now().Add(3*time.Hour).Hour())
		s := openIn(t, opt)
		key, idle := messages.QueueKey{Topic: "T"}, messages.QueueKey{Topic: "Idle"}
		_, err := s.Put(t.Context(), message("Idle", 0, "only one"))
		require.NoError(t, err)
		fillTo(t, s, key, 3*seg)
		sleep(150 * time.Minute)
		fillTo(t, s, key, 5*seg)
		first, _ := s.LogRange()
		require.Zero(t, first, "not before its hour")

		sleep(45 * time.Minute)
		first, end := s.LogRange()
		require.EqualValues(t, 3*seg, first, "what came later has not expired; W19: by its store time")
		require.Equal(t, []string{"98304", "131072", "163840", "196608", "229376"}, files(t, disk, "store/commitlog"))
		require.EqualValues(t, 3, s.Cleaning().Cleaned.Segments)
		require.Zero(t, s.Cleaning().Cleaned.Unexpired)

		lo := s.MinOffset(key)
		require.Positive(t, lo)
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: lo, MaxMessages: 1})
		require.NoError(t, err)
		require.Equal(t, messages.Found, r.Status, "the minimum is the first that can be read")
		r.Release()
		for _, name := range files(t, disk, "store/consumequeue/T/0") {
			var start messages.QueueOffset
			_, err := fmt.Sscan(name, &start)
			require.NoError(t, err)
			require.Greater(t, start/20+10, lo, "queue files that name only what is gone are gone")
		}
		require.Equal(t, s.MaxOffset(idle), s.MinOffset(idle), "L54: also in the only file of a queue")
		require.EqualValues(t, 1, s.MaxOffset(idle))
		require.Greater(t, int64(end), int64(5*seg))
		closeIn(t, s)

		s = openIn(t, opt)
		again, _ := s.LogRange()
		require.Equal(t, first, again)
		require.Equal(t, lo, s.MinOffset(key), "L112: the minimum does not go back")
		require.EqualValues(t, 1, s.MinOffset(idle))
		closeIn(t, s)
	})
}

func TestRetentionChangesWhileTheStoreIsOpen(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.DeleteWhen = "0;1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23"
		s := openIn(t, opt)
		fillTo(t, s, messages.QueueKey{Topic: "T"}, 3*seg)
		sleep(2 * time.Hour)
		first, _ := s.LogRange()
		require.Zero(t, first, "72 hours by default")

		retention := s.Options().Retention
		for name, wrong := range map[string]func(*messages.Retention){
			"hours": func(r *messages.Retention) { r.DeleteWhen = "24" }, "percent": func(r *messages.Retention) { r.WarningPercent = 101 },
			"time": func(r *messages.Retention) { r.FileReservedTime = -1 },
		} {
			r := retention
			wrong(&r)
			require.ErrorIs(t, s.SetRetention(r), system.ErrOptions, name)
		}
		retention.FileReservedTime = time.Hour
		require.NoError(t, s.SetRetention(retention))
		sleep(time.Minute)
		first, _ = s.LogRange()
		require.Positive(t, first)
		closeIn(t, s)
		require.ErrorIs(t, s.SetRetention(retention), system.ErrStopped)
	})
}

// L09, W29: a reader keeps what it holds, and holds up nothing but its own file and those behind it.
func TestAFileThatIsReadStaysUntilItsReaderHasGone(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.FileReservedTime = time.Minute
		s := openIn(t, opt)
		key := messages.QueueKey{Topic: "T"}
		fillTo(t, s, key, 4*seg)
		settle()
		held, err := s.Get(t.Context(), messages.GetMessage{Queue: key, MaxMessages: 1})
		require.NoError(t, err)
		body := string(held.Records[0])
		sleep(2 * time.Minute)
		require.NoError(t, s.DeleteExpiredFiles())
		sleep(10 * time.Second)
		first, _ := s.LogRange()
		require.EqualValues(t, 4*seg, first, "new readers find none of them")
		require.Contains(t, files(t, disk, "store/commitlog"), "0")
		require.Contains(t, files(t, disk, "store/commitlog"), "65536", "files go in order, so that no crash leaves a gap")
		require.Equal(t, 4, s.Cleaning().Cleaned.Hanging)
		require.Equal(t, body, string(held.Records[0]))
		held.Release()
		sleep(time.Second)
		require.Equal(t, []string{"131072", "163840", "196608"}, files(t, disk, "store/commitlog"))

		fillTo(t, s, key, 6*seg)
		settle()
		held, err = s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: s.MinOffset(key), MaxMessages: 1})
		require.NoError(t, err)
		body = string(held.Records[0])
		sleep(time.Minute + time.Second)
		require.NoError(t, s.DeleteExpiredFiles())
		sleep(100 * time.Second)
		require.Contains(t, files(t, disk, "store/commitlog"), "131072")
		sleep(40 * time.Second)
		require.Equal(t, []string{"196608", "229376", "262144"}, files(t, disk, "store/commitlog"), "destroyMapedFileIntervalForcibly")
		require.Equal(t, body, string(held.Records[0]), "never unmapped under its reader")
		held.Release()
		closeIn(t, s)
	})
}

func TestAFileThatCannotBeDeletedIsTriedAgain(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.FileReservedTime, opt.RedeleteInterval = time.Minute, 30*time.Second
		s := openIn(t, opt)
		fillTo(t, s, messages.QueueKey{Topic: "T"}, 3*seg)
		sleep(2 * time.Minute)
		var tries []time.Time
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindRemove && strings.HasPrefix(op.Name, "store/commitlog/") {
				tries = append(tries, time.Now())
				return fmt.Errorf("busy")
			}
			return nil
		})
		require.NoError(t, s.DeleteExpiredFiles())
		sleep(time.Minute + 5*time.Second)
		require.Len(t, tries, 3, "once every redeleteHangedFileInterval: %v", tries)
		disk.Inject(nil)
		sleep(40 * time.Second)
		require.Equal(t, []string{"98304", "131072", "163840"}, files(t, disk, "store/commitlog"))
		closeIn(t, s)
	})
}

// L07: deleting a topic, and its expired queues, under load. Every message that is acknowledged after a deletion is readable at
// its offset, and each queue's offsets are whole.
func TestATopicIsDeletedUnderLoad(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	opt.SegmentBytes = 256 << 10
	s := open(t, opt)
	ctx := t.Context()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for p := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				for _, topic := range []string{"Gone", "Stays"} {
					if _, err := s.Put(ctx, message(topic, int32(p%2), fmt.Sprintf("%d-%d", p, i))); err != nil {
						t.Errorf("put: %v", err)
						return
					}
				}
			}
		})
	}
	for range 25 {
		require.NoError(t, s.DeleteTopic(ctx, "Gone"))
		require.NoError(t, s.DeleteExpiredQueues(ctx))
	}
	close(stop)
	wg.Wait()
	for _, topic := range []string{"Gone", "Stays"} {
		for q := range int32(2) {
			r, err := s.Put(ctx, message(topic, q, "last"))
			require.NoError(t, err)
			key := messages.QueueKey{Topic: topic, QueueID: q}
			bodies := read(t, s, key, 0, int(r.QueueOffset)+1)
			require.Equal(t, "last", bodies[r.QueueOffset], "%v", key)
			require.Equal(t, r.QueueOffset+1, s.MaxOffset(key))
		}
	}
}

func TestADeletedTopicBeginsAtZeroAgain(t *testing.T) {
	disk := memfs.New()
	s := open(t, small(disk))
	key := messages.QueueKey{Topic: "T"}
	for range 3 {
		for i := range 5 {
			r, err := s.Put(t.Context(), message("T", 0, fmt.Sprint(i)))
			require.NoError(t, err)
			require.EqualValues(t, i, r.QueueOffset)
		}
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, read(t, s, key, 0, 5))
		require.NoError(t, s.DeleteTopic(t.Context(), "T"))
		require.Zero(t, s.MaxOffset(key))
		_, err := disk.Stat("store/consumequeue/T/0")
		require.Error(t, err)
	}
	require.NoError(t, s.DeleteTopic(t.Context(), "Ghost"), "one that is not there is no error")
	for _, topic := range []string{"Used", "Unused", messages.TopicSchedule, messages.TopicTransactionHalf, "%LMQ%x"} {
		_, err := s.Put(t.Context(), message(topic, 0, "m"))
		require.NoError(t, err)
		read(t, s, messages.QueueKey{Topic: topic}, 0, 1)
	}
	require.NoError(t, s.DeleteUnusedTopics(t.Context(), func(topic string) bool { return topic == "Used" }))
	left := map[string]bool{}
	s.EachQueue(func(key messages.QueueKey, _, _ messages.QueueOffset) { left[key.Topic] = true })
	require.Equal(t, map[string]bool{
		"Used": true, messages.TopicSchedule: true, messages.TopicTransactionHalf: true, "%LMQ%x": true,
	}, left, "W31: the half topic is protected too")
}

// W23: a queue whose messages have all expired goes on with its offsets.
func TestAnExpiredQueueKeepsItsOffsets(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.FileReservedTime = time.Minute
		s := openIn(t, opt)
		old := messages.QueueKey{Topic: "Old"}
		for range 7 {
			_, err := s.Put(t.Context(), message("Old", 0, "m"))
			require.NoError(t, err)
		}
		fillTo(t, s, messages.QueueKey{Topic: "T"}, 2*seg)
		sleep(2 * time.Minute)
		require.NoError(t, s.DeleteExpiredFiles())
		sleep(10 * time.Second)
		require.NoError(t, s.DeleteExpiredQueues(t.Context()))
		_, err := disk.Stat("store/consumequeue/Old/0")
		require.Error(t, err, "its files are gone")
		require.EqualValues(t, 7, s.MinOffset(old))
		require.EqualValues(t, 7, s.MaxOffset(old))
		r, err := s.Put(t.Context(), message("Old", 0, "new"))
		require.NoError(t, err)
		require.EqualValues(t, 7, r.QueueOffset)
		settle()
		got, err := s.Get(t.Context(), messages.GetMessage{Queue: old, Offset: 7, MaxMessages: 1})
		require.NoError(t, err)
		require.Equal(t, messages.Found, got.Status)
		got.Release()
		closeIn(t, s)
	})
}

// What fills the disk fast is not waited for: rounds begin when it is too full, and follow each other until it is not, in the first minute too.
func TestADiskThatFillsFastIsRelievedAtOnce(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.CleanForcibly, opt.WarningPercent, opt.MaxUsedPercent = 50, 95, 45
		s := openIn(t, opt)
		fillTo(t, s, messages.QueueKey{Topic: "T"}, 40*seg)
		sleep(time.Second)
		disk.SetCapacity(used(t, disk) * 100 / 90)
		sleep(10 * time.Second)
		first, _ := s.LogRange()
		require.Greater(t, int64(first), int64(13*seg), "more than a round")
		require.EqualValues(t, s.Cleaning().Cleaned.Segments, s.Cleaning().Cleaned.Unexpired)
		require.LessOrEqual(t, usage(t, disk).UsedPercent(), 51)
		require.Less(t, int64(first), int64(30*seg), "and no more than brings it down")

		disk.SetCapacity(used(t, disk) * 100 / 52) // as full as it was, but nothing that may go
		sleep(5 * time.Second)
		fillTo(t, s, messages.QueueKey{Topic: "T"}, 60*seg)
		sleep(5 * time.Second)
		require.LessOrEqual(t, usage(t, disk).UsedPercent(), 51, "what could not go a second ago can now")
		disk.SetCapacity(0)
		closeIn(t, s)
	})
}

// Expired files are kept while a group has not read them, up to a limit of the disk's use.
func TestUnreadFilesAreKeptUntilTheDiskIsTooFull(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.Retention = messages.Retention{
			FileReservedTime: time.Minute, MaxUsedPercent: 10, KeepUnread: true, UnreadGroupTimeout: time.Hour, NoForcedCleaning: true,
		}
		s := openIn(t, opt)
		key := messages.QueueKey{Topic: "T"}
		var third messages.QueueOffset // the first message of the third file
		for end := messages.PhysicalOffset(0); end < 6*seg; {
			r, err := s.Put(t.Context(), message("T", 0, strings.Repeat("x", 900)))
			require.NoError(t, err)
			if end = r.End(); end <= 2*seg {
				third = r.QueueOffset + 1
			}
		}
		disk.SetCapacity(used(t, disk) * 100 / 50)
		begin := func() int64 {
			require.NoError(t, s.DeleteExpiredFiles())
			sleep(time.Minute)
			first, _ := s.LogRange()
			return int64(first)
		}
		sleep(2 * time.Minute)
		require.Zero(t, begin(), "nobody knows yet who has read what")

		var next, asked atomic.Int64
		s.SetReaders(func(seen time.Duration) map[messages.QueueKey]messages.Reader {
			asked.Store(int64(seen))
			return map[messages.QueueKey]messages.Reader{
				key: {Group: "g", Next: messages.QueueOffset(next.Load())}, {Topic: "Unknown"}: {Group: "g", Next: 5}, {Topic: "Idle"}: {Group: "g"},
			}
		})
		require.Zero(t, begin())
		require.EqualValues(t, time.Hour, asked.Load())
		require.Equal(t, "g in T/0", s.Cleaning().Cleaned.WaitsFor)
		next.Store(int64(third))
		require.EqualValues(t, 2*seg, begin())
		next.Store(int64(third) - 1) // what is gone keeps nothing
		require.EqualValues(t, 2*seg, begin())
		require.Zero(t, s.Cleaning().Cleaned.Unread)

		disk.SetCapacity(used(t, disk) * 100 / 82)
		require.EqualValues(t, 6*seg, begin(), "the disk is too full to wait")
		require.EqualValues(t, 4, s.Cleaning().Cleaned.Unread, "and that is counted")
		require.Empty(t, s.Cleaning().Cleaned.WaitsFor)
		require.Zero(t, s.Cleaning().Cleaned.Unexpired)
		disk.SetCapacity(0)
		closeIn(t, s)
	})
}
