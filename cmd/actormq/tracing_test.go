package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// collector takes traces and keeps what it was sent, as it came.
type collector struct {
	*httptest.Server
	mu  sync.Mutex
	all []byte
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.URL.Path == "/v1/traces" {
			c.all = append(c.all, body...)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) has(parts ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range parts {
		if !bytes.Contains(c.all, []byte(p)) {
			return false
		}
	}
	return true
}

func TestANodeSendsTracesToItsCollector(t *testing.T) {
	c := newCollector(t)
	n := serve(t, "traceFraction=1", "traceEndpoint="+c.URL+"/v1/traces", "flushDiskType=SYNC_FLUSH")
	n.produce("orders", "a", "b")
	n.eventually(func() bool { return len(n.consume("--topic", "orders", "--from", "first")) == 2 })
	n.end() // what is left is sent
	require.True(t, c.has("put orders", "flush", "dispatch", "pull orders", "messaging.message.id", "actormq"))
}

func TestACollectorThatIsAwayHoldsUpNobody(t *testing.T) {
	n := serve(t, "traceFraction=1", "traceEndpoint=http://127.0.0.1:1/v1/traces")
	n.produce("orders", "a")
	n.eventually(func() bool { return len(n.consume("--topic", "orders", "--from", "first")) == 1 })
	n.end()
}

func TestTracesAreConfiguredOrRefused(t *testing.T) {
	for _, bad := range []string{"traceFraction=2", "traceFraction=-1", "traceFraction=NaN", "traceFraction=x", "traceEndpoint=127.0.0.1:4318"} {
		_, _, err := run("node", "--print-config", "--set", bad)
		require.ErrorContains(t, err, bad)
	}
}
