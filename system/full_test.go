package system_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// used is how many bytes a disk holds.
func used(t *testing.T, disk *memfs.Disk) int64 { t.Helper(); return usage(t, disk).UsedBytes }

func usage(t *testing.T, disk *memfs.Disk) vfs.Usage {
	t.Helper()
	u, err := disk.Usage("store")
	require.NoError(t, err)
	return u
}

// producer notes what it has been promised.
type producer struct {
	t     *testing.T
	store *system.Store
	acked []string // bodies, by queue offset
	tried int
}

// put tries one put of about a kilobyte.
func (p *producer) put() error {
	p.tried++
	body := fmt.Sprintf("%d %s", p.tried, strings.Repeat("x", 900))
	m := message("T", 0, body)
	m.Properties = messages.PropertiesOf(map[string]string{"KEYS": fmt.Sprint("k", p.tried)})
	r, err := p.store.Put(p.t.Context(), m)
	if err != nil {
		require.False(p.t, r.Status.Stored(), "an error, and yet: %v", r.Status)
		return err
	}
	require.Equal(p.t, messages.PutOK, r.Status)
	require.EqualValues(p.t, len(p.acked), r.QueueOffset, "a refused put uses nothing up")
	p.acked = append(p.acked, body)
	return nil
}

// untilRefused puts until a put is refused, in no time, and checks how that is said.
func (p *producer) untilRefused() error {
	p.t.Helper()
	for range 5000 {
		began := time.Now()
		err := p.put()
		if err == nil {
			continue
		}
		require.Less(p.t, time.Since(began), time.Second)
		require.ErrorIs(p.t, err, messages.ErrDiskFull)
		r, again := p.store.Put(p.t.Context(), message("T", 0, strings.Repeat("x", 2000)))
		require.ErrorIs(p.t, again, messages.ErrDiskFull)
		require.Equal(p.t, messages.ServiceNotAvailable, r.Status)
		return err
	}
	p.t.Fatal("never refused")
	return nil
}

// check reads everything that was promised.
func (p *producer) check() {
	p.t.Helper()
	lo := p.store.MinOffset(messages.QueueKey{Topic: "T"})
	got := read(p.t, p.store, messages.QueueKey{Topic: "T"}, lo, len(p.acked)-int(lo))
	require.Equal(p.t, append([]string(nil), p.acked[lo:]...), got)
}

// L48: a full disk refuses, says why, keeps everything else going, and takes puts again by itself when there is room.
func TestAFullDiskRefusesPutsAndResumesByItself(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.NoForcedCleaning, opt.WarningPercent = true, 100 // only what does not fit is refused
		opt.MaxUsedPercent = 95
		var log bytes.Buffer
		opt.Logger = zerolog.New(zerolog.SyncWriter(&log))
		s := openIn(t, opt)
		p := &producer{t: t, store: s}
		for range 100 {
			require.NoError(t, p.put())
		}
		_, err := s.Put(t.Context(), message("Other", 0, "m"))
		require.NoError(t, err)
		sleep(2 * time.Second)
		require.True(t, s.Cleaning().Ballast)
		disk.SetCapacity(used(t, disk))
		refused := p.untilRefused()
		require.ErrorIs(t, refused, vfs.ErrNoSpace)
		require.Greater(t, len(p.acked), 150, "what is prepared is used")
		sleep(time.Second)
		require.ErrorIs(t, s.Writable(), messages.ErrDiskFull)
		require.False(t, s.Cleaning().Ballast, "given up")
		require.Less(t, used(t, disk), int64(300<<10), "and nobody took its room")

		p.check()
		require.NoError(t, s.DeleteTopic(t.Context(), "Other"), "deletions work")
		lines := strings.Count(log.String(), "\n")
		sleep(10 * time.Minute)
		require.Less(t, strings.Count(log.String(), "\n")-lines, 25, "two lines a minute at most: %s", log.String())
		require.ErrorIs(t, p.put(), messages.ErrDiskFull)

		disk.SetCapacity(0)
		sleep(1500 * time.Millisecond)
		require.NoError(t, s.Writable())
		require.NoError(t, p.put(), "no restart")
		sleep(time.Second)
		require.True(t, s.Cleaning().Ballast, "made again")
		p.check()
		require.Contains(t, log.String(), "no longer full")
		closeIn(t, s)
		require.NoError(t, disk.Remove("store/ballast"))
	})
}

// A clean stop is possible on a full disk, and the next start works on it: it reads, refuses, and goes on once there is room.
func TestAStopAndAStartOnAFullDisk(t *testing.T) { // L52
	for _, killed := range []bool{false, true} {
		for _, ballast := range []int64{0, -1} {
			t.Run(fmt.Sprintf("killed %v, ballast %d", killed, ballast), func(t *testing.T) {
				fixture.Bubble(t, func(t *testing.T) { stopAndStart(t, killed, ballast) })
			})
		}
	}
}

func stopAndStart(t *testing.T, killed bool, ballast int64) {
	disk := memfs.New()
	opt := small(disk)
	opt.NoForcedCleaning, opt.WarningPercent, opt.BallastBytes = true, 100, ballast
	s := openIn(t, opt)
	p := &producer{t: t, store: s}
	for range 100 {
		require.NoError(t, p.put())
	}
	sleep(time.Second)
	for range 40 {
		require.NoError(t, p.put()) // in no queue file yet
	}
	disk.SetCapacity(used(t, disk))
	if !killed {
		_ = p.untilRefused()
		sleep(time.Second)
		if ballast == 0 {
			closeIn(t, s)
		} else {
			require.ErrorIs(t, s.Close(t.Context()), vfs.ErrNoSpace, "without the reserve the queues can't be written")
			killed = true
		}
	} else {
		dead := disk.Clone()
		dead.SetCapacity(used(t, disk))
		disk.SetCapacity(0)
		closeIn(t, s)
		disk = dead
		if u := used(t, disk); u > 0 {
			require.NoError(t, fill(disk), "to the last page")
		}
	}
	opt.Disk = disk
	_, err := disk.Stat("store/abort")
	require.Equal(t, killed, err == nil)

	s = openIn(t, opt)
	p.store = s
	p.check()
	sleep(time.Second)
	_ = p.untilRefused()
	p.check()
	disk.SetCapacity(0)
	sleep(4 * time.Second)
	require.NoError(t, p.put())
	p.check()
	closeIn(t, s)
	s = openIn(t, opt)
	p.store = s
	p.check()
	require.NoError(t, p.put(), "the offsets go on")
	for _, k := range []int{1, 101, 140} {
		found, err := s.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: fmt.Sprint("k", k), MaxMessages: 2, EndMs: 1 << 60})
		require.NoError(t, err)
		require.Len(t, found, 1, "key %d: the index was made complete", k)
	}
	closeIn(t, s)
}

// Not a byte and not an inode: the start gives up the ballast for the marker of an open store, and for where a queue goes on that is damaged and has
// nothing in the log, and serves reads only when that does not help.
func TestAStartWithoutRoomForOneFile(t *testing.T) {
	const floors = "store/queuefloors.json.tmp"
	for file, refusal := range map[string]error{"store/abort": store.ErrNoAbort, floors: store.ErrNoNote} {
		for _, ballast := range []int64{0, -1} {
			startWithoutRoomFor(t, file, ballast, refusal, file == floors)
		}
	}
}

func startWithoutRoomFor(t *testing.T, file string, ballast int64, refusal error, expired bool) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.BallastBytes = ballast
		s := openIn(t, opt)
		p := &producer{t: t, store: s}
		for range 5 {
			require.NoError(t, p.put())
		}
		if expired {
			for range 40 {
				_, err := s.Put(t.Context(), message("Other", 0, strings.Repeat("x", 900)))
				require.NoError(t, err)
			}
		}
		sleep(2 * time.Second)
		closeIn(t, s)
		if expired {
			require.NoError(t, disk.Remove("store/commitlog/00000000000000000000"))
			f, err := disk.Open("store/consumequeue/T/0/00000000000000000000", true)
			require.NoError(t, err)
			_, err = f.WriteAt(make([]byte, 20), 0)
			require.NoError(t, errors.Join(err, f.Close()))
		}
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindRemove && op.Name == "store/ballast" {
				disk.Inject(nil)
			}
			if op.Kind == memfs.KindCreate && op.Name == file {
				return vfs.ErrNoSpace
			}
			return nil
		})
		s, err := system.Open(opt)
		if ballast < 0 {
			require.NoError(t, err)
			require.ErrorIs(t, s.Writable(), refusal)
			require.ErrorIs(t, s.Writable(), vfs.ErrNoSpace)
			p.store = s
			p.check()
			require.ErrorIs(t, p.put(), system.ErrReadOnly)
			require.ErrorIs(t, s.Close(t.Context()), system.ErrReadOnly)
			sleep(time.Second) // the timers of the actor library end
			disk.Inject(nil)
			s, err = system.Open(opt)
		}
		require.NoError(t, err)
		p.store = s
		p.check()
		closeIn(t, s)
	})
}

// A short last file, as a killed RocketMQ or a copy leaves it, holds up no start on a full disk.
func TestAShortLastFileOnAFullDisk(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.BallastBytes, opt.WarningPercent, opt.NoForcedCleaning = -1, 100, true
		s := openIn(t, opt)
		p := &producer{t: t, store: s}
		for range 50 {
			require.NoError(t, p.put())
		}
		closeIn(t, s)
		require.Equal(t, []string{"0", "32768"}, files(t, disk, "store/commitlog"))
		f, err := disk.Open("store/commitlog/00000000000000032768", true)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(24<<10))
		require.NoError(t, f.Close())
		disk.SetCapacity(used(t, disk) + 4<<10)
		s = openIn(t, opt)
		p.store = s
		p.check()
		disk.SetCapacity(0)
		closeIn(t, s)
	})
}

// fill takes all the room that is left.
func fill(disk *memfs.Disk) error {
	f, err := disk.Create("store/filler")
	if err != nil {
		return err
	}
	for off := int64(0); ; off += 4096 {
		if _, err := f.WriteAt(make([]byte, 4096), off); err != nil {
			return f.Close()
		}
	}
}

// W15, L47, L49: above the limit puts are refused within a second, below it they are taken again.
func TestADiskAboveTheLimitRefusesPuts(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.NoForcedCleaning = true
		s := openIn(t, opt)
		p := &producer{t: t, store: s}
		for range 60 {
			require.NoError(t, p.put())
		}
		sleep(2 * time.Second)
		disk.SetCapacity(used(t, disk) * 100 / 94)
		sleep(1100 * time.Millisecond)
		err := p.put()
		require.ErrorIs(t, err, messages.ErrDiskFull)
		for _, part := range []string{"store/commitlog", "95% used", "limit 90%"} {
			require.ErrorContains(t, err, part)
		}
		require.NotContains(t, err.Error(), "consume queues", "one file system is named once")
		require.ErrorIs(t, s.Writable(), messages.ErrDiskFull)
		p.check()
		log, queues := s.DiskUse()
		require.Equal(t, []int{95, 95}, []int{log, queues})
		disk.SetCapacity(used(t, disk) * 100 / 85)
		sleep(1100 * time.Millisecond)
		require.NoError(t, p.put())
		closeIn(t, s)
	})
}

// Above the limit of forced cleaning files go before they have expired, but no more than needed; and a full disk heals itself.
func TestAFullDiskIsCleanedBeforeItsTime(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		s := openIn(t, opt)
		p := &producer{t: t, store: s}
		for range 320 {
			require.NoError(t, p.put())
		}
		sleep(70 * time.Second)
		require.Zero(t, s.Cleaning().Cleaned.Segments)
		before := used(t, disk)
		disk.SetCapacity(before * 100 / 92)
		sleep(11 * time.Second)
		first, _ := s.LogRange()
		require.EqualValues(t, 2*seg, first, "from 92 to 85 %% of %d bytes", before)
		require.EqualValues(t, 2, s.Cleaning().Cleaned.Unexpired, "W32: counted")
		require.NoError(t, p.put())
		p.check()

		disk.SetCapacity(used(t, disk) + 20<<10) // no further segment fits
		for range 200 {
			if p.put() != nil {
				sleep(time.Second)
			}
		}
		require.Greater(t, len(p.acked), 480, "puts go on while old files make room")
		sleep(2 * time.Second) // a round ends with the queues' minimums
		p.check()
		disk.SetCapacity(0)
		closeIn(t, s)
	})
}

// Whoever finds no room although the file system has some, for as long as it lasts, costs no message before its time.
func TestAQuotaDoesNotEatTheLog(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		s := openIn(t, small(disk))
		p := &producer{t: t, store: s}
		for range 100 {
			require.NoError(t, p.put())
		}
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindAllocate || op.Kind == memfs.KindCreate || op.Kind == memfs.KindMkdir {
				return vfs.ErrNoSpace
			}
			return nil
		})
		refused := p.untilRefused()
		sleep(10 * time.Minute)
		require.ErrorContains(t, s.Writable(), "is it a quota", "first: %v", refused)
		require.Zero(t, s.Cleaning().Cleaned.Segments)
		disk.Inject(nil)
		sleep(2 * time.Second)
		require.NoError(t, p.put())
		p.check()
		require.Zero(t, s.MinOffset(messages.QueueKey{Topic: "T"}))
		closeIn(t, s)
	})
}

// Wherever there is no room, nothing is acknowledged that is not kept, nothing hangs, and all goes on once there is room.
func TestNoRoomAnywhere(t *testing.T) { // L31
	for name, hit := range map[string]func(memfs.Op) bool{
		"segments": func(op memfs.Op) bool {
			return op.Kind == memfs.KindAllocate && strings.HasPrefix(op.Name, "store/prepare")
		},
		"index": func(op memfs.Op) bool {
			return op.Kind == memfs.KindAllocate && strings.HasPrefix(op.Name, "store/index")
		},
		"queues": func(op memfs.Op) bool {
			return (op.Kind == memfs.KindWrite || op.Kind == memfs.KindCreate) && strings.HasPrefix(op.Name, "store/consumequeue")
		},
		"checkpoint": func(op memfs.Op) bool {
			return (op.Kind == memfs.KindWrite || op.Kind == memfs.KindCreate) && strings.HasPrefix(op.Name, "store/checkpoint")
		},
		"everything": func(op memfs.Op) bool {
			return op.Kind == memfs.KindWrite || op.Kind == memfs.KindAllocate || op.Kind == memfs.KindCreate
		},
	} {
		t.Run(name, func(t *testing.T) { fixture.Bubble(t, func(t *testing.T) { noRoom(t, hit) }) })
	}
}

func noRoom(t *testing.T, hit func(memfs.Op) bool) {
	disk := memfs.New()
	opt := small(disk)
	opt.NoForcedCleaning, opt.QueueFlushThorough = true, 2*time.Second
	opt.FlushDiskType = system.SyncFlush
	s := openIn(t, opt)
	p := &producer{t: t, store: s}
	for range 20 {
		require.NoError(t, p.put())
	}
	disk.Inject(func(op memfs.Op) error {
		if hit(op) {
			return vfs.ErrNoSpace
		}
		return nil
	})
	for range 60 {
		for range 8 {
			if err := p.put(); err != nil {
				require.ErrorIs(t, err, messages.ErrDiskFull)
			}
		}
		sleep(500 * time.Millisecond)
	}
	killed := disk.Clone()
	disk.Inject(nil)
	sleep(5 * time.Second)
	require.NoError(t, p.put(), "all goes on by itself")
	p.check()
	closeIn(t, s)

	opt.Disk = killed
	s = openIn(t, opt)
	p.store, p.acked = s, p.acked[:len(p.acked)-1]
	p.check()
	require.NoError(t, p.put())
	closeIn(t, s)
}

// L49: a deletion that hangs does not keep the disk from being looked at.
func TestAHangingDeletionHidesNoFullDisk(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.FileReservedTime, opt.NoForcedCleaning = time.Minute, true
		s := openIn(t, opt)
		p := &producer{t: t, store: s}
		for range 100 {
			require.NoError(t, p.put())
		}
		sleep(2 * time.Minute)
		hanging := false
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindRemove && strings.HasPrefix(op.Name, "store/commitlog/") {
				hanging = true
				<-time.After(time.Minute)
			}
			return nil
		})
		require.NoError(t, s.DeleteExpiredFiles())
		sleep(time.Second)
		require.True(t, hanging)
		disk.SetCapacity(used(t, disk) * 100 / 95)
		sleep(1100 * time.Millisecond)
		require.ErrorIs(t, p.put(), messages.ErrDiskFull)
		p.check()
		sleep(4 * time.Minute)
		require.EqualValues(t, 3, s.Cleaning().Cleaned.Segments)
		require.NoError(t, p.put(), "the deletions have made room")
		disk.Inject(nil)
		closeIn(t, s)
	})
}

// What a killed process left half made may be what fills the disk.
func TestHalfMadeSegmentsAreRemovedAtStart(t *testing.T) {
	disk := memfs.New()
	require.NoError(t, disk.MkdirAll("store/prepare"))
	fixture.WriteFile(t, disk, "store/prepare/00000000000001048576", make([]byte, 100))
	fixture.WriteFile(t, disk, "store/prepare/note", []byte("somebody's"))
	s := open(t, small(disk))
	_, err := s.Put(t.Context(), message("T", 0, "m"))
	require.NoError(t, err)
	entries, err := disk.List("store/prepare")
	require.NoError(t, err)
	for _, e := range entries {
		require.NotEqual(t, "00000000000001048576", e.Name)
	}
	_, err = disk.Stat("store/prepare/note")
	require.NoError(t, err, "what is not ours stays")
}

// L11: when no further file can be mapped, puts are refused once the prepared ones are full, nothing is left lying about, and all
// goes on by itself.
func TestNoFurtherMappings(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.NoIndex = true
		s := openIn(t, opt)
		p := &producer{t: t, store: s}
		require.NoError(t, p.put())
		settle()
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindMap {
				return fmt.Errorf("no further mapping")
			}
			return nil
		})
		for range 100 {
			if p.put() != nil {
				break
			}
		}
		r, err := s.Put(t.Context(), message("T", 0, strings.Repeat("x", 900)))
		require.ErrorContains(t, err, "no further mapping")
		require.Equal(t, messages.CreateMapedFileFailed, r.Status)
		settle() // the allocator may be trying at this very moment
		entries, err := disk.List("store/prepare")
		require.NoError(t, err)
		require.Empty(t, entries)
		disk.Inject(nil)
		sleep(1100 * time.Millisecond)
		require.NoError(t, p.put())
		p.check()
		closeIn(t, s)
	})
}

// A stop does not wait for room for the index: the next start makes it complete.
func TestAStopWithoutRoomForTheIndex(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		s := openIn(t, opt)
		p := &producer{t: t, store: s}
		for range 150 {
			require.NoError(t, p.put())
		}
		settle()
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindAllocate && strings.HasPrefix(op.Name, "store/index") {
				return vfs.ErrNoSpace
			}
			return nil
		})
		for range 100 { // a file has 199 entries
			if p.put() != nil {
				break
			}
		}
		sleep(time.Second)
		began := time.Now()
		closeIn(t, s)
		require.Less(t, time.Since(began), time.Second)
		_, err := disk.Stat("store/abort")
		require.Error(t, err, "a clean stop")
		disk.Inject(nil)
		s = openIn(t, opt)
		p.store = s
		p.check()
		for i := range p.acked {
			found, err := s.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: fmt.Sprint("k", i+1), MaxMessages: 2, EndMs: 1 << 60})
			require.NoError(t, err)
			require.Len(t, found, 1, "key %d", i+1)
		}
		closeIn(t, s)
	})
}

// Weakness W16: an index that has no room holds consumers and deletions up for a few seconds only, and gets what it lacks once there
// is room, without a start; a start, also after a kill, makes it complete, too.
func TestAnIndexWithoutRoomHoldsNobodyUpAndIsCompletedLater(t *testing.T) {
	for _, end := range []string{"room again", "stopped", "killed"} {
		t.Run(end, func(t *testing.T) {
			fixture.Bubble(t, func(t *testing.T) {
				disk := memfs.New()
				opt := small(disk)
				opt.SegmentBytes = 1 << 20
				s := openIn(t, opt)
				p := &producer{t: t, store: s}
				disk.Inject(func(op memfs.Op) error {
					if op.Kind == memfs.KindAllocate && strings.HasPrefix(op.Name, "store/index") {
						return vfs.ErrNoSpace
					}
					return nil
				})
				putAll(t, s, message("Gone", 0, "x"))
				began := time.Now()
				for range 400 { // more than the index builder's credit
					for p.put() != nil {
						sleep(time.Second) // refused while the index waits for room
					}
					settle()
				}
				require.Less(t, time.Since(began), 6*time.Second)
				require.ErrorIs(t, s.Status().IndexCause, vfs.ErrNoSpace, "it is told")
				require.NoError(t, s.Writable())
				p.check()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.NoError(t, s.DeleteTopic(ctx, "Gone"))

				switch end {
				case "room again":
					disk.Inject(nil)
					sleep(5 * time.Second)
				case "stopped":
					closeIn(t, s)
					disk.Inject(nil)
					s = openIn(t, opt)
				case "killed":
					killed := disk.Clone()
					disk.Inject(nil)
					closeIn(t, s)
					opt.Disk = killed
					s = openIn(t, opt)
				}
				require.NoError(t, s.Status().IndexCause)
				for _, body := range p.acked {
					key, _, _ := strings.Cut(body, " ")
					found, err := s.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: "k" + key, MaxMessages: 2, EndMs: 1 << 60})
					require.NoError(t, err)
					require.Len(t, found, 1, "key %s", key)
				}
				closeIn(t, s)
			})
		})
	}
}

// A queue that was damaged is built again in memory while there is no room for its file. When its records, the log's oldest, go for the room, nothing
// but a note tells where it goes on: without room for that they stay.
func TestAQueueWithoutRoomGoesOnOnceItsRecordsAreGone(t *testing.T) {
	for name, zeroed := range map[string]int64{"the first unit": 0, "one in the middle": 2} {
		for _, noted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, noted %v", name, noted), func(t *testing.T) {
				fixture.Bubble(t, func(t *testing.T) { recordsOfAQueueGo(t, zeroed, noted) })
			})
		}
	}
}

func recordsOfAQueueGo(t *testing.T, zeroed int64, noted bool) {
	disk, idle, opt := idleQueue(t)
	f, err := disk.Open("store/consumequeue/Idle/0/00000000000000000000", true)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 20), 20*zeroed)
	require.NoError(t, errors.Join(err, f.DataSync(), f.Close()))

	disk.SetCapacity(used(t, disk) + 28<<10) // no segment fits
	var notes atomic.Int64
	disk.Inject(func(op memfs.Op) error {
		if op.Kind != memfs.KindCreate && op.Kind != memfs.KindWrite {
			return nil
		}
		note := strings.HasPrefix(op.Name, "store/queuefloors")
		if note {
			notes.Add(1)
		}
		if note && !noted || strings.HasPrefix(op.Name, "store/consumequeue/Idle") {
			return vfs.ErrNoSpace
		}
		return nil
	})
	s := openIn(t, opt)
	sleep(5 * time.Second)
	first, _ := s.LogRange()
	require.Equal(t, noted, first > 0, "the oldest segments are gone")
	require.Less(t, notes.Load(), int64(20))
	left := []*memfs.Disk{disk.Clone(), disk.Crash(1), disk.Crash(2)}
	disk.Inject(nil)
	disk.SetCapacity(0)
	sleep(5 * time.Second)
	closeIn(t, s)
	for _, d := range append(left, disk, disk.Crash(3)) {
		d.Inject(nil)
		d.SetCapacity(0)
		opt.Disk = d
		s := openIn(t, opt)
		require.EqualValues(t, 5, s.MaxOffset(idle))
		r, err := s.Put(t.Context(), message(idle.Topic, 0, "m"))
		require.NoError(t, err)
		require.EqualValues(t, 5, r.QueueOffset)
		closeIn(t, s)
	}
}

// idleQueue is a store that was closed properly, with a queue that has messages only at the beginning of the log.
func idleQueue(t *testing.T) (*memfs.Disk, messages.QueueKey, system.Options) {
	t.Helper()
	disk, idle := memfs.New(), messages.QueueKey{Topic: "Idle"}
	opt := small(disk)
	opt.BallastBytes = -1
	s := openIn(t, opt)
	for range 5 {
		_, err := s.Put(t.Context(), message(idle.Topic, 0, "m"))
		require.NoError(t, err)
	}
	fillTo(t, s, messages.QueueKey{Topic: "T"}, 8*seg)
	closeIn(t, s)
	return disk, idle, opt
}
