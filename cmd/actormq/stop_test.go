package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheStoreIsClosedInOrderWhateverClientsTook: what serves them can take all the time that a stop has.
func TestTheStoreIsClosedInOrderWhateverClientsTook(t *testing.T) {
	n := serve(t)
	n.produce("orders", "a")
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	_ = n.stop(late) // it may say that the time was over
	n.node = nil
	require.NoFileExists(t, filepath.Join(n.dir, "abort"))
	require.FileExists(t, filepath.Join(n.dir, "cleanstop.json"))
	require.NoError(t, n.start())
	require.Len(t, n.consume("--topic", "orders", "--from", "first"), 1)
}
