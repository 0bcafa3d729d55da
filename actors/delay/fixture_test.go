package delay_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/delay"
	"github.com/actormq/actormq/actors/flusher"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	segmentBytes = 32 << 20
	offsetsPath  = "store/config/delayOffset.json"
)

// rig is a scheduler on a log and queues that the test writes itself, so that it can decide what becomes of each put.
type rig struct {
	t      *testing.T
	disk   *memfs.Disk
	log    *commitlog.Log
	seg    *segments.Segment
	pos    int64
	queues *consumequeue.Table
	levels messages.DelayLevels

	system    *actor.ActorSystem
	scheduler *delay.Scheduler
	peer      actors.Peer
	flushing  actors.Peer
	lines     fixture.Said // the log that the actors write
}

func newRig(t *testing.T, levels string, change func(*delay.Config)) *rig {
	t.Helper()
	r := &rig{t: t, disk: memfs.New()}
	var err error
	r.levels, err = messages.ParseDelayLevels(levels)
	require.NoError(t, err)
	require.NoError(t, r.disk.MkdirAll("store/commitlog"))
	r.log, _, err = commitlog.Open(r.disk, "store/commitlog", segmentBytes)
	require.NoError(t, err)
	r.seg, err = segments.Create(r.disk, "store/commitlog/"+segments.Name(0), 0, segmentBytes)
	require.NoError(t, err)
	r.log.Add(r.seg)
	r.queues, err = consumequeue.OpenTable(r.disk, "store/consumequeue", consumequeue.Options{FileBytes: 6_000_000})
	require.NoError(t, err)
	r.system = actor.NewActorSystem(fixture.Quiet, actor.WithDeadLetterThrottleInterval(time.Millisecond))
	r.flushing = r.spawn("flusher", flusher.New(flusher.Config{
		Disk: r.disk, Log: r.log, CheckpointPath: "store/checkpoint", Logger: zerolog.Nop(),
	}))
	cfg := delay.Config{
		Levels: r.levels, Table: r.queues, Log: r.log, Flusher: r.flushing, Disk: r.disk, Path: offsetsPath,
		Logger: zerolog.New(&r.lines),
	}
	change(&cfg)
	r.scheduler = delay.New(cfg)
	r.peer = r.spawn("scheduler", r.scheduler)
	return r
}

func (r *rig) spawn(name string, a actor.Actor) actors.Peer {
	r.t.Helper()
	mb := mailbox.New(mailbox.Options{OnPanic: func(reason any, _ []byte) { panic(reason) }})
	pid, err := r.system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(mb.Producer())), name)
	require.NoError(r.t, err)
	return actors.NewPeer(r.system.Root, pid)
}

// turn switches delivery on or off and waits until it is.
func (r *rig) turn(on bool) error {
	answer := messages.NewAnswer[struct{}]()
	r.peer.Send(messages.DeliverDelayed{On: on, Answer: answer})
	_, err := answer.Wait(r.t.Context())
	return err
}

// stop stops an actor, once.
func (r *rig) stop(p *actors.Peer) {
	r.t.Helper()
	if pid := p.PID(); pid != nil {
		require.NoError(r.t, r.system.Root.StopFuture(pid).Wait())
		*p = actors.Peer{}
	}
}

func (r *rig) close() {
	r.t.Helper()
	r.stop(&r.peer)
	r.stop(&r.flushing)
	r.system.Shutdown()
	require.NoError(r.t, r.queues.Close())
	require.NoError(r.t, r.log.Close())
}

// add stores a delayed message of now, and tells the scheduler if it wants to know.
func (r *rig) add(level int, body string) consumequeue.Unit {
	r.t.Helper()
	m, err := r.levels.Postponed(&messages.Message{
		Topic: "T", Body: []byte(body), Properties: messages.Properties("").With(messages.PropertyDelay, strconv.Itoa(level)),
	})
	require.NoError(r.t, err)
	u := r.write(m, time.Now().UnixMilli())
	r.announce(u, m.Queue())
	return u
}

func (r *rig) write(m *messages.Message, storeMs int64) consumequeue.Unit {
	r.t.Helper()
	b, err := record.Append(nil, m)
	require.NoError(r.t, err)
	q := r.queues.Lookup(m.Queue())
	at := messages.QueueOffset(0)
	if q != nil {
		at = q.Max()
	}
	u := consumequeue.Unit{PhysicalOffset: messages.PhysicalOffset(r.pos), Size: int32(len(b))}
	record.SetPlace(b, at, u.PhysicalOffset, storeMs)
	copy(r.seg.Data()[r.pos:], b)
	rec, _, err := record.Parse(b, true)
	require.NoError(r.t, err)
	u.TagsCode = rec.TagsCode(r.levels.Millis)
	r.pos += int64(len(b))
	r.log.Publish(r.seg, r.pos, storeMs)
	return u
}

func (r *rig) announce(u consumequeue.Unit, key messages.QueueKey) {
	r.t.Helper()
	q, err := r.queues.Create(key)
	require.NoError(r.t, err)
	at := q.Max()
	_, err = q.Append(u, at)
	require.NoError(r.t, err)
	if r.scheduler.Wants(key) {
		r.peer.Send(messages.MessagesArrived{Arrivals: []messages.Arrival{{Queue: key, QueueOffset: at, TagsCode: u.TagsCode}}})
	}
}

func (r *rig) saved() map[int]int64 {
	r.t.Helper()
	var file metadata.DelayOffsets
	_, err := metadata.Load(r.disk, offsetsPath, &file)
	require.NoError(r.t, err)
	return file.Offsets
}

// outlet takes puts and answers them as the test says.
type outlet struct {
	mu     sync.Mutex
	bodies []string // stored, in order
	flying int
	most   int
	answer func(body string, done func(messages.PutResult, error)) // nil: stored at once
}

func (o *outlet) put(m *messages.Message, _ time.Time, done func(messages.PutResult, error)) {
	o.mu.Lock()
	o.flying++
	o.most = max(o.most, o.flying)
	answer, body := o.answer, string(m.Body)
	o.mu.Unlock()
	settled := func(r messages.PutResult, err error) {
		o.mu.Lock()
		o.flying--
		if r.Status.Stored() {
			o.bodies = append(o.bodies, body)
		}
		o.mu.Unlock()
		done(r, err)
	}
	if answer == nil {
		settled(messages.PutResult{}, nil)
		return
	}
	answer(body, settled)
}

func (o *outlet) stored() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.bodies...)
}

func (o *outlet) answers(fn func(body string, done func(messages.PutResult, error))) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = fn
}

func numbers(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}
