package cluster

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhoAsksAnEtcdInVainIsToldWhy: that the time is over alone helps nobody.
func TestWhoAsksAnEtcdInVainIsToldWhy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = Read(ctx, []string{l.Addr().String()}, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, l.Addr().String())
	require.ErrorContains(t, err, "connection refused")
}
