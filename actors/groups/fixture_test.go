package groups_test

import (
	"io"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors/groups"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const file = "store/config/subscriptionGroup.json"

func options(disk vfs.Disk) groups.Config {
	return groups.Config{Disk: disk, Path: file, AutoCreate: true, Logger: zerolog.New(io.Discard)}
}

// start starts a keeper that ends with the test.
func start(t testing.TB, cfg groups.Config) *groups.Keeper {
	t.Helper()
	k, err := groups.Start(fixture.System(t).Root, "groups", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return k
}

// golden returns a disk with the file of a real broker.
func golden(t *testing.T) *memfs.Disk { return fixture.Disk(t, file, "subscriptionGroup.json") }
