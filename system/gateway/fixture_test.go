package gateway_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// soon is how long a test waits to see that something does not happen.
const soon = 50 * time.Millisecond

// world is a node with its store on a simulated disk.
type world struct {
	t     *testing.T
	disk  *memfs.Disk
	store *system.Store
	node  *gateway.Node
}

// run starts a node; change may alter its configuration.
func run(t *testing.T, change ...func(*gateway.Config)) *world {
	t.Helper()
	w := &world{t: t, disk: memfs.New()}
	host := netip.MustParseAddrPort("127.0.0.1:10911")
	var err error
	w.store, err = system.Open(system.Options{
		Dir: "store", Disk: w.disk, SegmentBytes: 8 << 20, ConsumeQueueFileBytes: 20_000, IndexSlots: 500, IndexEntries: 2000,
		WindowBytes: 64 << 10, StoreHost: host, LightQueues: system.LightQueues{MultiDispatch: true},
	})
	require.NoError(t, err)
	actors := actorSystem()
	cfg := gateway.Config{
		Store: w.store, Disk: w.disk, ConfigDir: w.store.ConfigDir(), Listen: "127.0.0.1:0", NameServerListen: "127.0.0.1:0",
		VIPListen: "127.0.0.1:0",
		Broker:    broker.Config{StoreHost: host, ClusterName: "MadeUpCluster", BrokerName: "broker-a"},
	}
	for _, f := range change {
		f(&cfg)
	}
	w.node, err = gateway.Start(actors.Root, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, w.node.Stop(ctx))
		actors.Shutdown()
		require.NoError(t, w.store.Close(ctx))
	})
	return w
}

func actorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}), actor.WithDeadLetterThrottleInterval(time.Millisecond))
}

// topic makes a topic.
func (w *world) topic(name string, queues int) {
	w.t.Helper()
	require.NoError(w.t, w.node.Broker().Topics.Update(w.t.Context(), metadata.TopicConfig{
		TopicName: name, ReadQueueNums: queues, WriteQueueNums: queues, Perm: metadata.PermRead | metadata.PermWrite,
	}))
}

// group makes a consumer group: pulls of one that is there are handled in the order in which they come.
func (w *world) group(name string) {
	w.t.Helper()
	_, err := w.node.Broker().Groups.Ensure(w.t.Context(), name)
	require.NoError(w.t, err)
}

// client is a peer on the wire.
type client struct {
	t    *testing.T
	sock net.Conn
	in   *bufio.Reader
	last int32
}

func (w *world) dial(port string) *client {
	w.t.Helper()
	sock, err := net.Dial("tcp", w.node.Addr(port).String())
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = sock.Close() })
	return &client{t: w.t, sock: sock, in: bufio.NewReader(sock)}
}

func (c *client) send(cmd *remoting.Command) {
	c.t.Helper()
	if cmd.Opaque == 0 && !cmd.IsResponse() {
		c.last++
		cmd.Opaque = c.last
	}
	b, err := cmd.Append(nil)
	require.NoError(c.t, err)
	require.NoError(c.t, c.sock.SetWriteDeadline(time.Now().Add(patience)))
	_, err = c.sock.Write(b)
	require.NoError(c.t, err)
}

func (c *client) read() *remoting.Command {
	c.t.Helper()
	require.NoError(c.t, c.sock.SetReadDeadline(time.Now().Add(patience)))
	cmd, err := remoting.ReadCommand(c.in, remoting.Limits{})
	require.NoError(c.t, err)
	return cmd
}

// response reads up to the response to a request, past what the node pushes.
func (c *client) response(to *remoting.Command) *remoting.Command {
	c.t.Helper()
	for {
		if a := c.read(); a.IsResponse() && a.Opaque == to.Opaque {
			return a
		}
	}
}

func (c *client) ask(cmd *remoting.Command) *remoting.Command {
	c.t.Helper()
	c.send(cmd)
	return c.response(cmd)
}

// join sends the first heartbeat of a consumer and reads what comes of it, the notice that the group has changed last.
func (c *client) join(beat *remoting.Command) (notice *remoting.Command) {
	c.t.Helper()
	require.Equal(c.t, remoting.ResponseSuccess, c.ask(beat).Code)
	notice = c.read()
	require.Equal(c.t, remoting.RequestNotifyConsumerIdsChanged, notice.Code)
	return notice
}

func (c *client) silent() {
	c.t.Helper()
	require.NoError(c.t, c.sock.SetReadDeadline(time.Now().Add(soon)))
	_, err := c.in.Peek(1)
	require.ErrorContains(c.t, err, "timeout")
}

func (c *client) gone() {
	c.t.Helper()
	require.NoError(c.t, c.sock.SetReadDeadline(time.Now().Add(patience)))
	_, err := c.in.ReadByte()
	require.Error(c.t, err)
	require.NotContains(c.t, err.Error(), "timeout")
}

// req is a request with ext fields given as name, value, name, value.
func req(code int, pairs ...string) *remoting.Command {
	c := &remoting.Command{Code: code, Version: remoting.Version}
	for i := 0; i < len(pairs); i += 2 {
		c.ExtFields = c.ExtFields.Set(pairs[i], pairs[i+1])
	}
	return c
}

func ext(c *remoting.Command, name string) string {
	value, _ := c.ExtFields.Get(name)
	return value
}

// settle waits until what a send has stored can be pulled and found by its keys.
func (w *world) settle(answer *remoting.Command) {
	w.t.Helper()
	id, stored := answer.ExtFields.Get("msgId")
	if !stored || answer.Code != remoting.ResponseSuccess {
		return
	}
	first, _, _ := strings.Cut(id, ",")
	_, at, err := messages.ParseOffsetMessageID(first)
	require.NoError(w.t, err)
	m, err := w.store.MessageAt(at)
	require.NoError(w.t, err)
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	w.eventually(func() bool { return w.store.MaxOffset(m.Queue()) > m.QueueOffset })
	keys, _ := m.Properties.Get(messages.PropertyKeys)
	for key := range strings.FieldsSeq(keys) {
		w.eventually(func() bool {
			found, err := w.store.Query(ctx, messages.QueryMessage{Topic: m.Topic, Key: key, MaxMessages: 1, EndMs: 1 << 60})
			return err == nil && len(found) > 0
		})
	}
}

// eventually waits for a state that nobody announces.
func (w *world) eventually(state func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	for !state() {
		select {
		case <-deadline:
			require.FailNow(w.t, "the state was not reached")
		case <-time.After(time.Millisecond):
		}
	}
}
