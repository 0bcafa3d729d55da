package groups_test

import (
	"io"
	"log/slog"
	"os"
	"path"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors/groups"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const file = "store/config/subscriptionGroup.json"

func options(disk vfs.Disk) groups.Config {
	return groups.Config{Disk: disk, Path: file, AutoCreate: true, Logger: zerolog.New(io.Discard)}
}

func newSystem(t testing.TB) *actor.ActorSystem {
	t.Helper()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	t.Cleanup(system.Shutdown)
	return system
}

// start starts a keeper that ends with the test.
func start(t testing.TB, cfg groups.Config) *groups.Keeper {
	t.Helper()
	k, err := groups.Start(newSystem(t).Root, "groups", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return k
}

// put writes a file onto a disk, durably.
func put(t *testing.T, disk vfs.Disk, name string, data []byte) {
	t.Helper()
	require.NoError(t, disk.MkdirAll(path.Dir(name)))
	f, err := disk.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, f.DataSync())
	require.NoError(t, f.Close())
	require.NoError(t, disk.SyncDir(path.Dir(name)))
}

func read(t *testing.T, disk vfs.Disk, name string) string {
	t.Helper()
	f, err := disk.Open(name, false)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	data := make([]byte, size)
	_, err = f.ReadAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return string(data)
}

// golden returns a disk with the file of a real broker.
func golden(t *testing.T) *memfs.Disk {
	t.Helper()
	data, err := os.ReadFile("testdata/subscriptionGroup.json")
	require.NoError(t, err)
	disk := memfs.New()
	put(t, disk, file, data)
	return disk
}
