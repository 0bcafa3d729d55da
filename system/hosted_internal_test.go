package system

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestAStoreThatIsBeingClosedHostsNoActorAnew: nobody would end it.
func TestAStoreThatIsBeingClosedHostsNoActorAnew(t *testing.T) {
	d := Dispatcher{Name: "mine", Actor: actor.PropsFromFunc(func(actor.Context) {})}
	s, err := Open(Options{Dir: "store", Disk: memfs.New(), SegmentBytes: 32 << 10, Extensions: Extensions{Dispatchers: []Dispatcher{d}}})
	require.NoError(t, err)
	first, err := s.lifeOf(d)
	require.NoError(t, err)
	s.unplug(t.Context())
	<-first.dead
	_, err = s.lifeOf(d)
	require.ErrorIs(t, err, messages.ErrClosed)
	require.NoError(t, s.Close(t.Context()))
}
