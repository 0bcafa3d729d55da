package probe

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// Actor is an actor that keeps what it is sent, up to 1,024 messages, for a test to expect.
type Actor struct {
	PID  *actor.PID
	mail chan any
}

// Spawn starts one; it stops with the test.
func Spawn(t testing.TB, system *actor.ActorSystem) *Actor {
	a := &Actor{mail: make(chan any, 1024)}
	a.PID = system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case actor.SystemMessage, actor.AutoReceiveMessage:
		default:
			select {
			case a.mail <- m:
			default: // the test does not look any more
			}
		}
	}))
	t.Cleanup(func() { require.NoError(t, system.Root.StopFuture(a.PID).Wait()) })
	return a
}

// Expect waits for the next message, which must be of type T.
func Expect[T any](ctx context.Context, t testing.TB, a *Actor) T {
	t.Helper()
	var want T
	select {
	case got := <-a.mail:
		require.IsType(t, want, got)
		return got.(T)
	case <-ctx.Done():
		require.Fail(t, "no message came", "expected %T: %v", want, context.Cause(ctx))
	}
	return want
}
