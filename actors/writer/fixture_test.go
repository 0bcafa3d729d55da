package writer_test

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/allocator"
	"github.com/actormq/actormq/actors/flusher"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/actors/writer"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const segmentBytes = 16 << 10

// rig is a writer with its allocator and its flusher, on a simulated disk.
type rig struct {
	t      *testing.T
	disk   *memfs.Disk
	log    *commitlog.Log
	system *actor.ActorSystem
	port   *mailbox.Combining
	pids   map[string]*actor.PID

	flushed *flusher.Actor
	once    sync.Once
	telling sync.WaitGroup
	failure chan struct{} // closed at the first Failed
}

type rigOptions struct {
	disk       *memfs.Disk
	sync       bool
	crowded    func() bool
	rebuild    func() (map[messages.QueueKey]messages.QueueOffset, error)
	window     int64
	segment    int64 // bytes; 0: segmentBytes
	retryPause time.Duration
	nowMs      func() int64
	readable   *actors.Bell
	awaited    func(messages.QueueKey) bool
	replicate  func(*messages.PutMessage)
	aloneToo   func(*messages.PutMessage) bool // ReplicateAlone
	sendAlone  func()
	replicas   *actors.Bell
}

func newRig(t *testing.T, opt rigOptions) *rig {
	t.Helper()
	if opt.disk == nil {
		opt.disk = memfs.New()
	}
	if opt.segment == 0 {
		opt.segment = segmentBytes
	}
	r := &rig{t: t, disk: opt.disk, failure: make(chan struct{}), pids: map[string]*actor.PID{}}
	log, foreign, err := commitlog.Open(r.disk, "store/commitlog", opt.segment)
	require.NoError(t, err)
	require.Empty(t, foreign)
	require.NoError(t, r.disk.MkdirAll("store"))
	r.log = log
	// The goroutine of the dead letters outlives a test by so much.
	r.system = actor.NewActorSystem(fixture.Quiet, actor.WithDeadLetterThrottleInterval(time.Millisecond))
	quiet := zerolog.New(io.Discard)

	alloc := r.spawn("allocator", allocator.New(allocator.Config{
		Disk: r.disk, Dir: "store/commitlog", PrepareDir: "store/prepare", SegmentBytes: opt.segment,
		WindowBytes: opt.window, RetryPause: opt.retryPause, Log: quiet,
	}), mailbox.New(mailbox.Options{}))
	flushPort := mailbox.New(mailbox.Options{InlineBatches: 4})
	r.flushed = flusher.New(flusher.Config{
		Mailbox: flushPort, Disk: r.disk, Log: log, CheckpointPath: "store/checkpoint", OnFailed: r.onFailed, Logger: quiet,
	})
	r.spawn("flusher", r.flushed, flushPort)
	var appended []*actors.Bell
	if opt.replicas != nil {
		appended = append(appended, opt.replicas)
	}
	w := writer.New(writer.Config{
		Replicate: opt.replicate, ReplicateAlone: opt.aloneToo, SendAlone: opt.sendAlone, Replicas: opt.replicas, Appended: appended,
		Log: log, SyncFlush: opt.sync, ByWrite: opt.sync, Crowded: opt.crowded, Flusher: flushPort, Allocator: alloc,
		OnFailed: r.onFailed,
		Rebuild:  opt.rebuild,
		Readable: opt.readable, Awaited: opt.awaited,
		Logger: quiet, WindowBytes: opt.window, NowMs: opt.nowMs,
	})
	r.port = mailbox.New(mailbox.Options{InlineBatches: 4, Receiver: w, OnPanic: w.Panicked})
	r.spawn("writer", w, r.port)
	t.Cleanup(r.stop)
	return r
}

func (r *rig) spawn(name string, a actor.Actor, mb *mailbox.Combining) actors.Peer {
	r.t.Helper()
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(mb.Producer()))
	pid, err := r.system.Root.SpawnNamed(props, name)
	require.NoError(r.t, err)
	r.pids[name] = pid
	return actors.NewPeer(r.system.Root, pid)
}

// stop ends the allocator first, so that no segment comes to a writer that has gone; then the writer, and then the flusher,
// to which it hands on.
func (r *rig) stop() {
	r.telling.Wait()
	for _, name := range []string{"allocator", "writer", "flusher"} {
		if pid := r.pids[name]; pid != nil {
			require.NoError(r.t, r.system.Root.StopFuture(pid).Wait())
		}
	}
	if len(r.pids) == 0 {
		return
	}
	r.system.Shutdown()
	require.NoError(r.t, r.log.Close())
}

func (r *rig) onFailed(m messages.Failed) {
	// What system does: the first failure counts, and every storage actor is told. The writer is told on this goroutine.
	r.once.Do(func() {
		for _, pid := range r.pids {
			r.telling.Go(func() { r.system.Root.Send(pid, m) })
		}
		close(r.failure)
	})
}

// message is an encoded put for a queue of topic T.
func (r *rig) message(queue int32, bodyBytes int) *messages.PutMessage {
	r.t.Helper()
	m := messages.Message{Topic: "T", QueueID: queue, Body: make([]byte, bodyBytes)}
	p := messages.NewPutMessage()
	var err error
	p.Records, err = record.Append(nil, &m)
	require.NoError(r.t, err)
	p.Count, p.Queue, p.WaitStored = 1, m.Queue(), true
	return p
}

func (r *rig) put(p *messages.PutMessage) *messages.PutMessage {
	if err := r.port.Post(p.MailboxLink()); err != nil {
		panic(err)
	}
	p.Wait()
	return p
}

// records reads the whole log.
func (r *rig) records() []messages.StoredMessage {
	r.t.Helper()
	var all []messages.StoredMessage
	for off := max(r.log.Min(), 0); off < r.log.End(); {
		s, err := r.log.ReadFrom(off)
		require.NoError(r.t, err)
		rec, kind, err := record.Parse(s.Bytes, true)
		require.NoError(r.t, err, "offset %d", off)
		if kind == record.KindBlank {
			off = r.log.SegmentStart(off) + messages.PhysicalOffset(r.log.SegmentBytes())
		} else {
			require.Equal(r.t, off, rec.PhysicalOffset)
			all = append(all, rec.Stored())
			off += messages.PhysicalOffset(rec.Size)
		}
		s.Release()
	}
	return all
}

var errDisk = errors.New("the disk says no")

// failing injects an error into every operation of a kind on a commit-log file.
func failing(kind memfs.Kind) func(memfs.Op) error {
	return func(op memfs.Op) error {
		if op.Kind == kind {
			return fmt.Errorf("%s: %w", op.Name, errDisk)
		}
		return nil
	}
}
