package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	members "github.com/actormq/actormq/system/cluster"
	"github.com/actormq/actormq/testkit/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// offsetsLag is how old the offsets of groups may be that a new leader has: they are written each second, on a busy machine some seconds
// late.
const offsetsLag = 20 * time.Second

// harm is what happens to a leader.
type harm struct {
	what       string
	hurt, heal func(id string)
	back       func() // when it is in sync again; may be nil
}

func TestNothingAcknowledgedIsLostWhenLeadersFail(t *testing.T) {
	aboutNodes(t)
	if Apart(t) {
		return
	}
	g := Build(t, 3)
	harms := []harm{
		{"killed", g.Kill, func(id string) { g.Start(id) }, nil}, {"paused", g.Pause, g.Resume, nil},
		{"stopped in order", g.Terminate, func(id string) { g.Ended(id); g.Start(id) }, nil},
	}
	if g.network != nil {
		harms = append(harms, g.parted("cut off", keptIn, g.CutOff), g.parted("not heard", keptIn, g.Mute), g.parted("hearing nobody", leaked, g.Deafen))
	}
	g.rounds(fixture.Number(t, "ACTORMQ_CLUSTER_ROUNDS", len(harms)), slices.Concat(harms[3:], harms[:3])) // each harm once
}

// aboutNodes leaves a long test out under the race detector: its nodes are processes, and their load is raced by the tests that go on.
func aboutNodes(t *testing.T) {
	t.Helper()
	if fixture.Raced {
		t.Skip("the race detector sees nothing of the nodes")
	}
}

// parted is harm by the network, while clients that know nobody else go on sending to the leader.
func (g *Group) parted(what, bodies string, cut func(id string)) harm {
	var late *stranded
	n := 0
	return harm{what, func(id string) {
		cut(id)
		n++
		late = g.strand(id, fmt.Sprint(bodies, id, "/", n, "/"))
	}, func(string) {
		late.end()
		g.network.Heal()
	}, func() {
		if bodies == keptIn {
			late.aside()
		}
	}}
}

// rounds does harm to whoever leads, again and again, under load, and judges what is left.
func (g *Group) rounds(n int, harms []harm) {
	t := g.t
	g.Start("1", "2", "3")
	g.Ready("1", "2", "3")
	g.Leader()
	l := Begin(t, g, 8)
	l.AwaitAck(time.Now(), 3*time.Minute)
	owed := l.MakePromises()
	var gaps []time.Duration
	for round := range n {
		victim, h := g.Leader(), harms[round%len(harms)]
		l.AwaitAck(time.Now(), 3*time.Minute)
		began, acked := time.Now(), l.Acked()
		h.hurt(victim)
		elected, over, led := g.successor(victim)
		gap := l.AwaitAck(began.Add(settled), 3*time.Minute) + settled
		t.Logf("round %d: node %s %s after %d sends: node %s elected; lease over after %v, election %v, clients %v, acknowledging after %v", round,
			victim, h.what, acked, elected, ms(over.Sub(began)), ms(led.Sub(over)), ms(max(gap-led.Sub(began), 0)), ms(gap))
		gaps = append(gaps, gap)
		l.finds(g, victim, elected)
		l.Kept(began.Add(-offsetsLag))
		owed.Next()
		more := l.Acked() + 100 + rand.IntN(200)
		g.Until("sends go on", func() bool { return l.Acked() > more })
		h.heal(victim)
		healed := time.Now()
		g.Leader()
		t.Logf("        in sync again after %v", ms(time.Since(healed)))
		if h.back != nil {
			h.back()
		}
	}
	l.AwaitAck(time.Now(), 3*time.Minute)
	owed.Kept()
	l.End()
	slices.Sort(gaps)
	t.Logf("%d sends acknowledged of %d; service back after %v at the median, %v at worst", l.Acked(), l.tried, ms(gaps[len(gaps)/2]),
		ms(gaps[len(gaps)-1]))
	g.end(l)
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// A follower that nobody hears, or that is cut off, holds puts up until it is no longer in sync, and no longer; it comes back by itself.
func TestServiceGoesOnWithoutAFollowerThatIsCutOff(t *testing.T) {
	aboutNodes(t)
	if Apart(t) {
		return
	}
	g := Build(t, 3)
	if g.network == nil {
		t.Skip("without a network to cut")
	}
	g.Start("1", "2", "3")
	g.Ready("1", "2", "3")
	g.Leader()
	l := Begin(t, g, 8)
	for what, cut := range map[string]func(string){"cut off": g.CutOff, "not heard": g.Mute, "hearing nobody": g.Deafen} {
		leader := g.Leader()
		l.AwaitAck(time.Now(), 3*time.Minute)
		victim, began := g.others(leader)[0], time.Now()
		cut(victim)
		g.Until("it is out of sync", func() bool {
			s, err := g.Status(victim)
			return err == nil && s.Leads && !slices.Contains(s.InSync, victim)
		})
		shrunk := time.Since(began)
		l.AwaitAck(time.Now(), 3*time.Minute)
		acking := time.Since(began)
		g.network.Heal()
		healed := time.Now()
		now := g.Leader()
		t.Logf("follower %s of leader %s %s: out of sync after %v, acknowledging after %v; back after %v under leader %s", victim, leader, what,
			ms(shrunk), ms(acking), ms(time.Since(healed)), now)
	}
	l.AwaitAck(time.Now(), 3*time.Minute)
	l.End()
	g.end(l)
}

// settled is when the last answers of a leader that was hurt are there: what is acknowledged later comes from the next one.
const settled = 500 * time.Millisecond

// successor waits until another node leads, and tells when the lead of the one before was seen to be over.
func (g *Group) successor(of string) (id string, over, led time.Time) {
	g.t.Helper()
	g.Until("another node leads", func() bool {
		s, err := g.Status(of)
		if err != nil {
			return false
		}
		if over.IsZero() && (!s.Leads || s.Leader != of) {
			over = time.Now()
		}
		id, led = s.Leader, time.Now()
		return s.Leads && id != of
	})
	return id, over, led
}

// end stops the nodes, followers last, and judges what they have.
func (g *Group) end(l *Load) {
	g.t.Helper()
	leader := g.Leader()
	var common messages.PhysicalOffset
	g.Until("all nodes have the same", func() bool {
		s, err := g.Status()
		if err == nil && len(s.Nodes) > 0 {
			common = s.Nodes[0].End
		}
		return err == nil && len(s.Nodes) == len(g.Nodes) && !slices.ContainsFunc(s.Nodes, func(n members.NodeState) bool { return n.End != s.Nodes[0].End })
	})
	ids := g.others(leader)
	for _, id := range append(ids, leader) {
		g.Kill(id) // a stop in order would elect, and go on
	}
	for _, id := range append(ids, leader) {
		all := g.content(id)
		l.Check(all)
		g.neverLeft(all)
	}
	for _, id := range ids {
		g.sameLog(leader, id, common) // the leader may have gone on: it puts offsets of groups into the log
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

// sameLog compares the commit logs of two nodes that are down, up to an offset.
func (g *Group) sameLog(a, b string, end messages.PhysicalOffset) {
	g.t.Helper()
	files, err := os.ReadDir(filepath.Join(g.Dir(a), "commitlog"))
	require.NoError(g.t, err)
	require.NotEmpty(g.t, files)
	for _, f := range files {
		x, err := os.ReadFile(filepath.Join(g.Dir(a), "commitlog", f.Name()))
		require.NoError(g.t, err)
		y, err := os.ReadFile(filepath.Join(g.Dir(b), "commitlog", f.Name()))
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(g.t, err)
		}
		start, err := segments.ParseName(f.Name())
		require.NoError(g.t, err)
		n := min(max(int64(end)-start, 0), int64(len(x)))
		require.GreaterOrEqual(g.t, int64(len(y)), n)
		require.True(g.t, slices.Equal(x[:n], y[:n]), "%s at %s and %s, below %d", f.Name(), a, b, end)
	}
}
