package cluster

import (
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
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

// leading is an elector of node a, which leads with node b in sync.
func leading(t *testing.T) *elector {
	t.Helper()
	e := stopping(t)
	e.yields = false
	e.term = &term{leads: true, fenced: func() bool { return false }}
	e.view = view{known: true, at: 7, record: &Record{Epoch: 2, Leader: "a", InSync: []string{"a", "b"}}, leading: 2, nodes: map[string]NodeState{"a": {}, "b": {}}}
	return e
}

func isAnswered[T any](a *messages.Answer[T]) bool {
	select {
	case <-a.Done():
		return true
	default:
		return false
	}
}

// Of two nodes that are stopped within one round trip to etcd one at least knows of the other: a leader looks for a successor once all can see that it
// is being stopped, and what it sees then counts.
func TestALeaderThatIsStoppedLooksForASuccessorOnceTheOthersKnow(t *testing.T) {
	for _, c := range []struct {
		name   string
		yields bool // the other one, as etcd has it once it has this one's word
	}{{"b is being stopped too", true}, {"b is not", false}} {
		t.Run(c.name, func(t *testing.T) {
			e := leading(t)
			answer := messages.NewAnswer[bool]()
			e.yield(answer)
			pending := func(why string) {
				t.Helper()
				e.conclude()
				require.False(t, isAnswered(answer), why)
				require.False(t, e.passesOver(), why)
			}
			pending("nobody knows of it")
			e.told(told{rev: 9})
			pending("what is told is what it said before")
			e.told(told{rev: 10, yields: true})
			e.told(told{rev: 12, yields: true})
			e.view.at = 9
			pending("its look is an older one")
			e.view.at, e.view.nodes["b"] = 10, NodeState{Yields: c.yields}
			e.conclude()
			require.True(t, isAnswered(answer))
			hands, err := answer.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, !c.yields, hands)
			require.Equal(t, !c.yields, e.passesOver())
		})
	}
}

// A leader that can't tell anybody, as it is cut off from etcd, knows at the end of its lease that nobody takes over.
func TestALeaderThatIsCutOffHandsOverToNobody(t *testing.T) {
	e := leading(t)
	answer := messages.NewAnswer[bool]()
	e.yield(answer)
	e.conclude()
	require.False(t, isAnswered(answer))
	e.term.fenced = func() bool { return true }
	e.conclude()
	hands, err := answer.Wait(t.Context())
	require.NoError(t, err)
	require.False(t, hands)
}

// A node whose store is being closed, as it is stopped, still says that it yields.
func TestANodeThatClosesItsStoreStillSaysThatItYields(t *testing.T) {
	e := leading(t)
	e.said = NodeState{ID: "a", Role: "leader", End: 5}
	e.changing = true
	require.Equal(t, e.said, e.state(), "there is nothing new")
	e.leaving = &leave{}
	require.Equal(t, NodeState{ID: "a", Role: "leader", End: 5, Yields: true}, e.state())
	e.said = NodeState{}
	require.Equal(t, NodeState{}, e.state(), "it has not been there")
}

// Two that have handed over to each other know it at once: who is stopped ends, who is drained leads again a lease later.
func TestWhereAllThatCouldLeadAreStoppedNobodyWaits(t *testing.T) {
	e := stopping(t)
	e.lead.Load().since = time.Now() // nobody leads, since now
	e.view = view{known: true, at: 10, record: &Record{Epoch: 2, Leader: "a", InSync: []string{"a", "b"}}, nodes: map[string]NodeState{"a": {}, "b": {}}}
	e.company.seenAt = 10
	e.seek()
	require.False(t, e.isDeserted(), "node b is about to lead")
	e.company.know(map[string]NodeState{"b": {Yields: true}})
	e.seek()
	require.False(t, e.isDeserted(), "it has come back")
	delete(e.view.nodes, "b")
	e.company.seenAt = 11
	e.seek()
	require.False(t, e.isDeserted(), "this look is an older one")
	e.company.seenAt = 10
	e.seek()
	require.True(t, e.isDeserted())
	e.campaign()
	require.False(t, e.asking, "it is about to end")
	e.company.over = time.Now().Add(-e.cfg.Lease)
	e.campaign()
	require.True(t, e.asking, "it is drained")
}

// Without etcd nobody is elected: a node that knows of no other leader does not wait for one any longer than a lease behind its own.
func TestWithoutEtcdNobodyWaitsForTheNextLeader(t *testing.T) {
	for leader, patience := range map[string]time.Duration{"": time.Second, "b:10911": leaderlessAfter} {
		e := stopping(t)
		e.cfg.Lease = time.Second
		e.lead.Store(&lead{address: leader, since: time.Now(), changed: make(chan struct{})})
		e.view = view{known: true, record: &Record{Epoch: 2, Leader: "b", InSync: []string{"a", "b"}}, nodes: map[string]NodeState{"a": {}, "b": {}}}
		e.lease = 0 // it has passed
		e.company.heard = time.Now().Add(-patience + 200*time.Millisecond)
		e.seek()
		require.False(t, e.isDeserted(), leader)
		e.company.heard = time.Now().Add(-patience)
		e.seek()
		require.True(t, e.isDeserted(), leader)
	}
}

// Two nodes that are drained at the same moment: one of them leads for as long as it takes, and not 10 s later.
func TestTwoNodesThatYieldAtOnceDoNotWaitForEachOther(t *testing.T) {
	g := newGroup(t, 2)
	g.start("1", "2")
	g.put()
	var both sync.WaitGroup
	for _, p := range g.up {
		both.Go(func() { p.Yield() })
	}
	both.Wait()
	began := time.Now()
	g.put()
	require.Less(t, time.Since(began), leaderlessAfter)
}

// That a node yielded counts until it is there again and says that it does not: then it can take over as ever.
func TestANodeThatHasYieldedOnceCanTakeOverAgain(t *testing.T) {
	e := stopping(t)
	e.company.seenAt = 1
	see := func(nodes map[string]NodeState) {
		e.view = view{known: true, at: 7, record: &Record{Epoch: 2, Leader: "a", InSync: []string{"a", "b"}}, nodes: nodes}
		e.company.know(nodes)
	}
	see(map[string]NodeState{"a": {}, "b": {Yields: true}})
	require.True(t, e.forlorn())
	require.False(t, e.successor())
	see(map[string]NodeState{"a": {}}) // it has gone
	require.True(t, e.forlorn())
	see(map[string]NodeState{"a": {}, "b": {}}) // and has started again
	require.False(t, e.forlorn())
	require.True(t, e.passesOver())
	see(map[string]NodeState{"a": {}}) // killed this time
	require.False(t, e.forlorn(), "it is not being stopped: it is waited for")
}
