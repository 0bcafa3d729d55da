package memfs_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// tinyStore is about what a store in a crash test has: a few mapped files, many small ones.
func tinyStore(b *testing.B) (*memfs.Disk, vfs.File, vfs.Mapping) {
	d := memfs.New()
	require.NoError(b, d.MkdirAll("/s"))
	for i := range 20 {
		require.NoError(b, makeFile(d, fmt.Sprintf("/s/%d", i), "content"))
	}
	f, err := d.Create("/s/log")
	require.NoError(b, err)
	require.NoError(b, f.Allocate(0, 1<<20))
	m, err := f.Map(1<<20, vfs.MapShared)
	require.NoError(b, err)
	return d, f, m
}

func BenchmarkDataSync(b *testing.B) {
	_, f, m := tinyStore(b)
	b.Run("mapped=1M/changed=1", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			m.Bytes()[i%(1<<20)]++
			_ = f.DataSync()
		}
	})
	require.NoError(b, m.Unmap())
	require.NoError(b, f.DataSync())
	b.Run("written=1M/changed=1", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			_, _ = f.WriteAt([]byte{byte(i)}, int64(i%(1<<20)))
			_ = f.DataSync()
		}
	})
}

func BenchmarkCrash(b *testing.B) {
	d, f, m := tinyStore(b)
	for i := range 100 {
		m.Bytes()[i*4096] = 1
	}
	require.NoError(b, f.DataSync())
	for i := range 20 {
		m.Bytes()[i*4096] = 2
	}
	b.Run("files=21/mapped=1M", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			d.Crash(uint64(i))
		}
	})
}
