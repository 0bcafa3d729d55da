package strain_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/process"
)

// program is built once.
var program = sync.OnceValues(func() (string, error) { return process.Build(folder) })

// folder is where it is.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "actormq-strain"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(folder) // a temporary one
		os.Exit(code)
	}))
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

// queues of the topic T, which every test uses.
const queues = 4

// span is how long a test puts the node under strain.
func span(t *testing.T, usual int) time.Duration {
	return time.Duration(fixture.Number(t, "STRAIN_SECONDS", usual)) * time.Second
}

// random is seeded by STRAIN_SEED, or by chance; the log says by what.
func random(t *testing.T) func() *rand.Rand {
	seed := uint64(fixture.Number(t, "STRAIN_SEED", int(time.Now().UnixNano()&0x7fffffff)))
	t.Logf("STRAIN_SEED=%d", seed)
	stream := uint64(0)
	return func() *rand.Rand {
		stream++
		return rand.New(rand.NewPCG(seed, stream))
	}
}

// node is a node that serves on every port that there is.
type node struct {
	*process.Process

	said   fixture.Said
	broker string
	ports  map[string]string // by what they are for
}

func start(t *testing.T) *node {
	t.Helper()
	n := &node{}
	binary, err := program()
	require.NoError(t, err)
	base := process.Port(t, 6)
	broker := base.Beside(2)
	n.broker = broker.String()
	n.ports = map[string]string{
		"vip": base.String(), "broker": n.broker, "replication": broker.Beside(1).String(), "name server": broker.Beside(2).String(),
		"admin": broker.Beside(3).String(),
	}
	args := []string{"--store-dir", t.TempDir(), "--listen", n.broker, "--namesrv-listen", n.ports["name server"], "--log-level", "warn"}
	for _, pair := range []string{
		"brokerRole=ASYNC_MASTER", "mappedFileSizeCommitLog=67108864", "maxHashSlotNum=50000", "maxIndexNum=200000",
		fmt.Sprint("defaultTopicQueueNums=", queues),
	} {
		args = append(args, "--set", pair)
	}
	n.Process = process.Start(t, &n.said, binary, args...)
	t.Cleanup(func() { require.NoError(t, n.End(syscall.SIGTERM), "%s", &n.said) })
	for what, port := range n.ports {
		conn, err := net.Dial("tcp", port)
		require.NoError(t, err, what)
		require.NoError(t, conn.Close())
	}
	c := n.client(t)
	sent, err := c.Send(t.Context(), n.broker, remoting.SendMessageHeader{
		ProducerGroup: "strain", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: queues, Properties: "first\x01true",
	}, []byte("makes the topic"))
	require.NoError(t, err)
	require.Equal(t, remoting.ResponseSuccess, sent.Code)
	return n
}

func (n *node) client(t *testing.T) *client.Client {
	c := client.New(client.Options{NameServers: []string{n.ports["name server"]}, Timeout: patience})
	t.Cleanup(c.Close)
	return c
}

// pull asks for messages of a queue of T and waits for them.
func (n *node) pull(ctx context.Context, c *client.Client, queue int32, at int64) (*client.Pulled, error) {
	return c.Pull(ctx, n.broker, remoting.PullMessageHeader{
		ConsumerGroup: "strain", Topic: "T", QueueID: queue, QueueOffset: at, MaxMsgNums: 32, Subscription: "*",
		SysFlag: remoting.PullFlagSuspend | remoting.PullFlagSubscription, SuspendTimeoutMs: 15_000,
	})
}

// anonymous is the memory of the node in bytes, without mapped files.
func (n *node) anonymous(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID()))
	require.NoError(t, err)
	for line := range bytes.Lines(status) {
		var kib int64
		if k, _ := fmt.Sscanf(string(line), "RssAnon: %d kB", &kib); k == 1 {
			return kib << 10
		}
	}
	require.FailNow(t, "the kernel does not tell RssAnon")
	return 0
}
