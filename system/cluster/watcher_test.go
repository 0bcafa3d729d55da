package cluster

import (
	"errors"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// A look fails while etcd has no leader, and nothing may change after it for hours: the watch has to end, so that the look is
// repeated. A group whose leader had stopped in order stayed without one.
func TestAWatchEndsWithALookThatFails(t *testing.T) {
	client, err := dial([]string{etcd(t)}, nil, newClientLog(zerolog.Nop()))
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	ctl := newControl(client, "watched")
	v, err := ctl.look(t.Context())
	require.NoError(t, err)
	_, err = client.Put(t.Context(), ctl.nodeKey("1"), "{}")
	require.NoError(t, err)
	looks, noLeader := 0, errors.New("no leader")
	err = ctl.watch(t.Context(), v.at+1, func() error {
		looks++
		return noLeader
	})
	require.ErrorIs(t, err, noLeader)
	require.Equal(t, 1, looks)
}
