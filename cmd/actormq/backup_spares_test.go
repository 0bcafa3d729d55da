package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/storebackup"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/golden"
)

// rolled is a store of several commit-log files, and its parameters.
func rolled(t *testing.T) (dir, params string, p store.Params) {
	t.Helper()
	dir, params = unpack(t, golden.Load("file-roll"))
	p, err := findStore(vfs.New(), dir, sizeFlags{params: params})
	require.NoError(t, err)
	p.MessageIndex, p.CheckCRC = true, true
	return dir, params, p
}

// TestABackupSparesWhatIsNoBackup: with its arguments exchanged, or at a wrong folder, it would delete a store.
func TestABackupSparesWhatIsNoBackup(t *testing.T) {
	dir, params, _ := rolled(t)
	other, _ := unpack(t, golden.Load("basic"))
	project := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(project, "config"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(project, "config", "mine"), []byte("x"), 0o600))
	next := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(next, "backup.next"), 0o700))
	for _, dest := range []string{other, dir, project, next} {
		before := snapshot(t, dest)
		_, _, err := run("store", "backup", dir, dest, "--params", params)
		require.ErrorIs(t, err, storebackup.ErrNotBackup)
		require.ErrorContains(t, err, dest)
		require.True(t, equalStates(before, snapshot(t, dest)), "%s was changed", dest)
	}
	mounted := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(mounted, "lost+found"), 0o700))
	_, _, err := run("store", "backup", dir, mounted, "--params", params)
	require.NoError(t, err, "what no backup replaces may be there")
}

// TestABackupThatIsOpenIsLeftAlone: a node runs on it, or another backup is being taken to it.
func TestABackupThatIsOpenIsLeftAlone(t *testing.T) {
	dir, params, p := rolled(t)
	dest := filepath.Join(t.TempDir(), "copy")
	_, _, err := run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
	p.Dir = dest
	open, err := store.Open(vfs.New(), p, store.Options{})
	require.NoError(t, err)
	before := snapshot(t, dest)
	_, _, err = run("store", "backup", dir, dest, "--params", params)
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.True(t, equalStates(before, snapshot(t, dest)))
	require.NoError(t, open.CloseClean())
	_, _, err = run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
}

// TestAStoreWithoutItsLogReplacesNoBackup: the disk of the log is not mounted.
func TestAStoreWithoutItsLogReplacesNoBackup(t *testing.T) {
	dir, params, _ := rolled(t)
	dest := filepath.Join(t.TempDir(), "copy")
	_, _, err := run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
	before := snapshot(t, dest)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "commitlog")))
	_, _, err = run("store", "backup", dir, dest, "--params", params)
	require.ErrorIs(t, err, storebackup.ErrNoStore)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "commitlog"), 0o700))
	_, _, err = run("store", "backup", dir, dest, "--params", params)
	require.ErrorIs(t, err, storebackup.ErrNoStore)
	require.True(t, equalStates(before, snapshot(t, dest)))
}

// TestAFolderThatIsNoStoreIsNotTakenForAnEmptyOne: its name is a mistake, or its disk is not mounted.
func TestAFolderThatIsNoStoreIsNotTakenForAnEmptyOne(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	for _, args := range [][]string{{"verify"}, {"repair", "--apply"}, {"export"}, {"dump", "--json", "-"}, {"backup"}, {"restore"}} {
		to := filepath.Join(t.TempDir(), "x")
		args = append([]string{"store"}, append(args, dir)...)
		if what := args[1]; what == "backup" || what == "restore" {
			args = append(args, to)
		}
		stdout, _, err := run(args...)
		require.ErrorIs(t, err, errNoStore, "%v", args)
		require.ErrorContains(t, err, dir)
		require.Empty(t, stdout)
		require.NoDirExists(t, to)
		if args[1] == "verify" {
			require.Equal(t, statusNoAnswer, exitStatus(err))
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// TestABackupThatWasNotFinishedIsNotRestored: it would be taken for the whole store.
func TestABackupThatWasNotFinishedIsNotRestored(t *testing.T) {
	dir, params, p := rolled(t)
	dest, back := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "back")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := storebackup.Backup(ctx, vfs.New(), p, dest, func(done, _ int64) {
		if done > 0 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = run("store", "restore", dest, back, "--params", params)
	require.ErrorIs(t, err, storebackup.ErrUnfinished)
	require.NoDirExists(t, back)
	_, _, err = run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
	_, _, err = run("store", "restore", dest, back, "--params", params)
	require.NoError(t, err)
	require.Equal(t, exported(t, dir, "--params", params), exported(t, back, "--params", params))
}

// TestANodeDoesNotStartOnAPartOfARestore: it was killed, and the log in front of it would be taken for all of it.
func TestANodeDoesNotStartOnAPartOfARestore(t *testing.T) {
	dir, params, p := rolled(t)
	dest, back := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "back")
	_, _, err := run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
	p.Dir = dest
	ctx, cancel := context.WithCancel(t.Context())
	_, err = storebackup.Restore(ctx, vfs.New(), p, back, func(done, _ int64) {
		if done > 0 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	p.Dir = back
	_, err = store.Open(vfs.New(), p, store.Options{})
	require.ErrorIs(t, err, store.ErrNoLog)
}

// TestACopyHasWhatLinksLeadTo: a store may have folders and files on other disks.
func TestACopyHasWhatLinksLeadTo(t *testing.T) {
	dir, params, _ := rolled(t)
	want := exported(t, dir, "--params", params)
	elsewhere := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "config"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config", "topics.json"), []byte("{}\n"), 0o600))
	segments, err := filepath.Glob(filepath.Join(dir, "commitlog", "*"))
	require.NoError(t, err)
	for i, name := range []string{filepath.Join(dir, "config"), filepath.Join(dir, "consumequeue"), segments[0]} {
		moved := filepath.Join(elsewhere, string(rune('a'+i)))
		require.NoError(t, os.Rename(name, moved))
		require.NoError(t, os.Symlink(moved, name))
	}
	dest := filepath.Join(t.TempDir(), "copy")
	_, _, err = run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
	require.Equal(t, want, exported(t, dest, "--params", params))
	require.FileExists(t, filepath.Join(dest, "config", "topics.json"))

	require.NoError(t, os.Symlink(filepath.Join(dir, "config"), filepath.Join(elsewhere, "a", "round")))
	_, _, err = run("store", "backup", dir, dest, "--params", params)
	require.ErrorContains(t, err, "folders in each other")
}

// TestACopyHasTheSecretsOfAccountsForTheirOwnerOnly: plain_acl.yml is among what is copied.
func TestACopyHasTheSecretsOfAccountsForTheirOwnerOnly(t *testing.T) {
	dir, params, _ := rolled(t)
	secret := filepath.Join("config", "plain_acl.yml")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "config"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, secret), []byte("accounts: []\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "promoted.json"), []byte("{}\n"), 0o640))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "extensions"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "extensions", "bridge.json"), []byte("{}\n"), 0o640))
	dest, back := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "back")
	_, _, err := run("store", "backup", dir, dest, "--params", params)
	require.NoError(t, err)
	_, _, err = run("store", "restore", dest, back, "--params", params)
	require.NoError(t, err)
	for _, copied := range []string{dest, back} {
		st, err := os.Stat(filepath.Join(copied, secret))
		require.NoError(t, err)
		require.EqualValues(t, 0o600, st.Mode().Perm())
		require.FileExists(t, filepath.Join(copied, "promoted.json"), "a slave that was promoted would follow again")
		require.FileExists(t, filepath.Join(copied, "extensions", "bridge.json"), "a bridge would copy all again")
	}
}

// TestFilesThatExpireWhileTheyAreCopied: those in front of one that has gone have gone too.
func TestFilesThatExpireWhileTheyAreCopied(t *testing.T) {
	dir, params, p := rolled(t)
	dest := filepath.Join(t.TempDir(), "copy")
	segments, err := filepath.Glob(filepath.Join(dir, "commitlog", "*"))
	require.NoError(t, err)
	require.Greater(t, len(segments), 2)
	done, err := storebackup.Backup(t.Context(), vfs.New(), p, dest, func(done, _ int64) {
		if done == p.SegmentBytes { // the first one is copied
			for _, gone := range segments[:2] {
				require.NoError(t, os.Remove(gone))
			}
		}
	})
	require.NoError(t, err)
	require.Equal(t, len(segments)-2, done.Segments)
	require.Equal(t, exported(t, dir, "--params", params), exported(t, dest, "--params", params))
	_, _, err = run("store", "restore", dest, filepath.Join(t.TempDir(), "back"), "--params", params)
	require.NoError(t, err)
}

// TestAListOfChecksumsThatSaysNothing: somebody has written into backup.json.
func TestAListOfChecksumsThatSaysNothing(t *testing.T) {
	dir, params, p := rolled(t)
	dest := t.TempDir()
	for _, text := range []string{`{"source":"` + p.Dir + `","segments":null}`, `{"source":"` + p.Dir + `"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dest, "backup.json"), []byte(text), 0o600))
		_, _, err := run("store", "backup", dir, dest, "--params", params)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dest, "backup.json"), []byte("{"), 0o600))
	_, _, err := run("store", "backup", dir, dest, "--params", params)
	require.ErrorContains(t, err, dest)
}

// TestTheLastFileOfABackupIsComparedToo: of a small store it is the only one.
func TestTheLastFileOfABackupIsComparedToo(t *testing.T) {
	dir, params := unpack(t, golden.Load("basic"))
	dest := filepath.Join(t.TempDir(), "copy")
	for range 2 {
		_, _, err := run("store", "backup", dir, dest, "--params", params)
		require.NoError(t, err)
		_, _, err = run("store", "restore", dest, filepath.Join(t.TempDir(), "back"), "--params", params)
		require.NoError(t, err)
	}
	segments, err := filepath.Glob(filepath.Join(dest, "commitlog", "*"))
	require.NoError(t, err)
	require.Len(t, segments, 1)
	f, err := os.OpenFile(segments[0], os.O_RDWR, 0)
	require.NoError(t, err)
	was := make([]byte, 1)
	_, err = f.ReadAt(was, 100)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{^was[0]}, 100)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	back := filepath.Join(t.TempDir(), "back")
	_, _, err = run("store", "restore", dest, back, "--params", params)
	require.ErrorIs(t, err, storebackup.ErrChecksum)
	require.NoError(t, os.Remove(segments[0]))
	_, _, err = run("store", "restore", dest, back+"2", "--params", params)
	require.ErrorIs(t, err, storebackup.ErrChecksum)
}
