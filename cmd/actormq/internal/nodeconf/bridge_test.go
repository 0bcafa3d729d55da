package nodeconf_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
)

func TestTheKeysOfABridge(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("DemoSecret01\n"), 0o600))
	c := nodeconf.Default()
	for key, value := range map[string]string{
		"bridgeNamesrvAddr": "a:1; b:2", "bridgeTarget": "paris", "bridgeTopics": "orders; bills;", "bridgeOwnOnly": "true", "brokerName": "berlin",
		"bridgeUseTLS": "true", "bridgeAccessKey": "DemoUser01", "bridgeSecretKeyFile": secret,
	} {
		require.NoError(t, c.Set(key, value, "test"))
	}
	require.NoError(t, c.Finish())
	require.Equal(t, []string{"a:1", "b:2"}, c.Bridge.Client.NameServers)
	require.Equal(t, []string{"orders", "bills"}, c.Bridge.Topics)
	require.Equal(t, "berlin", c.Bridge.Side)
	require.Equal(t, "DemoSecret01", c.Bridge.Client.SecretKey)
	require.NotNil(t, c.Bridge.Client.TLS)
	require.True(t, c.Bridge.On() && c.Bridge.OwnOnly && !c.Bridge.KeepQueues)

	for name, set := range map[string]map[string]string{
		"Target":                {"bridgeNamesrvAddr": "a:1"},
		"is this Side":          {"bridgeNamesrvAddr": "a:1", "bridgeTarget": "broker-a"},
		"bridgeNamesrvAddr":     {"bridgeTarget": "paris"},
		"go together":           {"bridgeNamesrvAddr": "a:1", "bridgeTarget": "paris", "bridgeAccessKey": "me"},
		"bridgeSecretKeyFile: ": {"bridgeNamesrvAddr": "a:1", "bridgeTarget": "paris", "bridgeSecretKeyFile": secret + "x"},
		`"a,b"`:                 {"bridgeNamesrvAddr": "a:1", "bridgeTarget": "paris", "bridgeTopics": "a,b"},
	} {
		c := nodeconf.Default()
		for key, value := range set {
			require.NoError(t, c.Set(key, value, "test"))
		}
		err := c.Finish()
		require.ErrorIs(t, err, nodeconf.ErrConfig, name)
		require.ErrorContains(t, err, name)
	}
	require.ErrorIs(t, nodeconf.Default().Set("bridgeNamesrvAddr", "nowhere", "test"), nodeconf.ErrConfig)
}
