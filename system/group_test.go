package system_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/extension"
	"github.com/actormq/actormq/actors/ha"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// leader are small options of a store that leads; a node greets with the letter that is its name.
func leader(disk vfs.Disk, fenced *atomic.Bool) system.Options {
	opt := master(disk, messages.SyncMaster)
	opt.SlaveTimeout = 300 * time.Millisecond
	opt.Group = &ha.Group{
		Fenced: fenced.Load,
		GreetFollower: func(c net.Conn) (string, error) {
			var b [1]byte
			if _, err := io.ReadFull(c, b[:]); err != nil || b[0] < 'a' {
				return "", errors.Join(errors.New("who is that?"), err)
			}
			return string(b[:]), nil
		},
	}
	return opt
}

func replica(disk vfs.Disk, name string) system.Options {
	opt := slaveOf(disk, "")
	opt.HAFullCopy = true
	opt.Group = &ha.Group{GreetLeader: func(c net.Conn) error {
		_, err := c.Write([]byte(name))
		return err
	}}
	return opt
}

func inSync(t *testing.T, s *system.Store, least int, nodes ...string) {
	t.Helper()
	_, err := s.SetInSync(t.Context(), messages.InSync{Nodes: nodes, Min: least})
	require.NoError(t, err)
}

func TestALeaderAcknowledgesWhatEveryReplicaInSyncHas(t *testing.T) {
	var fenced atomic.Bool
	md, ad, bd := memfs.New(), memfs.New(), memfs.New()
	m := open(t, leader(md, &fenced))
	a, b := open(t, replica(ad, "a")), open(t, replica(bd, "b"))
	a.FollowLeader(m.HAAddress())
	put := func(what string) (messages.PutResult, error) { return m.Put(t.Context(), message("T", 0, what)) }

	r, err := put("nobody has said who is in sync")
	require.NoError(t, err)
	require.Equal(t, messages.FlushSlaveTimeout, r.Status)
	require.Zero(t, m.MaxOffset(messages.QueueKey{Topic: "T"}))

	inSync(t, m, 2, "a", "b")
	r, err = put("b is not there")
	require.NoError(t, err)
	require.Equal(t, messages.FlushSlaveTimeout, r.Status, "one of two is not enough")
	require.Zero(t, m.MaxOffset(messages.QueueKey{Topic: "T"}), "nobody sees what is not confirmed")

	b.FollowLeader(m.HAAddress())
	r, err = put("both have it")
	require.NoError(t, err)
	require.Equal(t, messages.PutOK, r.Status)
	for _, x := range []*system.Store{a, b} {
		require.GreaterOrEqual(t, x.Status().WrittenTo, r.End())
		until(t, "a replica is told what is confirmed", func() bool { return x.Confirmed() >= r.End() && x.Status().DispatchedTo >= r.End() })
		require.Len(t, read(t, x, messages.QueueKey{Topic: "T"}, 0, 3), 3)
	}
	require.GreaterOrEqual(t, m.Confirmed(), r.End())
	require.Len(t, read(t, m, messages.QueueKey{Topic: "T"}, 0, 3), 3)

	inSync(t, m, 3, "a", "b")
	r, err = put("three of three")
	require.NoError(t, err)
	require.Equal(t, messages.PutOK, r.Status)
	inSync(t, m, 3, "a")
	r, err = put("two of three")
	require.NoError(t, err)
	require.Equal(t, messages.FlushSlaveTimeout, r.Status, "fewer than the minimum")
	require.NoError(t, a.Close(t.Context()))
	require.NoError(t, b.Close(t.Context()))
	require.NoError(t, m.Close(t.Context()))
	sameLog(t, md, ad)
	sameLog(t, md, bd)
}

// A replica that joins under load lacks something at any instant: it counts, and then it is waited for.
func TestAReplicaThatJoinsIsWaitedFor(t *testing.T) {
	var fenced atomic.Bool
	m := open(t, leader(memfs.New(), &fenced))
	b := open(t, replica(memfs.New(), "b"))
	inSync(t, m, 1)
	r, err := m.Put(t.Context(), message("T", 0, "acknowledged without it"))
	require.NoError(t, err)
	require.Equal(t, messages.PutOK, r.Status)
	join := func(ctx context.Context) chan error {
		joined := make(chan error, 1)
		go func() {
			at, err := m.SetInSync(ctx, messages.InSync{Joining: []string{"b"}, Min: 1})
			if err == nil && (at != r.End() || b.Status().WrittenTo < at) {
				err = fmt.Errorf("it joins at %d, what is acknowledged ends at %d", at, r.End())
			}
			joined <- err
		}()
		return joined
	}
	ctx, cancel := context.WithCancel(t.Context())
	given := join(ctx)
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	waits := join(t.Context())
	until(t, "it counts", func() bool {
		r, err := m.Put(t.Context(), message("T", 0, "not acknowledged without it"))
		return err == nil && r.Status == messages.FlushSlaveTimeout
	})
	require.Empty(t, waits)
	inSync(t, m, 1)
	require.ErrorIs(t, <-waits, messages.ErrClosed, "it was called again")
	r, err = m.Put(t.Context(), message("T", 0, "and again without it"))
	require.NoError(t, err)
	require.Equal(t, messages.PutOK, r.Status)
	waits = join(t.Context())
	b.FollowLeader(m.HAAddress())
	require.NoError(t, <-waits)
}

func TestALeaderWhoseLeaseMayHavePassedOnAcknowledgesNothing(t *testing.T) {
	var fenced atomic.Bool
	opt := leader(memfs.New(), &fenced)
	opt.SlaveTimeout = time.Hour
	m := open(t, opt)
	a := open(t, replica(memfs.New(), "a"))
	a.FollowLeader(m.HAAddress())
	inSync(t, m, 2, "a")
	until(t, "a put is acknowledged", func() bool {
		r, err := m.Put(t.Context(), message("T", 0, "x"))
		return err == nil && r.Status == messages.PutOK
	})
	statuses := make(chan messages.PutStatus, 2)
	put := func(what string) {
		m.PutAsync(message("T", 0, what), true, time.Now().Add(time.Hour), func(r messages.PutResult, _ error) { statuses <- r.Status })
	}
	inSync(t, m, 2, "a", "b")
	before := m.Status().WrittenTo
	put("b is not there")
	until(t, "it waits", func() bool { return a.Status().WrittenTo > before })
	fenced.Store(true)
	inSync(t, m, 2, "a", "b") // anything that has it look
	require.Equal(t, messages.UnknownError, <-statuses, "no client takes that for sent")
	put("late")
	require.Equal(t, messages.UnknownError, <-statuses, "it does not wait for a replica")
	until(t, "the replica has it", func() bool { return a.Status().WrittenTo == m.Status().WrittenTo })
	require.Less(t, m.Confirmed(), m.Status().WrittenTo)
}

func TestWhoDoesNotGreetAsAReplicaHasNoEffect(t *testing.T) {
	var fenced atomic.Bool
	m := open(t, leader(memfs.New(), &fenced))
	inSync(t, m, 2, "a")
	for _, text := range []string{"\x00", "GET / HTTP/1.1\r\n\r\n", ""} {
		c, err := net.Dial("tcp", m.HAAddress())
		require.NoError(t, err)
		_, err = c.Write([]byte(text))
		require.NoError(t, err)
		if text == "" {
			require.NoError(t, c.Close())
			continue
		}
		require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = io.Copy(io.Discard, c)
		require.NoError(t, ignoreReset(err), "it is closed")
		_ = c.Close()
	}
	r, err := m.Put(t.Context(), message("T", 0, "x"))
	require.NoError(t, err)
	require.Equal(t, messages.FlushSlaveTimeout, r.Status)
	require.Empty(t, m.Replicas())
}

func TestAReplicaIsCutWhereItsGroupWentOn(t *testing.T) {
	var fenced atomic.Bool
	ad := memfs.New()
	m := open(t, leader(memfs.New(), &fenced))
	opt := replica(ad, "a")
	a := open(t, opt)
	a.FollowLeader(m.HAAddress())
	inSync(t, m, 2, "a")
	var ends []messages.PhysicalOffset
	for i := range 5 {
		until(t, "put", func() bool {
			r, err := m.Put(t.Context(), message("T", 0, fmt.Sprint(i)))
			ends = append(ends, r.End())
			return err == nil && r.Status == messages.PutOK
		})
	}
	require.NoError(t, a.Close(t.Context()))
	at := ends[len(ends)-3]
	opt.Group.CutAt = at
	a = open(t, opt)
	require.Equal(t, at, a.Status().WrittenTo)
	require.NotZero(t, a.Status().Flags&messages.FlagNotReadable, "nothing of it is confirmed yet")
	require.NoError(t, a.SetRetention(messages.Retention{FileReservedTime: time.Hour}), "it serves all the same")
	_, err := a.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "T"}, MaxMessages: 1})
	require.ErrorIs(t, err, system.ErrUnconfirmed, "until the leader says so")
	a.FollowLeader(m.HAAddress())
	until(t, "it is told", func() bool { return a.Confirmed() == m.Confirmed() && a.Writable() != nil })
	caughtUp(t, m, a)
	require.Equal(t, read(t, m, messages.QueueKey{Topic: "T"}, 0, 5), read(t, a, messages.QueueKey{Topic: "T"}, 0, 5))
}

// TestAnExtensionOfAReplicaSeesNothingThatIsUnconfirmed: what recovery has dispatched, another leader may not have.
func TestAnExtensionOfAReplicaSeesNothingThatIsUnconfirmed(t *testing.T) {
	var fenced atomic.Bool
	ad := memfs.New()
	m := open(t, leader(memfs.New(), &fenced))
	a := open(t, replica(ad, "a"))
	a.FollowLeader(m.HAAddress())
	inSync(t, m, 2, "a")
	until(t, "a put is acknowledged", func() bool {
		r, err := m.Put(t.Context(), message("T", 0, "x"))
		return err == nil && r.Status == messages.PutOK
	})
	require.NoError(t, a.Close(t.Context()))

	opt := replica(ad, "a")
	loading, serving, handled := make(chan error, 1), make(chan error, 1), make(chan messages.PhysicalOffset, 100)
	get := func(s *system.Store) error {
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "T"}, MaxMessages: 1})
		if err == nil {
			r.Release()
		}
		return err
	}
	opt.Dispatchers = []system.Dispatcher{{
		Name: "loads",
		Load: func(s *system.Store) (system.Position, bool, error) {
			loading <- get(s)
			return system.Position{}, false, nil
		},
		Handle: func(_ context.Context, b *system.Batch) error {
			handled <- b.UpTo
			return nil
		},
	}}
	opt.Services = []system.Service{{Name: "gets", Run: func(_ context.Context, s *system.Store) error {
		serving <- get(s)
		return nil
	}}}
	a = open(t, opt)
	require.ErrorIs(t, <-loading, system.ErrUnconfirmed)
	require.ErrorIs(t, <-serving, system.ErrUnconfirmed)
	loads := func() extension.Status { return a.Extensions()[0] }
	require.Equal(t, "loads", loads().Name)
	require.Zero(t, int64(loads().Position)+loads().LagBytes, "it is there up to what is confirmed")
	require.Empty(t, handled)
	a.FollowLeader(m.HAAddress())
	until(t, "it is handed what has been confirmed", func() bool { return loads().Position == a.Status().WrittenTo })
	require.LessOrEqual(t, <-handled, a.Confirmed())
}

// L108: a panic where a replica is greeted, or greets, costs that connection, which is made again. One in the replicator costs that round:
// no put is acknowledged for it that the group does not have, and each is answered.
func TestAPanicInReplicationCostsAConnection(t *testing.T) {
	var fenced atomic.Bool
	var atLeader, atReplica, inReplicator, panics atomic.Int32
	once := func(n *atomic.Int32) {
		if n.CompareAndSwap(1, 0) {
			panics.Add(1)
			panic("a bug in replication")
		}
	}
	lo := leader(memfs.New(), &fenced)
	greeted := lo.Group.GreetFollower
	lo.Group.GreetFollower = func(c net.Conn) (string, error) {
		once(&atLeader)
		return greeted(c)
	}
	lo.Group.Fenced = func() bool {
		once(&inReplicator)
		return false
	}
	ro := replica(memfs.New(), "a")
	greet := ro.Group.GreetLeader
	ro.Group.GreetLeader = func(c net.Conn) error {
		once(&atReplica)
		return greet(c)
	}
	m, a := open(t, lo), open(t, ro)
	inSync(t, m, 2, "a")
	atLeader.Store(1)
	atReplica.Store(1)
	a.FollowLeader(m.HAAddress())
	until(t, "both ends have panicked, and the log follows", func() bool {
		r, err := m.Put(t.Context(), message("T", 0, "x"))
		require.NoError(t, err)
		return panics.Load() == 2 && r.Status == messages.PutOK
	})
	inReplicator.Store(1)
	until(t, "the replicator has panicked, and puts are acknowledged", func() bool {
		r, err := m.Put(t.Context(), message("T", 0, "y"))
		if err != nil {
			require.ErrorIs(t, err, messages.ErrPanicked)
			return false
		}
		return panics.Load() == 3 && r.Status == messages.PutOK && a.Status().WrittenTo >= r.End()
	})
	require.NoError(t, m.Writable())
	require.NoError(t, a.Close(t.Context()))
	require.NoError(t, m.Close(t.Context()))
}

// Wherever the replicator panics while a put waits, and if it does so each time, the put is answered by its deadline, and not as
// one that the group has.
func TestAPutIsAnsweredThoughTheReplicatorPanics(t *testing.T) {
	const always, never = 0, -1
	var fenced atomic.Bool
	var at, calls atomic.Int32
	opt := leader(memfs.New(), &fenced)
	opt.SlaveTimeout = 50 * time.Millisecond
	opt.Group.Fenced = func() bool {
		if n, at := calls.Add(1), at.Load(); at == always || n == at {
			panic("a bug in replication")
		}
		return false
	}
	at.Store(never)
	m := open(t, opt)
	inSync(t, m, 2) // another one has to have it, and there is none
	put := func() messages.PutResult {
		answers := make(chan messages.PutResult, 2)
		m.PutAsync(message("T", 0, "x"), true, time.Time{}, func(r messages.PutResult, _ error) { answers <- r })
		var r messages.PutResult
		until(t, "the put is answered", func() bool {
			select {
			case r = <-answers:
				return true
			default:
				return false
			}
		})
		return r
	}
	for n := int32(1); n <= 8; n++ { // more than are made for a put: some panic at the next one
		calls.Store(0)
		at.Store(n)
		require.Contains(t, []messages.PutStatus{messages.FlushSlaveTimeout, messages.UnknownError}, put().Status, "at call %d", n)
	}
	at.Store(always)
	require.Equal(t, messages.UnknownError, put().Status)
	at.Store(never)
	require.Equal(t, messages.FlushSlaveTimeout, put().Status)
	require.NoError(t, m.Close(t.Context()))
}
