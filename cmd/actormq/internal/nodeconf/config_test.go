package nodeconf_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway/certs"
)

// brokerConf is a file as RocketMQ's own distribution has it, with what people usually add.
const brokerConf = `# Licensed to nobody
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = SYNC_FLUSH
listenPort=10921
brokerIP1=127.0.0.1
storePathRootDir=/data/my store/rocketmq
messageDelayLevel=1s 5s 10s
autoCreateTopicEnable=false
maxMessageSize=65536
`

func load(t *testing.T, text string) (*nodeconf.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "broker.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c := nodeconf.Default()
	return c, c.Load(file)
}

func TestABrokerConfOfRocketMQ(t *testing.T) {
	c, err := load(t, brokerConf)
	require.NoError(t, err)
	require.NoError(t, c.Finish())
	require.Equal(t, system.SyncFlush, c.Store.FlushDiskType)
	require.Equal(t, "/data/my store/rocketmq", c.Store.Dir)
	require.Equal(t, 65536, c.Store.MaxMessageBytes)
	require.True(t, c.Gateway.NoAutoCreateTopic)
	require.Equal(t, "127.0.0.1:10921", c.Gateway.Listen)
	require.Equal(t, "127.0.0.1:10919", c.Gateway.VIPListen)
	require.Equal(t, "127.0.0.1:10921", c.Store.StoreHost.String(), "as it stands in message ids")
	require.Equal(t, messages.TimeNearest, c.Gateway.Broker.Policy.SearchBoundary, "the wire answers as 4.x does")
	require.Equal(t, 48*time.Hour, c.Store.FileReservedTime)
	require.Equal(t, "04", c.Store.DeleteWhen)
	require.Empty(t, c.Ignored)
}

func TestTheKeysOfTheDisk(t *testing.T) {
	c := nodeconf.Default()
	for key, value := range map[string]string{
		"deleteWhen": "04;16", "diskMaxUsedSpaceRatio": "80", "diskSpaceWarningLevelRatio": "0.955", "diskSpaceCleanForciblyRatio": "0.9",
		"cleanFileForciblyEnable": "false", "redeleteHangedFileInterval": "5", "ballastBytes": "0",
		"topicRetention": " logs=6;audit=720; clicks=90m;", "keepUnreadMessages": "true", "keepUnreadGroupTimeout": "24",
	} {
		require.NoError(t, c.Set(key, value, "test"))
	}
	require.NoError(t, c.Finish())
	require.Equal(t, []int{80, 90, 96}, []int{c.Store.MaxUsedPercent, c.Store.CleanForcibly, c.Store.WarningPercent})
	require.True(t, c.Store.NoForcedCleaning)
	require.Equal(t, 5*time.Millisecond, c.Store.RedeleteInterval)
	require.EqualValues(t, -1, c.Store.BallastBytes)
	require.Equal(t, map[string]time.Duration{"logs": 6 * time.Hour, "audit": 720 * time.Hour, "clicks": 90 * time.Minute}, c.Store.Topics)
	require.True(t, c.Store.KeepUnread)
	require.Equal(t, 24*time.Hour, c.Store.UnreadGroupTimeout)
	for _, pair := range [][2]string{
		{"diskSpaceWarningLevelRatio", "90"}, {"diskSpaceWarningLevelRatio", "NaN"}, {"ballastBytes", "-1"}, {"fileReservedTime", "0"},
		{"topicRetention", "logs"}, {"topicRetention", "logs=0"}, {"topicRetention", "logs=-5m"}, {"topicRetention", "lo gs=5"}, {"topicRetention", "=5"},
		{"topicRetention", "logs=9999999999999999"},
	} {
		require.ErrorIs(t, c.Set(pair[0], pair[1], "test"), nodeconf.ErrConfig, pair[0])
	}
	require.NoError(t, c.Set("deleteWhen", "25", "test"))
	require.ErrorContains(t, c.Finish(), "25")
}

func TestLayers(t *testing.T) {
	c, err := load(t, "brokerName=from-file\nlistenPort=1000\n")
	require.NoError(t, err)
	require.NoError(t, c.LoadEnvironment([]string{"ACTORMQ_LISTENPORT=2000", "ACTORMQ_BROKERNAME=from-env", "HOME=/x"}))
	require.NoError(t, c.Set("listenPort", "3000", "--set"))
	require.NoError(t, c.Finish())
	require.Equal(t, "from-env", c.Gateway.Broker.BrokerName)
	require.Equal(t, 3000, c.ListenPort)
	text := c.Print()
	require.Contains(t, text, "listenPort=3000\t# --set")
	require.Contains(t, text, "brokerName=from-env\t# ACTORMQ_BROKERNAME")
	require.Contains(t, text, "flushDiskType=ASYNC_FLUSH\t# default")
	require.Equal(t, "3000", c.Effective()["listenPort"])
}

func TestEveryProblemIsNamed(t *testing.T) {
	_, err := load(t, "brokrName=x\nlistenPort=70000\nflushDiskType=SOMETIMES\nautoCreateTopicEnable=perhaps\nbrokerRole=OBSERVER\n")
	require.ErrorIs(t, err, nodeconf.ErrConfig)
	for _, part := range []string{
		"brokrName", "did you mean brokerName?", "listenPort=70000", "allowed is 1 to 65535", "ASYNC_FLUSH or SYNC_FLUSH",
		"autoCreateTopicEnable=perhaps", "true or false", "brokerRole=OBSERVER", "broker.conf",
	} {
		require.ErrorContains(t, err, part)
	}
	c := nodeconf.Default()
	require.ErrorContains(t, c.LoadEnvironment([]string{"ACTORMQ_LISTENPROT=1"}), "did you mean listenPort?")
	require.ErrorContains(t, c.Set("nosuch", "1", "--set"), "actormq config keys lists all", "nothing is like it")
	require.ErrorIs(t, c.Load("/does/not/exist"), nodeconf.ErrConfig)
	require.ErrorContains(t, c.Load("/does/not/exist"), "/does/not/exist")
	require.NoError(t, c.Set("brokerIP1", "not an address", "--set"))
	require.ErrorContains(t, c.Finish(), "brokerIP1")
	c = nodeconf.Default()
	require.NoError(t, c.Set("mappedFileSizeCommitLog", "5000", "--set"))
	require.ErrorContains(t, c.Finish(), "SegmentBytes is 5000")
}

func TestPrintedConfigurationReadsBack(t *testing.T) {
	c := nodeconf.Default()
	require.NoError(t, c.Set("brokerName", "b", "--set"))
	again := nodeconf.Default()
	for line := range strings.SplitSeq(strings.TrimSpace(c.Print()), "\n") {
		pair, _, _ := strings.Cut(line, "\t#")
		key, value, _ := strings.Cut(pair, "=")
		if slices.Contains([]string{"brokerIP1", "brokerIP2", "advertisedPort", "storePathCommitLog", "aclFile", "haListenPort", "masterAddress"}, key) {
			continue // their defaults name another key
		}
		require.NoError(t, again.Set(key, value, "test"), line)
	}
	require.NoError(t, again.Finish())
	require.Equal(t, "b", again.Gateway.Broker.BrokerName)
}

func FuzzLoad(f *testing.F) {
	f.Add(brokerConf)
	f.Add("a=b\\\n c\n")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := load(t, text); err == nil {
			_ = c.Finish()
		}
	})
}

// L86: where the ports listen and what clients are told are separate, names are allowed, and what is odd is said at start.
func TestAddressesThatOthersAreTold(t *testing.T) {
	finished := func(pairs ...string) *nodeconf.Config {
		c := nodeconf.Default()
		for i := 0; i < len(pairs); i += 2 {
			require.NoError(t, c.Set(pairs[i], pairs[i+1], "test"))
		}
		require.NoError(t, c.Finish())
		return c
	}
	c := finished()
	require.Equal(t, "127.0.0.1:10911", c.Gateway.Listen, "loopback by default")
	require.Empty(t, c.Reach())
	c = finished("bindAddress", "0.0.0.0", "brokerIP1", "203.0.113.7", "advertisedPort", "30911", "brokerIP2", "10.0.0.7")
	require.Equal(t, "0.0.0.0:10911", c.Gateway.Listen)
	require.Equal(t, "203.0.113.7:30911", c.Gateway.Broker.Address)
	require.Equal(t, "203.0.113.7:30911", c.Store.StoreHost.String(), "message ids lead to the port outside")
	require.Equal(t, "10.0.0.7", c.ReplicationIP)
	require.Empty(t, c.Reach())
	c = finished("bindAddress", "0.0.0.0", "brokerIP1", "localhost")
	require.Equal(t, "localhost:10911", c.Gateway.Broker.Address, "a name stays a name")
	require.Equal(t, "127.0.0.1:10911", c.Store.StoreHost.String())
	require.Contains(t, c.Reach()[0], "which no other machine can")
	require.Contains(t, finished("brokerIP1", "203.0.113.7").Reach()[0], "set bindAddress")
	require.Contains(t, finished("namesrvAddr", "localhost:9876").Odd()[0], "own name server")
	require.Empty(t, finished("namesrvAddr", "localhost:9876", "namesrvListen", "").Odd())
	require.Empty(t, finished("namesrvAddr", "localhost:9877;10.0.0.5:9876").Odd())
	require.Contains(t, finished("bindAddress", "172.17.0.2").Reach()[0], "of a container")
	require.Contains(t, finished("bindAddress", "169.254.1.2").Reach()[0], "one link")
	require.Empty(t, finished("bindAddress", "0.0.0.0", "brokerIP1", "172.17.0.2").Reach(), "who says so means it")
	bad := nodeconf.Default()
	require.NoError(t, bad.Set("brokerIP1", "0.0.0.0", "test"))
	require.ErrorContains(t, bad.Finish(), "nobody can connect")
}

func TestTLSKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tls.properties")
	require.NoError(t, os.WriteFile(file, []byte(
		"tls.test.mode.enable=false\ntls.server.certPath=/c.pem\ntls.server.keyPath=/k.pem\ntls.server.mode=permissive\ntls.client.certPath=/x\n"), 0o600))
	c, err := load(t, "tls.server.mode=enforcing\ntls.config.file="+file+"\n")
	require.NoError(t, err)
	require.NoError(t, c.LoadEnvironment([]string{"ACTORMQ_TLS_SERVER_NEED_CLIENT_AUTH=optional"}))
	require.NoError(t, c.Finish())
	require.Equal(t, gateway.TLSEnforcing, c.Gateway.TLSMode, "broker.conf wins over the file")
	require.Equal(t, certs.Files{Cert: "/c.pem", Key: "/k.pem", ClientAuth: certs.ClientAuthOptional}, c.Gateway.TLSFiles)
	c, err = load(t, "tls.test.mode.enable=false\n")
	require.NoError(t, err)
	require.ErrorContains(t, c.Finish(), "tls.server.certPath")
	_, err = load(t, "tls.server.keyPassword=secret\n")
	require.ErrorContains(t, err, "encrypted keys can't be read")
	require.NotContains(t, err.Error(), "=secret", "a password is not shown")
}

func TestAccessControlKeys(t *testing.T) {
	c, err := load(t, "aclEnable=true\nstorePathRootDir=/data\n")
	require.NoError(t, err)
	require.NoError(t, c.Finish())
	require.Equal(t, "/data/config/plain_acl.yml", c.Gateway.ACLFile)
	c, err = load(t, "aclEnable=false\naclFile=/etc/acl.yml\n")
	require.NoError(t, err)
	require.NoError(t, c.Finish())
	require.Empty(t, c.Gateway.ACLFile)
}
