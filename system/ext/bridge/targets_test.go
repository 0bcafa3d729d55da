package bridge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/client"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/memfs"
	"github.com/actormq/actormq/testkit/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target is what a bridge leads to: it is stopped and started again, on the same ports and the same store.
type target interface {
	start(t *testing.T)
	stop(t *testing.T)
	kill(t *testing.T) // the store is as after kill -9
	nameServer() string
}

// ours is a node of ours.
type ours struct {
	node        *node.Node
	disk        *memfs.Disk
	names, host netip.AddrPort
}

func (o *ours) start(t *testing.T) {
	if o.disk == nil {
		o.disk = memfs.New()
	}
	o.node = node.Start(t, func(opt *system.Options, cfg *gateway.Config) {
		opt.Disk = o.disk
		if o.host.IsValid() {
			opt.StoreHost, cfg.Broker.StoreHost = o.host, o.host
			cfg.Listen, cfg.NameServerListen = o.host.String(), o.names.String()
		}
	})
	o.host, o.names = o.node.Broker, o.node.NameServer
}

func (o *ours) stop(*testing.T) { o.node.Stop() }

func (o *ours) kill(t *testing.T) {
	require.NoError(t, o.node.Gateway.Stop(t.Context())) // nothing is acknowledged any more
	left := o.disk.Clone()
	o.node.Stop()
	o.disk = left
}

func (o *ours) nameServer() string { return o.names.String() }

// rocket is RocketMQ 4.9.7's own name server and broker, by testkit/peer.
type rocket struct {
	jar, dir string
	names    string
	port     string
	in       io.WriteCloser
	cmd      *exec.Cmd
}

func (r *rocket) start(t *testing.T) {
	if r.names == "" {
		r.dir = t.TempDir()
		base := 20_000 + os.Getpid()%5000*2
		r.port, r.names = fmt.Sprint(base+10), fmt.Sprintf("127.0.0.1:%d", base+20)
	}
	_, namesPort, _ := strings.Cut(r.names, ":")
	r.cmd = exec.Command("java", "-jar", r.jar, "broker", r.dir, r.port, "--namesrv-port", namesPort)
	var err error
	r.in, err = r.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "READY") {
			return
		}
	}
	require.NoError(t, r.cmd.Wait())
	require.Fail(t, "RocketMQ's broker does not start")
}

func (r *rocket) say(t *testing.T, what string) {
	_, err := fmt.Fprintln(r.in, what)
	require.NoError(t, err)
	_ = r.in.Close() // it may have ended
	_ = r.cmd.Wait() // killed is no success
}

func (r *rocket) stop(t *testing.T) { r.say(t, "stop") }
func (r *rocket) kill(t *testing.T) { r.say(t, "halt") }

func (r *rocket) nameServer() string { return r.names }

// options are those of a small store, the source.
func options(disk vfs.Disk) system.Options {
	return system.Options{
		Dir: "store", Disk: disk, SegmentBytes: 1 << 20, ConsumeQueueFileBytes: 20_000, IndexSlots: 50, IndexEntries: 200,
		WindowBytes: 8 << 10,
	}
}

// received reads all of a topic at the target, a list a queue. It waits until so many different bodies are there.
func received(ctx context.Context, t *testing.T, names, topic string, different int) [][]messages.StoredMessage {
	t.Helper()
	c := client.New(client.Options{NameServers: []string{names}})
	defer c.Close()
	var route *remoting.TopicRouteData
	until(ctx, t, func() (err error) { route, err = c.Route(ctx, topic); return err })
	queues, err := client.ReadQueues(route, topic)
	require.NoError(t, err)
	all := make([][]messages.StoredMessage, len(queues))
	next := make([]int64, len(queues))
	seen := map[string]bool{}
	until(ctx, t, func() error {
		for i, q := range queues {
			p, err := c.Pull(ctx, q.Address, remoting.PullMessageHeader{
				ConsumerGroup: "look", Topic: topic, QueueID: q.ID, QueueOffset: next[i], MaxMsgNums: 32,
				SysFlag: remoting.PullFlagSubscription, Subscription: "*", ExpressionType: "TAG",
			})
			if err != nil {
				return err
			}
			next[i] = p.NextBeginOffset
			for _, m := range p.Messages {
				all[i] = append(all[i], m)
				seen[string(m.Body)] = true
			}
		}
		if len(seen) < different {
			return fmt.Errorf("%d of %d have arrived", len(seen), different)
		}
		return nil
	})
	return all
}

// until tries something again until it is done or the context ends: what is asked is another process.
func until(ctx context.Context, t *testing.T, try func() error) {
	t.Helper()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			require.NoError(t, err)
		}
	}
}
