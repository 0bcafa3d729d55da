package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
)

// A node whose view is old, after it was cut off, say, must not ask etcd again and again: each attempt is written to etcd's log.
func TestAnElectionThatComesToNothingIsNotTriedAgainAtOnce(t *testing.T) {
	client, err := dial([]string{etcd(t)}, nil, newClientLog(zerolog.Nop()))
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	system := actor.NewActorSystem()
	defer system.Shutdown()
	got := make(chan asked, 1)
	pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(asked); ok {
			got <- m
		}
	}))
	e := &elector{cfg: Config{ID: "1", Lease: time.Hour, Logger: zerolog.Nop()}, ctl: newControl(client, "test"), cutAt: -1}
	e.self = actors.NewPeer(system.Root, pid)
	e.holder = newHolder(e.ctl, time.Hour, e.self)
	e.holder.hold(1, 0)
	e.lease = 1
	e.view = view{known: true, rev: 7, record: &Record{Epoch: 1, Leader: "2", InSync: []string{"1", "2"}}} // etcd has none
	e.campaign()
	require.True(t, e.asking)
	failed := <-got
	require.ErrorIs(t, failed.err, ErrChanged)
	e.answered(failed)
	e.campaign()
	require.False(t, e.asking, "nothing is new")
	e.tick()
	e.ticker.Stop()
	e.campaign()
	require.True(t, e.asking)
	e.answered(<-got)
}

// Readers wait for the next leader for as long behind a node's own lead as behind another's.
func TestTheOwnLeadIsNotATimeWithoutALeader(t *testing.T) {
	e := &elector{cfg: Config{ID: "1", Logger: zerolog.Nop()}}
	e.lead.Store(&lead{since: time.Now().Add(-time.Hour), changed: make(chan struct{})})
	require.True(t, e.leaderless())
	_, before := e.leading()
	e.ended(ended{term: &term{leads: true}})
	require.False(t, e.leaderless())
	_, after := e.leading()
	require.Equal(t, before, after, "nobody else leads")
}

// Clients that do not take their answers do not keep the lead from being given up.
func TestTheLeadIsGivenUpHoweverLongClientsTake(t *testing.T) {
	client, err := dial([]string{etcd(t)}, nil, newClientLog(zerolog.Nop()))
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	ctl := newControl(client, "test")
	_, err = client.Put(t.Context(), ctl.leaderKey(), "3")
	require.NoError(t, err)
	leads := &term{cfg: &Config{Logger: zerolog.Nop()}, leads: true, epoch: 3, stop: func() {}, serving: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	require.ErrorIs(t, leads.handOver(ctl), context.DeadlineExceeded)
	got, err := client.Get(t.Context(), ctl.leaderKey())
	require.NoError(t, err)
	require.Zero(t, got.Count)
}
