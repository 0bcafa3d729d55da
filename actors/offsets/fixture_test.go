package offsets_test

import (
	"io"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors/offsets"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
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
	k, err := offsets.Start(fixture.System(t).Root, "offsets", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
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

// golden returns a disk with the file of a real broker.
func golden(t *testing.T) *memfs.Disk { return fixture.Disk(t, file, "consumerOffset.json") }

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }
