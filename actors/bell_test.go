package actors_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
)

// TestWhatNobodyWaitsForIsAnnouncedSoon: by a timer, unless somebody begins to wait.
func TestWhatNobodyWaitsForIsAnnouncedSoon(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		sys, got := actor.NewActorSystem(), atomic.Int64{}
		defer sys.Shutdown()
		pid := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(messages.LogGrown); ok {
				got.Add(1)
			}
		}))
		bell := actors.NewBell(actors.NewPeer(sys.Root, pid), messages.LogGrown{})
		answer := func() { bell.Taken(); bell.Heard() }
		wait := func() { <-time.After(time.Millisecond) }
		for _, step := range []struct {
			do   func()
			want int64
		}{
			{bell.RingSoon, 0}, {bell.RingSoon, 0}, {wait, 1}, {bell.RingSoon, 1}, {wait, 1}, {answer, 1}, {wait, 1}, // once for all
			{bell.RingSoon, 1}, {bell.Urge, 2}, {bell.Urge, 2}, {wait, 2}, {answer, 2}, // somebody begins to wait
			{bell.RingSoon, 2}, {bell.Ring, 3}, {wait, 3}, {answer, 3}, {bell.Urge, 3}, // for the next one somebody waits
			{bell.RingSoon, 3}, {wait, 4}, {answer, 4},
			{bell.RingSoon, 4}, {bell.Mute, 4}, {wait, 4}, // nobody hears it any more
		} {
			step.do()
			synctest.Wait()
			require.Equal(t, step.want, got.Load())
		}
	})
}

// TestOneAnnouncementIsOnItsWay: it has one link, which must not be in a mailbox twice; who looks for work for another reason, while it
// is on its way, does not make the bell ring again.
func TestOneAnnouncementIsOnItsWay(t *testing.T) {
	sys, got := actor.NewActorSystem(), 0
	defer sys.Shutdown()
	port := mailbox.New(mailbox.Options{InlineBatches: 1 << 20}) // who rings runs the actor
	pid := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if b, ok := ctx.Message().(*mailbox.Batch); ok {
			for m := b.Next(); m != nil; m = b.Next() {
				got++
			}
		}
	}, actor.WithMailbox(port.Producer())))
	bell := actors.NewBell(actors.NewPeer(sys.Root, pid), messages.Announce(messages.LogGrown{}))
	for _, step := range []struct {
		do   func()
		want int
	}{
		{bell.Ring, 1}, {bell.Ring, 1}, {bell.Heard, 1}, {bell.Ring, 1}, {bell.Taken, 1}, {bell.Ring, 1}, {bell.Heard, 1}, {bell.Ring, 2},
		{bell.Taken, 2}, {bell.Heard, 2}, {bell.Heard, 2}, {bell.Taken, 2}, {bell.Ring, 3},
		{bell.Attend, 3}, {bell.Ring, 4},
	} {
		step.do()
		require.Equal(t, step.want, got)
	}
}
