package storebackup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestACopyOfQueuesThatAreNotToBeBelievedSaysSo, whether that was known before they were copied, or is while they are.
func TestACopyOfQueuesThatAreNotToBeBelievedSaysSo(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	queue := filepath.Join("consumequeue", "T", "0", "00000000000000000000")
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(from, queue)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(from, queue), make([]byte, 20), 0o600))
	marker := filepath.Join(from, "unprovenqueues")
	require.NoError(t, os.WriteFile(marker, []byte("7\n"), 0o600))
	require.NoError(t, copyAround(t.Context(), from, to))
	text, err := os.ReadFile(filepath.Join(to, "unprovenqueues"))
	require.NoError(t, err)
	require.Equal(t, "7\n", string(text))
	require.FileExists(t, filepath.Join(to, queue))

	require.NoError(t, os.Remove(marker))
	require.NoError(t, copyAround(t.Context(), from, to))
	require.NoFileExists(t, filepath.Join(to, "unprovenqueues"), "of the copy before")
}
