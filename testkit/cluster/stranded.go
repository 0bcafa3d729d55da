package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
	members "github.com/actormq/actormq/system/cluster"
)

// What the bodies of stranded clients begin with: they can't have left the node, or they may have.
const (
	keptIn = "kept-in/"
	leaked = "leaked/"
)

// stranded are clients that know only a node that is cut off from the others.
type stranded struct {
	g       *Group
	node    members.Node
	body    string // of all their messages, but for a number
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	began   time.Time
	tried   int
	wrong   []string
	refused time.Duration // until the first answer that says no
	why     error
}

// patience is how long a stranded client waits for an answer.
const patience = 10 * time.Second

// strand starts clients of a node.
func (g *Group) strand(id, body string) *stranded {
	s := &stranded{g: g, body: body, began: time.Now()}
	for _, n := range g.Nodes {
		if n.ID == id {
			s.node = n
		}
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	for i := range 4 {
		s.running.Go(func() { s.send(ctx, i) })
	}
	return s
}

func (s *stranded) send(ctx context.Context, sender int) {
	c := client.New(client.Options{Timeout: patience})
	defer c.Close()
	for n := 0; ctx.Err() == nil; n++ {
		sent, err := c.Send(ctx, s.node.Port(members.PortBroker), remoting.SendMessageHeader{
			ProducerGroup: "stranded", Topic: Topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestampMs: time.Now().UnixMilli(),
		}, fmt.Appendf(nil, "%s%d/%d.", s.body, sender, n))
		if ctx.Err() != nil {
			return
		}
		s.note(sent, err)
		pause(ctx)
	}
}

// note judges an answer: none may say that a message is stored, and each send has to be told something.
func (s *stranded) note(sent client.Sent, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	no := (*client.RefusedError)(nil)
	switch {
	case err == nil:
		s.wrong = append(s.wrong, fmt.Sprintf("after %v: %s", time.Since(s.began), remoting.ResponseName(sent.Code)))
	case errors.Is(err, client.ErrNoAnswer):
		s.wrong = append(s.wrong, fmt.Sprintf("after %v: %v", time.Since(s.began), err))
	case errors.As(err, &no) && s.why == nil:
		s.refused, s.why = time.Since(s.began), err
	}
}

// end stops the clients. They have been told no, and nothing else.
func (s *stranded) end() {
	t := s.g.t
	t.Helper()
	s.g.Until("a node that is cut off refuses a send", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.why != nil
	})
	s.cancel()
	s.running.Wait()
	require.Empty(t, s.wrong, "answers of a node that is cut off, to %d sends", s.tried)
	t.Logf("        %d sends to node %s itself, none stored; refused after %v: %v", s.tried, s.node.ID, s.refused.Round(time.Millisecond), s.why)
}

// aside requires that the node has kept a copy of what was cut off its log.
func (s *stranded) aside() {
	t := s.g.t
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.g.Dir(s.node.ID), "quarantine", "*", "commitlog-*"))
	require.NoError(t, err)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		if bytes.Contains(b, []byte(s.body)) {
			return
		}
	}
	require.Fail(t, "what was cut off a log is not kept", "node %s, %q, files %v", s.node.ID, s.body, files)
}

// neverLeft requires that a store has nothing that can't have left a node before its epoch was over.
func (g *Group) neverLeft(all map[place]string) {
	g.t.Helper()
	for p, body := range all {
		require.False(g.t, strings.HasPrefix(body, keptIn), "queue %d at %d: %q of a leader that was cut off", p.queue, p.at, body)
	}
}
