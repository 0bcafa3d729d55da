package cluster

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
)

// stopping is the elector of node a, which follows, has yielded, and knows of nobody that has led for 11 s. Its attempts to lead come to nothing.
func stopping(t *testing.T) *elector {
	t.Helper()
	client, err := dial([]string{etcd(t)}, nil, newClientLog(zerolog.Nop()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	system := actor.NewActorSystem()
	t.Cleanup(system.Shutdown)
	got := make(chan asked, 1)
	pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(asked); ok {
			got <- m
		}
	}))
	e := &elector{cfg: Config{ID: "a", Lease: time.Hour, Logger: zerolog.Nop()}, ctl: newControl(client, "test"), cutAt: -1, lease: 1, yields: true}
	e.self = actors.NewPeer(system.Root, pid)
	e.holder = newHolder(e.ctl, time.Hour, e.self)
	e.holder.hold(1, 0)
	e.lead.Store(&lead{since: time.Now().Add(-leaderlessAfter - time.Second), changed: make(chan struct{})})
	e.company = company{met: time.Now(), heard: time.Now(), deserted: make(chan struct{}), handed: make(chan struct{})}
	t.Cleanup(func() { // what is under way needs the client
		if e.asking {
			<-got
		}
	})
	return e
}

func (e *elector) isDeserted() bool {
	select {
	case <-e.company.deserted:
		return true
	default:
		return false
	}
}

// A node that is stopped either ends or leads again. With both it is the only one in sync when it ends, and nobody can lead without it.
func TestANodeThatIsStoppedEndsOrLeadsAgainButNotBoth(t *testing.T) {
	const alone = "nobody" // no other node lives, nor has for a lease
	for _, c := range []struct {
		name   string
		inSync []string
		lives  string
		leads  bool
	}{
		{"the next leader is lost, and no other node can lead", []string{"b", "a"}, "c", true},
		{"the other one that can does not: it is stopped too", []string{"b", "a"}, "b", false},
		{"this one can't lead", []string{"b"}, "c", false},
		{"nobody else lives", []string{"b", "a"}, alone, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := stopping(t)
			e.view = view{known: true, rev: 7, record: &Record{Epoch: 2, Leader: "b", InSync: c.inSync}, nodes: map[string]NodeState{"a": {}}}
			if c.lives != alone {
				e.view.nodes[c.lives] = NodeState{}
			} else {
				e.company.met = time.Now().Add(-e.cfg.Lease)
			}
			e.seek() // as in a tick
			e.campaign()
			require.Equal(t, c.leads, e.asking)
			require.Equal(t, !c.leads, e.isDeserted())
		})
	}
}

// Its lead begins when the record says so, not when the store is open.
func TestANodeThatHasJustWonIsNotDeserted(t *testing.T) {
	e := stopping(t)
	e.view = view{known: true, record: &Record{Epoch: 3, Leader: "a", InSync: []string{"a"}}, leading: 3, nodes: map[string]NodeState{"a": {}, "c": {}}}
	e.asking = true // the watcher was faster than the answer
	t.Cleanup(func() { e.asking = false })
	e.seek()
	require.False(t, e.isDeserted())
	e.asking, e.won = false, 3
	e.seek()
	require.False(t, e.isDeserted())
	e.won = 0
	e.seek()
	require.True(t, e.isDeserted())
}

// A drain does not end with the others gone: the node leads again for the rest of it.
func TestANodeThatIsDrainedLeadsAgainAlsoWhereNobodyElseLives(t *testing.T) {
	e := stopping(t)
	e.view = view{known: true, rev: 7, record: &Record{Epoch: 2, Leader: "b", InSync: []string{"b", "a"}}, nodes: map[string]NodeState{"a": {}}}
	e.company.met = time.Now().Add(-e.cfg.Lease)
	e.seek()
	e.campaign()
	require.False(t, e.asking)
	e.company.over = time.Now().Add(-e.cfg.Lease)
	e.seek()
	e.campaign()
	require.True(t, e.asking)
}

// After a stall of etcd the nodes get new leases one after the other: the first one waits for the others.
func TestWhatANodeCouldNotKnowDoesNotDesertIt(t *testing.T) {
	e := stopping(t)
	e.lead.Load().since = time.Now()
	e.view = view{known: true, nodes: map[string]NodeState{"a": {}}}
	e.holder.hold(1, -2*e.cfg.Lease) // it has passed
	e.company.met = time.Now().Add(-2 * e.cfg.Lease)
	e.seek()
	require.False(t, e.isDeserted())
	e.lease = 2
	e.holder.hold(2, e.holder.now())
	e.seek()
	require.False(t, e.isDeserted(), "the others' leases may be about to come")
	e.company.met = e.company.met.Add(-e.cfg.Lease)
	e.seek()
	require.True(t, e.isDeserted())
}

// Clients are relayed from when another node can lead, not from when it was asked for: a lead is given up once all that was begun is answered.
func TestANodeHasHandedOverWhenItsLeadHasEnded(t *testing.T) {
	e := stopping(t)
	m := &Member{elector: e}
	e.ended(ended{term: &term{}})
	select {
	case <-m.HandedOver():
		require.Fail(t, "a follower has no lead")
	default:
	}
	for range 2 {
		e.ended(ended{term: &term{leads: true}})
		<-m.HandedOver()
	}
}

// A node that is stopped does not hand over to one that is about to stop, or drains: that one would not lead, and each would wait for the other.
func TestANodeThatYieldsIsNobodysSuccessor(t *testing.T) {
	e := stopping(t)
	e.view = view{known: true, record: &Record{Epoch: 2, Leader: "a", InSync: []string{"a", "b"}}, nodes: map[string]NodeState{"a": {}, "b": {}}}
	require.True(t, e.successor())
	e.view.nodes["b"] = NodeState{Yields: true}
	require.False(t, e.successor())
	e.view.record.Leader = "b"
	require.True(t, e.forsaken(), "it could lead, and does not")
	e.view.record.InSync = append(e.view.record.InSync, "c")
	e.view.nodes["c"] = NodeState{}
	require.True(t, e.successor())
}
