package store_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// takesRoom tells of operations that a full disk refuses, and of those by which it may say so late.
func takesRoom(op memfs.Op, late bool) bool {
	switch op.Kind {
	case memfs.KindCreate, memfs.KindWrite, memfs.KindAllocate, memfs.KindPopulate:
		return true
	case memfs.KindDataSync, memfs.KindSyncDir:
		return late
	}
	return false
}

// withoutIndexRoom has a disk refuse what takes room for the index after k such operations, and tells whether it has.
func withoutIndexRoom(disk *memfs.Disk, k int, late bool, names ...string) *bool {
	refused := new(bool)
	disk.Inject(func(op memfs.Op) error {
		for _, name := range names {
			if !strings.HasPrefix(op.Name, name) || !takesRoom(op, late) {
				continue
			}
			if k--; k < 0 {
				*refused = true
				return vfs.ErrNoSpace
			}
		}
		return nil
	})
	return refused
}

// TestAnIndexWithoutRoomIsMadeCompleteByTheNextStartWithRoom, wherever the room has ended, with and without room for the marker, however the store was
// closed, and though it has grown since; and then there is no marker.
func TestAnIndexWithoutRoomIsMadeCompleteByTheNextStartWithRoom(t *testing.T) {
	for name, names := range map[string][]string{
		"no room for the marker": {"s/index", indexMarker}, "room for the marker": {"s/index"}, "said late": {"s/index"},
		"said late, no room for the marker": {"s/index", indexMarker},
	} {
		for _, loss := range []string{"nothing", "all", "a header", "last files, a kill at the end"} {
			for k, done := 0, false; !done; k += 1 + k/8 {
				disk, w := indexed(t)
				if loss != "nothing" {
					indexLosses[loss](t, disk)
				}
				if loss == "nothing" || strings.HasSuffix(loss, "at the end") {
					createFile(t, disk, "s/abort", 0)
				}
				refused := withoutIndexRoom(disk, k, strings.HasPrefix(name, "said late"), names...)
				s, err := store.Open(disk, testParams(), testOptions())
				if done = !*refused; err != nil {
					require.ErrorIs(t, err, vfs.ErrNoSpace)
					continue
				}
				require.NoError(t, s.Close())
				for how, left := range []*memfs.Disk{disk.Clone(), disk.Crash(uint64(k))} {
					requireComplete(t, left, w.puts, name, loss, k, how)
				}
				w.fill(10)
				s, err = store.Open(disk, testParams(), testOptions()) // still without room
				if err == nil {
					err = s.CloseClean()
				}
				if err != nil { // then that was no clean stop
					require.ErrorIs(t, err, vfs.ErrNoSpace)
				}
				for how, left := range []*memfs.Disk{disk.Clone(), disk.Crash(uint64(k))} {
					requireComplete(t, left, w.puts, name, loss, k, how)
				}
			}
		}
	}
}

// requireComplete has a store opened on a disk with room: all is found by its keys, also after a power cut, and no marker is left.
func requireComplete(t *testing.T, disk *memfs.Disk, puts []put, what ...any) {
	t.Helper()
	disk.Inject(nil)
	for _, d := range []*memfs.Disk{disk, disk.Crash(1)} {
		c, _ := recovered(t, d)
		require.Empty(t, c.lacks(puts), "%v", what)
		_, err := d.Stat(indexMarker)
		require.ErrorIs(t, err, fs.ErrNotExist, "%v", what)
	}
}
