package messages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.5.5.5": true, "::1": true, "[::1]": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.7": false, "127.0.0.1.elsewhere": false, "localhost.elsewhere": false,
	} {
		require.Equal(t, want, messages.IsLoopback(host), host)
	}
}
