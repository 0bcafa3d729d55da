package cluster

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	members "github.com/actormq/actormq/system/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func rounds(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("ACTORMQ_CLUSTER_ROUNDS"))
	if err != nil {
		return 5
	}
	t.Logf("%d rounds", n)
	return n
}

func TestNothingAcknowledgedIsLostWhenLeadersFail(t *testing.T) {
	g := Build(t, 3)
	g.Start("1", "2", "3")
	g.Ready("1", "2", "3")
	g.Leader()
	l := Begin(t, g, 8)
	l.AwaitAck(time.Now(), time.Minute)
	var gaps []time.Duration
	for round := range rounds(t) {
		victim, paused := g.Leader(), round%2 == 1
		l.AwaitAck(time.Now(), time.Minute)
		began, acked := time.Now(), l.Acked()
		if paused {
			g.Pause(victim)
		} else {
			g.Kill(victim)
		}
		elected := g.successor(victim)
		led := time.Since(began)
		gap := l.AwaitAck(began.Add(500*time.Millisecond), time.Minute)
		gap += 500 * time.Millisecond
		t.Logf("round %d: node %s paused=%t after %d sends: node %s elected after %v, acknowledging after %v", round, victim, paused, acked, elected,
			led.Round(time.Millisecond), gap.Round(time.Millisecond))
		gaps = append(gaps, gap)
		more := l.Acked() + 100 + rand.IntN(200)
		g.Until("sends go on", func() bool { return l.Acked() > more })
		if paused {
			g.Resume(victim)
		} else {
			g.Start(victim)
		}
	}
	g.Leader()
	l.AwaitAck(time.Now(), time.Minute)
	l.End()
	slices.Sort(gaps)
	t.Logf("%d sends acknowledged of %d; service back after %v at the median, %v at worst", l.Acked(), l.tried,
		gaps[len(gaps)/2].Round(time.Millisecond), gaps[len(gaps)-1].Round(time.Millisecond))
	g.end(l)
}

// successor waits until another node leads.
func (g *Group) successor(of string) (id string) {
	g.t.Helper()
	g.Until("another node leads", func() bool {
		s, err := g.Status(of)
		id = s.Leader
		return err == nil && s.Leads && id != of
	})
	return id
}

// end stops the nodes, followers last, and judges what they have.
func (g *Group) end(l *Load) {
	g.t.Helper()
	leader := g.Leader()
	g.Until("all nodes have the same", func() bool {
		s, err := g.Status()
		return err == nil && len(s.Nodes) == len(g.Nodes) && !slices.ContainsFunc(s.Nodes, func(n members.NodeState) bool { return n.End != s.Nodes[0].End })
	})
	ids := []string{}
	for _, n := range g.Nodes {
		if n.ID != leader {
			ids = append(ids, n.ID)
		}
	}
	for _, id := range append(ids, leader) {
		g.Kill(id) // a stop in order would elect, and go on
	}
	for _, id := range append(ids, leader) {
		l.Check(g.content(id))
	}
	for _, id := range ids {
		g.sameLog(leader, id)
	}
}

// content is what the queues of a node have.
func (g *Group) content(id string) map[place]string {
	g.t.Helper()
	s, err := system.Open(system.Options{Dir: g.Dir(id), SegmentBytes: 16 << 20, IndexSlots: 1000, IndexEntries: 10000, Role: messages.Slave})
	require.NoError(g.t, err)
	all := map[place]string{}
	s.EachQueue(func(key messages.QueueKey, first, end messages.QueueOffset) {
		for at := first; key.Topic == Topic && at < end; {
			r, err := s.Get(context.Background(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32})
			require.NoError(g.t, err)
			require.Equal(g.t, messages.Found, r.Status)
			for _, raw := range r.Records {
				m, _, err := record.Parse(raw, true)
				require.NoError(g.t, err)
				body, _, _ := strings.Cut(string(m.Body), ".")
				all[place{key.QueueID, int64(m.QueueOffset)}] = body
			}
			at = r.NextOffset
			r.Release()
		}
	})
	require.NoError(g.t, s.Close(context.Background()))
	return all
}

// sameLog compares the commit logs of two nodes that are down.
func (g *Group) sameLog(a, b string) {
	g.t.Helper()
	files, err := os.ReadDir(filepath.Join(g.Dir(a), "commitlog"))
	require.NoError(g.t, err)
	require.NotEmpty(g.t, files)
	for _, f := range files {
		x, err := os.ReadFile(filepath.Join(g.Dir(a), "commitlog", f.Name()))
		require.NoError(g.t, err)
		y, err := os.ReadFile(filepath.Join(g.Dir(b), "commitlog", f.Name()))
		require.NoError(g.t, err)
		require.True(g.t, slices.Equal(x, y), "%s at %s and %s", f.Name(), a, b)
	}
}
