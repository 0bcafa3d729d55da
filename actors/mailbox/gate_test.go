package mailbox_test

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

// The library gives an actor its name before its mailbox can run: what is sent in between used to find no dispatcher, and panic.
func TestWhatComesBeforeTheActorIsHandledBehindItsStarted(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		mb := mailbox.New(opt)
		n := newNote(0, 0)
		require.NoError(t, mb.Post(n.MailboxLink()))
		a := ask{answer: messages.NewAnswer[int]()}
		mb.PostUserMessage(a)
		require.Zero(t, n.answered.Load())

		started := 0
		n2 := newNote(0, 1)
		c.onNote = func(*note, *mailbox.Batch) { started = len(c.system) }
		system := actor.NewActorSystem()
		t.Cleanup(system.Shutdown)
		_, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return c }, actor.WithMailbox(mb.Producer())), "late")
		require.NoError(t, err)
		require.NoError(t, mb.Post(n2.MailboxLink()))
		<-n.done
		<-n2.done
		_, err = a.answer.Wait(t.Context())
		require.NoError(t, err)
		require.NoError(t, n.refusal)
		require.Equal(t, 1, started, "Started comes first")
		require.Equal(t, []*note{n, n2}, c.seen)
	})
}

// caller tells another actor of its start, by a name that may not be there yet.
type caller struct {
	other *actor.PID
	heard int
}

func (c *caller) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Send(c.other, "I am here")
	case string:
		c.heard++
	case ask:
		m.answer.Complete(c.heard, nil)
	}
}

func TestActorsBehindAGateReachEachOtherFromTheStart(t *testing.T) {
	for _, inline := range []int{0, 4} {
		t.Run(fmt.Sprint(inline), func(t *testing.T) {
			system := actor.NewActorSystem()
			t.Cleanup(system.Shutdown)
			gate := &mailbox.Gate{}
			var pids []*actor.PID
			for i := range 3 {
				c := &caller{other: actor.NewPID(system.Address(), fmt.Sprint("caller-", (i+1)%3))}
				mb := mailbox.New(mailbox.Options{Gate: gate, InlineBatches: inline})
				pid, err := system.Root.SpawnNamed(
					actor.PropsFromProducer(func() actor.Actor { return c }, actor.WithMailbox(mb.Producer())), fmt.Sprint("caller-", i))
				require.NoError(t, err)
				pids = append(pids, pid)
			}
			asks := make([]ask, len(pids))
			for i, pid := range pids {
				asks[i] = ask{answer: messages.NewAnswer[int]()}
				system.Root.Send(pid, asks[i])
			}
			gate.Open()
			for i, a := range asks {
				_, err := a.answer.Wait(t.Context())
				require.NoError(t, err, "%d", i)
			}
			for _, pid := range pids { // every Started has been handled by now
				a := ask{answer: messages.NewAnswer[int]()}
				system.Root.Send(pid, a)
				heard, err := a.answer.Wait(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, heard)
			}
		})
	}
}
