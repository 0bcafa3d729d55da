package topics_test

import (
	"io"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/topics"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const file = "store/config/topics.json"

func options(disk vfs.Disk) topics.Config {
	return topics.Config{
		Disk: disk, Path: file, ClusterName: "MadeUpCluster", BrokerName: "broker-a", AutoCreate: true,
		ClusterTopic: true, BrokerTopic: true, Logger: zerolog.New(io.Discard),
	}
}

// start starts a keeper that ends with the test.
func start(t testing.TB, cfg topics.Config) *topics.Keeper {
	t.Helper()
	k, err := topics.Start(fixture.System(t).Root, "topics", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return k
}

// listen returns a listener that has taken a message when Send returns, and what it has taken.
func listen(t *testing.T) (actors.Peer, func() []messages.TopicsChanged) {
	t.Helper()
	system := fixture.System(t)
	var told []messages.TopicsChanged
	pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(messages.TopicsChanged); ok {
			told = append(told, m)
		}
	}, actor.WithDispatcher(actor.NewSynchronizedDispatcher(1))))
	t.Cleanup(func() { require.NoError(t, system.Root.StopFuture(pid).Wait()) })
	return actors.NewPeer(system.Root, pid), func() []messages.TopicsChanged { return told }
}

// golden returns a disk with the file of a real broker.
func golden(t *testing.T) *memfs.Disk { return fixture.Disk(t, file, "topics.json") }
