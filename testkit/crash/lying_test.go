package crash_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/crash"
)

// lyingDisk says that it has synced, and has not.
type lyingDisk struct {
	vfs.Disk
	files, folders bool
}

func (d lyingDisk) SyncDir(dir string) error {
	if d.folders && strings.HasSuffix(dir, "/commitlog") {
		return nil
	}
	return d.Disk.SyncDir(dir)
}

func (d lyingDisk) Open(name string, writable bool) (vfs.File, error) {
	f, err := d.Disk.Open(name, writable)
	return d.wrap(name, f, err)
}

func (d lyingDisk) Create(name string) (vfs.File, error) {
	f, err := d.Disk.Create(name)
	return d.wrap(name, f, err)
}

func (d lyingDisk) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !d.files || !strings.Contains(name, "/prepare/") {
		return f, err
	}
	return &lyingFile{File: f}, nil
}

// lyingFile syncs the empty segment that is made, and what is put into it no more.
type lyingFile struct {
	vfs.File
	made atomic.Bool
}

func (f *lyingFile) Map(n int64, mode vfs.MapMode) (vfs.Mapping, error) {
	m, err := f.File.Map(n, mode)
	return lyingMapping{m}, err
}

type lyingMapping struct{ vfs.Mapping }

func (lyingMapping) DataSync(int64, int64) error { return nil }

func (f *lyingFile) DataSync() error {
	if f.made.Swap(true) {
		return nil
	}
	return f.File.DataSync()
}

// The judge is worth something: it finds out a disk that does not do what a sync promises, and one that forgets names.
func TestTheJudgeFindsOutALyingDisk(t *testing.T) {
	for name, lies := range map[string]lyingDisk{"files": {files: true}, "folders": {folders: true}} {
		var found error
		inBubble(t, func(*testing.T) {
			for seed := uint64(1); seed <= 30 && found == nil; seed++ {
				cfg := config(seed)
				cfg.Wrap = func(d vfs.Disk) vfs.Disk {
					lies.Disk = d
					return lies
				}
				_, found = crash.Run(cfg)
			}
		})
		require.ErrorContains(t, found, "LOST", name)
	}
}
