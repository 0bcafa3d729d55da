package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/admin"
	"github.com/actormq/actormq/system/ext/scrub"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a node with an admin port.
type world struct {
	t     *testing.T
	store *system.Store
	cfg   admin.Config
	base  string
}

func run(t *testing.T) *world {
	t.Helper()
	disk := memfs.New()
	host := netip.MustParseAddrPort("127.0.0.1:10911")
	opt := system.Options{
		Dir: "store", Disk: disk, SegmentBytes: 1 << 20, ConsumeQueueFileBytes: 20_000, IndexSlots: 500, IndexEntries: 2000, StoreHost: host,
	}
	opt.HAListen = "127.0.0.1:0"
	opt.Dispatchers = []system.Dispatcher{{Name: "counter", Handle: func(context.Context, *system.Batch) error { return nil }}}
	store, err := system.Open(opt)
	require.NoError(t, err)
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}), actor.WithDeadLetterThrottleInterval(time.Millisecond))
	node, err := gateway.Start(actors.Root, gateway.Config{
		Store: store, Disk: disk, ConfigDir: store.ConfigDir(), Listen: "127.0.0.1:0", Broker: broker.Config{StoreHost: host},
	})
	require.NoError(t, err)
	w := &world{t: t, store: store, cfg: admin.Config{Listen: "127.0.0.1:0", Store: store, Node: node, Version: "1.2.3", Scrub: scrub.New(scrub.Config{}).Status, Logger: zerolog.Nop()}}
	server, err := admin.Start(w.cfg)
	require.NoError(t, err)
	w.base = "http://" + server.Addr().String()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, server.Stop(context.Background()))
		require.NoError(t, node.Stop(context.Background()))
		actors.Shutdown()
		require.NoError(t, store.Close(context.Background()))
	})
	return w
}

// ask sends a request to the port.
func (w *world) ask(method, path, body string) (status int, text string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	require.NoError(w.t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	require.NoError(w.t, err)
	return answer.StatusCode, string(all)
}

// traffic stores three messages of a topic of which a group has committed one.
func (w *world) traffic() {
	w.t.Helper()
	b := w.cfg.Node.Broker()
	require.NoError(w.t, b.Topics.Update(w.t.Context(), metadata.TopicConfig{TopicName: "orders", ReadQueueNums: 2, WriteQueueNums: 2, Perm: 6}))
	for range 3 {
		_, err := w.store.Put(w.t.Context(), &messages.Message{Topic: "orders", Body: []byte("x")})
		require.NoError(w.t, err)
	}
	require.NoError(w.t, w.store.AwaitDispatched(w.t.Context()))
	b.Stats.PutTook(3*time.Millisecond, messages.PutOK)
	b.Stats.PutTook(time.Minute, messages.OSPageCacheBusy)
	require.NoError(w.t, b.Offsets.CommitWait(w.t.Context(), "billing", messages.QueueKey{Topic: "orders"}, 1))
}

// slave connects one that is given all and acknowledges nothing.
func (w *world) slave() {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.store.HAAddress())
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write(make([]byte, 8)) // its log is empty
	require.NoError(w.t, err)
	_, err = io.ReadFull(conn, make([]byte, 12))
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool { return len(w.store.Replicas()) == 1 }, 20*time.Second, time.Millisecond)
}

func TestMetricsAreThoseOfTheDocument(t *testing.T) {
	w := run(t)
	w.traffic()
	w.slave()
	registry := admin.Registry(w.cfg)
	found, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, found, "promlint")
	families, err := registry.Gather()
	require.NoError(t, err)
	have := map[string]string{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "actormq_") {
			labels := []string{}
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels = append(labels, l.GetName())
			}
			slices.Sort(labels)
			have[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ", ")
		}
	}
	text, err := os.ReadFile("../../docs/METRICS.md")
	require.NoError(t, err)
	said := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(actormq_\\w+)` \\| (\\w+) \\| ([^|]+) \\| .+ \\|$").FindAllStringSubmatch(string(text), -1) {
		labels := slices.DeleteFunc(strings.Split(row[3], ", "), func(l string) bool { return l == "–" })
		slices.Sort(labels)
		said[row[1]] = row[2] + " " + strings.Join(labels, ", ")
	}
	require.Equal(t, said, have)
	for _, file := range []string{"grafana.json", "alerts.yml"} {
		text, err := os.ReadFile("../../docs/deploy/" + file)
		require.NoError(t, err)
		names := regexp.MustCompile(`actormq_\w+`).FindAllString(string(text), -1)
		require.NotEmpty(t, names)
		for _, name := range names {
			require.Contains(t, slices.Collect(maps.Keys(said)), strings.TrimSuffix(name, "_bucket"), file)
		}
	}
}

func TestMetricsSayWhatHasHappened(t *testing.T) {
	w := run(t)
	w.traffic()
	w.slave()
	_, end := w.store.LogRange()
	w.store.SetFlag(messages.FlagDiskFull, errors.New("full"))
	_, err := w.store.Put(t.Context(), &messages.Message{Topic: "orders", Body: []byte("x")})
	require.ErrorIs(t, err, system.ErrFlagged)
	status, text := w.ask("GET", "/metrics", "")
	require.Equal(t, http.StatusOK, status)
	for _, line := range []string{
		`actormq_build_info{flush="ASYNC_FLUSH",version="1.2.3"} 1`, `actormq_group_lag_messages{group="billing",topic="orders"} 2`,
		`actormq_puts_total{status="PUT_OK"} 1`, `actormq_puts_total{status="OS_PAGECACHE_BUSY"} 1`, `actormq_put_refusals_total{reason="flagged"} 1`,
		`actormq_put_duration_seconds_bucket{le="0.005"} 1`, `actormq_put_duration_seconds_count 2`, `actormq_store_writable 0`,
		`actormq_dispatch_lag_bytes 0`, `actormq_extension_running{extension="counter",kind="dispatcher"} 1`,
		`actormq_log_segments 1`, `actormq_mailbox_messages{actor="commitlog-writer"} 0`, `go_goroutines`,
		`actormq_replicas 1`, fmt.Sprintf(`%q} %d`+"\n", w.store.Replicas()[0].Address, end), `actormq_follows_master 1`,
	} {
		require.Contains(t, text, line)
	}
}

func TestReadyWhilePutsAreTaken(t *testing.T) {
	w := run(t)
	status, _ := w.ask("GET", "/readyz", "")
	require.Equal(t, http.StatusOK, status)
	w.store.SetFlag(messages.FlagDiskFull, errors.New("not a byte is left"))
	status, why := w.ask("GET", "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, why, "not a byte is left")
	status, _ = w.ask("GET", "/healthz", "")
	require.Equal(t, http.StatusOK, status, "it lives")
	w.store.ClearFlag(messages.FlagDiskFull)
	status, _ = w.ask("GET", "/readyz", "")
	require.Equal(t, http.StatusOK, status)
}

func TestTheLogLevelChangesWhileTheNodeRuns(t *testing.T) {
	before := zerolog.GlobalLevel()
	t.Cleanup(func() { zerolog.SetGlobalLevel(before) })
	w := run(t)
	zerolog.SetGlobalLevel(zerolog.InfoLevel)
	_, level := w.ask("GET", "/loglevel", "")
	require.Equal(t, "info\n", level)
	status, _ := w.ask("PUT", "/loglevel", "debug\n")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, zerolog.DebugLevel, zerolog.GlobalLevel())
	for _, no := range []string{"loud", "1", "-1", "127", "fatal", ""} {
		status, text := w.ask("PUT", "/loglevel", no)
		require.Equal(t, http.StatusBadRequest, status, no)
		require.Contains(t, text, "warn, error, disabled")
	}
	status, _ = w.ask("POST", "/loglevel", "trace")
	require.Equal(t, http.StatusMethodNotAllowed, status, "pages in a browser can POST")
	require.Equal(t, zerolog.DebugLevel, zerolog.GlobalLevel())
}

func TestProfiles(t *testing.T) {
	w := run(t)
	status, text := w.ask("GET", "/debug/pprof/goroutine?debug=1", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "goroutine profile: total")
}

// A node of a cluster closes its store and opens it again with each change of roles: its port stays.
func TestThePortStaysWhileTheStoreIsAway(t *testing.T) {
	w := run(t)
	s, err := admin.Open("127.0.0.1:0", zerolog.Nop())
	require.NoError(t, err)
	w.base = "http://" + s.Addr().String()
	alone := func() {
		t.Helper()
		status, _ := w.ask("GET", "/healthz", "")
		require.Equal(t, http.StatusOK, status)
		status, why := w.ask("GET", "/readyz", "")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, why, "opened or closed")
		status, text := w.ask("GET", "/metrics", "")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, text, "go_goroutines ")
		require.NotContains(t, text, "actormq_")
	}
	alone()
	for range 2 {
		require.NoError(t, s.Show(w.cfg))
		status, _ := w.ask("GET", "/readyz", "")
		require.Equal(t, http.StatusOK, status)
		_, text := w.ask("GET", "/metrics", "")
		require.Contains(t, text, "actormq_")
		require.NoError(t, s.Hide(t.Context()))
		alone()
	}
	http.DefaultClient.CloseIdleConnections()
	require.NoError(t, s.Stop(t.Context()))
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	w := run(t)
	cfg := w.cfg
	cfg.Listen = strings.TrimPrefix(w.base, "http://")
	_, err := admin.Start(cfg)
	require.ErrorContains(t, err, cfg.Listen)
}
