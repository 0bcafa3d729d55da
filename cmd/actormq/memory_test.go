package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// L88: a container that may use 512 MiB gets a heap that stays well below.
func TestTheHeapIsBoundedByTheContainer(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	file := filepath.Join(t.TempDir(), "memory.max")
	for text, want := range map[string]int64{"536870912\n": 322122546, "max\n": 0, "9223372036854771712\n": 0, "": 0} {
		debug.SetMemoryLimit(math.MaxInt64)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.Equal(t, want, boundHeap([]string{"/does/not/exist", file}))
		if want > 0 {
			require.Equal(t, want, debug.SetMemoryLimit(-1))
		}
	}
	t.Setenv("GOMEMLIMIT", "100MiB")
	require.NoError(t, os.WriteFile(file, []byte("536870912"), 0o600))
	require.Zero(t, boundHeap([]string{file}), "the operator's own limit wins")
}
