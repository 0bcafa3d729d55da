package allocator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/allocator"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	stepBytes   = 256 << 10
	windowBytes = 8 * stepBytes
)

// rig is an allocator and its writer's side, which has the first segment with its first window.
type rig struct {
	t     *testing.T
	peer  actors.Peer
	self  actors.Peer
	ready chan actors.WindowReady
	seg   *segments.Segment
	gone  bool
}

func newRig(t *testing.T, zeros bool) *rig {
	system := actor.NewActorSystem(fixture.Quiet, actor.WithDeadLetterThrottleInterval(time.Millisecond))
	r := &rig{t: t, ready: make(chan actors.WindowReady, 10)}
	made := make(chan *segments.Segment, 1)
	self := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case actors.SegmentReady:
			made <- m.Segment
		case actors.WindowReady:
			r.ready <- m
		}
	}))
	r.self = actors.NewPeer(system.Root, self)
	a := allocator.New(allocator.Config{
		Disk: memfs.New(), Dir: "store/commitlog", PrepareDir: "store/prepare", SegmentBytes: 4 * windowBytes, WindowBytes: windowBytes,
		WriteZeros: zeros, Log: zerolog.Nop(),
	})
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(mailbox.New(mailbox.Options{}).Producer())))
	r.peer = actors.NewPeer(system.Root, pid)
	r.peer.Send(actors.SegmentWanted{ReplyTo: r.self})
	r.seg = <-made
	t.Cleanup(func() {
		require.NoError(t, system.Root.StopFuture(pid).Wait())
		require.NoError(t, system.Root.StopFuture(self).Wait())
		system.Shutdown()
		r.retire()
	})
	synctest.Wait()
	require.EqualValues(t, windowBytes, r.seg.Prepared())
	r.want(windowBytes / 2) // at once: nobody knows yet how long a window lasts
	r.isReady(2 * windowBytes)
	<-time.After(100 * time.Millisecond)
	return r
}

func (r *rig) retire() {
	if !r.gone {
		r.gone = true
		r.seg.Retire(nil)
	}
}

// want asks for the next window, as a writer that has used so much of what there is.
func (r *rig) want(used int64) {
	r.seg.SetWrote(used)
	r.peer.Send(actors.WindowWanted{ReplyTo: r.self, Segment: r.seg, From: r.seg.Prepared()})
	synctest.Wait()
}

// isReady requires that the window is told to be ready up to end, and nothing else.
func (r *rig) isReady(end int64) {
	require.Len(r.t, r.ready, 1)
	require.Equal(r.t, actors.WindowReady{Segment: r.seg, End: end}, <-r.ready)
	require.Equal(r.t, end, r.seg.Prepared())
}

func TestAWindowIsPreparedWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false)
		r.want(windowBytes + windowBytes/2)
		for i := range int64(7) {
			require.Equal(t, 2*windowBytes+(i+1)*stepBytes, r.seg.Prepared())
			require.Empty(t, r.ready)
			<-time.After(time.Millisecond)
			synctest.Wait()
		}
		r.isReady(3 * windowBytes)
	})
}

func TestAWriterThatComesNearIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false)
		r.want(windowBytes + windowBytes/2)
		require.EqualValues(t, 2*windowBytes+stepBytes, r.seg.Prepared())
		r.seg.SetWrote(2 * windowBytes)
		<-time.After(time.Millisecond)
		synctest.Wait()
		r.isReady(3 * windowBytes)
		r.want(2*windowBytes + windowBytes/2) // soon after the one before
		r.isReady(4 * windowBytes)
	})
}

// So slow a writer has few messages that meet it.
func TestAWindowThatIsSeldomWantedIsPreparedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false)
		<-time.After(200 * time.Millisecond)
		r.want(windowBytes + windowBytes/2)
		r.isReady(3 * windowBytes)
	})
}

// With SYNC_FLUSH the zeros of a window go to the disk together.
func TestAWindowThatGoesToTheDiskIsPreparedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true)
		r.want(windowBytes + windowBytes/2)
		r.isReady(3 * windowBytes)
	})
}

func TestASegmentThatIsGoneIsNotPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false)
		r.want(windowBytes + windowBytes/2)
		r.retire()
		<-time.After(time.Millisecond)
		synctest.Wait()
		require.Equal(t, actors.WindowReady{Segment: r.seg, End: r.seg.Size()}, <-r.ready)
	})
}
