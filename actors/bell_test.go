package actors_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

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
