package nodeconf_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/messages"
)

func TestTheKeysOfReplication(t *testing.T) {
	c, err := load(t, "brokerRole=SLAVE\nbrokerId=2\nhaMasterAddress=10.0.0.1:10912\nhaFullCopy=true\nhaSendHeartbeatInterval=1000\n"+
		"haHousekeepingInterval=9000\nhaTransferBatchSize=65536\nhaSlaveFallbehindMax=1000\nslaveTimeout=700\nhaUnreadMemory=0\nbrokerIP1=127.0.0.1\n")
	require.NoError(t, err)
	require.NoError(t, c.Finish())
	require.Empty(t, c.Ignored)
	require.Equal(t, messages.Slave, c.Store.Role)
	require.EqualValues(t, 2, c.Gateway.Broker.BrokerID)
	require.Equal(t, "10.0.0.1:10912", c.Store.HAMaster)
	require.Equal(t, "10.0.0.1:10911", c.Gateway.Master, "RocketMQ's ports follow one another")
	require.Empty(t, c.Store.HAListen, "a slave has no slaves")
	require.True(t, c.Store.HAFullCopy)
	require.Equal(t, time.Second, c.Store.HAHeartbeat)
	require.Equal(t, 9*time.Second, c.Store.HAHousekeeping)
	require.Equal(t, 65536, c.Store.HABatchBytes)
	require.EqualValues(t, 1000, c.Store.HAFallbehind)
	require.Equal(t, 700*time.Millisecond, c.Store.SlaveTimeout)
	require.EqualValues(t, -1, c.Store.HAUnreadMemory)

	for text, listens := range map[string]string{
		"":                          "", // a node that is told nothing shows its log to nobody
		"brokerRole=ASYNC_MASTER\n": "127.0.0.1:10912",
		"haListenPort=20001\n":      "127.0.0.1:20001",
		"brokerRole=SYNC_MASTER\nbrokerId=3\nlistenPort=20010\nhaMasterAddress=127.0.0.1:1\n": "127.0.0.1:20011",
	} {
		c, err := load(t, text)
		require.NoError(t, err)
		require.NoError(t, c.Finish())
		require.Equal(t, listens, c.Store.HAListen, text)
		require.Zero(t, c.Gateway.Broker.BrokerID, "a master's is 0, as in RocketMQ")
	}
	c, err = load(t, "brokerRole=SLAVE\n")
	require.NoError(t, err)
	require.ErrorContains(t, c.Finish(), "brokerId")
	c, err = load(t, "haAllow=10.0.0.7, 10.1.2.3/16,::1,::ffff:10.0.0.8,::ffff:10.1.0.0/112,fd00::/8\n")
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.7/32 10.1.0.0/16 ::1/128 10.0.0.8/32 10.1.0.0/16 fd00::/8]", fmt.Sprint(c.Store.HAAllow))
	for _, bad := range []string{"slave-1", "10.0.0.0/33", "10.0.0.7;10.0.0.8", "10.0.0.7:10912", "::ffff:0.0.0.0/95", "::ffff:10.0.0.1/0", ",", " , "} {
		require.ErrorContains(t, nodeconf.Default().Set("haAllow", bad, "test"), "hosts and networks", bad)
	}
	require.ErrorContains(t, nodeconf.Default().Set("haMasterAddress", "nowhere", "test"), "host:port")
}
