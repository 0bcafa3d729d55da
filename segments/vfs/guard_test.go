//go:build linux || darwin || freebsd

package vfs_test

import (
	"errors"
	"os"
	"path"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/vfs"
)

// shrunken returns a mapping whose last pages the file does not have any more: touching them raises SIGBUS.
func shrunken(t *testing.T) vfs.Mapping {
	t.Helper()
	pages := int64(4 * os.Getpagesize())
	f := create(t, vfs.New(), path.Join(t.TempDir(), "a"), pages)
	m, err := f.Map(pages, vfs.MapShared)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Unmap()) })
	m.Bytes()[0] = 'x'
	require.NoError(t, f.Truncate(1))
	return m
}

func TestGuardTurnsAFaultIntoAnError(t *testing.T) {
	m := shrunken(t)
	last := len(m.Bytes()) - 1
	tests := map[string]func() error{
		"read":  func() error { sink = m.Bytes()[last]; return nil },
		"write": func() error { m.Bytes()[last] = 1; return nil },
		"copy":  func() error { copy(make([]byte, len(m.Bytes())), m.Bytes()); return nil },
	}
	for name, fn := range tests {
		err := vfs.Guard("reading the log", fn)
		require.ErrorIs(t, err, vfs.ErrFault, name)
		require.ErrorContains(t, err, "reading the log", name)
		require.ErrorContains(t, err, "at address 0x", name)
	}
	require.NoError(t, vfs.Guard("what is left", func() error { sink = m.Bytes()[0]; return nil }))
	require.Equal(t, byte('x'), sink)
}

var sink byte

func TestPopulateReportsAFault(t *testing.T) {
	m := shrunken(t)
	err := m.Populate(0, int64(len(m.Bytes())))
	require.ErrorIs(t, err, vfs.ErrFault)
	requirePathErrorOp(t, err, "populate")
	require.NoError(t, m.Populate(0, 1))
}

func requirePathErrorOp(t *testing.T, err error, op string) {
	t.Helper()
	var pe *os.PathError
	require.ErrorAs(t, err, &pe)
	require.Equal(t, op, pe.Op)
}

func TestOverlayReportsAFaultOfItsBase(t *testing.T) {
	name := path.Join(t.TempDir(), "a")
	base := create(t, vfs.New(), name, 3*int64(os.Getpagesize()))
	f, err := overlay(t, vfs.New()).Open(name, true)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 0)
	require.NoError(t, err)
	require.NoError(t, base.Truncate(1))
	_, err = f.ReadAt(make([]byte, 10), 2*int64(os.Getpagesize()))
	require.ErrorIs(t, err, vfs.ErrFault)
	requirePathError(t, err, "read", name)
	_, err = f.WriteAt(make([]byte, 10), 2*int64(os.Getpagesize()))
	require.ErrorIs(t, err, vfs.ErrFault)
	require.NoError(t, f.Close())
}

func TestGuardLetsOtherPanicsGoOn(t *testing.T) {
	require.PanicsWithValue(t, "bug", func() { _ = vfs.Guard("x", func() error { panic("bug") }) })
	var none *struct{ field int }
	require.Panics(t, func() { _ = vfs.Guard("x", func() error { none.field = 1; return nil }) }, "a nil pointer is a bug")
}

func TestGuardPassesErrorsAndRestores(t *testing.T) {
	wrong := errors.New("wrong")
	require.Equal(t, wrong, vfs.Guard("x", func() error { return wrong }))
	require.False(t, debug.SetPanicOnFault(false), "the goroutine's setting was not restored")
	require.NoError(t, vfs.Guard("outer", func() error {
		require.NoError(t, vfs.Guard("inner", func() error { return nil }))
		require.True(t, debug.SetPanicOnFault(true), "the inner guard ended the outer one")
		return nil
	}))
}

func TestGuardDoesNotAllocate(t *testing.T) {
	b := make([]byte, 8)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = vfs.Guard("x", func() error { b[0]++; return nil })
	}))
}
