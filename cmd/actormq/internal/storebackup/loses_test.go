package storebackup

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// segment is the name of the log's file of this number in a store.
func segment(dir string, n int64) string {
	return path.Join(dir, logName, segments.Name(n*params(dir).SegmentBytes))
}

// TestALogThatVanishesWhileItIsCopiedDeletesNothing: its disk is not mounted any more.
func TestALogThatVanishesWhileItIsCopiedDeletesNothing(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 100)
	backUp(t, disk)
	one := mustRestore(t, disk)
	grow(t, disk, "two", 100)
	once(disk, floorsName, func() { require.NoError(t, removeTree(disk, path.Join(source, logName))) })
	_, err := Backup(t.Context(), disk, params(source), dest, nil)
	require.ErrorIs(t, err, ErrNoStore)
	require.Equal(t, one, mustRestore(t, disk))
}

// TestAStoreThatVanishesWhileItIsCopiedFirstIsNoEmptyOne: the copy has nothing yet that would be missed.
func TestAStoreThatVanishesWhileItIsCopiedFirstIsNoEmptyOne(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 100)
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindMkdir && op.Name == path.Join(dest, nextName) {
			disk.Inject(nil)
			require.NoError(t, removeTree(disk, source))
		}
		return nil
	})
	_, err := Backup(t.Context(), disk, params(source), dest, nil)
	require.ErrorIs(t, err, ErrNoStore)
}

// TestALogThatWasCutAndHasGoneOnIsNotMixedWithWhatItWas: files that were copied once are not copied again.
func TestALogThatWasCutAndHasGoneOnIsNotMixedWithWhatItWas(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 200)
	backUp(t, disk)
	one := mustRestore(t, disk)
	p := params(source)
	last, err := lastSound(disk, segment(source, 1))
	require.NoError(t, err)
	p.Follower, p.CutAt = true, messages.PhysicalOffset(p.SegmentBytes+last)
	s, err := store.Open(disk, p, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.CloseClean())
	grow(t, disk, "two", 300)
	_, err = Backup(t.Context(), disk, params(source), dest, nil)
	require.ErrorIs(t, err, ErrLoses)
	require.Equal(t, one, mustRestore(t, disk))
}

// TestAFullFileIsNotReadToKnowThatItWasNotCut: the record behind it is the same.
func TestAFullFileIsNotReadToKnowThatItWasNotCut(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 200)
	backUp(t, disk)
	grow(t, disk, "two", 20)
	last := len(names(t, disk, path.Join(dest, logName))) - 1
	require.Positive(t, last)
	disk.Inject(func(op memfs.Op) error {
		require.False(t, op.Kind == memfs.KindMap && op.Name == segment(source, int64(last-1)), "%v", op)
		return nil
	})
	backUp(t, disk)
	disk.Inject(nil)
	mustRestore(t, disk)
}

// TestALogThatIsCutWhileItIsCopiedIsNotMixedWithWhatItWas: a file that was copied already is another one when the next one is copied.
func TestALogThatIsCutWhileItIsCopiedIsNotMixedWithWhatItWas(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 200)
	last, err := lastSound(disk, segment(source, 1))
	require.NoError(t, err)
	met := false
	disk.Inject(func(op memfs.Op) error {
		if op.Kind != memfs.KindRename || op.To != segment(dest, 2) {
			return nil
		}
		disk.Inject(nil)
		met = true
		p := params(source)
		p.Follower, p.CutAt = true, messages.PhysicalOffset(p.SegmentBytes+last)
		s, err := store.Open(disk, p, store.Options{})
		require.NoError(t, err)
		require.NoError(t, s.CloseClean())
		grow(t, disk, "two", 300)
		return nil
	})
	_, err = Backup(t.Context(), disk, params(source), dest, nil)
	require.ErrorIs(t, err, ErrUnfinished)
	require.True(t, met)
	backUp(t, disk)
	mustRestore(t, disk)
	for n := range int64(4) {
		require.Equal(t, fixture.ReadFile(t, disk, segment(source, n)), fixture.ReadFile(t, disk, segment(dest, n)), "%d", n)
	}
}

// TestALostRecordIsNoCut: the store has closed the damage of the last record of a file that was copied before.
func TestALostRecordIsNoCut(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 200)
	backUp(t, disk)
	last, err := lastSound(disk, segment(source, 1))
	require.NoError(t, err)
	damage(t, disk, 1, last+100)
	want := fixture.ReadFile(t, disk, segment(dest, 1))
	for range 2 { // damaged, and closed
		backUp(t, disk)
		require.Equal(t, want, fixture.ReadFile(t, disk, segment(dest, 1)))
		mustRestore(t, disk)
		s, err := store.Open(disk, params(source), store.Options{FullScan: true})
		require.NoError(t, err)
		require.NoError(t, s.CloseClean())
	}
}

// TestACopyOfAFileThatTheStoreHasLostStays, also when it was the last one, and not full, when it was copied, or damaged.
func TestACopyOfAFileThatTheStoreHasLostStays(t *testing.T) {
	for _, lost := range []int64{1, 2} {
		disk := memfs.New()
		grow(t, disk, "one", 150)
		damage(t, disk, 1, 1000)
		backUp(t, disk)
		want := fixture.ReadFile(t, disk, segment(dest, lost))
		end, err := lastRecord(disk, segment(dest, lost))
		require.NoError(t, err)
		grow(t, disk, "two", 100)
		remove(t, disk, segment(source, lost))
		for range 2 {
			backUp(t, disk)
			require.Equal(t, want[:end], fixture.ReadFile(t, disk, segment(dest, lost))[:end])
		}
		_, err = Restore(t.Context(), disk, params(dest), back, nil)
		require.NoError(t, err)
		require.Equal(t, want[:end], fixture.ReadFile(t, disk, segment(back, lost))[:end])
		was, err := logEnd(disk, params(source))
		require.NoError(t, err)
		is, err := logEnd(disk, params(back))
		require.NoError(t, err)
		require.Equal(t, was, is)
	}
}

// TestABackupOfALogThatBeginsWithDamageIsOfItsStore: the recovery of the copy has closed it.
func TestABackupOfALogThatBeginsWithDamageIsOfItsStore(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 10)
	damage(t, disk, 0, 30)
	for range 3 {
		backUp(t, disk)
		mustRestore(t, disk)
	}
}

// TestTwoBackupsAtATimeAreOne: nobody begins while the copy's checksums are taken and noted.
func TestTwoBackupsAtATimeAreOne(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 100)
	met := 0
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == path.Join(dest, listName) && there(t, disk, params(dest).CleanStopPath()) {
			met++
			disk.Inject(nil)
			_, err := Backup(t.Context(), disk, params(source), dest, nil)
			require.ErrorIs(t, err, vfs.ErrLocked)
		}
		return nil
	})
	backUp(t, disk)
	require.Equal(t, 1, met)
}

// TestABackupWithoutAMessageIsOne, that the next run keeps until it has all.
func TestABackupWithoutAMessageIsOne(t *testing.T) {
	disk := memfs.New()
	require.NoError(t, open(t, disk).Close(t.Context()))
	topics := path.Join(configName, "topics.json")
	fixture.WriteFile(t, disk, path.Join(source, topics), []byte("one"))
	backUp(t, disk)
	one := mustRestore(t, disk)
	grow(t, disk, "two", 100)
	once(disk, floorsName, func() {
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindRename && op.To == path.Join(dest, listName) {
				return vfs.ErrNoSpace
			}
			return nil
		})
	})
	_, err := Backup(t.Context(), disk, params(source), dest, nil)
	require.ErrorIs(t, err, vfs.ErrNoSpace)
	disk.Inject(nil)
	require.Equal(t, one, mustRestore(t, disk))
}

// TestAFileOfTheLogThatIsTooShortIsNotLeftOut: it is damaged, or the size is that of another store.
func TestAFileOfTheLogThatIsTooShortIsNotLeftOut(t *testing.T) {
	disk := memfs.New()
	grow(t, disk, "one", 200)
	cut := func(file int64) *memfs.Disk {
		disk := disk.Clone()
		f, err := disk.Open(segment(source, file), true)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(5000))
		require.NoError(t, f.Close())
		return disk
	}
	for _, file := range []int64{0, 1} {
		_, err := Backup(t.Context(), cut(file), params(source), dest, nil)
		require.ErrorIs(t, err, segments.ErrSize)
	}
	p := params(source)
	p.SegmentBytes *= 2
	_, err := Backup(t.Context(), disk, p, dest, nil)
	require.ErrorIs(t, err, segments.ErrSize)
	all, err := segmentNames(disk, params(source))
	require.NoError(t, err)
	fixture.WriteFile(t, disk, segment(source, int64(len(all))), nil) // it is being made
	backUp(t, disk)
	mustRestore(t, disk)
}
