package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/storebackup"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/golden"
)

// TestABackupOfADamagedStoreIsRestored: its recovery changes files whose checksums were taken before.
func TestABackupOfADamagedStoreIsRestored(t *testing.T) {
	for _, name := range []string{"crash-torn-blank", "crc-corrupt-crash", "crc-corrupt-middle", "crc-corrupt-old-file"} {
		t.Run(name, func(t *testing.T) {
			dir, params := unpack(t, golden.Load(name))
			dest := filepath.Join(t.TempDir(), "copy")
			for range 2 {
				_, _, err := run("store", "backup", dir, dest, "--params", params)
				require.NoError(t, err)
				back := filepath.Join(t.TempDir(), "back")
				_, _, err = run("store", "restore", dest, back, "--params", params)
				require.NoError(t, err)
				require.Equal(t, exported(t, dest, "--params", params), exported(t, back, "--params", params))
			}
		})
	}
}

// TestABackupKeepsAFileThatTheStoreHasLost: its disk is gone, and the copy is the only one.
func TestABackupKeepsAFileThatTheStoreHasLost(t *testing.T) {
	dir, params, _ := rolled(t)
	dest, back := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "back")
	want := exported(t, dir, "--params", params)
	_, _, err := run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
	segments, err := filepath.Glob(filepath.Join(dir, "commitlog", "*"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(segments[2]))
	_, _, err = run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
	_, _, err = run("store", "restore", dest, back, "--params", params)
	require.NoError(t, err)
	require.Equal(t, want, exported(t, back, "--params", params))
}

// TestABackupIsNotReplacedByLess: by a store whose last files are gone.
func TestABackupIsNotReplacedByLess(t *testing.T) {
	dir, params, _ := rolled(t)
	dest := filepath.Join(t.TempDir(), "copy")
	_, _, err := run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
	before := snapshot(t, dest)
	segments, err := filepath.Glob(filepath.Join(dir, "commitlog", "*"))
	require.NoError(t, err)
	for _, gone := range []string{segments[len(segments)-1], segments[len(segments)-2]} {
		require.NoError(t, os.Remove(gone))
		_, _, err = run("store", "backup", dir, dest, "--params", params)
		require.ErrorIs(t, err, storebackup.ErrLoses)
		require.ErrorContains(t, err, dir)
		require.True(t, equalStates(before, snapshot(t, dest)))
	}
}

// TestABackupIsNotReplacedByAnotherStore: the node was started on an empty disk, and what it had is in the backup only. It is not replaced by what
// was stored on the backup itself either.
func TestABackupIsNotReplacedByAnotherStore(t *testing.T) {
	var acknowledged atomic.Int64
	n := serve(t)
	n.want("topic", "create", "orders", "--queues", "3")
	dest := filepath.Join(t.TempDir(), "copy")
	backup := func() error {
		_, _, err := run("store", "backup", n.dir, dest, "--params", smallParams(t))
		return err
	}
	n.load(0, &acknowledged)()
	require.NoError(t, backup())
	want := exported(t, dest)
	n.end()
	require.NoError(t, os.RemoveAll(n.dir))
	require.NoError(t, n.start())
	n.want("topic", "create", "orders", "--queues", "3")
	n.produce("orders", "a log that begins anew")
	require.ErrorIs(t, backup(), storebackup.ErrLoses)
	for round := range 2 { // its log ends behind that of the backup at last
		n.load(round, &acknowledged)()
	}
	require.ErrorIs(t, backup(), storebackup.ErrLoses)
	require.Equal(t, want, exported(t, dest))

	first := n.dir
	n.dir, dest = t.TempDir(), filepath.Join(t.TempDir(), "second")
	_, _, err := run("store", "backup", first, dest, "--params", smallParams(t))
	require.NoError(t, err)
	n.end()
	n.dir = dest
	require.NoError(t, n.start())
	n.produce("orders", "stored on the backup")
	n.end()
	n.dir = first
	want = exported(t, dest)
	require.ErrorIs(t, backup(), storebackup.ErrLoses)
	require.Equal(t, want, exported(t, dest))
}

// TestABackupThatBeginsDuringARestore replaces what is being copied.
func TestABackupThatBeginsDuringARestore(t *testing.T) {
	_, params, p := rolled(t)
	dest, back := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "back")
	_, err := storebackup.Backup(t.Context(), vfs.New(), p, dest, nil)
	require.NoError(t, err)
	copied := p
	copied.Dir = dest
	_, err = storebackup.Restore(t.Context(), vfs.New(), copied, back, func(done, _ int64) {
		if done == 0 {
			_, err := storebackup.Backup(t.Context(), vfs.New(), p, dest, nil)
			require.NoError(t, err)
		}
	})
	require.ErrorIs(t, err, storebackup.ErrUnfinished)
	require.NoDirExists(t, filepath.Join(back, "commitlog"))
	require.NoError(t, os.RemoveAll(back))
	require.NoError(t, os.MkdirAll(filepath.Join(back, "lost+found"), 0o700))
	_, _, err = run("store", "restore", dest, back, "--params", params)
	require.NoError(t, err, "a file system of its own is empty")
}

// ends is a context that is cancelled when it has been asked so many times.
type ends struct {
	context.Context
	after *int
}

func (e ends) Err() error {
	if *e.after--; *e.after < 0 {
		return context.Canceled
	}
	return nil
}

// TestABackupThatEndsAnywhereHasWhatTheLastOneHad: a node can be started on what there is, when the store is lost.
func TestABackupThatEndsAnywhereHasWhatTheLastOneHad(t *testing.T) {
	var acknowledged atomic.Int64
	n := serve(t)
	n.want("topic", "create", "orders", "--queues", "3")
	n.want("topic", "create", "early", "--queues", "1")
	for i := range 1500 { // two files of its queue, none of whose records is in the last three files of the log
		_, err := n.store.Put(t.Context(), &messages.Message{Topic: "early", Body: fmt.Append(nil, i)})
		require.NoError(t, err)
	}
	for round := range 3 {
		n.load(round, &acknowledged)()
	}
	n.end()
	p, err := findStore(vfs.New(), n.dir, sizeFlags{params: smallParams(t)})
	require.NoError(t, err)
	p.MessageIndex, p.CheckCRC = true, true
	dest := filepath.Join(t.TempDir(), "copy")
	_, err = storebackup.Backup(t.Context(), vfs.New(), p, dest, nil)
	require.NoError(t, err)
	want := exported(t, dest)
	for k := 0; ; k++ {
		left := k
		_, err = storebackup.Backup(ends{t.Context(), &left}, vfs.New(), p, dest, nil)
		if err == nil {
			require.Greater(t, k, 8)
			return
		}
		require.ErrorIs(t, err, context.Canceled)
		tried := filepath.Join(t.TempDir(), "tried")
		require.NoError(t, os.CopyFS(tried, os.DirFS(dest)))
		c := p
		c.Dir = tried
		s, err := store.Open(vfs.New(), c, store.Options{})
		require.NoError(t, err)
		require.NoError(t, s.CloseClean())
		require.Equal(t, len(want), len(exported(t, tried)), "%d", k)
	}
}

// TestABackupOrRestoreThatWasInterruptedSaysWhatToDo however early it was: nothing of it looks like a store yet.
func TestABackupOrRestoreThatWasInterruptedSaysWhatToDo(t *testing.T) {
	dir, params, _ := rolled(t)
	dest, back := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "back")
	require.NoError(t, os.MkdirAll(dest, 0o700))
	list := fmt.Sprintf(`{"source":%q,"segments":{},"unfinished":true}`, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dest, "backup.json"), []byte(list), 0o600))
	_, _, err := run("store", "restore", dest, back, "--params", params)
	require.ErrorIs(t, err, storebackup.ErrUnfinished)
	require.ErrorContains(t, err, "actormq store backup "+dir+" "+dest)
	_, _, err = run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)

	require.NoError(t, os.MkdirAll(filepath.Join(back, "commitlog.part"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(back, "abort"), nil, 0o600))
	_, _, err = run("store", "restore", dest, back, "--params", params)
	require.ErrorIs(t, err, storebackup.ErrNotEmpty)
	require.ErrorContains(t, err, "delete it, and restore again")
	require.NoError(t, os.RemoveAll(back))
	_, _, err = run("store", "restore", dest, back, "--params", params)
	require.NoError(t, err)
	require.Equal(t, exported(t, dir, "--params", params), exported(t, back, "--params", params))
}
