package ha_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/ha"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
)

// Who promotes a slave does not wait for an answer of the master that does not come, and what the steps keep is one round's at a time.
func TestARoundThatIsWantedNowCutsShortTheOneThatRuns(t *testing.T) {
	root := fixture.System(t).Root
	errStep := errors.New("said by the second round")
	began, rounds := make(chan struct{}), 0 // of the round that runs
	sync := ha.NewConfigSync(ha.SyncConfig{First: time.Millisecond, Interval: time.Hour, Logger: zerolog.Nop(), Steps: []ha.SyncStep{{
		What: "something", Do: func(ctx context.Context) error {
			if rounds++; rounds == 1 {
				close(began)
				<-ctx.Done()
				return ctx.Err()
			}
			return errStep
		},
	}}})
	pid := root.Spawn(actor.PropsFromProducer(func() actor.Actor { return sync }))
	<-began
	for round := range 2 {
		answer := messages.NewAnswer[struct{}]()
		root.Send(pid, ha.SyncNow{Answer: answer})
		_, err := answer.Wait(t.Context())
		require.ErrorIs(t, err, errStep)
		require.Equal(t, round+2, rounds)
	}
	require.NoError(t, root.StopFuture(pid).Wait())
}
