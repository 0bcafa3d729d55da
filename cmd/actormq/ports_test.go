package main

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestANodeWhosePortIsTakenTouchesNoStore: it would make one, or recover one for minutes, and then end.
func TestANodeWhosePortIsTakenTouchesNoStore(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	for _, taken := range []string{"--listen", "--namesrv-listen", "--remote-listen", "haListenPort="} {
		ports := map[string]string{"--listen": freePort(t), "--namesrv-listen": freePort(t), "--remote-listen": freePort(t)}
		dir := filepath.Join(t.TempDir(), "store")
		args := []string{"node", "--store-dir", dir, "--admin-listen", "", "--set", "vipChannel=false"}
		if _, is := ports[taken]; is {
			ports[taken] = l.Addr().String()
		} else {
			_, port, err := net.SplitHostPort(l.Addr().String())
			require.NoError(t, err)
			args = append(args, "--set", taken+port)
		}
		for flag, address := range ports {
			args = append(args, flag, address)
		}
		_, _, err := run(args...)
		require.ErrorIs(t, err, syscall.EADDRINUSE, taken)
		require.NoDirExists(t, dir, taken)
	}
}
