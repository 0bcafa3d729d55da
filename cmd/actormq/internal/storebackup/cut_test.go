package storebackup

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// seeds are the power cuts that are tried at each place.
const seeds = 4

// atEach has a function called in front of each operation that changes what is below a folder.
func atEach(disk *memfs.Disk, dir string, do func(at int, op memfs.Op)) {
	at := 0
	inTurn(disk, func(op memfs.Op) bool { return op.Kind.Changes() && strings.HasPrefix(op.Name, dir) }, func(op memfs.Op) error {
		at++
		do(at, op)
		return nil
	})
}

// inTurn has a hook called in front of operations of a kind, one after the other: a recovery works on several files at once.
func inTurn(disk *memfs.Disk, is func(memfs.Op) bool, hook func(memfs.Op) error) {
	var turn sync.Mutex
	disk.Inject(func(op memfs.Op) error {
		if !is(op) {
			return nil
		}
		turn.Lock()
		defer turn.Unlock()
		return hook(op)
	})
}

// scene is a store whose backup is taken.
type scene struct {
	again    bool // there is one of what it was
	messages int  // that it gets each time
	torn     bool // its log ends in a record that is damaged, which recovery cuts
	damaged  bool // two records in its first file are, which recovery closes
}

var scenes = []scene{
	{messages: 100}, {again: true, messages: 100}, {again: true, messages: 10}, {again: true, messages: 10, torn: true},
	{messages: 100, damaged: true}, {again: true, messages: 90, damaged: true},
}

// make makes the disk; one is what is restored before the backup is taken, if it can be, two what is restored then.
func (s scene) make(t *testing.T) (disk *memfs.Disk, one, two string) {
	t.Helper()
	disk = memfs.New()
	grow(t, disk, "one", s.messages)
	if s.damaged {
		damage(t, disk, 0, 3000)
		damage(t, disk, 0, 9000)
	}
	if s.again {
		backUp(t, disk)
		one = mustRestore(t, disk)
		grow(t, disk, "two", s.messages)
		for _, name := range []string{configName + "/one.json", promotedName} {
			remove(t, disk, path.Join(source, name))
		}
	}
	if s.again && s.messages == 100 { // and its first file has expired
		remove(t, disk, path.Join(source, logName, segments.Name(0)))
	}
	if s.torn {
		tear(t, disk)
	}
	after := disk.Clone()
	backUp(t, after)
	two = mustRestore(t, after)
	require.NotEqual(t, one, two)
	return disk, one, two
}

// damage writes into the file of this number of the store's log, so that the record there is lost.
func damage(t *testing.T, disk vfs.Disk, file, at int64) {
	t.Helper()
	f, err := disk.Open(path.Join(source, logName, segments.Name(file*params(source).SegmentBytes)), true)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("damage"), at)
	require.NoError(t, errors.Join(err, f.DataSync(), f.Close()))
}

// tear damages the body of the last record of the store.
func tear(t *testing.T, disk *memfs.Disk) {
	t.Helper()
	all, err := segmentNames(disk, params(source))
	require.NoError(t, err)
	name := path.Join(source, logName, all[len(all)-1])
	text := fixture.ReadFile(t, disk, name)
	at := bytes.LastIndex(text, []byte("xxxxxxxx"))
	require.Positive(t, at)
	text[at] = 'y'
	fixture.WriteFile(t, disk, name, text)
}

func remove(t *testing.T, disk *memfs.Disk, name string) {
	t.Helper()
	require.NoError(t, disk.Remove(name))
	require.NoError(t, disk.SyncDir(path.Dir(name)))
}

// TestAPowerCutAnywhereInABackup leaves what the copy had, or all of the store; of the first one it may leave what says that it is not complete.
func TestAPowerCutAnywhereInABackup(t *testing.T) {
	for _, s := range scenes {
		disk, one, two := s.make(t)
		seen, finds := map[string]int{}, finds{}
		atEach(disk, dest, func(at int, op memfs.Op) {
			for seed := range seeds {
				cut := disk.Crash(uint64(at*seeds + seed))
				found, err := finds.restored(t, cut)
				if err != nil {
					require.False(t, s.again, "%d %v: %v", at, op, err)
					require.True(t, saysSo(err), "%d %v: %v", at, op, err)
				} else {
					require.Contains(t, []string{one, two}, found, "%d %v", at, op)
				}
				seen[found]++
				if seed == at%(4*seeds) {
					backUp(t, cut)
					require.Equal(t, two, mustRestore(t, cut), "%d %v", at, op)
				}
			}
		})
		backUp(t, disk)
		require.Len(t, seen, 2, "cuts before and behind the moment at which the copy is another")
	}
}

// TestABackupThatIsTakenSurvivesAPowerCut with every name that it has.
func TestABackupThatIsTakenSurvivesAPowerCut(t *testing.T) {
	for _, s := range scenes {
		disk, _, two := s.make(t)
		backUp(t, disk)
		want, finds := names(t, disk, dest), finds{}
		for seed := range uint64(50) {
			cut := disk.Crash(seed)
			require.Equal(t, want, names(t, cut, dest), "seed %d", seed)
			found, err := finds.restored(t, cut)
			require.NoError(t, err, "seed %d", seed)
			require.Equal(t, two, found, "seed %d", seed)
		}
	}
}

// TestAPowerCutAnywhereInARestore leaves a store that is whole, or one that does not start, or none.
func TestAPowerCutAnywhereInARestore(t *testing.T) {
	disk, _, two := scene{again: true, messages: 100}.make(t)
	backUp(t, disk)
	whole, met := 0, map[[32]byte]bool{}
	atEach(disk, back, func(at int, op memfs.Op) {
		for seed := range seeds {
			cut := disk.Crash(uint64(at*seeds + seed))
			digest := cut.Digest()
			if met[digest] {
				continue // it is what another one has left
			}
			met[digest] = true
			if _, err := cut.Stat(path.Join(back, logName)); err == nil {
				require.Equal(t, two, picture(t, cut, back), "%d %v", at, op)
				whole++
				continue
			}
			if _, err := cut.Stat(path.Join(back, logName+".part")); err != nil {
				continue
			}
			_, err := store.Open(cut, params(back), store.Options{})
			require.ErrorIs(t, err, store.ErrNoLog, "%d %v", at, op)
		}
	})
	_, err := Restore(t.Context(), disk, params(dest), back, nil)
	require.NoError(t, err)
	require.NotZero(t, whole)
	want := names(t, disk, back)
	for seed := range uint64(50) {
		cut := disk.Crash(seed)
		require.Equal(t, want, names(t, cut, back), "seed %d", seed)
		require.Equal(t, two, picture(t, cut, back), "seed %d", seed)
	}
}

// roomy are the operations that take room.
var roomy = []memfs.Kind{memfs.KindCreate, memfs.KindWrite, memfs.KindTruncate, memfs.KindAllocate, memfs.KindMkdir}

// TestADiskThatIsFullAnywhereInABackup, from some operation on: what the copy had can be restored, and the next backup is whole.
func TestADiskThatIsFullAnywhereInABackup(t *testing.T) {
	for _, s := range scenes {
		before, one, two := s.make(t)
		for k := 1; ; k++ {
			disk, at := before.Clone(), 0
			inTurn(disk, func(op memfs.Op) bool { return slices.Contains(roomy, op.Kind) }, func(memfs.Op) error {
				if at++; at >= k {
					return vfs.ErrNoSpace
				}
				return nil
			})
			_, err := Backup(t.Context(), disk, params(source), dest, nil)
			disk.Inject(nil)
			if err == nil {
				require.Greater(t, k, 20)
				break
			}
			require.ErrorIs(t, err, vfs.ErrNoSpace)
			found, err := restored(t, disk)
			if err != nil {
				require.True(t, !s.again && saysSo(err), "%d: %v", k, err)
			} else {
				require.Contains(t, []string{one, two}, found, "%d", k)
			}
			backUp(t, disk)
			require.Equal(t, two, mustRestore(t, disk), "%d", k)
		}
	}
}

// TestAnyErrorOfTheDiskEndsABackup, and what the copy had can be restored.
func TestAnyErrorOfTheDiskEndsABackup(t *testing.T) {
	broken := errors.New("broken")
	for _, s := range []scene{{again: true, messages: 100}, {again: true, messages: 90, damaged: true}} {
		before, one, two := s.make(t)
		for k, met := 1, true; met; k++ {
			disk, at := before.Clone(), 0
			inTurn(disk, func(op memfs.Op) bool { return op.Kind.Changes() }, func(memfs.Op) error {
				if at++; at == k {
					return broken
				}
				return nil
			})
			_, err := Backup(t.Context(), disk, params(source), dest, nil)
			disk.Inject(nil)
			if met = at >= k; !met {
				require.NoError(t, err)
			}
			want := []string{one, two}
			if err == nil { // recovery can do without what has failed
				want = want[1:]
			}
			for seed := range uint64(2) {
				require.Contains(t, want, mustRestore(t, disk.Crash(seed)), "%d: %v", k, err)
			}
			if k%4 == 0 {
				backUp(t, disk)
				require.Equal(t, two, mustRestore(t, disk), "%d", k)
			}
		}
	}
}

// TestABackupThatAnotherOneWasFasterThan does not go on from what was there before that.
func TestABackupThatAnotherOneWasFasterThan(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 100)
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindLock && op.Name == path.Join(dest, "lock") {
			disk.Inject(nil)
			backUp(t, disk)
		}
		return nil
	})
	_, err := Backup(t.Context(), disk, params(source), dest, nil)
	require.ErrorIs(t, err, ErrUnfinished)
	mustRestore(t, disk)
}

// TestABackupOfATornLogGoesOnOnceTheStoreHasCutItToo, when it was interrupted behind the recovery of the copy.
func TestABackupOfATornLogGoesOnOnceTheStoreHasCutItToo(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 10)
	tear(t, disk)
	broken := errors.New("broken")
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == path.Join(dest, listName) && there(t, disk, params(dest).CleanStopPath()) {
			return broken
		}
		return nil
	})
	_, err := Backup(t.Context(), disk, params(source), dest, nil)
	require.ErrorIs(t, err, broken)
	disk.Inject(nil)
	one := mustRestore(t, disk)
	s, err := store.Open(disk, params(source), store.Options{FullScan: true})
	require.NoError(t, err)
	require.NoError(t, s.CloseClean())
	backUp(t, disk)
	require.Equal(t, one, mustRestore(t, disk))
}

// TestAPowerCutAnywhereInABackupOfADamagedLog leaves what can be restored though a file gets the damage back that the recovery of the copy has closed.
func TestAPowerCutAnywhereInABackupOfADamagedLog(t *testing.T) {
	disk := memfs.New()
	s := open(t, disk)
	put(t, s, "T", 100)
	damage(t, disk, 0, 1000)
	damage(t, disk, 1, 1000)
	backUp(t, disk)
	one := mustRestore(t, disk)
	put(t, s, "T", 10)
	after := disk.Clone()
	backUp(t, after)
	two := mustRestore(t, after)
	require.NotEqual(t, one, two)
	finds := finds{}
	atEach(disk, dest, func(at int, op memfs.Op) {
		for seed := range seeds {
			found, err := finds.restored(t, disk.Crash(uint64(at*seeds+seed)))
			require.NoError(t, err, "%d %v", at, op)
			require.Contains(t, []string{one, two}, found, "%d %v", at, op)
		}
	})
	backUp(t, disk)
	disk.Inject(nil)
	require.NoError(t, s.Close(t.Context()))
}

// TestAFileThatHasAChecksumIsThere, with the content that was summed, also behind a power cut: it is not copied again.
func TestAFileThatHasAChecksumIsThere(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 30)
	backUp(t, disk)
	grow(t, disk, "two", 100) // the last file goes on to its end
	first := path.Join(logName, segments.Name(0))
	want := fixture.ReadFile(t, disk, path.Join(source, first))
	atEach(disk, dest, func(at int, op memfs.Op) {
		if op.Kind != memfs.KindSyncDir || op.Name != dest {
			return
		}
		for seed := range uint64(8) {
			cut := disk.Crash(seed)
			backUp(t, cut)
			require.True(t, bytes.Equal(want, fixture.ReadFile(t, cut, path.Join(dest, first))), "%d, seed %d", at, seed)
		}
	})
	backUp(t, disk)
}
