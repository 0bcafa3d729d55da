package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestGapInTheLogIsClosed: records are lost and with them the queues; what follows keeps its queue offsets.
func TestGapInTheLogIsClosed(t *testing.T) {
	disk, w := killed(t, 100)
	require.NoError(t, disk.Remove(segmentPath(testSegment)))
	removeTree(t, disk, "s/consumequeue")
	s := open(t, disk)
	c := contentOf(t, s)
	var kept []put
	for _, p := range w.puts {
		if p.from/testSegment != 1 {
			kept = append(kept, p)
		}
	}
	c.requirePuts(t, kept)
	require.Equal(t, w.next, s.QueueOffsets)
	require.Contains(t, events(s.Report), store.ClosedGap)
	for key, q := range c.Queues {
		require.Zero(t, q.Min)
		for i, u := range q.Units {
			if int64(u.PhysicalOffset)/testSegment == 1 || u.Size == 1 {
				require.Error(t, store.Names(s.Log, u, key, messages.QueueOffset(i)), "it names nothing that is there")
			}
		}
	}
	require.NoError(t, s.Close())
	again, report := recovered(t, disk)
	require.Equal(t, c, again)
	require.NotContains(t, events(report), store.ClosedGap)
}

// TestQueueOffsetsThatLeaveNoRoom: between two records there is no room for so many that could be missing.
func TestQueueOffsetsThatLeaveNoRoom(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.put("A", 0, "one")
	w.put("B", 0, "between")
	w.next[messages.QueueKey{Topic: "A"}] = 1000
	p := w.put("A", 0, "two")
	w.put("A", 0, "three")
	c, report := recovered(t, disk)
	require.Contains(t, events(report), store.RestartedQueue)
	q := c.Queues[p.key]
	require.Equal(t, [2]messages.QueueOffset{1000, 1002}, [2]messages.QueueOffset{q.Min, q.Max})
	again, _ := recovered(t, disk)
	require.Equal(t, c, again)
}

// TestTopicThatWasMadeAgain (spec/store.md §7.8): the newer messages with the same queue offsets are the ones that count.
func TestTopicThatWasMadeAgain(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	for range 10 {
		w.put("A", 0, "old")
		w.put("B", 0, "other")
	}
	delete(w.next, messages.QueueKey{Topic: "A"})
	var made []put
	for range 3 {
		made = append(made, w.put("A", 0, "new"))
		w.put("B", 0, "other")
	}
	s := open(t, disk)
	c := contentOf(t, s)
	require.Contains(t, events(s.Report), store.RestartedQueue)
	require.Len(t, c.Queues[made[0].key].Units, 3)
	c.requirePuts(t, made)
	require.Equal(t, w.next, s.QueueOffsets)
	require.NoError(t, s.CloseClean())

	for _, damage := range []string{"", "s/consumequeue/B", "s/index"} {
		d := disk.Clone()
		if damage != "" {
			removeTree(t, d, damage)
		}
		again, report := recovered(t, d)
		require.Equal(t, c, again)
		require.NotContains(t, events(report), store.RestartedQueue, damage)
		require.NotContains(t, events(report), store.DroppedQueue, damage)
	}
}

func TestTopicThatWasMadeAgainWithOneMessage(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	for range 5 {
		w.put("A", 0, "old")
	}
	delete(w.next, messages.QueueKey{Topic: "A"})
	made := w.put("A", 0, "new")
	c, _ := recovered(t, disk)
	require.Len(t, c.Queues[made.key].Units, 1)
	c.requirePuts(t, []put{made})
}

func TestTransactionsAreDispatchedByType(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	for _, flag := range []int32{
		messages.SysFlagTransactionNone, messages.SysFlagTransactionPrepared, messages.SysFlagTransactionCommit,
		messages.SysFlagTransactionRollback,
	} {
		m := w.message(messages.QueueKey{Topic: "A"}, "x")
		m.SysFlag = flag
		w.append(m)
		if !messages.TakesQueueOffset(flag) {
			w.next[m.Queue()]--
		}
	}
	c, _ := recovered(t, disk)
	q := c.Queues[messages.QueueKey{Topic: "A"}]
	require.Len(t, q.Units, 2)
	require.Equal(t, w.puts[0].from, int64(q.Units[0].PhysicalOffset))
	require.Equal(t, w.puts[2].from, int64(q.Units[1].PhysicalOffset))
	for i, found := range []int{1, 1, 1, 0} {
		require.Len(t, c.Keys[fmt.Sprintf("A#u%d", i)], found, "message %d", i)
	}
}

func TestLightQueues(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	for i := range 20 {
		m := w.message(messages.QueueKey{Topic: "T", QueueID: 2}, "x")
		m.Properties = m.Properties.With(messages.PropertyMultiDispatch, "%LMQ%a,B").
			With(messages.PropertyMultiQueueOffset, fmt.Sprintf("%d,%d", i, i))
		w.append(m)
	}
	p := testParams()
	p.MultiDispatch = true
	reopen := func() content {
		s, err := store.Open(disk, p, testOptions())
		require.NoError(t, err)
		c := contentOf(t, s)
		require.NoError(t, s.CloseClean())
		return c
	}
	c := reopen()
	require.Len(t, c.Queues, 3)
	for _, key := range []messages.QueueKey{{Topic: "T", QueueID: 2}, {Topic: "%LMQ%a"}, {Topic: "B", QueueID: 2}} {
		require.Equal(t, c.Queues[messages.QueueKey{Topic: "T", QueueID: 2}], c.Queues[key], "%v", key)
	}
	removeTree(t, disk, "s/consumequeue/%LMQ%a")
	require.Equal(t, c, reopen())

	// Who does not know them leaves them alone.
	p.MultiDispatch = false
	createFile(t, disk, "s/abort", 0)
	require.Equal(t, c, reopen())
}

func TestTopicThatIsNoFolderIsReported(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.put("../../x", 0, "evil")
	w.put("A", -1, "negative")
	good := w.put("A", 0, "good")
	c, report := recovered(t, disk)
	require.Equal(t, []store.Finding{store.RejectedRecord, store.RejectedRecord, store.Dispatched}, events(report))
	c.requirePuts(t, []put{good})
	require.Len(t, c.Queues, 1)
}

// wrecked is a killed store with many things to mend.
func wrecked(t *testing.T) (*memfs.Disk, *logWriter, []int) {
	t.Helper()
	disk, w := killed(t, 80)
	var lost []int
	for _, name := range []string{
		"torn tail", "used segment behind the end", "flipped bit in a body (W3)", "missing queue", "queue with a hole", "short index file",
	} {
		if name == "torn tail" {
			last := w.puts[79]
			patchLog(t, disk, last.from+20, zeroBytes(last.to-last.from-20))
			lost = append(lost, 79)
			continue
		}
		lost = append(damages[name](t, disk, w), lost...)
	}
	return disk, w, lost
}

// powerOff lets k changes happen, and nothing from then on.
func powerOff(k int, off error) func(memfs.Op) error {
	var n atomic.Int64 // queues are loaded in parallel
	return func(op memfs.Op) error {
		if op.Kind.Changes() {
			n.Add(1)
		}
		if n.Load() > int64(k) {
			return off
		}
		return nil
	}
}

// TestOpenCanBeInterruptedAnywhere cuts the power, and kills the process, after each operation of a recovery. Opening then
// gives what an uninterrupted recovery gives.
func TestOpenCanBeInterruptedAnywhere(t *testing.T) {
	disk, w, lost := wrecked(t)
	want, report := recovered(t, disk.Clone())
	want.requirePuts(t, without(w.puts, lost))
	require.Len(t, want.Bodies, 80-len(lost))
	require.Greater(t, len(report.Events), 5)

	everyEnd(t, disk, func(left *memfs.Disk, step int) {
		got, _ := recovered(t, left)
		require.Equal(t, want, got, "step %d", step)
		c, report := recovered(t, left)
		require.Equal(t, want, c)
		require.NotContains(t, events(report), store.CutTail)
	})
}

// TestClosingCanBeInterruptedAnywhere does the same while a store is closed that has grown since it was opened. What was
// there before is there; when the close was done, everything is, whatever the power cut takes.
func TestClosingCanBeInterruptedAnywhere(t *testing.T) {
	disk, w := killed(t, 60)
	off, met := errors.New("power is off"), newEnds(t)
	for k, done := 0, false; !done; k++ {
		d := disk.Clone()
		s := open(t, d)
		added := grow(t, s, w)
		d.Inject(powerOff(k, off))
		if done = s.CloseClean() == nil; done {
			met = newEnds(t) // more is asked of the same disk
		}
		for seed := range uint64(6) {
			left := met.anew(d.Crash(seed))
			if len(left) == 0 {
				continue
			}
			got, report := recovered(t, left[0])
			got.requirePuts(t, w.puts)
			if done {
				got.requirePuts(t, []put{added})
				require.True(t, report.Plan.Clean)
				require.Zero(t, report.Dispatched)
			}
		}
	}
}

// grow appends a record to an open store, as the writer and the builders do.
func grow(t *testing.T, s *store.Store, w *logWriter) put {
	t.Helper()
	key := messages.QueueKey{Topic: "A"}
	m := w.message(key, "grown")
	raw, err := record.Append(nil, &m)
	require.NoError(t, err)
	at, pos, ms := s.QueueOffsets[key], s.Log.End(), testStartMs+1_000_000
	record.SetPlace(raw, at, pos, ms)
	seg := s.Log.View().Last()
	from := int64(pos) - seg.Start()
	require.Less(t, from+int64(len(raw)), seg.Size()-record.BlankBytes)
	copy(seg.Data()[from:], raw)
	s.Log.Publish(seg, from+int64(len(raw)), ms)
	u := consumequeue.Unit{PhysicalOffset: pos, Size: int32(len(raw)), TagsCode: int64(messages.JavaHash("t"))}
	_, err = s.Queues.Lookup(key).Append(u, at)
	require.NoError(t, err)
	n := len(w.puts)
	p := put{key: key, at: at, from: int64(pos), to: int64(u.End()), keys: []string{fmt.Sprintf("k%d", n)}, body: "grown"}
	require.NoError(t, s.Index.Put("A", []byte(p.keys[0]), pos, ms))
	return p
}

func FuzzRecovery(f *testing.F) {
	disk, w := closed(f, 60)
	f.Add(true, uint8(0), uint32(100), []byte{1, 2, 3}, uint32(9000), []byte{0, 0})
	f.Add(false, uint8(1), uint32(0), []byte{0xff}, uint32(5), []byte{})
	f.Add(false, uint8(2), uint32(4000), record.AppendBlank(nil, 20), uint32(0), []byte("x"))
	f.Add(false, uint8(3), uint32(40), []byte{0x7f, 0xff, 0xff, 0xff}, uint32(800), []byte{9})
	for name := range damages {
		f.Add(len(name)%2 == 0, uint8(len(name)%4), uint32(len(name)*400), []byte(name), uint32(len(name)), []byte(name))
	}
	f.Fuzz(func(t *testing.T, clean bool, file uint8, off uint32, bytes []byte, logOff uint32, logBytes []byte) {
		d := disk.Clone()
		if !clean {
			createFile(t, d, "s/abort", 0)
		}
		derived := []string{queueFile("A", 0), queueFile("B", 1), indexFiles(t, d)[0], "s/checkpoint"}[file%4]
		size := int64(len(fixture.ReadFile(t, d, derived)))
		if at := int64(off) % size; len(bytes) > 0 {
			overwrite(t, d, derived, at, bytes[:min(int64(len(bytes)), size-at)])
		}
		intact := w.puts
		if at := int64(logOff) % (w.pos + 100); len(logBytes) > 0 {
			logBytes = logBytes[:min(int64(len(logBytes)), testSegment-at%testSegment)]
			patchLog(t, d, at, logBytes)
			intact = nil
			for _, p := range w.puts {
				if p.to <= at {
					intact = append(intact, p)
				}
			}
		}
		before := tree(t, d, "s")
		s, err := store.Open(d, testParams(), testOptions())
		if err != nil {
			require.ErrorIs(t, err, store.ErrNewerLog)
			require.Equal(t, before, tree(t, d, "s"))
			return
		}
		first := contentOf(t, s)
		require.NoError(t, s.Close())
		requireSurvivors(t, first, intact)
		files := tree(t, d, "s", "/index/", "/checkpoint")
		second, report := recovered(t, d)
		require.Equal(t, first.Bodies, second.Bodies)
		require.Equal(t, first.Queues, second.Queues)
		require.Equal(t, first.Next, second.Next)
		require.Equal(t, files, tree(t, d, "s", "/index/", "/checkpoint"), "%v", report.Events)
	})
}

// requireSurvivors checks the records in front of the damage, and that their queues have them.
func requireSurvivors(t *testing.T, c content, puts []put) {
	t.Helper()
	for _, p := range puts {
		require.Equal(t, p.body, c.Bodies[messages.PhysicalOffset(p.from)])
		q := c.Queues[p.key]
		require.True(t, p.at >= q.Min && p.at < q.Max, "%v %d in %d..%d", p.key, p.at, q.Min, q.Max)
		require.Equal(t, p.from, int64(q.Units[p.at-q.Min].PhysicalOffset))
	}
}

// TestOddQueueOffset: a flipped bit in a record's queue offset, which no checksum covers, costs that one message its place,
// whatever else has to be built.
func TestOddQueueOffset(t *testing.T) {
	for name, flip := range map[string]struct{ at, bit int64 }{"far ahead": {22, 4}, "back": {27, 8}, "a little ahead": {27, 4}} {
		disk, w := killed(t, 100)
		odd := w.puts[60]
		require.Equal(t, messages.QueueOffset(10), odd.at)
		b := fixture.ReadFile(t, disk, segmentPath(odd.from))[odd.from%testSegment+flip.at]
		patchLog(t, disk, odd.from+flip.at, []byte{b ^ byte(flip.bit)})
		removeTree(t, disk, "s/consumequeue")
		s := open(t, disk)
		c := contentOf(t, s)
		require.Len(t, c.Bodies, 100)
		c.requirePuts(t, without(w.puts, []int{60}))
		require.Equal(t, w.next, s.QueueOffsets, name)
		require.NoError(t, s.Close())
		again, _ := recovered(t, disk)
		require.Equal(t, c, again)
	}
}

// TestSeveralGaps: each hole costs the messages in it, not those between two holes.
func TestSeveralGaps(t *testing.T) {
	disk, w := killed(t, 100)
	lost := []int{48, 54, 66, 72, 96} // all of one queue, 60 and the others between are whole; the last is its end
	for _, i := range lost {
		require.Equal(t, w.puts[48].key, w.puts[i].key)
		patchLog(t, disk, w.puts[i].from+88, []byte{^w.puts[i].body[0]})
	}
	removeTree(t, disk, "s/consumequeue")
	s := open(t, disk)
	c := contentOf(t, s)
	c.requirePuts(t, without(w.puts, lost))
	require.Len(t, c.Holes, len(lost))
	require.NoError(t, s.Close())
	again, _ := recovered(t, disk)
	require.Equal(t, c, again)
}

// TestPlanOnlyReads: what is decided depends on the directory alone, and nothing is changed before the abort marker says so.
func TestPlanOnlyReads(t *testing.T) {
	disk, _, _ := wrecked(t)
	require.NoError(t, disk.Remove("s/abort"))
	d := disk.Clone()
	before, marked := tree(t, d, "s"), 0
	d.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindCreate && op.Name == "s/abort" {
			marked++
			require.Equal(t, before, tree(t, d.Clone(), "s"))
		}
		return nil
	})
	_, first := recovered(t, d)
	require.Equal(t, 1, marked)
	_, second := recovered(t, disk.Clone())
	require.Equal(t, first.Plan, second.Plan)
	opt := testOptions()
	opt.ReadOnly = true
	s, err := store.Open(disk, testParams(), opt)
	require.NoError(t, err)
	require.Equal(t, first.Plan, s.Report.Plan)
	require.NoError(t, s.Close())
}

// TestAGapIsClosedWithRecords: of what is lost nothing is known, neither by the log nor by a queue. Each missing queue offset gets a
// record that stands for it, so that RocketMQ, which would take a place that is no record for a message, reads over it too.
func TestAGapIsClosedWithRecords(t *testing.T) {
	disk, w := killed(t, 100)
	for i := 40; i < 52; i++ { // of several queues; without a queue that names what follows nothing of the two segments is believed
		noise := make([]byte, w.puts[i].to-w.puts[i].from)
		for k := range noise {
			noise[k] = byte(k*7 + i)
		}
		patchLog(t, disk, w.puts[i].from, noise)
	}
	removeTree(t, disk, "s/consumequeue")
	var left []*memfs.Disk
	var mu sync.Mutex
	changes := 0
	disk.Inject(func(op memfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.Changes() {
			if changes++; changes%3 == 0 {
				left = append(left, disk.Clone())
			}
		}
		return nil
	})
	s := open(t, disk)
	disk.Inject(nil)
	require.Contains(t, events(s.Report), store.ClosedGap)
	require.Equal(t, w.next, s.QueueOffsets)
	c := contentOf(t, s)
	var kept []put
	for _, p := range w.puts {
		if p.to <= w.puts[40].from || p.from >= (w.puts[51].to/testSegment+1)*testSegment {
			kept = append(kept, p)
		}
	}
	c.requirePuts(t, kept)
	for key, q := range c.Queues {
		for i, u := range q.Units {
			require.NoError(t, store.Names(s.Log, u, key, q.Min+messages.QueueOffset(i)), "each names a record of its own: %v", u)
		}
	}
	require.NoError(t, s.Close())
	again, _ := recovered(t, disk)
	require.Equal(t, c, again)
	for _, d := range left {
		after, _ := recovered(t, d)
		after.requirePuts(t, kept) // though recovery was cut off anywhere
		for key, q := range after.Queues {
			require.Equal(t, w.next[key], q.Max)
			require.Zero(t, q.Min)
		}
	}
}
