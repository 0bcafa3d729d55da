package mailbox_test

import (
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	ours "github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
)

// TestTheCensusTellsWhoIsThereAndWhatHasBeenHandled: actors are listed from their first message to their stop, whichever way
// their messages come.
func TestTheCensusTellsWhoIsThereAndWhatHasBeenHandled(t *testing.T) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	t.Cleanup(system.Shutdown)
	require.Empty(t, ours.Standings(system))
	ours.TakeCensus(system)
	a := &brisk{clerk: &clerk{}}
	mb := mailbox.New(mailbox.Options{Receiver: a, InlineBatches: 1, OnPanic: func(any, []byte) {}})
	pid, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(mb.Producer())), "store/clerk")
	require.NoError(t, err)
	before := ours.Standings(system)
	require.Len(t, before, 1)
	require.Equal(t, "store/clerk", before[0].ID)
	for i := range 640 {
		require.NoError(t, mb.Post(newNote(0, i).MailboxLink()))
	}
	after := ours.Standings(system)
	require.InDelta(t, before[0].Handled+640, after[0].Handled, 64)
	require.Zero(t, after[0].Waiting)
	require.Zero(t, after[0].Panics)
	bad := newNote(0, 641)
	bad.boom = true
	require.NoError(t, mb.Post(bad.MailboxLink()))
	require.EqualValues(t, 1, ours.Standings(system)[0].Panics)
	require.NoError(t, system.Root.StopFuture(pid).Wait())
	require.Empty(t, ours.Standings(system))
}
