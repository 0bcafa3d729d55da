package offsets_test

import (
	"io"
	"log/slog"
	"os"
	"path"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors/offsets"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	file  = "store/config/consumerOffset.json"
	never = 1000 * time.Hour
)

// options has no save by the timer: tests say when.
func options(disk vfs.Disk) offsets.Config {
	return offsets.Config{Disk: disk, Path: file, Interval: never, Logger: zerolog.New(io.Discard)}
}

func start(t testing.TB, cfg offsets.Config) *offsets.Keeper {
	t.Helper()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	k, err := offsets.Start(system.Root, "offsets", cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, k.Close())
		system.Shutdown()
	})
	return k
}

// key names queue 0 of a topic, or another one.
func key(topic string, queue ...int32) messages.QueueKey {
	k := messages.QueueKey{Topic: topic}
	if len(queue) > 0 {
		k.QueueID = queue[0]
	}
	return k
}

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
	data, err := os.ReadFile("testdata/consumerOffset.json")
	require.NoError(t, err)
	disk := memfs.New()
	put(t, disk, file, data)
	return disk
}

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }
