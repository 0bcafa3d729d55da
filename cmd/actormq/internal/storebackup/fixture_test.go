package storebackup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// The store, its backup, and what is restored.
const (
	source, dest, back = "s", "d", "r"
)

func params(dir string) store.Params {
	return store.Params{
		Dir: dir, SegmentBytes: 16 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200, MessageIndex: true, CheckCRC: true,
	}
}

func open(t testing.TB, disk vfs.Disk) *system.Store {
	t.Helper()
	p := params(source)
	s, err := system.Open(system.Options{
		Disk: disk, Dir: p.Dir, SegmentBytes: p.SegmentBytes, ConsumeQueueFileBytes: p.ConsumeQueueFileBytes, IndexSlots: p.IndexSlots, IndexEntries: p.IndexEntries,
		WindowBytes: 8 << 10,
	})
	require.NoError(t, err)
	return s
}

func put(t testing.TB, s *system.Store, topic string, n int) {
	t.Helper()
	for i := range n {
		_, err := s.Put(t.Context(), &messages.Message{Topic: topic, QueueID: int32(i % 2), Body: []byte(strings.Repeat("x", 200))})
		require.NoError(t, err)
	}
}

// grow puts messages, 100 are two files of the log, deletes a topic, and writes what belongs beside the log.
func grow(t testing.TB, disk vfs.Disk, word string, n int) {
	t.Helper()
	s := open(t, disk)
	put(t, s, "gone-"+word, 5)
	put(t, s, "T", n)
	require.NoError(t, s.DeleteTopic(t.Context(), "gone-"+word))
	require.NoError(t, s.Close(t.Context()))
	for _, name := range []string{"config/topics.json", "config/" + word + ".json", "extensions/bridge/" + word + ".json", "promoted.json"} {
		fixture.WriteFile(t, disk, path.Join(source, name), []byte(word))
	}
}

// names are all files and folders below a folder.
func names(t testing.TB, disk vfs.Disk, dir string) (all []string) {
	t.Helper()
	entries, err := vfs.ListIfThere(disk, dir)
	require.NoError(t, err)
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		all = append(all, name)
		if e.Dir {
			all = append(all, names(t, disk, name)...)
		}
	}
	return all
}

// picture is what a store has for those who use it. The disk is changed.
func picture(t testing.TB, disk vfs.Disk, dir string) string {
	t.Helper()
	var text strings.Builder
	for _, name := range names(t, disk, dir) {
		rest := strings.TrimPrefix(name, dir+"/")
		e, err := disk.Stat(name)
		require.NoError(t, err)
		if in, _, _ := strings.Cut(rest, "/"); !e.Dir && (in == configName || in == "extensions" || in == promotedName || in == floorsName) {
			said := strings.ReplaceAll(string(fixture.ReadFile(t, disk, name)), "\n\t\t\"T\": {}\n\t", "") // recovery may leave that behind
			fmt.Fprintln(&text, rest, said)
		}
	}
	s, err := store.Open(disk, params(dir), store.Options{})
	require.NoError(t, err)
	fmt.Fprintln(&text, s.Log.Min(), s.Log.End(), s.QueueOffsets)
	require.NoError(t, s.CloseClean())
	return text.String()
}

func backUp(t testing.TB, disk vfs.Disk) Done {
	t.Helper()
	done, err := Backup(t.Context(), disk, params(source), dest, nil)
	require.NoError(t, err)
	return done
}

// restored is what a restore finds on a disk, which it leaves alone.
func restored(t testing.TB, disk *memfs.Disk) (string, error) {
	t.Helper()
	disk = disk.Clone()
	if _, err := Restore(context.Background(), disk, params(dest), back, nil); err != nil {
		return "", err
	}
	return picture(t, disk, back), nil
}

// finds are what was restored of disks, by what tells them apart: most power cuts leave what another one has left.
type finds map[[32]byte]find

type find struct {
	picture string
	err     error
}

// restored is what a restore finds on a disk, or has found on one that is the same.
func (f finds) restored(t testing.TB, disk *memfs.Disk) (string, error) {
	t.Helper()
	digest := disk.Digest()
	found, met := f[digest]
	if !met {
		found.picture, found.err = restored(t, disk)
		f[digest] = found
	}
	return found.picture, found.err
}

func mustRestore(t testing.TB, disk *memfs.Disk) string {
	t.Helper()
	found, err := restored(t, disk)
	require.NoError(t, err)
	return found
}

// saysSo tells whether an error says that a backup is not complete, or not there.
func saysSo(err error) bool {
	return errors.Is(err, ErrUnfinished) || errors.Is(err, ErrNoStore) || errors.Is(err, fs.ErrNotExist)
}
