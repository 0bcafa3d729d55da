package main

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
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

func TestASignalEndsAStartThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, signal := context.WithCancel(t.Context())
		opened := make(chan struct{})
		begin, slow := time.Now(), func() (*node, error) {
			<-opened
			return &node{}, nil
		}
		time.AfterFunc(time.Minute, signal)
		_, err := orEnd(ctx, stopTimeout, slow)
		require.ErrorIs(t, err, errInterrupted)
		require.Equal(t, time.Minute+stopTimeout, time.Since(begin))
		time.AfterFunc(time.Second, func() { close(opened) })
		n, err := orEnd(ctx, stopTimeout, slow)
		require.NoError(t, err)
		require.NotNil(t, n, "it is stopped in order")
	})
}
