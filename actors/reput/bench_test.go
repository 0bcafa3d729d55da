package reput

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/testkit/memfs"
)

// answering is a builder that does nothing but answer.
type answering struct{}

func (answering) Receive(ctx actor.Context) {
	if b, ok := ctx.Message().(*mailbox.Batch); ok {
		for m := b.Next(); m != nil; m = b.Next() {
			b.Handled()
			m.(*messages.Delivery).Built(nil)
		}
	}
}

const benchRecords = 1 << 18

func benchLog(tb testing.TB, records, queues int) *logWriter {
	w := newLog(tb, 64<<20)
	for i := range records {
		w.put(messages.Message{
			Topic: fmt.Sprintf("BenchTopic%d", i%queues/4), QueueID: int32(i % 4), Body: make([]byte, 64),
			Properties: "KEYS\x01key-of-it\x02UNIQ_KEY\x017F000001C0DE18B4AAC2000000000001\x02WAIT\x01true\x02TAGS\x01TagA",
		})
	}
	w.want = nil
	return w
}

// dispatchOnce dispatches the whole log into fresh queues and returns the time, and the allocations, of its second half.
func dispatchOnce(tb testing.TB, n *node, w *logWriter, queues bool) (time.Duration, uint64) {
	half := w.log.End() / 2
	var limit atomic.Int64
	limit.Store(int64(half))
	var box *mailbox.Combining
	var builder actors.Peer
	if queues {
		table, err := consumequeue.OpenTable(memfs.New(), "queues", consumequeue.Options{})
		require.NoError(tb, err)
		builder, box = n.spawnBox(NewQueueBuilder(QueueConfig{Table: table, Interval: time.Hour}))
	} else {
		builder, box = n.spawnBox(answering{})
	}
	bell := n.bell()
	p := n.spawn(New(Config{
		Log: w.log, Bell: bell, Builders: []Builder{{Mailbox: box}},
		Limit: func() messages.PhysicalOffset { return messages.PhysicalOffset(limit.Load()) },
	}))
	_, err := awaitDispatched(tb, p, half-1000)
	require.NoError(tb, err)
	answer := messages.NewAnswer[messages.PhysicalOffset]()
	var before, after runtime.MemStats
	limit.Store(int64(w.log.End()))
	runtime.ReadMemStats(&before)
	began := time.Now()
	bell.Ring()
	p.Send(messages.AwaitDispatched{UpTo: w.log.End(), Answer: answer})
	_, err = wait(tb, answer)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	require.NoError(tb, err)
	n.stop(p)
	n.stop(builder)
	return took, after.Mallocs - before.Mallocs
}

// BenchmarkDispatch reads a prepared log: the dispatcher alone, and with the consume queues. Records of about 240 bytes
// with keys; ns/msg and allocs/msg of the second half.
func BenchmarkDispatch(b *testing.B) {
	for _, queues := range []int{4, 1024, 40_000} {
		w := benchLog(b, benchRecords, queues)
		for _, build := range []bool{false, true} {
			b.Run(fmt.Sprintf("queues=%d/build=%v", queues, build), func(b *testing.B) {
				n := newNode(b)
				var took time.Duration
				var mallocs uint64
				for b.Loop() {
					d, m := dispatchOnce(b, n, w, build)
					took += d
					mallocs += m
				}
				messages := float64(b.N * benchRecords / 2)
				b.ReportMetric(float64(took.Nanoseconds())/messages, "ns/msg")
				b.ReportMetric(messages/took.Seconds(), "msg/s")
				b.ReportMetric(float64(mallocs)/messages, "allocs/msg")
			})
		}
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	n, w := newNode(t), benchLog(t, 1<<16, 16)
	for _, build := range []bool{false, true} {
		_, mallocs := dispatchOnce(t, n, w, build)
		// What remains is per batch or per chunk of 2048 units, and what the runtime does beside.
		require.Less(t, float64(mallocs)/(1<<15), 0.02, "build %v", build)
	}
}

// TestQuietLogDoesNotAllocate: also one message at a time the dispatcher and the builder allocate nothing.
func TestQuietLogDoesNotAllocate(t *testing.T) {
	n, w := newNode(t), benchLog(t, 4096, 4)
	table, err := consumequeue.OpenTable(memfs.New(), "queues", consumequeue.Options{})
	require.NoError(t, err)
	_, box := n.spawnBox(NewQueueBuilder(QueueConfig{Table: table, Interval: time.Hour, ThoroughInterval: time.Hour}))
	bell := n.bell()
	offsets := make([]messages.PhysicalOffset, 0, 4096)
	c := cursor{log: w.log}
	for c.next(w.log.End()) {
		offsets = append(offsets, c.pos)
	}
	c.close()
	var limit atomic.Int64
	d := New(Config{
		Log: w.log, Bell: bell, Builders: []Builder{{Mailbox: box}},
		Limit: func() messages.PhysicalOffset { return messages.PhysicalOffset(limit.Load()) },
	})
	n.spawn(d)
	next := func() {
		limit.Store(int64(offsets[0]))
		offsets = offsets[1:]
		bell.Ring()
		for d.DispatchedTo.Load() != limit.Load() {
			runtime.Gosched()
		}
	}
	for range 1000 {
		next()
	}
	require.Less(t, testing.AllocsPerRun(1000, next), 0.5)
}
