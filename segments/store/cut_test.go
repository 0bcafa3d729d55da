package store_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestAReplicasLogIsCutWhereItsGroupWentOnWithoutIt(t *testing.T) {
	for _, clean := range []bool{true, false} {
		disk := memfs.New()
		w := newLogWriter(t, disk)
		w.fill(120) // several segments
		s, err := store.Open(disk, testParams(), testOptions())
		require.NoError(t, err)
		if clean {
			require.NoError(t, s.CloseClean())
		} else {
			require.NoError(t, s.Close())
		}
		for _, n := range []int{100, 30, 7} {
			p := testParams()
			p.Follower, p.CutAt = true, messages.PhysicalOffset(w.puts[n].from)
			s, err = store.Open(disk, p, testOptions())
			require.NoError(t, err)
			require.Equal(t, p.CutAt, s.Log.End())
			require.NotEmpty(t, s.Report.Quarantine, "what is cut is kept")
			ends := map[messages.QueueKey]messages.QueueOffset{}
			for _, x := range w.puts[:n] {
				ends[x.key] = x.at + 1
			}
			require.Equal(t, ends, s.QueueOffsets)
			require.NoError(t, s.CloseClean())
			s, err = store.Open(disk, p, testOptions())
			require.NoError(t, err)
			require.Equal(t, p.CutAt, s.Log.End(), "a log that is short enough stays")
			require.NoError(t, s.CloseClean())
		}
	}
}

func TestAStoreThatHasNothingInCommonIsPutAside(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.fill(50)
	s, err := store.Open(disk, testParams(), testOptions())
	require.NoError(t, err)
	require.NoError(t, s.CloseClean())
	putAside(t, disk, testParams(), "s/quarantine", "commitlog")
	require.NoError(t, store.PutAside(memfs.New(), testParams(), testOptions().Now()), "there is nothing")
}

// putAside requires that a store is empty once it was put aside, and that its log is in a quarantine.
func putAside(t *testing.T, disk *memfs.Disk, p store.Params, quarantine, log string) {
	t.Helper()
	require.NoError(t, store.PutAside(disk, p, testOptions().Now()))
	s, err := store.Open(disk, p, testOptions())
	require.NoError(t, err)
	require.Zero(t, s.Log.End())
	require.Empty(t, s.QueueOffsets)
	require.NoError(t, s.Close())
	aside, err := disk.List(quarantine)
	require.NoError(t, err)
	require.Len(t, aside, 1)
	logs, err := disk.List(quarantine + "/" + aside[0].Name + "/" + log)
	require.NoError(t, err)
	require.NotEmpty(t, logs)
}

// TestALogOnAnotherFileSystemIsPutAside beside its folder, where it can be renamed.
func TestALogOnAnotherFileSystemIsPutAside(t *testing.T) {
	for _, dir := range []string{"other/log", "other/log/"} {
		disk, _ := closed(t, 50)
		require.NoError(t, disk.MkdirAll("other"))
		require.NoError(t, disk.Rename("s/commitlog", "other/log"))
		require.NoError(t, errors.Join(disk.SyncDir("s"), disk.SyncDir("other")))
		p := testParams()
		p.CommitLogDir = dir
		disk.Inject(func(op memfs.Op) error {
			if root := func(name string) string { return strings.Split(name, "/")[0] }; op.Kind == memfs.KindRename && root(op.Name) != root(op.To) {
				return syscall.EXDEV
			}
			return nil
		})
		putAside(t, disk, p, "other/quarantine", "log")
	}
}

// TestWhatIsNotToBeBelievedIsPutAsideLast ends putting aside after each operation, by a kill and by power cuts: what is left opens, with all that the
// store had or with nothing, and with its marks.
func TestWhatIsNotToBeBelievedIsPutAsideLast(t *testing.T) {
	disk, puts := expired(t)
	s := open(t, disk)
	kept := messages.QueueKey{Topic: "Kept"}
	for range 2 { // the second one leaves a backup of the first
		require.NoError(t, s.OffsetsKept(map[messages.QueueKey]messages.QueueOffset{kept: 9}))
	}
	require.NoError(t, s.MarkQueuesDamaged(errors.New("a unit is damaged")))
	require.NoError(t, s.CloseClean())
	require.NoError(t, store.MarkUnproven(disk, testParams(), messages.PhysicalOffset(puts[0].from), errors.New("a sync failed")))
	off, met := errors.New("power is off"), newEnds(t)
	for k, done := 0, false; !done; k++ {
		d := disk.Clone()
		d.Inject(powerOff(k, off))
		done = store.PutAside(d, testParams(), testOptions().Now()) == nil
		for _, left := range met.anew(d.Clone(), d.Crash(uint64(k)), d.Crash(uint64(k)+1000), d.Crash(uint64(k)+2000)) {
			_, log := left.Stat("s/commitlog")
			_, queues := left.Stat("s/consumequeue")
			_, noLog := left.Stat("s/unproven")
			_, noQueues := left.Stat("s/unprovenqueues")
			require.False(t, log == nil && noLog != nil || queues == nil && noQueues != nil, "step %d", k)
			again := left.Clone()
			c, _ := recovered(t, left)
			if log != nil {
				require.Empty(t, c.Next, "step %d", k)
			} else {
				c.requirePuts(t, puts)
			}
			require.NoError(t, store.PutAside(again, testParams(), testOptions().Now()))
			c, _ = recovered(t, again)
			require.Empty(t, c.Next)
		}
	}
}
