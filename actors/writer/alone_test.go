package writer_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
)

// A put that is alone is handed on by who puts it, once others may run the writer; nobody is woken for it. Others go the usual way.
func TestAPutThatIsAloneIsHandedOnByItsSender(t *testing.T) {
	alone := false
	var r *rig
	var held *messages.ReplicaWait
	order := make(chan string, 8)
	sys := actor.NewActorSystem(fixture.Quiet, actor.WithDeadLetterThrottleInterval(time.Millisecond))
	defer sys.Shutdown()
	port := mailbox.New(mailbox.Options{InlineBatches: 1 << 20}) // who rings runs the actor
	var bell *actors.Bell
	bell = actors.NewBell(actors.NewPeer(sys.Root, sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if b, ok := ctx.Message().(*mailbox.Batch); ok {
			for m := b.Next(); m != nil; m = b.Next() {
				order <- "rung"
				bell.Attend()
			}
		}
	}, actor.WithMailbox(port.Producer())))), messages.Announce(messages.LogGrown{}))
	opt := rigOptions{
		replicate: func(*messages.PutMessage) { order <- "replicate" },
		replicas:  bell,
		aloneToo: func(p *messages.PutMessage) bool {
			if alone {
				held = p.AwaitReplica(time.Now().Add(time.Minute))
			}
			return alone
		},
		sendAlone: func() {
			if held == nil {
				return
			}
			wait := held
			held = nil
			order <- "send"
			other := r.message(1, 10)
			other.WaitStored = false
			r.put(other) // it is handled before Post returns: nobody runs the writer
			require.Equal(t, messages.PutOK, other.Result.Status)
			wait.SettleAlone(messages.PutOK)
		},
	}
	r = newRig(t, opt)
	p := r.put(r.message(0, 10))
	require.False(t, p.Result.Alone)
	require.Equal(t, "replicate", <-order)
	require.Equal(t, "rung", <-order)

	alone = true
	for range 100 { // the allocator may be running the writer: that put comes in a batch
		p = r.put(r.message(0, 10))
		require.Equal(t, messages.PutOK, p.Result.Status)
		if p.Result.Alone {
			break
		}
		require.Equal(t, "replicate", <-order)
		require.Equal(t, "rung", <-order)
	}
	require.True(t, p.Result.Alone)
	require.Equal(t, "send", <-order)
	require.Equal(t, "rung", <-order, "for the other one")
	require.Empty(t, order)
}
