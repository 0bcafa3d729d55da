package checkpoint

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const (
	name   = "/store/checkpoint"
	marker = "/store/abort"
)

func newDisk(t testing.TB) *memfs.Disk {
	disk := memfs.New()
	require.NoError(t, disk.MkdirAll("/store"))
	return disk
}

func TestVector(t *testing.T) {
	disk := newDisk(t)
	v := Values{PhysicMs: 1700000000123, LogicsMs: 1700000000123}
	require.NoError(t, Save(disk, name, v))
	want := make([]byte, 4096)
	_, err := hex.Decode(want, []byte("0000018bcfe5687b0000018bcfe5687b0000000000000000"))
	require.NoError(t, err)
	require.Equal(t, want, fixture.ReadFile(t, disk, name))
	got, err := Load(disk.Crash(1), name)
	require.NoError(t, err)
	require.Equal(t, v, got)
	require.NoError(t, Save(disk, name, Values{1, 2, 3}))
	got, err = Load(disk.Crash(1), name)
	require.NoError(t, err)
	require.Equal(t, Values{PhysicMs: 1, LogicsMs: 2, IndexMs: 3}, got)
}

func TestMinTimestamps(t *testing.T) {
	for _, c := range []struct {
		v          Values
		min, index int64
	}{
		{Values{}, 0, 0}, {Values{10_000, 8000, 0}, 5000, 0}, {Values{8000, 10_000, 6000}, 5000, 5000},
		{Values{8000, 10_000, 4000}, 5000, 4000}, {Values{2999, 10_000, 9000}, 0, 0},
	} {
		require.Equal(t, c.min, c.v.MinTimestampMs(), c.v)
		require.Equal(t, c.index, c.v.MinTimestampIndexMs(), c.v)
	}
}

func TestLoadWhatIsNoCheckpoint(t *testing.T) {
	disk := newDisk(t)
	v, err := Load(disk, name)
	require.NoError(t, err)
	require.Zero(t, v)
	for _, c := range []struct {
		content string
		err     error
		detail  string
	}{
		{"", nil, ""},
		{"0000018bcfe5687b", ErrDamaged, "8 bytes"},
		{"0000018bcfe5687b8000018bcfe5687b0000000000000000", ErrDamaged, "offset 8"},
	} {
		content, err := hex.DecodeString(c.content)
		require.NoError(t, err)
		fixture.WriteFile(t, disk, name, content)
		v, err := Load(disk, name)
		require.ErrorIs(t, err, c.err)
		require.Zero(t, v)
		if c.err != nil {
			var damage *segments.CorruptionError
			require.ErrorAs(t, err, &damage)
			require.ErrorContains(t, err, c.detail)
		}
		require.NoError(t, Save(disk, name, Values{7, 8, 9}))
		v, err = Load(disk, name)
		require.NoError(t, err)
		require.Equal(t, Values{7, 8, 9}, v)
		require.Len(t, fixture.ReadFile(t, disk, name), 4096)
		require.NoError(t, disk.Remove(name))
	}
}

func TestSaveKeepsWhatLaterReleasesAdd(t *testing.T) {
	disk := newDisk(t)
	page := make([]byte, 4096)
	for i := range page {
		page[i] = byte(i % 100)
	}
	fixture.WriteFile(t, disk, name, page)
	require.NoError(t, Save(disk, name, Values{1, 2, 3}))
	require.Equal(t, page[24:], fixture.ReadFile(t, disk, name)[24:])
}

// TestCrashAtEveryStep ends a Save before each of its operations: the old or the new values load.
func TestCrashAtEveryStep(t *testing.T) {
	for _, first := range []bool{true, false} {
		disk := newDisk(t)
		old, now := Values{}, Values{4, 5, 6}
		if !first {
			old = Values{1, 2, 3}
			require.NoError(t, Save(disk, name, old))
		}
		steps := 0
		disk.Inject(func(op memfs.Op) error {
			if !op.Kind.Changes() {
				return nil
			}
			steps++
			for seed := range uint64(20) {
				got, err := Load(disk.Crash(seed), name)
				require.NoError(t, err)
				require.Contains(t, []Values{old, now}, got)
			}
			killed := disk.Clone()
			got, err := Load(killed, name)
			require.NoError(t, err)
			require.Contains(t, []Values{old, now}, got)
			require.NoError(t, Save(killed, name, Values{7, 8, 9}))
			for seed := range uint64(20) {
				got, err := Load(killed.Crash(seed), name)
				require.NoError(t, err)
				require.Equal(t, Values{7, 8, 9}, got, "whatever the killed process had left")
			}
			return nil
		})
		require.NoError(t, Save(disk, name, now))
		disk.Inject(nil)
		require.Greater(t, steps, 2)
		for seed := range uint64(20) {
			got, err := Load(disk.Crash(seed), name)
			require.NoError(t, err)
			require.Equal(t, now, got)
		}
	}
}

func TestFailedSaveSaysSo(t *testing.T) {
	kinds := []memfs.Kind{memfs.KindOpen, memfs.KindCreate, memfs.KindWrite, memfs.KindDataSync, memfs.KindRename, memfs.KindSyncDir, memfs.KindClose}
	for _, first := range []bool{true, false} {
		for _, kind := range kinds {
			if !first && (kind == memfs.KindCreate || kind == memfs.KindRename) {
				continue // an existing page is not made anew
			}
			disk := newDisk(t)
			old := Values{}
			if !first {
				old = Values{1, 2, 3}
				require.NoError(t, Save(disk, name, old))
			}
			boom := errors.New("boom")
			disk.Inject(func(op memfs.Op) error {
				if op.Kind == kind {
					return boom
				}
				return nil
			})
			require.ErrorIs(t, Save(disk, name, Values{4, 5, 6}), boom, kind)
			disk.Inject(nil)
			require.NoError(t, Save(disk, name, Values{7, 8, 9}))
			got, err := Load(disk.Crash(1), name)
			require.NoError(t, err)
			require.Equal(t, Values{7, 8, 9}, got)
		}
	}
}

func TestAbort(t *testing.T) {
	disk := newDisk(t)
	for range 2 {
		require.NoError(t, ClearAbort(disk, marker))
		there, err := HasAbort(disk, marker)
		require.NoError(t, err)
		require.False(t, there)
		for range 2 {
			require.NoError(t, SetAbort(disk, marker))
			there, err = HasAbort(disk.Crash(3), marker)
			require.NoError(t, err)
			require.True(t, there)
		}
	}
	fixture.WriteFile(t, disk, marker+"2", []byte("4711"))
	there, err := HasAbort(disk, marker+"2")
	require.NoError(t, err)
	require.True(t, there, "5.x writes a pid into it")
	require.NoError(t, ClearAbort(disk, marker))
	_, err = disk.Crash(3).Stat(marker)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, kind := range []memfs.Kind{memfs.KindCreate, memfs.KindSyncDir, memfs.KindRemove, memfs.KindStat} {
		boom := errors.New("boom")
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == kind {
				return boom
			}
			return nil
		})
		_, err := HasAbort(disk, marker)
		require.ErrorIs(t, errors.Join(err, SetAbort(disk, marker), ClearAbort(disk, marker)), boom)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 4096))
	f.Add([]byte("\x00\x00\x01\x8b\xcf\xe5\x68\x7b\x80\x00\x01\x8b\xcf\xe5\x68\x7b\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		disk := newDisk(t)
		fixture.WriteFile(t, disk, name, data)
		v, err := Load(disk, name)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			require.Zero(t, v)
		}
		require.GreaterOrEqual(t, v.MinTimestampMs(), int64(0))
		require.NoError(t, Save(disk, name, v))
		again, err := Load(disk, name)
		require.NoError(t, err)
		require.Equal(t, v, again)
	})
}
