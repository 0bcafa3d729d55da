package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	members "github.com/actormq/actormq/system/cluster"
)

// TestTheGraceOfAStopBeginsWithTheNextLead: a hand-over that takes long is not taken off it, and one that does not end is not waited for.
func TestTheGraceOfAStopBeginsWithTheNextLead(t *testing.T) {
	const grace = 3 * time.Second
	for _, c := range []struct {
		name                     string
		handed, deserted, drains time.Duration // when; 0: never
		drain                    time.Duration // the grace that is asked for then
		want                     time.Duration
	}{
		{name: "at once", handed: time.Millisecond, want: time.Millisecond + grace},
		{name: "slow", handed: 2 * time.Second, want: 2*time.Second + grace},
		{name: "never", want: stopTimeout/2 + grace},
		{name: "deserted", handed: time.Second, deserted: 2 * time.Second, want: 2 * time.Second},
		{name: "deserted before", deserted: 2 * time.Second, want: 2 * time.Second},
		{name: "drained before", drains: time.Second, drain: time.Minute, handed: 2 * time.Second, want: 2*time.Second + time.Minute},
		{name: "drained behind", handed: time.Second, drains: 2 * time.Second, drain: time.Minute, want: 2*time.Second + time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &clusterNode{log: zerolog.Nop(), drain: make(chan time.Duration, 1)}
			handed, deserted := make(chan struct{}), make(chan struct{})
			at := func(d time.Duration, do func()) {
				if d > 0 {
					time.AfterFunc(d, do)
				}
			}
			at(c.handed, func() { close(handed) })
			at(c.deserted, func() { close(deserted) })
			at(c.drains, func() { n.drain <- c.drain })
			begin := time.Now()
			n.relay(grace, false, handed, deserted, nil)
			require.Equal(t, c.want, time.Since(begin), c.name)
		})
	}
}

// led is a node that leads unless handed is nil.
type led struct{ handed chan struct{} }

func (l led) Yield() bool                 { return l.handed != nil }
func (l led) HandedOver() <-chan struct{} { return l.handed }

// TestTheGraceOfADrainBeginsWithTheNextLead: what a hand-over takes is not taken off it; a node that has nothing to hand over begins at once.
func TestTheGraceOfADrainBeginsWithTheNextLead(t *testing.T) {
	const grace = 10 * time.Second
	for _, c := range []struct {
		name          string
		handed, ended time.Duration // when; 0: never
		follows       bool
		again, drain  time.Duration // when it is drained a second time, 0: never; and the grace that is asked for then
		want          time.Duration
	}{
		{name: "slow", handed: 2 * time.Second, want: 2*time.Second + grace},
		{name: "never", want: stopTimeout/2 + grace},
		{name: "a follower", follows: true, want: grace},
		{name: "told to end", handed: time.Second, ended: 2 * time.Second, want: 2 * time.Second},
		{name: "told to end, before", ended: time.Second, want: time.Second},
		{name: "drained twice", handed: time.Second, again: 6 * time.Second, drain: grace, want: time.Second + grace},
		{name: "drained twice, a follower", follows: true, again: 6 * time.Second, drain: grace, want: grace},
		{name: "drained twice, before", handed: 2 * time.Second, again: time.Second, drain: time.Minute, want: 2*time.Second + grace},
		{name: "drained twice, sooner", handed: time.Second, again: 6 * time.Second, drain: time.Second, want: 7 * time.Second},
		{name: "drained twice, sooner, before", handed: 2 * time.Second, again: time.Second, drain: 3 * time.Second, want: 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &clusterNode{log: zerolog.Nop(), drain: make(chan time.Duration, 1)}
			var member led
			ended := make(chan struct{})
			if !c.follows {
				member.handed = make(chan struct{})
			}
			if c.handed > 0 {
				time.AfterFunc(c.handed, func() { close(member.handed) })
			}
			if c.ended > 0 {
				time.AfterFunc(c.ended, func() { close(ended) })
			}
			if c.again > 0 {
				time.AfterFunc(c.again, func() { n.drain <- c.drain })
			}
			begin := time.Now()
			n.drained(member, grace, ended)
			require.Equal(t, c.want, time.Since(begin), c.name)
		})
	}
}

// TestAClusterIsSettledOnceAllNodesSayWhatIsConfirmed: just after they are in sync they have not.
func TestAClusterIsSettledOnceAllNodesSayWhatIsConfirmed(t *testing.T) {
	state := func(id string, end, confirmed messages.PhysicalOffset) members.NodeState {
		return members.NodeState{ID: id, End: end, Confirmed: confirmed}
	}
	s := members.Status{Leads: true, Record: members.Record{InSync: []string{"1", "2"}}}
	s.Nodes = []members.NodeState{state("1", 7, 7), state("2", 7, 0)}
	require.True(t, unsettled(s))
	s.Nodes[1] = state("2", 7, 5)
	require.False(t, unsettled(s))
	s.Nodes = []members.NodeState{state("1", 0, 0), state("2", 0, 0)}
	require.False(t, unsettled(s), "the group has nothing yet")
	s.Leads = false
	require.True(t, unsettled(s))
	s.Leads, s.InSync = true, s.InSync[:1]
	require.True(t, unsettled(s))
}
