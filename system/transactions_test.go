package system_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/golden"
	"github.com/actormq/actormq/testkit/memfs"
)

const group = "pg"

// asked is a producer that is asked.
type asked struct {
	mu     sync.Mutex
	online bool
	checks []messages.CheckTransaction
	answer func(messages.CheckTransaction) // on a goroutine of its own; nil: it does not answer
}

func (a *asked) check(c messages.CheckTransaction) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.online {
		return false
	}
	a.checks = append(a.checks, c)
	if a.answer != nil {
		go a.answer(c)
	}
	return true
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.checks)
}

func (a *asked) comes(online bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.online = online
}

func begin(t *testing.T, s *system.Store, opt system.TransactionOptions) *system.Transactions {
	t.Helper()
	tx, err := s.Transactions(t.Context(), opt)
	require.NoError(t, err)
	return tx
}

// draft is a message of queue 1 of topic T with a unique key.
func draft(name string, properties ...string) *messages.Message {
	m := message("T", 1, name)
	m.Properties = messages.Properties("").With(messages.PropertyUniqKey, "uk-"+name).With(messages.PropertyTags, "tag")
	for i := 0; i < len(properties); i += 2 {
		m.Properties = m.Properties.With(properties[i], properties[i+1])
	}
	return m
}

func prepare(t *testing.T, tx *system.Transactions, m *messages.Message) messages.Half {
	t.Helper()
	h, r, err := tx.Prepare(t.Context(), group, m)
	require.NoError(t, err)
	require.Equal(t, messages.PutOK, r.Status)
	return h
}

var (
	destination = messages.QueueKey{Topic: "T", QueueID: 1}
	givenUp     = messages.QueueKey{Topic: messages.TopicTransCheckMaxTime}
)

// readable is what can be read of a queue.
func readable(t *testing.T, s *system.Store, key messages.QueueKey) []string {
	t.Helper()
	require.NoError(t, s.AwaitDispatched(t.Context()))
	return read(t, s, key, s.MinOffset(key), int(s.MaxOffset(key)-s.MinOffset(key)))
}

func TestTransactionsEndOnce(t *testing.T) {
	for _, flush := range []system.FlushDiskType{system.AsyncFlush, system.SyncFlush} {
		opt := small(memfs.New())
		opt.FlushDiskType = flush
		s := open(t, opt)
		tx := begin(t, s, system.TransactionOptions{})
		_, err := s.Transactions(t.Context(), system.TransactionOptions{})
		require.ErrorIs(t, err, system.ErrTransactions)

		m := draft("one")
		m.Flag, m.ReconsumeTimes, m.BornTimestampMs, m.SysFlag = 7, 2, 12345, messages.SysFlagMultiTags
		h := prepare(t, tx, m)
		require.Empty(t, readable(t, s, destination), "nobody sees it")
		r, err := tx.Commit(t.Context(), h)
		require.NoError(t, err)
		require.Equal(t, messages.PutOK, r.Status)
		if flush == system.SyncFlush {
			require.GreaterOrEqual(t, s.FlushedTo(), r.End(), "acknowledged means durable")
		}
		got, err := s.MessageAt(r.PhysicalOffset)
		require.NoError(t, err)
		want := *m
		want.BornHost, want.StoreHost, want.PreparedTransactionOffset = got.BornHost, got.StoreHost, h.PhysicalOffset
		want.SysFlag |= messages.SysFlagTransactionCommit
		want.Properties = messages.PropertiesOf(map[string]string{
			"UNIQ_KEY": "uk-one", "TAGS": "tag", "TRAN_MSG": "true", "PGROUP": group, "REAL_TOPIC": "T", "REAL_QID": "1",
		}).InMapOrder(messages.MapBuckets)
		require.Equal(t, want, got.Message)

		for range 3 {
			_, err = tx.Commit(t.Context(), h)
			require.NoError(t, err, "a second commit is answered as the first")
		}
		require.NoError(t, tx.Rollback(t.Context(), h), "a rollback after a commit, too")
		require.Equal(t, []string{"one"}, readable(t, s, destination), "and nothing comes of it")

		h = prepare(t, tx, draft("two"))
		stored, err := s.MessageAt(h.PhysicalOffset)
		require.NoError(t, err)
		require.NotZero(t, stored.BornTimestampMs, "RocketMQ would give it up as one from 1970")
		require.NoError(t, tx.Rollback(t.Context(), h))
		require.NoError(t, tx.Rollback(t.Context(), h))
		_, err = tx.Commit(t.Context(), h)
		require.ErrorIs(t, err, messages.ErrTransactionOver)
		require.Equal(t, []string{"one"}, readable(t, s, destination))
	}
}

func TestWrongEndsAreRefused(t *testing.T) {
	s := open(t, small(memfs.New()))
	tx := begin(t, s, system.TransactionOptions{})
	first, h := prepare(t, tx, draft("zero")), prepare(t, tx, draft("one"))
	visible, err := s.Put(t.Context(), draft("x", "TRAN_MSG", "true", "PGROUP", group, "REAL_TOPIC", "T", "REAL_QID", "1"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		half messages.Half
		want error
	}{
		"group":         {messages.Half{Group: "other", QueueOffset: 1, PhysicalOffset: h.PhysicalOffset}, messages.ErrTransactionGroup},
		"queue offset":  {messages.Half{Group: group, QueueOffset: 0, PhysicalOffset: h.PhysicalOffset}, messages.ErrTransactionOffset},
		"place":         {messages.Half{Group: group, QueueOffset: 1, PhysicalOffset: h.PhysicalOffset + 1}, messages.ErrNoHalf},
		"another place": {messages.Half{Group: group, QueueOffset: 1, PhysicalOffset: first.PhysicalOffset}, messages.ErrTransactionOffset},
		"behind":        {messages.Half{Group: group, QueueOffset: 1, PhysicalOffset: 1 << 40}, messages.ErrNoHalf},
		"negative":      {messages.Half{Group: group, QueueOffset: 1, PhysicalOffset: -1}, messages.ErrNoHalf},
		"no half": {messages.Half{Group: group, QueueOffset: visible.QueueOffset, PhysicalOffset: visible.PhysicalOffset},
			messages.ErrNoHalf},
	} {
		_, err := tx.Commit(t.Context(), c.half)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorIs(t, tx.Rollback(t.Context(), c.half), c.want, name)
	}
	for _, half := range []messages.Half{first, h} {
		_, err := tx.Commit(t.Context(), half)
		require.NoError(t, err, "nothing was ended by that")
	}
}

func TestManyEndsOfOneTransaction(t *testing.T) {
	s := open(t, small(memfs.New()))
	tx := begin(t, s, system.TransactionOptions{})
	var want []string
	for i := range 20 {
		name := fmt.Sprint(i)
		h := prepare(t, tx, draft(name))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				_, err := tx.Commit(t.Context(), h)
				if err != nil && !errors.Is(err, messages.ErrBusy) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		want = append(want, name)
	}
	require.Equal(t, want, readable(t, s, destination))
}

func TestCheckBack(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		s := open(t, small(memfs.New()))
		producer := &asked{online: true}
		tx := begin(t, s, system.TransactionOptions{Check: producer.check, MaxCheck: 5})
		h := prepare(t, tx, draft("one"))
		pass(59 * time.Second)
		require.Zero(t, producer.count())
		for i := range 5 {
			pass(time.Minute)
			require.Equal(t, i+1, producer.count(), "once a round")
		}
		last := producer.checks[4]
		require.Equal(t, 5, last.Times)
		require.Equal(t, h, last.Half, "no copy is made for a check (W22)")
		require.Equal(t, destination, last.Message.Queue())
		require.Equal(t, "one", string(last.Message.Body))
		require.Empty(t, readable(t, s, givenUp))
		pass(10 * time.Minute)
		require.Equal(t, 5, producer.count(), "transactionCheckMax")
		require.Equal(t, []string{"one"}, readable(t, s, givenUp))
		require.Empty(t, readable(t, s, destination))
		require.Zero(t, tx.Waiting())
		_, err := tx.Commit(t.Context(), h)
		require.ErrorIs(t, err, messages.ErrTransactionOver)
	})
}

func TestAYoungHalfIsNotAskedFor(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		s := open(t, small(memfs.New()))
		producer := &asked{online: true}
		tx := begin(t, s, system.TransactionOptions{Check: producer.check, Interval: time.Second})
		prepare(t, tx, draft("one"))
		pass(5 * time.Second)
		prepare(t, tx, draft("immune", messages.PropertyCheckImmunitySeconds, "30"))
		require.Zero(t, producer.count())
		pass(3 * time.Second)
		require.Equal(t, 3, producer.count(), "transactionTimeOut: in the rounds after 6, 7 and 8 s")
		pass(time.Minute)
		var immune []messages.CheckTransaction
		for _, c := range producer.checks {
			if string(c.Message.Body) == "immune" {
				immune = append(immune, c)
			}
		}
		require.Len(t, immune, 15)
		require.Equal(t, 1, immune[0].Times, "nothing was counted while it was immune")
		require.Equal(t, []string{"one", "immune"}, readable(t, s, givenUp))
	})
}

// Nobody is online for hours: the half message is renewed, its checks are not counted, and it is there when its producer comes.
func TestAMissingProducerLosesNothing(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := small(memfs.New())
		opt.FileReservedTime, opt.FlushInterval, opt.CleanInterval = 4*time.Hour, time.Minute, 10*time.Minute // fewer ticks
		s := open(t, opt)
		producer := &asked{answer: nil}
		tx := begin(t, s, system.TransactionOptions{Check: producer.check, MaxCheck: 3, Interval: 10 * time.Minute})
		h := prepare(t, tx, draft("one"))
		pass(3*time.Hour + 30*time.Minute)
		require.Zero(t, producer.count())
		half := messages.QueueKey{Topic: messages.TopicTransactionHalf}
		copies := s.MaxOffset(half)
		require.InDelta(t, 4, int(copies), 1, "one an hour or so")
		producer.comes(true)
		pass(10 * time.Minute)
		require.Equal(t, 1, producer.count())
		require.Equal(t, 1, producer.checks[0].Times)
		require.NotEqual(t, h, producer.checks[0].Half, "the copy")
		_, err := tx.Commit(t.Context(), h)
		require.NoError(t, err, "the producer may name the first one")
		_, err = tx.Commit(t.Context(), producer.checks[0].Half)
		require.NoError(t, err, "or answer the check")
		require.Equal(t, []string{"one"}, readable(t, s, destination), "it is there once")
		pass(time.Hour)
		require.Equal(t, 1, producer.count())
		prepare(t, tx, draft("two"))
		producer.comes(false)
		pass(5 * time.Hour)
		require.Equal(t, []string{"two"}, readable(t, s, givenUp), "fileReservedTime")
	})
}

// A shorter retention that is set at run time holds for transactions too: renewed in time, and given up before they expire.
func TestTransactionsFollowTheRetention(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		s := open(t, small(memfs.New()))
		tx := begin(t, s, system.TransactionOptions{})
		prepare(t, tx, draft("one"))
		pass(30 * time.Minute)
		half := messages.QueueKey{Topic: messages.TopicTransactionHalf}
		require.EqualValues(t, 1, s.MaxOffset(half), "once an hour")
		retention := s.Retention()
		require.Equal(t, 72*time.Hour, retention.FileReservedTime)
		retention.FileReservedTime = 50 * time.Minute
		require.NoError(t, s.SetRetention(retention))
		require.Equal(t, retention, s.Retention())
		pass(2 * time.Minute)
		require.EqualValues(t, 2, s.MaxOffset(half))
		require.Empty(t, readable(t, s, givenUp))
		pass(20 * time.Minute)
		require.Equal(t, []string{"one"}, readable(t, s, givenUp))
	})
}

// L69: every half message ends in exactly one place.
func TestRandomImmunityLosesNothing(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := small(memfs.New())
		opt.SegmentBytes, opt.ConsumeQueueFileBytes, opt.IndexEntries = 1<<20, 40_000, 8000
		s := open(t, opt)
		producer := &asked{online: true}
		var tx *system.Transactions
		producer.answer = func(c messages.CheckTransaction) {
			if c.Times > 2 { // unknown twice
				if _, err := tx.Commit(t.Context(), c.Half); err != nil {
					t.Error(err)
				}
			}
		}
		tx = begin(t, s, system.TransactionOptions{Check: producer.check, Interval: time.Second})
		random := rand.New(rand.NewPCG(1, 69))
		var want []string
		for i := range 1000 {
			name := fmt.Sprintf("%04d", i)
			want = append(want, name)
			prepare(t, tx, draft(name, messages.PropertyCheckImmunitySeconds, fmt.Sprint(1+random.IntN(20))))
		}
		pass(time.Minute)
		got := readable(t, s, destination)
		slices.Sort(got)
		require.Equal(t, want, got)
		require.Equal(t, 3000, producer.count())
		require.Empty(t, readable(t, s, givenUp))
		require.Zero(t, tx.Waiting())
	})
}

// L72: what is over is not checked, before or after a restart; and the store that was left is gone on with.
func TestFinishedTransactionsAreNotChecked(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.SegmentBytes, opt.ConsumeQueueFileBytes = 1<<20, 40_000
		s, err := system.Open(opt)
		require.NoError(t, err)
		producer := &asked{online: true}
		tx := begin(t, s, system.TransactionOptions{Check: producer.check})
		even := map[messages.QueueOffset]bool{}
		var last messages.Half
		for i := range 400 {
			h := prepare(t, tx, draft(fmt.Sprint(i)))
			if i%2 == 0 {
				even[h.QueueOffset] = true
				continue
			}
			_, err := tx.Commit(t.Context(), h)
			require.NoError(t, err)
			last = h
		}
		onlyEven := func(rounds int) {
			require.Equal(t, 200*rounds, producer.count())
			for _, c := range producer.checks {
				require.True(t, even[c.QueueOffset], "%d is over", c.QueueOffset)
			}
		}
		pass(61 * time.Second)
		onlyEven(1)
		killed := disk.Clone() // kill -9: the progress that was saved is seconds old
		require.NoError(t, s.Close(t.Context()))

		opt.Disk = killed
		s = open(t, opt)
		tx = begin(t, s, system.TransactionOptions{Check: producer.check})
		require.Equal(t, 200, tx.Waiting())
		_, err = tx.Commit(t.Context(), last)
		require.NoError(t, err, "a commit that comes again after the restart")
		pass(61 * time.Second)
		onlyEven(2)
		for at := range even {
			for _, c := range producer.checks[200:] {
				if c.QueueOffset == at {
					_, err := tx.Commit(t.Context(), c.Half)
					require.NoError(t, err)
				}
			}
		}
		pass(10 * time.Minute)
		onlyEven(2)
		require.Len(t, readable(t, s, destination), 400, "each once")
	})
}

// L71: one half message that can't be read costs itself only.
func TestADamagedHalfHoldsNobodyUp(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		opt.SkipRecoveryCRC = true
		s, err := system.Open(opt)
		require.NoError(t, err)
		tx := begin(t, s, system.TransactionOptions{})
		bad := prepare(t, tx, draft("damaged"))
		for i := range 100 {
			prepare(t, tx, draft(fmt.Sprint(i)))
		}
		require.NoError(t, s.Close(t.Context()))
		f, err := disk.Open(path.Join("store/commitlog", fmt.Sprintf("%020d", 0)), true)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("D"), int64(bad.PhysicalOffset)+88) // the first byte of the body
		require.NoError(t, err)
		require.NoError(t, f.Close())

		s = open(t, opt)
		producer := &asked{online: true}
		tx = begin(t, s, system.TransactionOptions{Check: producer.check})
		require.Equal(t, 101, tx.Waiting())
		pass(121 * time.Second)
		require.Equal(t, 200, producer.count(), "the others, in two rounds")
		pass(2 * time.Minute)
		require.Equal(t, 100, tx.Waiting(), "the damaged one is left alone in the end")
	})
}

// A store that RocketMQ left is gone on with: it has ended everything.
func TestRocketMQsTransactionsAreGoneOnWith(t *testing.T) {
	dir, err := golden.Load("tx-broker").Unpack(t.TempDir())
	require.NoError(t, err)
	s := open(t, system.Options{
		Dir: dir, Disk: vfs.New(), SegmentBytes: 262144, ConsumeQueueFileBytes: 20000, IndexSlots: 500, IndexEntries: 2000,
		WindowBytes: 8 << 10,
	})
	tx := begin(t, s, system.TransactionOptions{})
	require.Zero(t, tx.Waiting())
	h := prepare(t, tx, draft("goes on"))
	require.EqualValues(t, 25, h.QueueOffset)
	_, err = tx.Commit(t.Context(), h)
	require.NoError(t, err)
	for _, ended := range []messages.Half{{Group: "PG_MadeUpTx", QueueOffset: 0, PhysicalOffset: 0}, {
		Group: "PG_MadeUpTx", QueueOffset: 18, PhysicalOffset: 11152}} {
		_, err = tx.Commit(t.Context(), ended)
		require.NoError(t, err, "it is over")
	}
	require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()), messages.Half{Group: "PG_MadeUpTx", QueueOffset: 19, PhysicalOffset: 11619}))
	require.NoError(t, s.AwaitDispatched(t.Context()))
	require.EqualValues(t, 19, s.MaxOffset(messages.QueueKey{Topic: messages.TopicTransactionOp}), "ours only")
}
