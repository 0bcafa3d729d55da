package store

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

const testMarker = "s/marker"

// markedAs is a disk with a marker, or without one when the text is empty.
func markedAs(t *testing.T, text string) *memfs.Disk {
	t.Helper()
	disk := memfs.New()
	require.NoError(t, disk.MkdirAll("s"))
	if text == "" {
		return disk
	}
	f, err := disk.Create(testMarker)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	require.NoError(t, errors.Join(err, f.DataSync(), f.Close(), disk.SyncDir("s")))
	return disk
}

var markers = []struct {
	before string
	is     messages.PhysicalOffset // what it says, -1 without one
	after  messages.PhysicalOffset // once 700 is marked
}{
	{"", -1, 700}, {"12\nearlier\n", 12, 12}, {"700\nthe same\n", 700, 700}, {"9000\nfurther\n", 9000, 700}, {"\x00\x00", 0, 0}, {"-3\n", 0, 0},
}

// TestAMarkerIsTheOldOneOrTheNewOne whenever the power goes, and the new one once it was said to be.
func TestAMarkerIsTheOldOneOrTheNewOne(t *testing.T) {
	for _, c := range markers {
		disk := markedAs(t, c.before)
		check := func(left *memfs.Disk, want ...messages.PhysicalOffset) {
			from, err := readUnproven(left, testMarker)
			if errors.Is(err, fs.ErrNotExist) {
				from, err = -1, nil
			}
			require.NoError(t, err)
			require.Contains(t, want, from, "%q", c.before)
		}
		disk.Inject(func(op memfs.Op) error {
			if op.Kind.Changes() {
				for seed := range uint64(20) {
					check(disk.Crash(seed), c.is, c.after)
				}
			}
			return nil
		})
		require.NoError(t, mark(disk, testMarker, 700, errors.New("a sync failed")))
		disk.Inject(nil)
		for seed := range uint64(20) {
			check(disk.Crash(seed), c.after)
		}
	}
}

// TestAMarkerThatCannotBeMadeDurableIsThereForTheProcessThatStartsNext: where the sync of the log has failed, that of the marker mostly does too. And
// who is told that it could not be made and tries again is not told that it was, until it was.
func TestAMarkerThatCannotBeMadeDurableIsThereForTheProcessThatStartsNext(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range markers {
		for _, kind := range []memfs.Kind{memfs.KindDataSync, memfs.KindRename, memfs.KindSyncDir} {
			disk := markedAs(t, c.before)
			disk.Inject(func(op memfs.Op) error {
				if op.Kind == kind {
					return broken
				}
				return nil
			})
			err := mark(disk, testMarker, 700, broken)
			from, readErr := readUnproven(disk.Clone(), testMarker)
			require.NoError(t, readErr, "%q, %v", c.before, kind)
			require.Equal(t, c.after, from, "%q, %v", c.before, kind)
			if kind == memfs.KindSyncDir {
				require.ErrorIs(t, err, broken)
				require.ErrorIs(t, mark(disk, testMarker, 700, broken), broken)
			}
			disk.Inject(nil)
			require.NoError(t, mark(disk, testMarker, 700, broken))
			for seed := range uint64(20) {
				from, err := readUnproven(disk.Crash(seed), testMarker)
				require.NoError(t, err)
				require.LessOrEqual(t, from, c.after, "%q, %v", c.before, kind)
			}
		}
	}
}

// TestAMarkerThatSaysItAlreadyNeedsNoRoom to be durable, though what can be read of it is in the page cache only.
func TestAMarkerThatSaysItAlreadyNeedsNoRoom(t *testing.T) {
	disk := markedAs(t, "9000\n")
	f, err := disk.Open(testMarker, true)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("0700\n"), 0)
	require.NoError(t, errors.Join(err, f.Close()))
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindCreate {
			return vfs.ErrNoSpace
		}
		return nil
	})
	require.ErrorIs(t, note(disk, testMarker, 12, errors.New("further back")), vfs.ErrNoSpace)
	require.NoError(t, note(disk, testMarker, 800, errors.New("the same")))
	for seed := range uint64(20) {
		from, err := readUnproven(disk.Crash(seed), testMarker)
		require.NoError(t, err)
		require.EqualValues(t, 700, from)
	}
}
