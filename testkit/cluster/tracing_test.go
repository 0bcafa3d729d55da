package cluster

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collected "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/client"
)

// span is one of those that a collector was sent.
type span struct {
	name, trace, id, parent string
	from, to                uint64
}

// collector takes traces, as OpenTelemetry's does.
type collector struct {
	*httptest.Server
	mu  sync.Mutex
	all []span
}

func collect(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collected.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(body, &sent) != nil {
			return // a node that was ended while it sent
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					c.all = append(c.all, span{
						s.Name, hex.EncodeToString(s.TraceId), hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId), s.StartTimeUnixNano, s.EndTimeUnixNano,
					})
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// of are the spans so far by name.
func (c *collector) of() map[string][]span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string][]span{}
	for _, s := range c.all {
		all[s.name] = append(all[s.name], s)
	}
	return all
}

// A message that is traced in a replica group has one put, which ends when it is on all nodes in sync, one flush and one dispatch, all at the leader,
// and a pull each time that a consumer is given it, also by the node that leads next: all of one trace.
func TestATraceGoesOnAtTheNextLeader(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // ms until the spans are sent
	c, g := collect(t), Build(t, 3)
	g.Args = map[string][]string{}
	for _, n := range g.Nodes {
		g.Args[n.ID] = []string{"--set", "traceFraction=1", "--set", "traceEndpoint=" + c.URL + "/v1/traces", "--set", "flushCommitLogLeastPages=0"}
	}
	g.Start("1", "2", "3")
	g.Ready("1", "2", "3")
	leader := g.Leader()
	l := &Load{nodes: g.Nodes}
	eventually := func(what string, do func(ctx context.Context, c *client.Client) bool) {
		turn := 0
		g.Until(what, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			turn++
			c := l.client(turn)
			defer c.Close()
			return do(ctx, c)
		})
	}
	eventually("a message is stored", func(ctx context.Context, c *client.Client) bool {
		_, err := store(ctx, c, "traced", "", "a body")
		return err == nil
	})
	given := func(ctx context.Context, c *client.Client) bool {
		route, err := c.Route(ctx, "traced")
		if err != nil {
			return false
		}
		queues, err := client.ReadQueues(route, "traced")
		found := 0
		for _, q := range queues {
			err = errors.Join(err, readQueue(ctx, c, q, map[int32]int64{}, func(*messages.StoredMessage) { found++ }))
		}
		return err == nil && found == 1
	}
	eventually("it is read", given)
	var spans map[string][]span
	g.Until("put, flush, dispatch and pull are told", func() bool {
		spans = c.of()
		return len(spans["put traced"]) > 0 && len(spans["flush"]) > 0 && len(spans["dispatch"]) > 0 && len(spans["pull traced"]) > 0
	})
	pulls := len(spans["pull traced"])
	g.Terminate(leader)
	g.Ended(leader)
	eventually("the next leader gives it", given)
	g.Until("its pull is told", func() bool { spans = c.of(); return len(spans["pull traced"]) > pulls })

	put := spans["put traced"][0]
	require.Len(t, spans["put traced"], 1)
	require.Empty(t, put.parent)
	for _, name := range []string{"flush", "dispatch"} {
		require.Len(t, spans[name], 1, "%s: at the leader only", name)
	}
	for _, name := range []string{"flush", "dispatch", "pull traced"} {
		for _, s := range spans[name] {
			require.Equal(t, []string{put.trace, put.id}, []string{s.trace, s.parent}, name)
			require.GreaterOrEqual(t, s.from, put.from, name)
			require.GreaterOrEqual(t, s.to, s.from, name)
		}
	}
	require.LessOrEqual(t, put.from, put.to)
	require.GreaterOrEqual(t, spans["dispatch"][0].to, put.to, "consumers find what all in sync have")
}
