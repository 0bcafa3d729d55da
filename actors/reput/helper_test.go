package reput

import (
	"context"
	"fmt"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const logDir = "store/commitlog"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logWriter writes a log as the writer does, without its actor.
type logWriter struct {
	t       testing.TB
	disk    vfs.Disk
	dir     string
	log     *commitlog.Log
	seg     *segments.Segment
	pos     int64
	storeMs int64
	next    map[messages.QueueKey]messages.QueueOffset
	buf     []byte
	want    []messages.DispatchRequest // what dispatching should bring
}

func newLog(t testing.TB, segmentBytes int64) *logWriter {
	t.Helper()
	return newLogOn(t, memfs.New(), logDir, segmentBytes)
}

func newLogOn(t testing.TB, disk vfs.Disk, dir string, segmentBytes int64) *logWriter {
	t.Helper()
	require.NoError(t, disk.MkdirAll(dir))
	log, _, err := commitlog.Open(disk, dir, segmentBytes)
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	w := &logWriter{t: t, disk: disk, dir: dir, log: log, storeMs: 1_600_000_000_000}
	w.next = map[messages.QueueKey]messages.QueueOffset{}
	return w
}

// put appends a message and publishes it.
func (w *logWriter) put(m messages.Message) messages.DispatchRequest {
	w.t.Helper()
	r := w.place(m)
	w.log.Publish(w.seg, w.pos, w.storeMs)
	w.want = append(w.want, r)
	return r
}

func (w *logWriter) place(m messages.Message) messages.DispatchRequest {
	w.t.Helper()
	var err error
	w.buf, err = record.Append(w.buf[:0], &m)
	require.NoError(w.t, err)
	if w.seg == nil || w.pos+int64(len(w.buf))+record.BlankBytes > w.seg.Size() {
		w.roll()
	}
	w.storeMs++
	key := m.Queue()
	r := messages.DispatchRequest{
		Queue: key, PhysicalOffset: messages.PhysicalOffset(w.seg.Start() + w.pos), SizeBytes: int32(len(w.buf)),
		StoreTimestampMs: w.storeMs, SysFlag: m.SysFlag, PreparedTransactionOffset: m.PreparedTransactionOffset,
	}
	if messages.TakesQueueOffset(m.SysFlag) {
		r.QueueOffset = w.next[key]
		w.next[key]++
	}
	record.SetPlace(w.buf, r.QueueOffset, r.PhysicalOffset, w.storeMs)
	copy(w.seg.Data()[w.pos:], w.buf)
	w.pos += int64(len(w.buf))
	if tags, ok := m.Properties.Get(messages.PropertyTags); ok {
		r.TagsCode = int64(messages.JavaHash(tags))
	}
	if keys, ok := m.Properties.Get(messages.PropertyKeys); ok {
		r.Keys = []byte(keys)
	}
	if uniq, ok := m.Properties.Get(messages.PropertyUniqKey); ok {
		r.UniqKey = []byte(uniq)
	}
	return r
}

// roll closes the segment with a blank and begins the next one.
func (w *logWriter) roll() {
	w.t.Helper()
	start := int64(0)
	if w.seg != nil {
		record.AppendBlank(w.seg.Data()[w.pos:w.pos], int32(w.seg.Size()-w.pos))
		w.log.Publish(w.seg, w.seg.Size(), w.storeMs)
		start = w.seg.Start() + w.seg.Size()
	}
	seg, err := segments.Create(w.disk, path.Join(w.dir, segments.Name(start)), start, w.log.SegmentBytes())
	require.NoError(w.t, err)
	w.log.Add(seg)
	w.seg, w.pos = seg, 0
}

// fill puts n messages into the queues 0 to 3 of some topics.
func (w *logWriter) fill(n int) {
	w.t.Helper()
	for i := range n {
		w.put(messages.Message{
			Topic: fmt.Sprintf("Topic%d", i%3), QueueID: int32(i % 4), Body: []byte(fmt.Sprintf("body %d", i)),
			Properties: messages.PropertiesOf(map[string]string{
				messages.PropertyTags: fmt.Sprintf("tag%d", i%5), messages.PropertyKeys: fmt.Sprintf("k%d k%d", i, i+1),
				messages.PropertyUniqKey: fmt.Sprintf("u%d", i),
			}),
		})
	}
}

// bytes are the log's from an offset on.
func (w *logWriter) bytes(off messages.PhysicalOffset) []byte {
	s := w.log.View().Find(int64(off))
	require.NotNil(w.t, s)
	return s.Data()[int64(off)-s.Start():]
}

// node is an actor system with the actors of one test.
type node struct {
	t      testing.TB
	system *actor.ActorSystem
	n      atomic.Int64
}

func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{t: t, system: actor.NewActorSystem(fixture.Quiet, actor.WithDeadLetterThrottleInterval(time.Millisecond))}
	t.Cleanup(n.system.Shutdown)
	return n
}

// spawn starts an actor behind a mailbox that runs it on a goroutine of its own; it is stopped at the end of the test.
func (n *node) spawn(a actor.Actor) actors.Peer {
	n.t.Helper()
	p, _ := n.spawnBox(a)
	return p
}

func (n *node) spawnBox(a actor.Actor) (actors.Peer, *mailbox.Combining) {
	n.t.Helper()
	mb := mailbox.New(mailbox.Options{})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(mb.Producer()))
	pid, err := n.system.Root.SpawnNamed(props, fmt.Sprintf("actor-%d", n.n.Add(1)))
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = n.system.Root.StopFuture(pid).Wait() })
	return actors.NewPeer(n.system.Root, pid), mb
}

// stop stops an actor and waits until it has stopped.
func (n *node) stop(p actors.Peer) {
	n.t.Helper()
	require.NoError(n.t, n.system.Root.StopFuture(p.PID()).Wait())
}

// bell rings for an actor that is spawned next.
func (n *node) bell() *actors.Bell {
	pid := n.system.NewLocalPID(fmt.Sprintf("actor-%d", n.n.Load()+1))
	return actors.NewBell(actors.NewPeer(n.system.Root, pid), messages.Announce(messages.LogGrown{}))
}

// inBubble runs a test on a clock of its own. The library's log throttle, if it has been used, gets time to end.
func inBubble(t *testing.T, test func(t *testing.T)) {
	fixture.Bubble(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Second) })
		test(t)
	})
}

func wait[T any](t testing.TB, a *messages.Answer[T]) (T, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	v, err := a.Wait(ctx)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "no answer")
	return v, err
}

func awaitDispatched(t testing.TB, p actors.Peer, upTo messages.PhysicalOffset) (messages.PhysicalOffset, error) {
	t.Helper()
	answer := messages.NewAnswer[messages.PhysicalOffset]()
	p.Send(messages.AwaitDispatched{UpTo: upTo, Answer: answer})
	return wait(t, answer)
}

func flushQueues(t testing.TB, p actors.Peer) (int64, error) {
	t.Helper()
	answer := messages.NewAnswer[int64]()
	p.Send(messages.FlushQueues{Answer: answer})
	return wait(t, answer)
}

// collector is a builder of a user: it keeps what it gets. While it is held, it does not answer.
type collector struct {
	requests []messages.DispatchRequest
	kept     []*messages.Delivery
	hold     bool
	err      error

	got chan int // a batch has come: its records
}

func newCollector() *collector { return &collector{got: make(chan int, 1024)} }

type (
	holdDeliveries struct{}
	letGo          struct{ n int }
	failNow        struct{ err error }
	collected      struct {
		answer *messages.Answer[[]messages.DispatchRequest]
	}
)

func (c *collector) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		for d := m.Next(); d != nil; d = m.Next() {
			m.Handled()
			c.take(d.(*messages.Delivery))
		}
	case holdDeliveries:
		c.hold = true
	case letGo:
		for ; m.n > 0 && len(c.kept) > 0; m.n-- {
			c.kept[0].Built(c.err)
			c.kept = c.kept[1:]
		}
		c.hold = m.n == 0
	case failNow:
		c.err = m.err
	case collected:
		m.answer.Complete(c.requests, nil)
	}
}

func (c *collector) take(d *messages.Delivery) {
	for _, r := range d.Batch.Requests {
		r.Keys, r.UniqKey = append([]byte(nil), r.Keys...), append([]byte(nil), r.UniqKey...)
		c.requests = append(c.requests, r)
	}
	n := len(d.Batch.Requests)
	if c.hold {
		c.kept = append(c.kept, d)
	} else {
		d.Built(c.err)
	}
	c.got <- n
}

func collectedBy(t testing.TB, p actors.Peer) []messages.DispatchRequest {
	t.Helper()
	answer := messages.NewAnswer[[]messages.DispatchRequest]()
	p.Send(collected{answer})
	got, err := wait(t, answer)
	require.NoError(t, err)
	return got
}

// sink sends everything on to a channel.
type sink struct{ ch chan any }

func newSink() *sink { return &sink{ch: make(chan any, 1024)} }

func (s *sink) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started, *actor.Stopping, *actor.Stopped:
	default:
		s.ch <- m
	}
}

// receive takes the next value, or ends the test when none comes.
func receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

func openTable(t testing.TB, disk vfs.Disk) *consumequeue.Table {
	t.Helper()
	table, err := consumequeue.OpenTable(disk, "store/consumequeue", consumequeue.Options{FileBytes: 100 * consumequeue.UnitBytes})
	require.NoError(t, err)
	t.Cleanup(func() { _ = table.Close() })
	return table
}
