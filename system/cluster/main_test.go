package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestMain waits for what etcd's ports leave behind: a connection that began to read again after it was told to end does so with its read
// timeout, after 5 s.
func TestMain(m *testing.M) {
	before, code := goleak.IgnoreCurrent(), 0
	if code = m.Run(); code == 0 {
		err := goleak.Find(before) // looks for half a second
		for last := time.Now().Add(15 * time.Second); err != nil && time.Now().Before(last); {
			err = goleak.Find(before)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// free finds n ports in a row that are free at the moment.
func free(t *testing.T, n int) string {
	t.Helper()
	for range 100 {
		first := 20_000 + rand.IntN(11_000)
		ok := true
		for i := range n {
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+i))
			if ok = ok && err == nil; err == nil {
				require.NoError(t, l.Close())
			}
		}
		if ok {
			return "127.0.0.1:" + strconv.Itoa(first)
		}
	}
	t.Fatal("no free ports")
	return ""
}

// etcd starts one that lives as long as the test.
func etcd(t *testing.T) string {
	t.Helper()
	c := Config{Name: "test", ID: "etcd", Nodes: []Node{{ID: "etcd", Base: free(t, 2)}}, EtcdDir: t.TempDir()}
	server, err := startEtcd(c)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		t.Fatal("etcd does not start")
	}
	return c.node("etcd").Port(PortClient)
}

// group is a cluster in one process.
type group struct {
	t      *testing.T
	etcd   string
	nodes  []Node
	disks  map[string]*memfs.Disk
	up     map[string]*peer
	order  int
	refuse bool // of nodes started from now on
	lag    time.Duration
	kind   kind
	log    zerolog.Logger // of nodes started from now on
}

// kind is a service of the leader on each node: where it runs, one entry a life.
type kind struct {
	mu    sync.Mutex
	lives []string
}

func (k *kind) run(id string) system.Service {
	return system.Service{Name: "kind", Leader: true, Run: func(ctx context.Context, _ *system.Store) error {
		k.mu.Lock()
		k.lives = append(k.lives, id)
		k.mu.Unlock()
		<-ctx.Done()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.lives = slices.DeleteFunc(k.lives, func(other string) bool { return other == id })
		return nil
	}}
}

// there are the nodes where it runs.
func (k *kind) there() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lives)
}

// peer is a node of it.
type peer struct {
	*Member
	client *clientv3.Client
	etcd   *proxy
	system *actor.ActorSystem
	mu     sync.Mutex
	serves *Role
	files  vfs.Disk
	refuse bool        // a follower's clients can't be served
	tried  []time.Time // to serve them, while it was so
}

func newGroup(t *testing.T, n int) *group {
	g := &group{t: t, etcd: etcd(t), lag: time.Second, log: zerolog.Nop(), disks: map[string]*memfs.Disk{}, up: map[string]*peer{}}
	for i := range n {
		id := strconv.Itoa(i + 1)
		g.nodes = append(g.nodes, Node{ID: id, Base: free(t, 8)})
		g.disks[id] = memfs.New()
	}
	t.Cleanup(func() {
		for id := range g.up {
			g.stop(id)
		}
	})
	return g
}

func (g *group) start(ids ...string) {
	g.t.Helper()
	for _, id := range ids {
		p := &peer{etcd: newProxy(g.t, g.etcd), refuse: g.refuse}
		var err error
		p.client, err = dial([]string{"http://" + p.etcd.listener.Addr().String()}, nil, newClientLog(zerolog.Nop()))
		require.NoError(g.t, err)
		p.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
			actor.WithDeadLetterThrottleInterval(time.Millisecond))
		log := g.log
		if os.Getenv("CLUSTER_LOG") != "" {
			log = zerolog.New(os.Stderr).With().Timestamp().Str("node", id).Logger()
		}
		c := Config{
			Name: "test", ID: id, Nodes: g.nodes, Logger: log, Lease: time.Second, Lag: g.lag,
			Store: system.Options{
				Dir: "store", Disk: g.disks[id], SegmentBytes: 64 << 10, IndexSlots: 100, IndexEntries: 1000, WindowBytes: -1, Logger: log,
				Extensions: system.Extensions{Services: []system.Service{g.kind.run(id)}},
			},
			Serve: p.serve,
		}.withDefaults()
		p.Member, err = start(p.system.Root, c, p.client, nil)
		require.NoError(g.t, err)
		g.up[id] = p
	}
}

func (p *peer) serve(_ *system.Store, role Role, files vfs.Disk) (func(context.Context) error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse && !role.Leads {
		p.tried = append(p.tried, time.Now())
		return nil, errors.New("the port is taken")
	}
	p.serves, p.files = &role, files
	return func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.serves = nil
		return nil
	}, nil
}

// leads tells whether the node serves as the leader.
func (p *peer) leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.serves != nil && p.serves.Leads
}

func (g *group) stop(id string) {
	p := g.up[id]
	delete(g.up, id)
	require.NoError(g.t, p.Close())
	require.NoError(g.t, p.client.Close())
	p.etcd.close()
	p.system.Shutdown()
}

// leader waits until somebody serves as the leader who is not one of those.
func (g *group) leader(but ...string) (id string) {
	g.t.Helper()
	g.until("a leader", func() bool {
		id = ""
		for n, p := range g.up {
			if p.leads() && !contains(but, n) {
				id = n
			}
		}
		return id != ""
	})
	return id
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (g *group) until(what string, reached func() bool) {
	g.t.Helper()
	require.Eventually(g.t, reached, 30*time.Second, 10*time.Millisecond, what)
}

// put stores a message at whoever leads, and tries until it is acknowledged.
func (g *group) put(but ...string) (id string) {
	g.t.Helper()
	body := fmt.Sprint("m", g.order)
	g.order++
	g.until("acknowledged", func() bool {
		id = g.leader(but...)
		s := g.up[id].Store()
		if s == nil {
			return false
		}
		ctx, cancel := context.WithTimeout(g.t.Context(), 2*time.Second)
		defer cancel()
		r, err := s.Put(ctx, &messages.Message{Topic: "T", Body: []byte(body)})
		return err == nil && r.Status == messages.PutOK
	})
	return id
}

// bodies are the messages of the queue, as one node has them.
func (g *group) bodies(id string) (all []string) {
	s := g.up[id].Store()
	if s == nil {
		return nil
	}
	key := messages.QueueKey{Topic: "T"}
	for at := s.MinOffset(key); at < s.MaxOffset(key); {
		r, err := s.Get(g.t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32})
		if err != nil || r.NextOffset == at {
			return nil
		}
		for _, raw := range r.Records {
			m, err := messageOf(raw)
			require.NoError(g.t, err)
			all = append(all, m)
		}
		at = r.NextOffset
		r.Release()
	}
	return all
}
