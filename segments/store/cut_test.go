package store_test

import (
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
	require.NoError(t, store.PutAside(disk, testParams(), testOptions().Now()))
	s, err = store.Open(disk, testParams(), testOptions())
	require.NoError(t, err)
	require.Zero(t, s.Log.End())
	require.Empty(t, s.QueueOffsets)
	require.NoError(t, s.Close())
	aside, err := disk.List("s/quarantine")
	require.NoError(t, err)
	require.Len(t, aside, 1)
	logs, err := disk.List("s/quarantine/" + aside[0].Name + "/commitlog")
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	require.NoError(t, store.PutAside(memfs.New(), testParams(), testOptions().Now()), "there is nothing")
}
