package system_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/offsets"
	"github.com/actormq/actormq/actors/transaction"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// stepped is a store that tells of every step of its puts, and refuses some.
type stepped struct {
	*system.Store
	step   func()
	refuse func(*messages.Message) bool
}

func (s *stepped) PutAsync(m *messages.Message, wait bool, deadline time.Time, done func(messages.PutResult, error)) {
	if s.refuse != nil && s.refuse(m) {
		done(messages.PutResult{Status: messages.CreateMapedFileFailed}, fmt.Errorf("no room"))
		return
	}
	s.step()
	s.Store.PutAsync(m, wait, deadline, func(r messages.PutResult, err error) {
		s.step()
		done(r, err)
	})
}

// beginStepped starts transactions as the gateway does, on a store that tells of its steps.
func beginStepped(t *testing.T, s *stepped, check func(messages.CheckTransaction) bool) *transaction.Keeper {
	t.Helper()
	actors := actor.NewActorSystem(system.ActorLogging(zerolog.Nop()))
	keeper, err := offsets.Start(actors.Root, "offsets", offsets.Config{
		Disk: s.Options().Disk, Path: "store/config/consumerOffset.json", Logger: zerolog.Nop(),
	})
	require.NoError(t, err)
	k, err := transaction.Start(t.Context(), actors.Root, "transactions", transaction.Config{
		Store: s, Offsets: keeper, Host: s.Options().StoreHost, Check: check, Logger: zerolog.Nop(),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, k.Close())
		require.NoError(t, keeper.Close())
		actors.Shutdown()
	})
	return k
}

// prepared puts a half message and tells the transactions of it.
func prepared(t *testing.T, store *system.Store, k *transaction.Keeper, name string) messages.Half {
	t.Helper()
	m := draft(name)
	m.Properties = m.Properties.With("TRAN_MSG", "true").With("PGROUP", group)
	transaction.Halve(m)
	r, err := store.Put(t.Context(), m)
	require.NoError(t, err)
	k.Prepared(r.QueueOffset)
	return messages.Half{Group: group, QueueOffset: r.QueueOffset, PhysicalOffset: r.PhysicalOffset}
}

// picture is what a crash leaves, and what had been acknowledged by then.
type picture struct {
	disk      *memfs.Disk
	what      string
	committed bool // the end of "second" was acknowledged
	killed    bool // only the process ended: all that was written is there
}

// crashDuringCommit commits one message, rolls one back, leaves one undecided, and then takes pictures at every step of the commit of a
// second and of the rollback of a third one.
func crashDuringCommit(t *testing.T, flush system.FlushDiskType, seeds uint64) []picture {
	t.Helper()
	disk := memfs.New()
	opt := small(disk)
	opt.FlushDiskType = flush
	store := open(t, opt)
	var pictures []picture
	acked, shooting := false, false
	shoot := func() {
		if !shooting {
			return
		}
		n := len(pictures)
		pictures = append(pictures, picture{disk.Clone(), fmt.Sprint("killed at ", n), acked, true})
		for seed := range seeds {
			pictures = append(pictures, picture{disk.Crash(seed), fmt.Sprintf("power cut at %d, seed %d", n, seed), acked, false})
		}
	}
	s := &stepped{Store: store, step: shoot}
	k := beginStepped(t, s, nil)
	put := func(name string) messages.Half { return prepared(t, store, k, name) }
	end := func(h messages.Half, commit bool) {
		_, err := k.EndWait(t.Context(), h, commit)
		require.NoError(t, err)
	}
	first, rolledBack, second, third := put("first"), put("rolled back"), put("second"), put("third")
	put("undecided")
	end(first, true)
	end(rolledBack, false)
	shooting = true
	shoot()
	end(second, true)
	acked = true
	shoot()
	end(third, false)
	shoot()
	return pictures
}

// recovered opens what a crash left, lets the producer answer what it is asked, and tells how often each message is there, and
// who was asked.
func recovered(t *testing.T, p picture) (there map[string]int, checks map[string]int) {
	t.Helper()
	there, checks = map[string]int{}, map[string]int{}
	fixture.Bubble(t, func(t *testing.T) {
		s, err := system.Open(small(p.disk))
		require.NoError(t, err, p.what)
		producer := &asked{online: true}
		var tx *system.Transactions
		begun := make(chan struct{})
		producer.answer = func(c messages.CheckTransaction) {
			<-begun
			var err error
			switch string(c.Message.Body) {
			case "first", "second":
				_, err = tx.Commit(t.Context(), c.Half)
			case "rolled back", "third":
				err = tx.Rollback(t.Context(), c.Half)
			}
			if err != nil {
				t.Error(p.what, err)
			}
		}
		tx = begin(t, s, system.TransactionOptions{Check: producer.check})
		close(begun)
		pass(130 * time.Second) // two rounds
		for _, c := range producer.checks {
			checks[string(c.Message.Body)]++
		}
		for _, body := range readable(t, s, destination) {
			there[body]++
		}
		require.NoError(t, s.Close(t.Context()))
	})
	return there, checks
}

// Whenever it crashes: what was committed and acknowledged is there once, what was rolled back never, and what is undecided is asked
// for again. With ASYNC_FLUSH a power cut may take what came last, as it may of every message, but doubles nothing.
func TestACrashAtEveryStepOfACommit(t *testing.T) {
	for _, flush := range []system.FlushDiskType{system.SyncFlush, system.AsyncFlush} {
		t.Run(flush.String(), func(t *testing.T) {
			pictures := crashDuringCommit(t, flush, 6)
			require.Greater(t, len(pictures), 50, "the commit has steps")
			for _, p := range pictures {
				there, checks := recovered(t, p)
				require.Zero(t, there["rolled back"], p.what)
				require.Zero(t, there["third"], p.what)
				require.Zero(t, there["undecided"], p.what)
				if flush == system.SyncFlush || p.killed {
					require.Equal(t, map[string]int{"first": 1, "second": 1}, there, p.what)
					require.Equal(t, 2, checks["undecided"], p.what)
					require.Zero(t, checks["first"], "%s: it is over", p.what)
					require.Zero(t, checks["rolled back"], "%s: it is over", p.what)
					if p.committed {
						require.Zero(t, checks["second"], "%s: it is over", p.what)
					}
				} else {
					require.LessOrEqual(t, there["first"], 1, p.what)
					require.LessOrEqual(t, there["second"], 1, p.what)
				}
			}
		})
	}
}

// W22: an op message that can't be written is owed: nobody is told that the transaction has ended, nobody is asked about it, and
// it is not committed twice.
func TestAnOpMessageIsOwedUntilItIsThere(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		store := open(t, small(memfs.New()))
		full := true
		s := &stepped{Store: store, step: func() {}, refuse: func(m *messages.Message) bool {
			return full && m.Topic == messages.TopicTransactionOp
		}}
		producer := &asked{online: true}
		k := beginStepped(t, s, producer.check)
		h := prepared(t, store, k, "one")
		for range 3 {
			r, err := k.EndWait(t.Context(), h, true)
			require.ErrorContains(t, err, "no room")
			require.Equal(t, messages.CreateMapedFileFailed, r.Status)
		}
		pass(10 * time.Minute)
		require.Zero(t, producer.count())
		full = false
		pass(2 * time.Minute)
		_, err := k.EndWait(t.Context(), h, true)
		require.NoError(t, err)
		require.Equal(t, []string{"one"}, readable(t, store, destination))
		pass(5 * time.Minute)
		require.Zero(t, producer.count())
		require.Zero(t, k.Waiting())
	})
}

// W22: giving up is tried until the copy is there.
func TestGivingUpIsTriedAgain(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		store := open(t, small(memfs.New()))
		full := true
		s := &stepped{Store: store, step: func() {}, refuse: func(m *messages.Message) bool {
			return full && m.Topic == messages.TopicTransCheckMaxTime
		}}
		producer := &asked{online: true}
		k := beginStepped(t, s, producer.check)
		prepared(t, store, k, "one")
		pass(30 * time.Minute)
		require.Equal(t, 15, producer.count())
		require.Equal(t, 1, k.Waiting(), "it is still there")
		full = false
		pass(5 * time.Minute)
		require.Equal(t, []string{"one"}, readable(t, store, givenUp))
		require.Zero(t, k.Waiting())
		require.Equal(t, 15, producer.count())
	})
}

// A power cut may keep an op message and lose the half message that it names: the next half message gets that queue offset, and
// is not over by it, neither in this run nor in the next one.
func TestAnOpMessageThatHasOutlivedItsHalfMessageEndsNoOther(t *testing.T) {
	disk := memfs.New()
	s := open(t, small(disk))
	for _, named := range []string{"0", "1", "99999999999"} {
		op := message(messages.TopicTransactionOp, 0, named)
		op.Properties = messages.PropertiesOf(map[string]string{messages.PropertyTags: "d"})
		_, err := s.Put(t.Context(), op)
		require.NoError(t, err)
	}
	tx := begin(t, s, system.TransactionOptions{})
	first, second := prepare(t, tx, draft("first")), prepare(t, tx, draft("second"))
	_, err := tx.Commit(t.Context(), first)
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))

	s = open(t, small(disk))
	tx = begin(t, s, system.TransactionOptions{})
	_, err = tx.Commit(t.Context(), first)
	require.NoError(t, err, "its own op message counts")
	require.Equal(t, []string{"first"}, readable(t, s, destination))
	_, err = tx.Commit(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, readable(t, s, destination))
}
