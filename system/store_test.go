package system_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small are options with tiny files on a simulated disk.
func small(disk vfs.Disk) system.Options {
	return system.Options{
		Dir: "store", Disk: disk, SegmentBytes: 32 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200,
		WindowBytes: 8 << 10,
	}
}

func open(t *testing.T, opt system.Options) *system.Store {
	t.Helper()
	s, err := system.Open(opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	return s
}

func message(topic string, queue int32, body string) *messages.Message {
	return &messages.Message{Topic: topic, QueueID: queue, Body: []byte(body)}
}

// read waits until count messages are readable from an offset on, and returns their bodies.
func read(t *testing.T, s *system.Store, key messages.QueueKey, from messages.QueueOffset, count int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var bodies []string
	for len(bodies) < count {
		r, err := s.GetWait(ctx, messages.GetMessage{Queue: key, Offset: from, MaxMessages: 32})
		require.NoError(t, err)
		require.NotEmpty(t, r.Records, "%v at %d of %v: %v", r.Status, from, key, bodies)
		for _, raw := range r.Records {
			rec, _, err := record.Parse(raw, true)
			require.NoError(t, err)
			bodies = append(bodies, string(rec.Body))
		}
		from = r.NextOffset
		r.Release()
	}
	return bodies
}

func TestPutThenGet(t *testing.T) {
	for _, flush := range []system.FlushDiskType{system.AsyncFlush, system.SyncFlush} {
		t.Run(flush.String(), func(t *testing.T) {
			opt := small(memfs.New())
			opt.FlushDiskType = flush
			s := open(t, opt)
			var want []string
			for i := range 300 {
				body := fmt.Sprint("body ", i)
				want = append(want, body)
				r, err := s.Put(t.Context(), message("T", 0, body))
				require.NoError(t, err)
				require.Equal(t, messages.PutOK, r.Status)
				require.EqualValues(t, i, r.QueueOffset)
				if flush == system.SyncFlush {
					require.GreaterOrEqual(t, s.FlushedTo(), r.End(), "acknowledged means durable")
				}
			}
			require.Equal(t, want, read(t, s, messages.QueueKey{Topic: "T"}, 0, 300))
		})
	}
}

func TestACleanStopKeepsEverything(t *testing.T) {
	disk := memfs.New()
	var want [3][]string
	for round := range 3 {
		s, err := system.Open(small(disk))
		require.NoError(t, err)
		for i := range 200 {
			body := fmt.Sprintf("%d/%d", round, i)
			q := int32(i % 3)
			want[q] = append(want[q], body)
			m := message("T", q, body)
			m.Properties = messages.PropertiesOf(map[string]string{"KEYS": "k" + body, "TAGS": "t"})
			r, err := s.Put(t.Context(), m)
			require.NoError(t, err)
			require.EqualValues(t, len(want[q])-1, r.QueueOffset, "offsets go on where they ended")
		}
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, s.Close(t.Context()), "a second time does nothing")
		_, err = s.Put(t.Context(), message("T", 0, "late"))
		require.ErrorIs(t, err, system.ErrStopped)
		disk = disk.Crash(uint64(round)) // a power cut after a clean stop takes nothing away
		entries, err := disk.List("store/commitlog")
		require.NoError(t, err)
		for _, e := range entries {
			require.EqualValues(t, 32<<10, e.Size)
		}
		_, err = disk.Stat("store/abort")
		require.Error(t, err)
	}
	s := open(t, small(disk))
	for q := range want {
		require.Equal(t, want[q], read(t, s, messages.QueueKey{Topic: "T", QueueID: int32(q)}, 0, len(want[q])))
	}
	found, err := s.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: "k1/150", MaxMessages: 10, EndMs: 1 << 62})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "1/150", string(found[0].Body))
}

// Records that are queried uncopied are those that Query copies, whatever segment they lie in; what only has the same hash is not
// among them.
func TestQueriedRecordsAreThoseOfTheKey(t *testing.T) {
	s := open(t, small(memfs.New()))
	for n := range 400 { // several segments
		m := message("T", 0, fmt.Sprint(n))
		m.Properties = messages.PropertiesOf(map[string]string{"KEYS": []string{"Aa", "BB", "all of them", "Aa BB"}[n%4]})
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
	}
	require.NoError(t, s.AwaitDispatched(t.Context()))
	for _, key := range []string{"Aa", "BB", "all", "nobody"} {
		q := messages.QueryMessage{Topic: "T", Key: key, MaxMessages: 1000, EndMs: 1 << 62}
		found, err := s.Query(t.Context(), q)
		require.NoError(t, err)
		raw, err := s.QueryRecords(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, raw.Records, len(found), key)
		require.Equal(t, len(found) > 0, raw.Status == messages.Found)
		for i, r := range raw.Records {
			all, err := record.DecodeAll(r)
			require.NoError(t, err)
			require.Equal(t, found[i:i+1], all)
		}
		raw.Release()
	}
	none, err := s.QueryRecords(t.Context(), messages.QueryMessage{Topic: "T", Key: "Aa", MaxMessages: 1}) // until 1970
	require.NoError(t, err)
	require.Empty(t, none.Records)
	none.Release()
	require.NoError(t, s.Close(t.Context()))
	_, err = s.QueryRecords(t.Context(), messages.QueryMessage{Topic: "T", Key: "Aa", MaxMessages: 1})
	require.ErrorIs(t, err, system.ErrStopped)
}

func TestKilledUnderLoadKeepsWhatWasAcknowledged(t *testing.T) {
	disk := memfs.New()
	s, err := system.Open(small(disk))
	require.NoError(t, err)
	var mu sync.Mutex
	acked := map[int32]int{}
	atKill := map[int32]int{}
	killed := make(chan *memfs.Disk, 1)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 150 {
				m := message("T", int32(w), fmt.Sprint(w, ":", i))
				r, err := s.Put(t.Context(), m)
				if err != nil || r.Status != messages.PutOK {
					panic(fmt.Sprint(r.Status, err))
				}
				mu.Lock()
				if acked[m.QueueID]++; acked[m.QueueID] == 100 && w == 2 {
					maps.Copy(atKill, acked)
					killed <- disk.Clone() // what a killed process leaves: all that was written, while the others go on
				}
				mu.Unlock()
			}
		}()
	}
	left := <-killed
	wg.Wait()
	require.NoError(t, s.Close(t.Context()))

	again := open(t, small(left))
	ends := map[int32]int{}
	for q := range int32(4) {
		key := messages.QueueKey{Topic: "T", QueueID: q}
		n := int(again.MaxOffset(key))
		ends[q] = n
		require.GreaterOrEqual(t, n, atKill[q], "queue %d", q)
		for i, body := range read(t, again, key, 0, n) {
			require.Equal(t, fmt.Sprint(q, ":", i), body)
		}
	}
	r, err := again.Put(t.Context(), message("T", 2, "goes on"))
	require.NoError(t, err)
	require.EqualValues(t, ends[2], r.QueueOffset)
}

func TestAPowerCutKeepsWhatWasFlushed(t *testing.T) {
	for seed := range uint64(20) {
		disk := memfs.New()
		opt := small(disk)
		opt.FlushDiskType = system.SyncFlush
		s, err := system.Open(opt)
		require.NoError(t, err)
		const n = 60
		for i := range n {
			_, err := s.Put(t.Context(), message("T", 0, fmt.Sprint(i, strings.Repeat("x", 500))))
			require.NoError(t, err)
		}
		left := disk.Crash(seed)
		require.NoError(t, s.Close(t.Context()))
		again, err := system.Open(small(left))
		require.NoError(t, err, "seed %d", seed)
		bodies := read(t, again, messages.QueueKey{Topic: "T"}, 0, n)
		for i, body := range bodies {
			require.True(t, strings.HasPrefix(body, fmt.Sprint(i, "x")), "seed %d: message %d", seed, i)
		}
		require.NoError(t, again.Close(t.Context()))
	}
}

func TestBadInputIsRefusedAndNothingElseIsDisturbed(t *testing.T) {
	opt := small(memfs.New())
	opt.SegmentBytes, opt.MaxMessageBytes = 64<<10, 20<<10
	s := open(t, opt)
	props := func(n int, fill string) messages.Properties {
		return messages.Properties("a\x01" + strings.Repeat(fill, n))
	}
	for name, c := range map[string]struct {
		m      *messages.Message
		status messages.PutStatus
		cause  error
	}{
		"no topic":           {message("", 0, "x"), messages.MessageIllegal, record.ErrTopicLength},
		"topic of 128 bytes": {message(strings.Repeat("t", 128), 0, "x"), messages.MessageIllegal, record.ErrTopicLength},
		"topic of 300 bytes in 100 characters": { // W2
			message(strings.Repeat("中", 100), 0, "x"), messages.MessageIllegal, record.ErrTopicLength},
		"properties of 32,768 bytes": {
			&messages.Message{Topic: "T", Properties: props(32766, "b")}, messages.MessageIllegal, record.ErrPropertiesTooLong},
		"properties of 60,002 bytes in 20,002 characters": {
			&messages.Message{Topic: "T", Properties: props(20000, "中")}, messages.PropertiesSizeExceeded, record.ErrPropertiesTooLong},
		"a body over the limit": {message("T", 0, strings.Repeat("b", 20<<10+1)), messages.MessageIllegal, system.ErrBodyTooLarge},
		"a delay that is no number": {
			&messages.Message{Topic: "T", Properties: "DELAY\x01soon"}, messages.MessageIllegal, nil},
	} {
		r, err := s.Put(t.Context(), c.m)
		require.Error(t, err, name)
		require.Equal(t, c.status, r.Status, name)
		if c.cause != nil {
			require.ErrorIs(t, err, c.cause, name)
		}
	}
	opt2 := small(memfs.New())
	big := open(t, opt2)
	r, err := big.Put(t.Context(), message("T", 0, strings.Repeat("b", 32<<10)))
	require.ErrorIs(t, err, system.ErrBodyTooLarge, "larger than a segment: W1")
	require.Equal(t, messages.MessageIllegal, r.Status)

	ok, err := s.Put(t.Context(), &messages.Message{Topic: strings.Repeat("t", 127), Properties: props(32765, "b")})
	require.NoError(t, err)
	require.EqualValues(t, 0, ok.QueueOffset, "nothing was used up")
	require.EqualValues(t, 0, ok.PhysicalOffset)
}

// TestAQueueThatCannotBeIsRefused: what is put there would be acknowledged, and nobody could read it.
func TestAQueueThatCannotBeIsRefused(t *testing.T) {
	s := open(t, small(memfs.New()))
	tx, err := s.Transactions(t.Context(), system.TransactionOptions{})
	require.NoError(t, err)
	for _, key := range []messages.QueueKey{{Topic: "T", QueueID: -1}, {Topic: "a/b"}, {Topic: ".."}, {Topic: "a\x00b"}} {
		m := message(key.Topic, key.QueueID, "x")
		r, err := s.Put(t.Context(), m)
		require.ErrorIs(t, err, system.ErrQueue)
		require.Equal(t, messages.MessageIllegal, r.Status)
		_, err = s.PutMessages(t.Context(), []messages.Message{*m, *m})
		require.ErrorIs(t, err, system.ErrQueue)
		_, _, err = tx.Prepare(t.Context(), "pg", m)
		require.ErrorIs(t, err, system.ErrQueue)
		m.Properties = m.Properties.With(messages.PropertyDelay, "1")
		_, err = s.Put(t.Context(), m)
		require.ErrorIs(t, err, system.ErrQueue, "it would come back there")
	}
	_, end := s.LogRange()
	require.Zero(t, end)
}

func TestASecondStoreInTheDirectoryIsRefused(t *testing.T) {
	opt := small(vfs.New())
	opt.Dir = t.TempDir()
	s := open(t, opt)
	_, err := system.Open(opt)
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.ErrorContains(t, err, opt.Dir)
	_, err = s.Put(t.Context(), message("T", 0, "still there"))
	require.NoError(t, err)
}

func TestOptionsNameEveryProblem(t *testing.T) {
	_, err := system.Open(system.Options{SegmentBytes: 1000, MemoryRatioPercent: 101, DelayLevels: "1x"})
	require.ErrorIs(t, err, system.ErrOptions)
	for _, part := range []string{"Dir", "SegmentBytes is 1000", "MemoryRatioPercent is 101", "1x"} {
		require.ErrorContains(t, err, part)
	}
}

func TestABatchIsStoredAsOne(t *testing.T) {
	s := open(t, small(memfs.New()))
	var list []messages.Message
	for i := range 40 {
		list = append(list, *message("T", 1, fmt.Sprint(i)))
	}
	r, err := s.PutMessages(t.Context(), list)
	require.NoError(t, err)
	require.EqualValues(t, 40, r.Count)
	bodies := read(t, s, messages.QueueKey{Topic: "T", QueueID: 1}, 0, 40)
	require.Equal(t, "39", bodies[39])
}

func TestGetStatuses(t *testing.T) {
	s := open(t, small(memfs.New()))
	key := messages.QueueKey{Topic: "T"}
	get := func(at messages.QueueOffset) (messages.GetStatus, messages.QueueOffset) {
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 1})
		require.NoError(t, err)
		defer r.Release()
		return r.Status, r.NextOffset
	}
	status, next := get(7)
	require.Equal(t, messages.NoMessageInQueue, status)
	require.Zero(t, next)
	for range 3 {
		_, err := s.Put(t.Context(), message("T", 0, "x"))
		require.NoError(t, err)
	}
	read(t, s, key, 0, 3)
	for _, c := range []struct {
		at, next messages.QueueOffset
		status   messages.GetStatus
	}{
		{0, 1, messages.Found}, {2, 3, messages.Found}, {3, 3, messages.OffsetOverflowOne},
		{4, 3, messages.OffsetOverflowBadly}, {-1, 0, messages.OffsetTooSmall},
	} {
		status, next := get(c.at)
		require.Equal(t, c.status, status, "at %d", c.at)
		require.Equal(t, c.next, next, "at %d", c.at)
	}
	r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, MaxMessages: 9, Tags: func(int64) bool { return false }})
	require.NoError(t, err)
	require.Equal(t, messages.NoMatchedMessage, r.Status)
	require.EqualValues(t, 3, r.NextOffset, "a filter that matches nothing moves on")
	r.Release()
}

func TestOffsetByTime(t *testing.T) { // W20, L23
	s := open(t, small(memfs.New()))
	key := messages.QueueKey{Topic: "T"}
	var at []int64
	for range 5 {
		r, err := s.Put(t.Context(), message("T", 0, "x"))
		require.NoError(t, err)
		at = append(at, r.StoreTimestampMs)
		for begin := time.Now(); time.Since(begin) < 3*time.Millisecond; { // the store's clock has to move
			select {
			case <-t.Context().Done():
			case <-time.After(3 * time.Millisecond):
			}
		}
	}
	read(t, s, key, 0, 5)
	for _, c := range []struct {
		ms             int64
		lower, nearest messages.QueueOffset
	}{
		{at[0] - 1000, 0, 0}, {at[0], 0, 0}, {at[2], 2, 2}, {at[4], 4, 4}, {at[4] + 1000, 5, 4}, {at[1] + 1, 2, 1},
	} {
		lower, err := s.OffsetByTime(t.Context(), key, c.ms, messages.TimeLower)
		require.NoError(t, err)
		require.Equal(t, c.lower, lower)
		nearest, err := s.OffsetByTime(t.Context(), key, c.ms, messages.TimeNearest)
		require.NoError(t, err)
		require.Equal(t, c.nearest, nearest)
	}
}

func TestMessageAtBelievesRecordsOnly(t *testing.T) { // W27
	s := open(t, small(memfs.New()))
	forged, err := record.Append(nil, message("T", 0, "forged"))
	require.NoError(t, err)
	r, err := s.Put(t.Context(), message("T", 0, string(forged)))
	require.NoError(t, err)
	m, err := s.MessageAt(r.PhysicalOffset)
	require.NoError(t, err)
	require.True(t, bytes.Equal(forged, m.Body))
	for off := r.PhysicalOffset + 1; off < r.End(); off++ {
		_, err := s.MessageAt(off)
		require.Error(t, err, "offset %d", off)
	}
	_, err = s.MessageAt(1 << 40)
	require.ErrorIs(t, err, system.ErrNoMessage)
}

func TestAFailedSyncMakesTheStoreReadOnly(t *testing.T) { // W5
	disk := memfs.New()
	opt := small(disk)
	opt.FlushDiskType = system.SyncFlush
	failed := make(chan messages.Failed, 1)
	opt.OnFailed = func(m messages.Failed) { failed <- m }
	s, err := system.Open(opt)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), message("T", 0, "good"))
	require.NoError(t, err)
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync && path.Base(op.Name) == segments.Name(0) && !strings.Contains(op.Name, "queue") {
			return fmt.Errorf("no sync for %s", op.Name)
		}
		return nil
	})
	r, err := s.Put(t.Context(), message("T", 0, "unsure"))
	require.ErrorIs(t, err, messages.ErrFailed)
	require.False(t, r.Status.Stored())
	<-failed
	disk.Inject(nil)
	_, err = s.Put(t.Context(), message("T", 0, "late"))
	require.ErrorIs(t, err, messages.ErrFailed)
	require.ErrorIs(t, s.Writable(), messages.ErrFailed)
	require.Equal(t, "good", read(t, s, messages.QueueKey{Topic: "T"}, 0, 1)[0], "reads go on")
	require.ErrorIs(t, s.Close(t.Context()), messages.ErrFailed)
	_, err = disk.Stat("store/abort")
	require.NoError(t, err, "the next start recovers")
}

func TestGetWaitIsWokenByAMessage(t *testing.T) {
	s := open(t, small(memfs.New()))
	key := messages.QueueKey{Topic: "T", QueueID: 3}
	got := make(chan string)
	for range 3 {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			r, err := s.GetWait(ctx, messages.GetMessage{Queue: key, MaxMessages: 1})
			if err != nil || len(r.Records) == 0 {
				got <- fmt.Sprint("nothing: ", err)
				return
			}
			defer r.Release()
			rec, _, _ := record.Parse(r.Records[0], true)
			got <- string(rec.Body)
		}()
	}
	_, err := s.Put(t.Context(), message("T", 3, "wake up"))
	require.NoError(t, err)
	for range 3 {
		require.Equal(t, "wake up", <-got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	r, err := s.GetWait(ctx, messages.GetMessage{Queue: key, Offset: 1, MaxMessages: 1})
	require.NoError(t, err)
	require.Equal(t, messages.OffsetOverflowOne, r.Status)
	r.Release()
}

func TestPutAsyncAnswersOnce(t *testing.T) {
	s := open(t, small(memfs.New()))
	results := make(chan messages.PutResult, 100)
	for range 100 {
		s.PutAsync(message("T", 0, "x"), true, time.Time{}, func(r messages.PutResult, err error) {
			if err != nil {
				panic(err)
			}
			results <- r
		})
	}
	seen := map[messages.QueueOffset]bool{}
	for range 100 {
		r := <-results
		require.False(t, seen[r.QueueOffset])
		seen[r.QueueOffset] = true
	}
}
