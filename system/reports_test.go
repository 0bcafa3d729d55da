package system_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// Faults that users of such stores have met: docs/FIELD-REPORTS.md.

// L01: one member whose properties are too long refuses its batch, whole; nothing is used up, and the longest is kept as it is.
func TestL01AMemberWithLongPropertiesRefusesItsBatch(t *testing.T) {
	opt := small(memfs.New())
	opt.SegmentBytes = 256 << 10
	s := open(t, opt)
	key := messages.QueueKey{Topic: "T"}
	var bodies []string
	for _, n := range []int{32_767, 32_768, 70_000} {
		long := *message("T", 0, fmt.Sprint(n))
		long.Properties = messages.Properties("p\x01" + strings.Repeat("v", n-2))
		_, before := s.LogRange()
		r, err := s.PutMessages(t.Context(), []messages.Message{*message("T", 0, "first"), long, *message("T", 0, "last")})
		if n > 32_767 {
			require.Contains(t, []messages.PutStatus{messages.MessageIllegal, messages.PropertiesSizeExceeded}, r.Status)
			require.Error(t, err)
			_, after := s.LogRange()
			require.Equal(t, before, after, "nothing of it is stored")
			continue
		}
		require.NoError(t, err)
		bodies = append(bodies, "first", fmt.Sprint(n), "last")
	}
	r, err := s.Put(t.Context(), message("T", 0, "good"))
	require.NoError(t, err)
	require.EqualValues(t, len(bodies), r.QueueOffset)
	require.Equal(t, append(bodies, "good"), read(t, s, key, 0, len(bodies)+1))
	require.Equal(t, messages.Properties("p\x01"+strings.Repeat("v", 32_765)), stored(t, s, key)[1].Properties)
}

// L02: what is refused uses up no queue offset, however many put at the same time.
func TestL02RefusedPutsUseUpNoOffset(t *testing.T) {
	opt := small(memfs.New())
	opt.MaxMessageBytes = 1000
	s := open(t, opt)
	const senders, each = 32, 20
	var wg sync.WaitGroup
	for n := range senders {
		wg.Go(func() {
			for i := range each {
				if _, err := s.Put(t.Context(), message("T", 0, fmt.Sprint(n, " ", i))); err != nil {
					t.Error(err)
				}
				bad := message("T", 0, strings.Repeat("x", 1001))
				if i%2 == 0 {
					bad = message("T", 0, "x")
					bad.Properties = messages.Properties("p\x01" + strings.Repeat("v", 40_000))
				}
				if r, err := s.Put(t.Context(), bad); err == nil || r.Status.Stored() {
					t.Error("it was taken: ", r.Status)
				}
			}
		})
	}
	wg.Wait()
	key := messages.QueueKey{Topic: "T"}
	got := read(t, s, key, 0, senders*each)
	require.EqualValues(t, senders*each, s.MaxOffset(key))
	slices.Sort(got)
	require.Len(t, slices.Compact(got), senders*each)
}

// L04: a tag is the tag that was sent, and its code the tag's, whichever way a message comes into its queue.
func TestL04TagsStayWhatTheyAre(t *testing.T) {
	inBubble(t, small(memfs.New()), func(t *testing.T, s *system.Store) {
		const tag = "a tag"
		tagged := func(body string) messages.Message {
			m := *message("T", 1, body)
			m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyTags: tag, messages.PropertyKeys: "k"})
			return m
		}
		one := tagged("one")
		putAll(t, s, &one)
		envelope := tagged("")
		body, err := record.EncodeBatchBody(nil, []messages.Message{tagged("two"), tagged("three")})
		require.NoError(t, err)
		envelope.Body, envelope.Properties = body, messages.PropertiesOf(map[string]string{"CLUSTER": "of the broker"})
		_, err = s.PutBatch(t.Context(), &envelope)
		require.NoError(t, err)
		delayed := tagged("four")
		delayed.Properties = delayed.Properties.With(messages.PropertyDelay, "1")
		putAll(t, s, &delayed)
		pass(2 * time.Second)

		r, err := s.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "T", QueueID: 1}, MaxMessages: 32,
			Tags: func(code int64) bool { return code == int64(messages.JavaHash(tag)) }})
		require.NoError(t, err)
		defer r.Release()
		var got []string
		for _, raw := range r.Records {
			list, err := record.DecodeAll(raw)
			require.NoError(t, err)
			found, _ := list[0].Properties.Get(messages.PropertyTags)
			require.Equal(t, tag, found)
			keys, _ := list[0].Properties.Get(messages.PropertyKeys)
			require.Equal(t, "k", keys)
			got = append(got, string(list[0].Body))
		}
		require.Equal(t, []string{"one", "two", "three", "four"}, got)
	})
}

// L15: a stop under load loses nothing that was acknowledged, and keeps nothing that was not offered.
func TestL15AStopUnderLoadKeepsWhatWasAcknowledged(t *testing.T) {
	for round := range 12 {
		disk := memfs.New()
		opt := small(disk)
		opt.FlushDiskType = system.FlushDiskType(round % 2)
		s, err := system.Open(opt)
		require.NoError(t, err)
		const senders = 8
		acked := make([]map[string]messages.QueueOffset, senders)
		var wg, some sync.WaitGroup
		some.Add(senders)
		for n := range senders {
			acked[n] = map[string]messages.QueueOffset{}
			wg.Go(func() {
				for i := 0; ; i++ {
					body := fmt.Sprint(n, " ", i)
					r, err := s.Put(t.Context(), message("T", 0, body))
					if i == 3*round {
						some.Done()
					}
					if err != nil {
						if r.Status != messages.ServiceNotAvailable {
							t.Error("refused with ", r.Status)
						}
						return
					}
					acked[n][body] = r.QueueOffset
				}
			})
		}
		some.Wait()
		require.NoError(t, s.Close(t.Context()))
		wg.Wait()
		_, err = disk.Stat("store/abort")
		require.Error(t, err)

		s, err = system.Open(small(disk.Crash(uint64(round))))
		require.NoError(t, err)
		key := messages.QueueKey{Topic: "T"}
		got := read(t, s, key, 0, int(s.MaxOffset(key)))
		count := 0
		for _, m := range acked {
			count += len(m)
			for body, at := range m {
				require.Equal(t, body, got[at])
			}
		}
		require.Len(t, got, count)
		require.NoError(t, s.Close(t.Context()))
	}
}

// L23, W20: a search by time finds the first message that is not older, the lowest of equal ones, whatever the files say of their time.
func TestL23TimesThatAreEqual(t *testing.T) {
	inBubble(t, small(memfs.New()), func(t *testing.T, s *system.Store) {
		key := messages.QueueKey{Topic: "T"}
		var times []int64
		for range 7 {
			list := make([]messages.Message, 32)
			for i := range list {
				list[i] = *message("T", 0, "x")
			}
			r, err := s.PutMessages(t.Context(), list)
			require.NoError(t, err)
			for range list {
				times = append(times, r.StoreTimestampMs)
			}
			pass(3 * time.Millisecond)
		}
		for ms := times[0] - 2; ms < times[len(times)-1]+3; ms++ {
			want := slices.IndexFunc(times, func(at int64) bool { return at >= ms })
			if want < 0 {
				want = len(times)
			}
			got, err := s.OffsetByTime(t.Context(), key, ms, messages.TimeLower)
			require.NoError(t, err)
			require.EqualValues(t, want, got)
		}
	})
}

// L24, W24: no read makes a queue, in memory or on the disk.
func TestL24ReadsMakeNothing(t *testing.T) {
	disk := memfs.New()
	s := openIn(t, small(disk))
	putAll(t, s, message("T", 0, "x"))
	read(t, s, messages.QueueKey{Topic: "T"}, 0, 1)
	for _, ghost := range []messages.QueueKey{{Topic: "Ghost"}, {Topic: "T", QueueID: 7}, {Topic: "T", QueueID: -1}, {Topic: "../x"}} {
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: ghost, Offset: 3, MaxMessages: 1})
		require.NoError(t, err)
		require.Equal(t, messages.NoMessageInQueue, r.Status)
		r.Release()
		require.Zero(t, s.MaxOffset(ghost))
		require.Zero(t, s.MinOffset(ghost))
		_, found := s.EarliestStoreTime(ghost)
		require.False(t, found)
		_, err = s.StoreTime(ghost, 0)
		require.ErrorIs(t, err, system.ErrNoMessage)
		at, err := s.OffsetByTime(t.Context(), ghost, 1, messages.TimeNearest)
		require.NoError(t, err)
		require.Zero(t, at)
		list, err := s.Query(t.Context(), messages.QueryMessage{Topic: ghost.Topic, Key: "k", MaxMessages: 1, EndMs: 1 << 60})
		require.NoError(t, err)
		require.Empty(t, list)
		woken := make(chan messages.WakeReason, 1)
		s.Park(&messages.ParkPull{Queue: ghost, Deadline: time.Now().Add(time.Millisecond), Wake: func(w messages.WakeReason) { woken <- w }})
		require.Equal(t, messages.WakeExpired, <-woken)
	}
	s.EachQueue(func(key messages.QueueKey, _, _ messages.QueueOffset) {
		require.Equal(t, messages.QueueKey{Topic: "T"}, key)
	})
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, []string{"T"}, folders(t, disk, "store/consumequeue"))
	require.Equal(t, []string{"0"}, folders(t, disk, "store/consumequeue/T"))
}

func folders(t *testing.T, disk *memfs.Disk, dir string) (names []string) {
	t.Helper()
	entries, err := disk.List(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

// L25: a segment that is missing in the middle costs its own messages; a consumer goes over it in one jump, with or without a
// stop in order before.
func TestL25AMissingSegmentIsOneJump(t *testing.T) {
	for _, killed := range []bool{false, true} {
		disk := memfs.New()
		s, err := system.Open(small(disk))
		require.NoError(t, err)
		p := &producer{t: t, store: s}
		for range 100 {
			require.NoError(t, p.put())
		}
		key := messages.QueueKey{Topic: "T"}
		read(t, s, key, 0, 100)
		left := disk.Clone()
		require.NoError(t, s.Close(t.Context()))
		if !killed {
			left = disk
		}
		require.NoError(t, left.Remove(path.Join("store/commitlog", segments.Name(seg))))

		s = open(t, small(left))
		var got []string
		var jumps []messages.QueueOffset
		for at := messages.QueueOffset(0); at < 100; {
			r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 1})
			require.NoError(t, err)
			require.Greater(t, r.NextOffset, at, "a consumer always gets on")
			if n := r.NextOffset - at; n > 1 || len(r.Records) == 0 {
				jumps = append(jumps, n)
			}
			for _, raw := range r.Records {
				rec, _, err := record.Parse(raw, true)
				require.NoError(t, err)
				got = append(got, string(rec.Body))
			}
			at = r.NextOffset
			r.Release()
		}
		require.Len(t, jumps, 1)
		lost := 100 - len(got)
		require.Greater(t, lost, 20)
		require.Less(t, lost, 40)
		first := slices.Index(p.acked, got[0])
		require.Zero(t, first)
		for i := range 100 {
			if i < 100-lost && got[i] != p.acked[i] {
				require.Equal(t, p.acked[i+lost:], got[i:], "all behind it")
				break
			}
		}
		r, err := s.Put(t.Context(), message("T", 0, "goes on"))
		require.NoError(t, err)
		require.EqualValues(t, 100, r.QueueOffset)
	}
}

// L96, W13: a store without work does none: no sync and no write; how full the disk is, is looked at, a few times a second.
func TestL96AnIdleStoreDoesNothing(t *testing.T) {
	timed(t, func(o *system.Options) { o.FlushDiskType = system.SyncFlush }, func(t *testing.T, s *system.Store, _ *syncs) {
		for level := range 18 {
			putAll(t, s, later(level+1, "x"))
		}
		pass(4 * time.Hour) // all are delivered, all is flushed, all timers of the start are over
		for i := range 1000 {
			s.Park(&messages.ParkPull{Queue: messages.QueueKey{Topic: "T", QueueID: int32(i % 4)}, Offset: 1 << 40,
				Deadline: time.Now().Add(5 * time.Hour), Wake: func(messages.WakeReason) {}})
		}
		count := map[memfs.Kind]int{}
		var mu sync.Mutex
		diskOf(s).Inject(func(op memfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			count[op.Kind]++
			return nil
		})
		pass(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		for kind, n := range count {
			require.Equal(t, memfs.KindUsage, kind, "%d times in an hour", n)
			require.LessOrEqual(t, n, 6*3600)
		}
	})
}

func diskOf(s *system.Store) *memfs.Disk { return s.Options().Disk.(*memfs.Disk) }

// L31: an index file that can't be had, again and again, leaves nothing behind and keeps no message from its consumers; the next start
// makes the index whole.
func TestL31AnIndexThatCannotBeMadeHoldsNobodyUp(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.SegmentBytes = 1 << 20
		s := openIn(t, opt)
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindMap && strings.HasPrefix(op.Name, "store/index") {
				return errDisk
			}
			return nil
		})
		key := messages.QueueKey{Topic: "T"}
		m := message("T", 0, "x")
		m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyKeys: "k"})
		const count = 300
		for range count {
			putAll(t, s, m)
			settle() // each is dispatched by itself
		}
		sleep(10 * time.Second)
		require.EqualValues(t, count, s.MaxOffset(key), "all can be consumed")
		require.ErrorIs(t, s.Status().IndexCause, errDisk, "it is told")
		require.Zero(t, s.Status().Flags)
		require.NoError(t, s.Writable())
		entries, err := disk.List("store/index")
		require.NoError(t, err)
		require.LessOrEqual(t, len(entries), 1)
		require.ErrorIs(t, s.Close(t.Context()), errDisk)

		disk.Inject(nil)
		s = openIn(t, opt)
		settle()
		found, err := s.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: "k", MaxMessages: 2 * count, EndMs: 1 << 60})
		require.NoError(t, err)
		require.Len(t, found, count)
		closeIn(t, s)
	})
}

// W16: a queue that can't be written stays readable, and keeps no other queue's messages from its consumers; it is written when that
// is possible again.
func TestW16AQueueThatCannotBeWrittenHoldsNobodyUp(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.SegmentBytes, opt.QueueFlushThorough = 1<<20, time.Second
		s := openIn(t, opt)
		disk.Inject(func(op memfs.Op) error {
			if (op.Kind == memfs.KindWrite || op.Kind == memfs.KindCreate) && strings.HasPrefix(op.Name, "store/consumequeue/Bad") {
				return errDisk
			}
			return nil
		})
		bad, good := messages.QueueKey{Topic: "Bad"}, messages.QueueKey{Topic: "Good"}
		const count = 300
		for range count {
			putAll(t, s, message(bad.Topic, 0, "x"), message(good.Topic, 0, "x"))
			sleep(100 * time.Millisecond) // each is dispatched by itself
		}
		require.EqualValues(t, count, s.MaxOffset(good))
		require.EqualValues(t, count, s.MaxOffset(bad))
		disk.Inject(nil)
		sleep(time.Minute)
		closeIn(t, s)
		s = openIn(t, opt)
		require.EqualValues(t, count, s.MaxOffset(bad))
		closeIn(t, s)
	})
}

// L112: the end of a queue never goes back and its beginning neither, and no queue with a message begins at 0 again: while
// messages come, files expire, and over stops and kills.
func TestL112OffsetsNeverGoBack(t *testing.T) {
	disk := memfs.New()
	rnd := rand.New(rand.NewPCG(112, 0))
	key := messages.QueueKey{Topic: "T"}
	var lo, hi, atStart messages.QueueOffset
	look := func(s *system.Store) {
		first, end := s.MinOffset(key), s.MaxOffset(key)
		if first < lo || end < hi {
			t.Errorf("%d..%d after %d..%d", first, end, lo, hi)
		}
		lo, hi = first, end
	}
	for round := range 20 {
		opt := small(disk)
		opt.DeleteWhen, opt.FileReservedTime = "04", time.Millisecond
		s, err := system.Open(opt)
		require.NoError(t, err)
		look(s)
		atStart = lo
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					look(s)
				}
			}
		})
		last := messages.QueueOffset(0)
		for range 20 + rnd.IntN(60) {
			r, err := s.Put(t.Context(), message("T", 0, strings.Repeat("x", 900)))
			require.NoError(t, err)
			last = r.QueueOffset
		}
		require.NoError(t, s.AwaitDispatched(t.Context()))
		if round%3 == 2 {
			require.NoError(t, s.DeleteExpiredFiles())
		}
		close(stop)
		wg.Wait()
		left := disk.Clone()
		require.NoError(t, s.Close(t.Context()))
		look(s)
		if round%2 == 0 {
			disk = left              // as after a kill
			lo, hi = atStart, last+1 // a deletion that the kill has cut off leaves files that can be read
		}
	}
	require.Positive(t, lo, "files have expired")
}

// L110: at start the store says what its mode promises.
func TestL110TheStoreSaysWhatAPowerCutMayTake(t *testing.T) {
	for mode, want := range map[system.FlushDiskType][]string{
		system.AsyncFlush: {`"flush":"ASYNC_FLUSH"`, `"a_power_cut_may_take":10000`},
		system.SyncFlush:  {`"flush":"SYNC_FLUSH"`, `"a_power_cut_may_take":0`},
	} {
		var log bytes.Buffer
		opt := small(memfs.New())
		opt.FlushDiskType, opt.Logger = mode, zerolog.New(zerolog.SyncWriter(&log))
		s := openIn(t, opt)
		require.NoError(t, s.Close(t.Context()))
		for _, part := range want {
			require.Contains(t, log.String(), part)
		}
		require.NotContains(t, log.String(), `"level":"warn"`, "of values that nobody has chosen")
	}
}

// W6: the tail that RocketMQ, or a copying tool, has left is a file with holes. Room for them is taken when the store opens, so that
// a disk that runs full later refuses puts as always; where it is full already, the store opens, and takes none until there is room.
func TestW6ASparseTailOnAFullDisk(t *testing.T) {
	for _, c := range []struct {
		fullAtStart bool
		warning     int // diskSpaceWarningLevelRatio: 100 never refuses by itself
	}{{false, 0}, {true, 0}, {true, 100}} {
		fixture.Bubble(t, func(t *testing.T) {
			disk := memfs.New()
			opt := small(disk)
			opt.NoForcedCleaning, opt.BallastBytes, opt.WarningPercent = true, -1, c.warning
			s := openIn(t, opt)
			p := &producer{t: t, store: s}
			for range 10 {
				require.NoError(t, p.put())
			}
			_, end := s.LogRange()
			closeIn(t, s)
			f, err := disk.Open(path.Join("store/commitlog", segments.Name(0)), true)
			require.NoError(t, err)
			require.NoError(t, f.Truncate(int64(end)))
			require.NoError(t, f.Truncate(seg))
			require.NoError(t, f.DataSync())
			require.NoError(t, f.Close())

			if c.fullAtStart {
				disk.SetCapacity(used(t, disk))
			}
			s = openIn(t, opt)
			p.store = s
			if c.warning == 100 {
				require.ErrorIs(t, p.put(), messages.ErrDiskFull, "there is room in the file, and none for it on the disk")
				_, now := s.LogRange()
				require.Equal(t, end, now)
			}
			sleep(time.Second)
			disk.SetCapacity(used(t, disk))
			for range 100 {
				if err := p.put(); err != nil {
					require.ErrorIs(t, err, messages.ErrDiskFull)
					sleep(100 * time.Millisecond)
				}
			}
			require.ErrorIs(t, s.Writable(), messages.ErrDiskFull)
			disk.SetCapacity(0)
			sleep(5 * time.Second)
			require.NoError(t, p.put())
			p.check()
			closeIn(t, s)
		})
	}
}

// W30: damage in a body is found where a message is looked up, and never handed out as the message.
func TestW30LookupsCompareTheChecksum(t *testing.T) {
	disk := memfs.New()
	s := open(t, small(disk))
	m := message("T", 0, "some body")
	m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyKeys: "k"})
	r, err := s.Put(t.Context(), m)
	require.NoError(t, err)
	read(t, s, messages.QueueKey{Topic: "T"}, 0, 1)
	query := messages.QueryMessage{Topic: "T", Key: "k", MaxMessages: 1, EndMs: 1 << 60}
	require.NoError(t, s.AwaitDispatched(t.Context()))
	found, err := s.Query(t.Context(), query)
	require.NoError(t, err)
	require.Len(t, found, 1)
	f, err := disk.Open(path.Join("store/commitlog", segments.Name(0)), true)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("S"), int64(r.PhysicalOffset)+88)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = s.MessageAt(r.PhysicalOffset)
	var damage *segments.CorruptionError
	require.ErrorAs(t, err, &damage)
	require.EqualValues(t, r.PhysicalOffset, damage.Offset)
	found, err = s.Query(t.Context(), query)
	require.NoError(t, err)
	require.Empty(t, found)
	raw, err := s.QueryRecords(t.Context(), query)
	require.NoError(t, err)
	require.Empty(t, raw.Records)
	require.Equal(t, messages.NoMatchedMessage, raw.Status)
	raw.Release()
}
