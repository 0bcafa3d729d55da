package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
)

func messageOf(raw []byte) (string, error) {
	r, _, err := record.Parse(raw, true)
	return string(r.Body), err
}

// whole requires that the messages that were acknowledged are there, in order, at a node; others, which nobody has been told of, may
// stand between them.
func (g *group) whole(id string) {
	g.t.Helper()
	g.until("everything acknowledged is read", func() bool {
		next := 0
		for _, body := range g.bodies(id) {
			if body == fmt.Sprint("m", next) {
				next++
			}
		}
		return next == g.order
	})
}

func TestANodeThatHasEverythingTakesOver(t *testing.T) {
	g := newGroup(t, 3)
	g.start("1", "2", "3")
	for range 20 {
		g.put()
	}
	first := g.leader()
	g.until("tools are told", func() bool {
		all, err := Read(t.Context(), []string{g.etcd}, nil)
		return err == nil && len(all) == 1 && all[0].Cluster == "test" && all[0].Leads && all[0].Leader == first && len(all[0].Nodes) == 3
	})
	require.Equal(t, []string{first}, g.kind.there(), "a service of the leader")
	g.stop(first) // in order: another one leads at once
	for range 20 {
		g.put()
	}
	second := g.leader()
	require.NotEqual(t, first, second)
	g.whole(second)
	g.start(first)
	g.whole(first)
	require.Equal(t, []string{second}, g.kind.there())
	for id := range g.up {
		if id != second {
			g.whole(id)
		}
	}
	g.stop(second)
	for range 5 {
		g.put()
	}
	g.start(second)
	for id := range g.up {
		g.whole(id)
	}
	ids := []string{"1", "2", "3"}
	for _, id := range ids {
		g.stop(id)
	}
	files, err := g.disks["1"].List("store/commitlog")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, id := range ids[1:] {
		g.sameLog("1", id)
	}
}

// sameLog compares the logs of two nodes that are down. The one that was stopped later may have more: the group's state, which a leader notes
// when something of it has changed.
func (g *group) sameLog(a, b string) {
	g.t.Helper()
	list, err := g.disks[a].List("store/commitlog")
	require.NoError(g.t, err)
	total := 0
	for _, e := range list {
		one, other := bytes.TrimRight(g.file(a, e.Name), "\x00"), bytes.TrimRight(g.file(b, e.Name), "\x00")
		both := min(len(one), len(other))
		total += both
		require.Equal(g.t, one[:both], other[:both], "%s at %s and %s", e.Name, a, b)
	}
	require.NotZero(g.t, total)
}

func (g *group) file(id, name string) []byte {
	f, err := g.disks[id].Open(path.Join("store/commitlog", name), false)
	require.NoError(g.t, err)
	size, err := f.Size()
	require.NoError(g.t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	require.NoError(g.t, err)
	require.NoError(g.t, f.Close())
	return b
}

// L104: the lease is lost and had again: the node is one of the group again by itself.
func TestALeaderThatIsCutOffAcknowledgesNothingAndComesBack(t *testing.T) {
	g := newGroup(t, 3)
	g.start("1", "2", "3")
	for range 10 {
		g.put()
	}
	old := g.leader()
	cut := g.up[old]
	late := cut.Store()
	cut.etcd.set(true)
	var sent atomic.Int64
	g.until("it leads no more", func() bool { // whatever it takes meanwhile is confirmed or refused
		late.PutAsync(&messages.Message{Topic: "T", Body: []byte("late")}, true, time.Time{}, func(r messages.PutResult, _ error) {
			if r.Status == messages.FlushSlaveTimeout || r.Status == messages.SlaveNotAvailable {
				sent.Add(1)
			}
		})
		return !cut.leads()
	})
	for range 10 {
		g.put(old)
	}
	next := g.leader(old)
	require.NotEqual(t, old, next)
	cut.etcd.set(false)
	g.whole(old) // it has come back by itself, and follows
	require.Zero(t, sent.Load(), "clients would take that for sent")
	g.stop(next)
	for range 3 {
		g.put()
	}
	g.start(next)
	g.whole(next)
	for _, id := range []string{"1", "2", "3"} {
		g.stop(id)
	}
	g.sameLog("1", "2")
	g.sameLog("1", "3")
}

// An operator who empties etcd takes the group away: nobody leads it any more, and the nodes make another one of what they have.
func TestAGroupWhoseRecordIsTakenAwayBeginsAnew(t *testing.T) {
	g := newGroup(t, 2)
	g.start("1", "2")
	for range 10 {
		g.put()
	}
	old := g.up[g.leader()]
	client, err := dial([]string{g.etcd}, nil, newClientLog(zerolog.Nop()))
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	record := func() Record {
		v, err := newControl(client, "test").look(t.Context())
		require.NoError(t, err)
		if v.record == nil {
			return Record{}
		}
		return *v.record
	}
	before, term := record(), old.elector.shown.Load()
	_, err = client.Delete(t.Context(), old.elector.ctl.groupKey())
	require.NoError(t, err)
	g.until("another group", func() bool { r := record(); return r.Group != "" && r.Group != before.Group && term.fenced() })
	for range 10 {
		g.put()
	}
	for id := range g.up {
		g.whole(id)
	}
}

// A follower that ends in order is not waited for, however long one that is slow would be.
func TestAFollowerThatLeavesHoldsNoPutUp(t *testing.T) {
	g := newGroup(t, 3)
	g.lag = time.Hour
	g.start("1", "2", "3")
	g.put()
	inSync := func() (ids []string) {
		all, err := Read(t.Context(), []string{g.etcd}, nil)
		require.NoError(t, err)
		return all[0].InSync
	}
	g.until("all are in sync", func() bool { return len(inSync()) == 3 })
	leader := g.leader()
	for id := range g.up {
		if id != leader {
			g.stop(id)
			g.put()
			require.NotContains(t, inSync(), id)
			break
		}
	}
	require.Equal(t, leader, g.leader())
	require.Len(t, inSync(), 2, "as many as a message must be on are kept")
}

func TestAMinorityCantAcknowledge(t *testing.T) {
	g := newGroup(t, 3)
	g.start("1", "2", "3")
	g.put()
	leader := g.leader()
	for id := range g.up {
		if id != leader {
			g.stop(id)
		}
	}
	s := g.up[leader].Store()
	g.until("puts are refused", func() bool { return errors.Is(s.Writable(), ErrNotEnoughInSync) })
	require.Len(t, g.bodies(leader), g.order, "what is confirmed is read")
	for _, n := range g.nodes {
		if g.up[n.ID] == nil {
			g.start(n.ID)
		}
	}
	g.put()
	g.whole(leader)
}

// TestAFollowerThatCannotServeTriesAgainAfterALease: not at once, since each attempt opens the store.
func TestAFollowerThatCannotServeTriesAgainAfterALease(t *testing.T) {
	g := newGroup(t, 3)
	g.start("1", "2", "3")
	leader := g.put()
	id := g.nodes[0].ID
	if id == leader {
		id = g.nodes[1].ID
	}
	g.stop(id)
	g.refuse = true
	g.start(id)
	p := g.up[id]
	g.until("three attempts", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.tried) >= 3
	})
	p.mu.Lock()
	p.refuse = false
	for i := range p.tried[1:] {
		require.GreaterOrEqual(t, p.tried[i+1].Sub(p.tried[i]), p.elector.cfg.Lease)
	}
	p.mu.Unlock()
	g.whole(id)
}

func TestAReplicaThatHasNothingInCommonIsCopiedAnew(t *testing.T) {
	g := newGroup(t, 3)
	s, err := system.Open(system.Options{Dir: "store", Disk: g.disks["2"], SegmentBytes: 64 << 10, IndexSlots: 100, IndexEntries: 1000, WindowBytes: -1})
	require.NoError(t, err)
	for range 3 {
		_, err = s.Put(t.Context(), &messages.Message{Topic: "T", Body: []byte("foreign")})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	s, err = system.Open(system.Options{Dir: "store", Disk: g.disks["3"], SegmentBytes: 64 << 10, IndexSlots: 100, IndexEntries: 1000, WindowBytes: -1})
	require.NoError(t, err)
	for range 30 {
		_, err = s.Put(t.Context(), &messages.Message{Topic: "T", Body: []byte("founder")})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	g.start("1", "2", "3")
	g.put()
	require.Equal(t, "3", g.leader(), "the one with the most makes the group")
	for id := range g.up {
		g.whole(id)
		g.until("the same everywhere", func() bool { b := g.bodies(id); return len(b) >= 31 && b[0] == "founder" && b[29] == "founder" })
	}
	aside, err := g.disks["2"].List("store/quarantine")
	require.NoError(t, err)
	require.Len(t, aside, 1, "what it had is kept")
}
