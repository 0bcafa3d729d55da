package nodeconf_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
)

// A broker.conf may name every option of RocketMQ 4.9.7, as those that its getBrokerConfig has printed do.
func TestEveryKeyOfRocketMQIsKnown(t *testing.T) {
	text, err := os.ReadFile("testdata/rocketmq-4.9.7-keys.txt")
	require.NoError(t, err)
	for key := range strings.Lines(string(text)) {
		key = strings.TrimSpace(key)
		c := nodeconf.Default()
		value, ours := c.Effective()[key]
		err := c.Set(key, value, "test")
		if err != nil { // a text of our own that stands for what is derived
			require.NotContains(t, err.Error(), "unknown key", key)
		}
		require.True(t, ours || slices.Contains(c.Ignored, key), key)
	}
	for _, key := range []string{"storePathConsumeQueue", "storePathIndex", "storeCheckpoint", "abortFile", "checkTransactionMessageEnable"} {
		c := nodeconf.Default()
		require.NoError(t, c.Set(key, "/data/store", "test"))
		require.Equal(t, []string{key}, c.Ignored, "it is told: nothing lies there, as in RocketMQ")
	}
	for key, value := range map[string]string{"enableDLegerCommitLog": "true", "messageStorePlugIn": "a.B"} {
		require.ErrorIs(t, nodeconf.Default().Set(key, value, "test"), nodeconf.ErrConfig, key)
	}
	require.NoError(t, nodeconf.Default().Set("messageStorePlugIn", "null", "test"))
}
