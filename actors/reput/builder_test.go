package reput

import (
	"errors"
	"fmt"
	"path"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/testkit/memfs"
)

// rig is a dispatcher with queue builders.
type rig struct {
	*node
	w        *logWriter
	disk     *memfs.Disk
	table    *consumequeue.Table
	cfg      QueueConfig
	from     messages.PhysicalOffset
	noLog    bool
	problems chan messages.QueueProblem
	failed   chan messages.Failed
	told     *sink // what the flusher is told

	bell       *actors.Bell
	builders   []actors.Peer
	box        *mailbox.Combining // of the last builder
	dispatcher actors.Peer
}

func newRig(t *testing.T, segmentBytes int64) *rig {
	t.Helper()
	w := newLog(t, segmentBytes)
	r := &rig{node: newNode(t), w: w, disk: w.disk.(*memfs.Disk)}
	r.table = openTable(t, r.disk)
	r.problems, r.failed = make(chan messages.QueueProblem, 1024), make(chan messages.Failed, 16)
	r.told = newSink()
	r.cfg = QueueConfig{
		Table: r.table, Log: w.log, Flusher: r.spawn(r.told),
		OnProblem: func(p messages.QueueProblem) { r.problems <- p }, OnFailed: func(f messages.Failed) { r.failed <- f },
	}
	return r
}

func (r *rig) start() *rig {
	r.t.Helper()
	r.cfg.Table = r.table
	r.cfg.Built = r.from
	dispatch := Config{Log: r.cfg.Log, From: r.from}
	for i := range max(r.cfg.Shards, 1) {
		cfg := r.cfg
		cfg.Shard = i
		if r.noLog {
			cfg.Log = nil
		}
		p, mb := r.spawnBox(NewQueueBuilder(cfg))
		r.builders, r.box = append(r.builders, p), mb
		dispatch.Builders = append(dispatch.Builders, Builder{Name: fmt.Sprintf("queues-%d", i), Mailbox: mb})
	}
	r.bell = r.node.bell()
	dispatch.Bell = r.bell
	r.dispatcher = r.spawn(New(dispatch))
	return r
}

// all waits until everything in the log is built.
func (r *rig) all() {
	r.t.Helper()
	r.bell.Ring()
	_, err := awaitDispatched(r.t, r.dispatcher, r.cfg.Log.End())
	require.NoError(r.t, err)
}

func (r *rig) flush() int64 {
	r.t.Helper()
	ms, err := flushQueues(r.t, r.builders[0])
	require.NoError(r.t, err)
	return ms
}

// verify compares the queues with what was put: unit i is message i of its queue.
func (r *rig) verify(table *consumequeue.Table, want []messages.DispatchRequest) {
	r.t.Helper()
	queues := 0
	next := map[messages.QueueKey]messages.QueueOffset{}
	for _, w := range want {
		if !messages.TakesQueueOffset(w.SysFlag) {
			continue
		}
		q := table.Lookup(w.Queue)
		require.NotNil(r.t, q, "%v", w.Queue)
		if _, seen := next[w.Queue]; !seen {
			queues++
			require.Equal(r.t, w.QueueOffset, q.Min(), "%v", w.Queue)
		}
		var u [1]consumequeue.Unit
		n, err := q.Read(w.QueueOffset, u[:])
		require.NoError(r.t, err)
		require.Equal(r.t, 1, n, "%v at %d", w.Queue, w.QueueOffset)
		require.Equal(r.t, consumequeue.Unit{PhysicalOffset: w.PhysicalOffset, Size: w.SizeBytes, TagsCode: w.TagsCode}, u[0])
		next[w.Queue] = w.QueueOffset + 1
	}
	require.Equal(r.t, queues, table.Len())
	for key, end := range next {
		require.Equal(r.t, end, table.Lookup(key).Max(), "%v", key)
	}
}

func (r *rig) rebuild(key messages.QueueKey) (messages.QueueOffset, error) {
	r.t.Helper()
	answer := messages.NewAnswer[messages.QueueOffset]()
	r.builders[ShardOf(key, r.cfg.Shards)].Send(messages.RebuildQueue{Queue: key, Answer: answer})
	return wait(r.t, answer)
}

func (r *rig) destroy(key messages.QueueKey) error {
	r.t.Helper()
	answer := messages.NewAnswer[struct{}]()
	r.builders[ShardOf(key, r.cfg.Shards)].Send(messages.DestroyQueue{Queue: key, Answer: answer})
	_, err := wait(r.t, answer)
	return err
}

func TestQueuesFollowTheLog(t *testing.T) {
	r := newRig(t, 4096)
	r.w.fill(3000)
	for i := range 30 {
		flag := []int32{messages.SysFlagTransactionPrepared, messages.SysFlagTransactionCommit, messages.SysFlagTransactionRollback}[i%3]
		r.w.put(messages.Message{Topic: "Tx", QueueID: 1, SysFlag: flag})
	}
	r.start().all()
	r.verify(r.table, r.w.want)
	require.Equal(t, messages.QueueOffset(10), r.table.Lookup(messages.QueueKey{Topic: "Tx", QueueID: 1}).Max())
	for range 200 {
		r.w.fill(7)
		r.bell.Ring()
	}
	r.all()
	r.verify(r.table, r.w.want)
	require.Empty(t, r.problems)
}

func TestDispatchingAgainChangesNothing(t *testing.T) {
	r := newRig(t, 4096)
	r.w.fill(500)
	r.start().all()
	r.flush()
	arrivals := newSink()
	r.cfg.Listeners = []Listener{{Peer: r.spawn(arrivals)}}
	r.stop(r.builders[0])
	r.builders = nil
	r.start().all()
	r.verify(r.table, r.w.want)
	require.Empty(t, arrivals.ch)
	require.Empty(t, r.problems)
	r.w.fill(12)
	r.all()
	r.verify(r.table, r.w.want)
	require.Len(t, receive(t, arrivals.ch).(messages.MessagesArrived).Arrivals, 12)
}

// Field report L19: every record has its unit again, wherever it was lost.
func TestUnitsAtTheEndOfAnEarlierSegmentComeBack(t *testing.T) {
	r := newRig(t, 4096)
	r.w.fill(70)
	require.Equal(t, 3, r.w.log.View().Len())
	r.start().all()
	r.flush()
	cut := messages.PhysicalOffset(2*4096 - 5*140)
	r.table.Each(func(_ messages.QueueKey, q *consumequeue.Queue) {
		at, err := q.Search(cut)
		require.NoError(t, err)
		require.NoError(t, q.Truncate(at))
		require.NoError(t, q.Sync())
	})
	r.stop(r.builders[0])
	r.builders, r.from = nil, 4096 // wherever a recovery decides to begin
	r.start().all()
	r.verify(r.table, r.w.want)
}

func TestAGapIsFilledFromTheLog(t *testing.T) {
	r := newRig(t, 1<<20)
	r.w.fill(2000)
	r.from = r.w.log.End() // as if all of this had been built
	r.w.fill(100)
	key := r.w.want[0].Queue
	for _, w := range r.w.want[:2000] { // but one queue lacks its last units
		q, err := r.table.Create(w.Queue)
		require.NoError(t, err)
		if w.Queue == key && w.QueueOffset >= 37 {
			continue
		}
		_, err = q.Append(consumequeue.Unit{PhysicalOffset: w.PhysicalOffset, Size: w.SizeBytes, TagsCode: w.TagsCode}, w.QueueOffset)
		require.NoError(t, err)
	}
	arrivals := newSink()
	r.cfg.Listeners = []Listener{{Peer: r.spawn(arrivals), Wants: func(k messages.QueueKey) bool { return k == key }}}
	r.start()
	p := receive(t, r.problems)
	require.Equal(t, messages.QueueGap, p.Kind)
	require.Equal(t, key, p.Queue)
	require.ErrorIs(t, p.Err, consumequeue.ErrGap)
	p = receive(t, r.problems)
	require.Equal(t, messages.QueueRebuilt, p.Kind)
	require.Equal(t, r.w.next[key], p.QueueOffset)
	r.all()
	r.verify(r.table, r.w.want)
	got := receive(t, arrivals.ch).(messages.MessagesArrived).Arrivals
	require.Equal(t, messages.QueueOffset(37), got[0].QueueOffset)
	require.Len(t, got, int(r.w.next[key])-37)
	require.Empty(t, r.problems)
}

func TestRebuildInSteps(t *testing.T) {
	r := newRig(t, 1<<20)
	for range 3*maxScanUnits + 10 {
		r.w.put(messages.Message{Topic: "T"})
	}
	r.start().all()
	key := messages.QueueKey{Topic: "T"}
	require.NoError(t, r.destroy(key))
	require.True(t, r.table.Lookup(key) == nil)
	end, err := r.rebuild(key)
	require.NoError(t, err)
	require.Equal(t, messages.QueueOffset(3*maxScanUnits+10), end)
	r.w.put(messages.Message{Topic: "T"})
	r.all()
	r.verify(r.table, r.w.want)
	require.Equal(t, messages.QueueRebuilt, receive(t, r.problems).Kind)
	require.Empty(t, r.problems)
}

// Weaknesses W3, W16 and W26: one damaged record stops its own queue only, and nothing is ever misaligned.
func TestALostRecordStopsItsQueueUntilTheLogIsMended(t *testing.T) {
	r := newRig(t, 1<<20)
	r.w.fill(600)
	lost := r.w.want[300]
	b := r.w.bytes(lost.PhysicalOffset)[:lost.SizeBytes]
	good := append([]byte(nil), b...)
	clear(b)
	r.start().all()
	require.Equal(t, messages.QueueGap, receive(t, r.problems).Kind)
	p := receive(t, r.problems)
	require.Equal(t, messages.QueueStuck, p.Kind)
	require.Equal(t, lost.Queue, p.Queue)
	require.Equal(t, lost.QueueOffset, p.QueueOffset)
	require.ErrorIs(t, p.Err, ErrStuck)
	r.w.fill(120)
	r.all()
	var others, own []messages.DispatchRequest
	for _, w := range r.w.want {
		if w.Queue != lost.Queue || w.QueueOffset < lost.QueueOffset {
			others = append(others, w)
		}
		if w.Queue == lost.Queue {
			own = append(own, w)
		}
	}
	r.verify(r.table, others)
	require.Empty(t, r.problems, "it is told once")

	_, err := r.rebuild(lost.Queue)
	require.ErrorIs(t, err, ErrStuck)
	require.Equal(t, messages.QueueStuck, receive(t, r.problems).Kind)
	copy(b, good)
	end, err := r.rebuild(lost.Queue)
	require.NoError(t, err)
	require.Equal(t, messages.QueueOffset(len(own)), end)
	require.Equal(t, messages.QueueRebuilt, receive(t, r.problems).Kind)
	r.w.fill(12)
	r.all()
	r.verify(r.table, r.w.want)
}

// What a queue lacks expires before it is read again: its offsets go on behind that all the same.
func TestAQueueWhoseMissingRecordsExpireGoesOnBehindThem(t *testing.T) {
	r := newRig(t, 4096)
	key := messages.QueueKey{Topic: "T"}
	var last messages.DispatchRequest
	for range 5 {
		last = r.w.put(messages.Message{Topic: key.Topic})
	}
	lost := r.w.want[2]
	clear(r.w.bytes(lost.PhysicalOffset)[:lost.SizeBytes])
	r.w.fill(70)
	r.start().all()
	require.Equal(t, messages.QueueGap, receive(t, r.problems).Kind)
	require.Equal(t, messages.QueueStuck, receive(t, r.problems).Kind)
	q := r.table.Lookup(key)
	require.EqualValues(t, 2, q.Max())
	next, end := q.GoesOn()
	require.Equal(t, []any{messages.QueueOffset(5), last.End(), true}, []any{next, end, q.Lacks()})
	r.flush()
	require.Empty(t, r.told.ch, "the checkpoint does not say that the queues have everything")

	r.w.log.DropFirst(r.w.log.End()).Retire(func(err error) { require.NoError(t, err) })
	require.Greater(t, r.w.log.Min(), last.PhysicalOffset)
	got, err := r.rebuild(key)
	require.NoError(t, err)
	require.EqualValues(t, 5, got)
	require.Equal(t, messages.QueueRebuilt, receive(t, r.problems).Kind)
	q = r.table.Lookup(key)
	require.Equal(t, []any{messages.QueueOffset(5), messages.QueueOffset(5), false}, []any{q.Min(), q.Max(), q.Lacks()})
	r.w.put(messages.Message{Topic: key.Topic})
	r.all()
	require.EqualValues(t, 6, q.Max())
	require.Empty(t, r.problems)
}

func TestAQueueWithoutALogCannotBeRebuilt(t *testing.T) {
	r := newRig(t, 1<<20)
	r.w.fill(24)
	clear(r.w.bytes(r.w.want[0].PhysicalOffset)[:r.w.want[0].SizeBytes])
	q, err := r.table.Create(r.w.want[0].Queue)
	require.NoError(t, err)
	_, err = q.Append(consumequeue.Unit{PhysicalOffset: 0, Size: 50}, 0) // of another time
	require.NoError(t, err)
	r.w.next[r.w.want[0].Queue] = 9
	r.w.fill(12)
	r.noLog = true
	r.start().all()
	require.Equal(t, messages.QueueGap, receive(t, r.problems).Kind)
	require.Equal(t, messages.QueueStuck, receive(t, r.problems).Kind)
}

func TestAQueueWhoseRecordsAreGoneBeginsAnew(t *testing.T) {
	r := newRig(t, 4096)
	r.w.fill(60)
	r.start().all()
	r.flush()
	r.stop(r.dispatcher)
	r.w.fill(200) // not dispatched …
	end := r.w.log.End()
	require.NoError(t, r.w.log.Close())
	for start := int64(0); start < 4*4096; start += 4096 { // … and partly deleted
		require.NoError(t, r.disk.Remove(path.Join(logDir, segments.Name(start))))
	}
	log, _, err := commitlog.Open(r.disk, logDir, 4096)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	log.CutTo(end, r.w.storeMs)
	r.builders, r.cfg.Log = nil, log
	r.start().all()
	var want []messages.DispatchRequest
	for _, w := range r.w.want {
		if w.PhysicalOffset >= log.Min() {
			want = append(want, w)
		}
	}
	for range 12 {
		require.Equal(t, messages.QueueGap, receive(t, r.problems).Kind)
	}
	for range 12 {
		require.Equal(t, messages.QueueRestarted, receive(t, r.problems).Kind)
		require.Equal(t, messages.QueueRebuilt, receive(t, r.problems).Kind)
	}
	r.verify(r.table, want)
	require.Empty(t, r.problems)
	r.flush()
	require.NoError(t, r.table.Close())
	reopened := openTable(t, r.disk.Clone())
	r.verify(reopened, want)
}

func TestRecordsWithoutAPlaceAreLeftOut(t *testing.T) {
	r := newRig(t, 1<<20)
	r.w.fill(12)
	bad := messages.QueueKey{Topic: "../up", QueueID: 0}
	for range 5 {
		r.w.put(messages.Message{Topic: bad.Topic})
	}
	good := append([]messages.DispatchRequest(nil), r.w.want[:12]...)
	taken := r.w.want[0].Queue
	for range 9 {
		r.w.next[taken] = 0
		r.w.put(messages.Message{Topic: taken.Topic, QueueID: taken.QueueID})
	}
	r.w.next[taken] = 1
	r.w.fill(12)
	good = append(good, r.w.want[len(r.w.want)-12:]...)
	r.start().all()
	r.verify(r.table, good)
	for _, c := range []struct {
		key    messages.QueueKey
		counts []int64
		err    error
	}{{bad, []int64{1, 2, 4}, consumequeue.ErrTopic}, {taken, []int64{1, 2, 4, 8}, consumequeue.ErrOrder}} {
		for _, count := range c.counts {
			p := receive(t, r.problems)
			require.Equal(t, messages.RecordRefused, p.Kind)
			require.Equal(t, c.key, p.Queue)
			require.Equal(t, count, p.Count)
			require.ErrorIs(t, p.Err, c.err)
		}
	}
	require.Empty(t, r.problems)
}

func TestShardsShareTheQueues(t *testing.T) {
	r := newRig(t, 4096)
	r.cfg.Shards = 3
	r.cfg.Durable = NewDurable(3)
	r.w.fill(1000)
	r.start().all()
	r.verify(r.table, r.w.want)
	byShard := map[int]int{}
	r.table.Each(func(key messages.QueueKey, _ *consumequeue.Queue) { byShard[ShardOf(key, 3)]++ })
	for i, p := range r.builders {
		require.Empty(t, r.told.ch, "not before all shards are durable")
		_, err := flushQueues(t, p)
		require.NoError(t, err)
		if i < 2 {
			require.Equal(t, messages.QueuesFlushed{}, receive(t, r.told.ch))
		}
	}
	require.Equal(t, messages.QueuesFlushed{StoreTimestampMs: r.w.storeMs}, receive(t, r.told.ch))
	require.NoError(t, r.table.Close())
	r.verify(openTable(t, r.disk.Crash(1)), r.w.want)
	require.Equal(t, r.table.Len(), byShard[0]+byShard[1]+byShard[2])
}

func TestListenersHearWhatConcernsThem(t *testing.T) {
	r := newRig(t, 1<<20)
	all, some := newSink(), newSink()
	key := messages.QueueKey{Topic: "Topic1", QueueID: 1}
	r.cfg.Listeners = []Listener{
		{Peer: r.spawn(all)},
		{Peer: r.spawn(some), Wants: func(k messages.QueueKey) bool {
			require.NotNil(t, r.table.Lookup(k), "asked after it is readable")
			return k == key
		}},
	}
	r.w.fill(24)
	r.start().all()
	got := receive(t, all.ch).(messages.MessagesArrived).Arrivals
	require.Len(t, got, 24)
	var want []messages.Arrival
	for i, w := range r.w.want {
		a := messages.Arrival{Queue: w.Queue, QueueOffset: w.QueueOffset, TagsCode: w.TagsCode, StoreTimestampMs: w.StoreTimestampMs}
		require.Equal(t, a, got[i])
		if w.Queue == key {
			want = append(want, a)
		}
	}
	require.Equal(t, want, receive(t, some.ch).(messages.MessagesArrived).Arrivals)
}

func TestAPanicCostsNoUnit(t *testing.T) {
	for _, panics := range []int64{1, 2} {
		t.Run(fmt.Sprint(panics), func(t *testing.T) {
			r := newRig(t, 1<<20)
			left := panics
			r.cfg.Listeners = []Listener{{Wants: func(messages.QueueKey) bool {
				if left--; left >= 0 {
					panic("a bug in a listener")
				}
				return false
			}}}
			r.w.fill(100)
			r.start()
			if panics == 1 {
				r.all()
				r.verify(r.table, r.w.want)
				require.Empty(t, r.failed)
				return
			}
			f := receive(t, r.failed)
			require.Equal(t, string(actors.RoleQueueBuilder), f.Role)
			require.ErrorContains(t, f.Cause, "a bug in a listener")
			_, err := awaitDispatched(t, r.dispatcher, r.w.log.End())
			require.ErrorIs(t, err, messages.ErrFailed)
			_, err = flushQueues(t, r.builders[0])
			require.ErrorIs(t, err, messages.ErrPanicked)
			_, err = r.rebuild(r.w.want[0].Queue)
			require.ErrorIs(t, err, messages.ErrPanicked)
			require.ErrorIs(t, r.destroy(r.w.want[0].Queue), messages.ErrPanicked)
			require.Empty(t, r.failed)
		})
	}
}

func TestDestroyedQueuesGoAndComeBack(t *testing.T) {
	r := newRig(t, 1<<20)
	r.w.fill(240)
	r.start().all()
	r.flush()
	key := r.w.want[0].Queue
	require.NoError(t, r.destroy(key))
	require.True(t, r.table.Lookup(key) == nil)
	require.NoError(t, r.destroy(key), "again")
	require.NoError(t, r.destroy(messages.QueueKey{Topic: "Ghost"}))
	r.w.fill(24)
	r.all()
	var want []messages.DispatchRequest
	for i, w := range r.w.want {
		if w.Queue != key || i >= 240 {
			want = append(want, w)
		}
	}
	r.verify(r.table, want)
	end, err := r.rebuild(messages.QueueKey{Topic: "Ghost"})
	require.NoError(t, err)
	require.Zero(t, end)
	require.True(t, r.table.Lookup(messages.QueueKey{Topic: "Ghost"}) == nil, "no queue is made of nothing")
	_, err = r.rebuild(messages.QueueKey{Topic: ".."})
	require.ErrorIs(t, err, consumequeue.ErrTopic)
}

func (r *rig) destroyTopic(topic string, below messages.PhysicalOffset) {
	r.t.Helper()
	answer := messages.NewAnswer[struct{}]()
	r.builders[0].Send(messages.DestroyTopic{Topic: topic, Below: below, Answer: answer})
	_, err := wait(r.t, answer)
	require.NoError(r.t, err)
}

// A topic is deleted whose queue lacks units, and takes none: what is put into its new life is readable all the same.
func TestADeletedTopicWhoseQueueIsStuckComesToLifeAgain(t *testing.T) {
	for _, again := range []bool{true, false} {
		r := newRig(t, 1<<20)
		key := messages.QueueKey{Topic: "T"}
		for range 10 {
			r.w.put(messages.Message{Topic: "T"})
		}
		r.w.next[key]++ // a record that is not in the log
		r.w.put(messages.Message{Topic: "T"})
		r.start().all()
		require.Equal(t, messages.QueueGap, receive(t, r.problems).Kind)
		require.Equal(t, messages.QueueStuck, receive(t, r.problems).Kind)
		r.destroyTopic("T", -1)
		below := r.w.log.End()
		want := []messages.DispatchRequest{}
		if again {
			r.w.next[key] = 0
			want = append(want, r.w.put(messages.Message{Topic: "T"}), r.w.put(messages.Message{Topic: "T"}))
			r.all()
		}
		r.destroyTopic("T", below)
		require.Equal(t, messages.QueueRebuilt, receive(t, r.problems).Kind)
		r.verify(r.table, want)
		if !again {
			require.True(t, r.table.Lookup(key) == nil)
			r.w.next[key] = 0
		}
		want = append(want, r.w.put(messages.Message{Topic: "T"}))
		r.all()
		r.verify(r.table, want)
	}
}

// The new life begins while the log is being read for what the old one lacks.
func TestADeletedTopicComesToLifeAgainWhileItsQueueIsRepaired(t *testing.T) {
	r := newRig(t, 1<<20)
	key := messages.QueueKey{Topic: "T"}
	q, err := r.table.Create(key)
	require.NoError(t, err)
	for i := range 10 {
		w := r.w.put(messages.Message{Topic: "T"})
		if i < 5 { // it lacks the others
			_, err = q.Append(consumequeue.Unit{PhysicalOffset: w.PhysicalOffset, Size: w.SizeBytes, TagsCode: w.TagsCode}, w.QueueOffset)
			require.NoError(t, err)
		}
	}
	r.from = r.w.log.End() // as if all of this had been built
	r.start()
	r.destroyTopic("T", -1)
	r.w.put(messages.Message{Topic: "T"})
	below := r.w.log.End()
	r.w.next[key] = 0
	want := []messages.DispatchRequest{r.w.put(messages.Message{Topic: "T"}), r.w.put(messages.Message{Topic: "T"})}
	r.all()
	require.Equal(t, messages.QueueGap, receive(t, r.problems).Kind)
	require.Equal(t, messages.QueueRebuilt, receive(t, r.problems).Kind)
	r.verify(r.table, want)
	r.destroyTopic("T", below)
	r.verify(r.table, want)
}

func TestStopAnswersEverything(t *testing.T) {
	r := newRig(t, 1<<20)
	r.cfg.MaxPending = 1
	stalled, release := make(chan struct{}, 100), make(chan struct{})
	r.disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync {
			stalled <- struct{}{}
			<-release
		}
		return nil
	})
	r.w.fill(5 * maxRequests)
	r.start()
	receive(t, stalled) // it writes because too much waits; the other batches are held
	var flushes []*messages.Answer[int64]
	for range 3 {
		flushes = append(flushes, messages.NewAnswer[int64]())
		r.builders[0].Send(messages.FlushQueues{Answer: flushes[len(flushes)-1]})
	}
	upTo := messages.NewAnswer[messages.PhysicalOffset]()
	r.dispatcher.Send(messages.AwaitDispatched{UpTo: r.w.log.End(), Answer: upTo})
	r.stop(r.builders[0])
	for _, f := range flushes {
		_, err := wait(t, f)
		require.ErrorIs(t, err, messages.ErrClosed)
	}
	_, err := wait(t, upTo)
	require.ErrorIs(t, err, messages.ErrClosed)
	late := messages.NewAnswer[int64]()
	r.box.PostUserMessage(messages.FlushQueues{Answer: late})
	_, err = wait(t, late)
	require.ErrorIs(t, err, messages.ErrClosed)
	close(release)
}

// Weakness W16: a full disk stops nothing but the writing, until too much waits for it.
func TestAFullDiskHoldsBatchesBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, 1<<20)
		r.cfg.MaxPending = 2 * maxRequests
		r.w.fill(5 * maxRequests)
		var full atomic.Bool
		full.Store(true)
		var attempts atomic.Int64
		r.disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindCreate && full.Load() {
				attempts.Add(1)
				return errors.New("no room")
			}
			return nil
		})
		r.start()
		synctest.Wait()
		to, err := awaitDispatched(t, r.dispatcher, 0)
		require.NoError(t, err)
		require.Equal(t, r.w.want[2*maxRequests].PhysicalOffset, to)
		_, err = flushQueues(t, r.builders[0])
		require.ErrorContains(t, err, "no room")
		before := attempts.Load()
		<-time.After(5 * time.Minute)
		tries := (attempts.Load() - before) / 12
		require.GreaterOrEqual(t, tries, int64(9))
		require.LessOrEqual(t, tries, int64(18), "the pauses grow")
		require.Empty(t, r.told.ch)
		require.Empty(t, r.failed)
		full.Store(false)
		<-time.After(maxRetryPause + 3*time.Second)
		r.all()
		r.verify(r.table, r.w.want)
	})
}

func TestAFailedSyncFailsTheBuilder(t *testing.T) {
	r := newRig(t, 1<<20)
	broken := errors.New("broken")
	r.disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindDataSync {
			return broken
		}
		return nil
	})
	r.w.fill(100)
	r.start().all()
	_, err := flushQueues(t, r.builders[0])
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, receive(t, r.failed).Cause, broken)
	r.w.fill(1)
	r.bell.Ring()
	_, err = awaitDispatched(t, r.dispatcher, r.w.log.End())
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, err, messages.ErrFailed)
	require.Empty(t, r.told.ch)
	require.Empty(t, r.failed)
}

func TestFlushingOnTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRig(t, 1<<20)
		for range 500 { // more than two pages of units
			r.w.put(messages.Message{Topic: "Busy"})
		}
		r.w.put(messages.Message{Topic: "Quiet"})
		r.start().all()
		busy, quiet := r.table.Lookup(messages.QueueKey{Topic: "Busy"}), r.table.Lookup(messages.QueueKey{Topic: "Quiet"})
		<-time.After(1100 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, busy.Pending())
		require.Equal(t, int64(1), quiet.Pending())
		require.Empty(t, r.told.ch, "one queue is not durable")
		<-time.After(time.Minute)
		synctest.Wait()
		require.Zero(t, quiet.Pending())
		require.Equal(t, messages.QueuesFlushed{StoreTimestampMs: r.w.storeMs}, <-r.told.ch)

		// A record that takes no unit moves the checkpoint on too.
		r.w.put(messages.Message{Topic: "Tx", SysFlag: messages.SysFlagTransactionPrepared})
		r.all()
		<-time.After(1100 * time.Millisecond)
		require.Equal(t, messages.QueuesFlushed{StoreTimestampMs: r.w.storeMs}, <-r.told.ch)

		// Two minutes later the tails have left the memory.
		<-time.After(2 * time.Minute)
		synctest.Wait()
		var reads atomic.Int64
		r.disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindRead {
				reads.Add(1)
			}
			return nil
		})
		r.verify(r.table, r.w.want)
		require.Positive(t, reads.Load(), "read from the files again")
		require.Empty(t, r.told.ch)
		r.w.put(messages.Message{Topic: "Quiet"})
		r.all()
		r.verify(r.table, r.w.want)
	})
}

// Weakness W18: what the flusher is told survives a power cut.
func TestThePowerCutKeepsWhatTheFlusherWasTold(t *testing.T) {
	for seed := range int64(30) {
		r := newRig(t, 4096)
		r.cfg.Interval, r.cfg.ThoroughInterval = time.Millisecond, 3*time.Millisecond
		r.start()
		var ms int64
		for ms == 0 || r.w.storeMs-ms > 200 {
			r.w.fill(20)
			r.bell.Ring()
			select {
			case m := <-r.told.ch:
				ms = m.(messages.QueuesFlushed).StoreTimestampMs
			default:
				r.all()
			}
			if len(r.w.want) > 20_000 {
				require.Positive(t, ms)
				break
			}
		}
		table := openTable(t, r.disk.Crash(uint64(seed)))
		for _, w := range r.w.want {
			if w.StoreTimestampMs <= ms {
				var u [1]consumequeue.Unit
				n, err := table.Lookup(w.Queue).Read(w.QueueOffset, u[:])
				require.NoError(t, err, "seed %d: told %d, stored %d", seed, ms, w.StoreTimestampMs)
				require.Equal(t, 1, n)
				require.Equal(t, w.PhysicalOffset, u[0].PhysicalOffset)
			}
		}
	}
}
