package reput

import (
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/vfs"
)

// normal makes empty slices comparable.
func normal(list []messages.DispatchRequest) []messages.DispatchRequest {
	out := append([]messages.DispatchRequest(nil), list...)
	for i := range out {
		if len(out[i].Keys) == 0 {
			out[i].Keys = nil
		}
		if len(out[i].UniqKey) == 0 {
			out[i].UniqKey = nil
		}
	}
	return out
}

func TestDispatchBringsEveryRecordInOrder(t *testing.T) {
	n, w := newNode(t), newLog(t, 4096) // many rolls
	w.fill(2000)
	w.put(messages.Message{Topic: "Half", SysFlag: messages.SysFlagTransactionPrepared})
	w.put(messages.Message{Topic: "Half", SysFlag: messages.SysFlagTransactionCommit, PreparedTransactionOffset: 77})
	w.put(messages.Message{Topic: "Half", SysFlag: messages.SysFlagTransactionRollback, PreparedTransactionOffset: 78})
	a, b := n.spawn(newCollector()), n.spawn(newCollector())
	d := New(Config{Log: w.log, Builders: []Builder{{Name: "a", Peer: a}, {Name: "b", Peer: b}}})
	p := n.spawn(d)

	to, err := awaitDispatched(t, p, w.log.End())
	require.NoError(t, err)
	require.Equal(t, w.log.End(), to)
	require.Equal(t, int64(w.log.End()), d.DispatchedTo.Load())
	require.Greater(t, w.log.View().Len(), 50)
	require.Equal(t, normal(w.want), normal(collectedBy(t, a)))
	require.Equal(t, normal(w.want), normal(collectedBy(t, b)))
}

func TestDispatchFollowsAGrowingLog(t *testing.T) {
	n, w := newNode(t), newLog(t, 4096)
	c := newCollector()
	a := n.spawn(c)
	bell := n.bell()
	p := n.spawn(New(Config{Log: w.log, Bell: bell, Builders: []Builder{{Peer: a}}}))
	var wg sync.WaitGroup
	wg.Go(func() {
		for range c.got {
		}
	})
	for range 3000 {
		w.fill(1)
		bell.Ring()
	}
	_, err := awaitDispatched(t, p, w.log.End())
	require.NoError(t, err)
	require.Equal(t, normal(w.want), normal(collectedBy(t, a)))
	n.stop(a)
	close(c.got)
	wg.Wait()
}

func TestDispatchAnnouncedByAPlainMessage(t *testing.T) {
	n, w := newNode(t), newLog(t, 4096)
	c := newCollector()
	p := n.spawn(New(Config{Log: w.log, Builders: []Builder{{Peer: n.spawn(c)}}}))
	_, err := awaitDispatched(t, p, 0)
	require.NoError(t, err)
	w.fill(1)
	p.Send(messages.LogGrown{})
	require.Equal(t, 1, receive(t, c.got))
}

func TestBatchesAreBounded(t *testing.T) {
	n, w := newNode(t), newLog(t, 8<<20)
	w.fill(maxRequests + 1)
	key := make([]byte, 30_000)
	for i := range key {
		key[i] = 'k'
	}
	for range 20 {
		w.put(messages.Message{Topic: "T", Properties: messages.PropertiesOf(map[string]string{messages.PropertyKeys: string(key)})})
	}
	c := newCollector()
	a := n.spawn(c)
	p := n.spawn(New(Config{Log: w.log, Builders: []Builder{{Peer: a}}}))
	_, err := awaitDispatched(t, p, w.log.End())
	require.NoError(t, err)
	require.Equal(t, maxRequests, receive(t, c.got))
	require.Equal(t, 1+9, receive(t, c.got), "nine keys of 30,000 bytes pass 256 KiB")
	require.Equal(t, 9, receive(t, c.got))
	require.Equal(t, 2, receive(t, c.got))
	require.Equal(t, normal(w.want), normal(collectedBy(t, a)))
}

func TestASlowBuilderStopsTheReading(t *testing.T) {
	n, w := newNode(t), newLog(t, 1<<20)
	w.fill(10 * maxRequests)
	slow, fast := newCollector(), newCollector()
	slow.hold = true
	s, f := n.spawn(slow), n.spawn(fast)
	d := New(Config{Log: w.log, Builders: []Builder{{Name: "slow", Peer: s}, {Name: "fast", Peer: f, Credit: 8}}})
	p := n.spawn(d)
	for range defaultCredit {
		require.Equal(t, maxRequests, receive(t, slow.got))
		require.Equal(t, maxRequests, receive(t, fast.got))
	}
	// The dispatcher answers after it has done what it could.
	to, err := awaitDispatched(t, p, 0)
	require.NoError(t, err)
	require.Zero(t, to)
	require.Empty(t, slow.got)
	require.Empty(t, fast.got)
	require.LessOrEqual(t, len(d.batches.sent)+len(d.batches.free), defaultCredit+1)

	s.Send(letGo{n: 1}) // a credit back is a batch on
	require.Equal(t, maxRequests, receive(t, slow.got))
	require.Equal(t, maxRequests, receive(t, fast.got))
	s.Send(letGo{n: 100})
	_, err = awaitDispatched(t, p, w.log.End())
	require.NoError(t, err)
	require.Equal(t, normal(w.want), normal(collectedBy(t, s)))
	require.Equal(t, normal(w.want), normal(collectedBy(t, f)))
}

func TestDispatchBeginsInsideTheLog(t *testing.T) {
	w := newLog(t, 4096)
	w.fill(100)
	middle := w.want[60].PhysicalOffset
	for name, c := range map[string]struct{ from, want messages.PhysicalOffset }{
		"restart":  {middle, middle},
		"below":    {-1, 0},
		"at end":   {w.log.End(), w.log.End()},
		"past end": {1 << 31, w.log.End()},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			a := n.spawn(newCollector())
			p := n.spawn(New(Config{Log: w.log, From: c.from, Builders: []Builder{{Peer: a}}}))
			_, err := awaitDispatched(t, p, w.log.End())
			require.NoError(t, err)
			var want []messages.DispatchRequest
			for _, r := range w.want {
				if r.PhysicalOffset >= c.want {
					want = append(want, r)
				}
			}
			require.Equal(t, normal(want), normal(collectedBy(t, a)))
		})
	}
}

func TestDispatchStopsAtTheLimit(t *testing.T) {
	n, w := newNode(t), newLog(t, 4096)
	w.fill(100)
	var mu sync.Mutex
	limit := w.want[50].PhysicalOffset + 10 // inside a record
	c := newCollector()
	a := n.spawn(c)
	bell := n.bell()
	p := n.spawn(New(Config{Log: w.log, Bell: bell, Builders: []Builder{{Peer: a}}, Limit: func() messages.PhysicalOffset {
		mu.Lock()
		defer mu.Unlock()
		return limit
	}}))
	to, err := awaitDispatched(t, p, w.want[50].PhysicalOffset)
	require.NoError(t, err)
	require.Equal(t, w.want[50].PhysicalOffset, to)
	require.Len(t, collectedBy(t, a), 50)
	mu.Lock()
	limit = 1 << 40 // beyond the end: the end counts
	mu.Unlock()
	bell.Ring()
	_, err = awaitDispatched(t, p, w.log.End())
	require.NoError(t, err)
	require.Equal(t, normal(w.want), normal(collectedBy(t, a)))
}

func TestDispatchOverMissingSegments(t *testing.T) {
	w := newLog(t, 4096)
	w.fill(200)
	require.GreaterOrEqual(t, w.log.View().Len(), 5)
	end := w.log.End()
	require.NoError(t, w.log.Close())
	for _, start := range []int64{2 * 4096, 3 * 4096} {
		require.NoError(t, w.disk.Remove(path.Join(logDir, fmt.Sprintf("%020d", start))))
	}
	log, _, err := commitlog.Open(w.disk, logDir, 4096)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	log.CutTo(end, w.storeMs)

	n := newNode(t)
	a := n.spawn(newCollector())
	damage := make(chan messages.LogDamage, 10)
	p := n.spawn(New(Config{Log: log, Builders: []Builder{{Peer: a}}, OnDamage: func(d messages.LogDamage) { damage <- d }}))
	_, err = awaitDispatched(t, p, end)
	require.NoError(t, err)
	d := receive(t, damage)
	require.Equal(t, messages.PhysicalOffset(2*4096), d.From)
	require.Equal(t, messages.PhysicalOffset(4*4096), d.To)
	require.ErrorIs(t, d.Err, ErrMissing)
	require.Empty(t, damage)
	var want []messages.DispatchRequest
	for _, r := range w.want {
		if r.PhysicalOffset < d.From || r.PhysicalOffset >= d.To {
			want = append(want, r)
		}
	}
	require.Equal(t, normal(want), normal(collectedBy(t, a)))
}

func TestAwaitDispatched(t *testing.T) {
	n, w := newNode(t), newLog(t, 4096)
	w.fill(10)
	c := newCollector()
	a := n.spawn(c)
	bell := n.bell()
	d := New(Config{Log: w.log, Bell: bell, Builders: []Builder{{Peer: a}}})
	p := n.spawn(d)
	_, err := awaitDispatched(t, p, w.log.End())
	require.NoError(t, err)

	future := messages.NewAnswer[messages.PhysicalOffset]()
	p.Send(messages.AwaitDispatched{UpTo: w.log.End() + 1, Answer: future})
	to, err := awaitDispatched(t, p, -1)
	require.NoError(t, err)
	require.Equal(t, w.log.End(), to)
	w.fill(1)
	bell.Ring()
	to, err = wait(t, future)
	require.NoError(t, err)
	require.Equal(t, w.log.End(), to)

	var waiting []*messages.Answer[messages.PhysicalOffset]
	for range maxWaiting + 1 {
		waiting = append(waiting, messages.NewAnswer[messages.PhysicalOffset]())
		p.Send(messages.AwaitDispatched{UpTo: 1 << 40, Answer: waiting[len(waiting)-1]})
	}
	_, err = wait(t, waiting[maxWaiting])
	require.ErrorIs(t, err, messages.ErrBusy)
	n.stop(p)
	for _, answer := range waiting[:maxWaiting] {
		_, err = wait(t, answer)
		require.ErrorIs(t, err, messages.ErrClosed)
	}
}

func TestAFailedBuilderLeavesTheOthers(t *testing.T) {
	n, w := newNode(t), newLog(t, 1<<20)
	w.fill(5 * maxRequests)
	bad, good := newCollector(), newCollector()
	bad.hold = true
	b, g := n.spawn(bad), n.spawn(good)
	p := n.spawn(New(Config{Log: w.log, Builders: []Builder{{Name: "bad", Peer: b}, {Name: "good", Peer: g}}}))
	for range defaultCredit {
		receive(t, good.got)
		receive(t, bad.got)
	}
	answer := messages.NewAnswer[messages.PhysicalOffset]()
	p.Send(messages.AwaitDispatched{UpTo: w.log.End(), Answer: answer})
	full := errors.New("the disk is gone")
	b.Send(failNow{full})
	b.Send(letGo{n: 1})
	_, err := wait(t, answer)
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "builder bad")
	require.Equal(t, maxRequests, receive(t, good.got))
	_, err = awaitDispatched(t, p, 0)
	require.ErrorIs(t, err, full)
	require.Len(t, bad.got, 0, "a failed builder gets nothing more")
	b.Send(letGo{n: 100})
	w.fill(1)
	p.Send(messages.LogGrown{})
	require.Equal(t, 1, receive(t, good.got))
	require.Equal(t, normal(w.want), normal(collectedBy(t, g)))
}

func TestAnswersToAStoppedDispatcherAreDropped(t *testing.T) {
	n, w := newNode(t), newLog(t, 4096)
	w.fill(10)
	c := newCollector()
	c.hold = true
	a := n.spawn(c)
	p := n.spawn(New(Config{Log: w.log, Builders: []Builder{{Peer: a}}}))
	require.Equal(t, 10, receive(t, c.got))
	n.stop(p)
	a.Send(letGo{n: 100})
	require.Len(t, collectedBy(t, a), 10)
}

func TestAStoppedBuilderAnswersThroughItsMailbox(t *testing.T) {
	n, w := newNode(t), newLog(t, 4096)
	a, mb := n.spawnBox(newCollector())
	n.stop(a)
	w.fill(10)
	p := n.spawn(New(Config{Log: w.log, Builders: []Builder{{Mailbox: mb}}}))
	_, err := awaitDispatched(t, p, w.log.End())
	require.ErrorIs(t, err, messages.ErrClosed)
}

func TestTwoPanicsFailTheDispatcher(t *testing.T) {
	delayed := messages.Message{Topic: messages.TopicSchedule, QueueID: 2, Properties: "DELAY\x013"}
	for name, panics := range map[string]int{"one": 1, "two": 2} {
		t.Run(name, func(t *testing.T) {
			n, w := newNode(t), newLog(t, 1<<20)
			w.fill(maxRequests + 5)
			r := w.put(delayed)
			left := panics
			a := n.spawn(newCollector())
			failed := make(chan messages.Failed, 10)
			p := n.spawn(New(Config{
				Log: w.log, Builders: []Builder{{Peer: a}}, OnFailed: func(f messages.Failed) { failed <- f },
				Delay: func(int) (int64, int) {
					if left > 0 {
						left--
						panic("a bug in the levels")
					}
					return 10_000, 18
				},
			}))
			_, err := awaitDispatched(t, p, w.log.End())
			if panics == 1 {
				require.NoError(t, err)
				w.want[len(w.want)-1].TagsCode = r.StoreTimestampMs + 10_000
				require.Equal(t, normal(w.want), normal(collectedBy(t, a)))
				require.Empty(t, failed)
				return
			}
			require.ErrorIs(t, err, messages.ErrPanicked)
			require.ErrorIs(t, err, messages.ErrFailed)
			f := receive(t, failed)
			require.Equal(t, string(actors.RoleDispatcher), f.Role)
			require.ErrorContains(t, f.Cause, "a bug in the levels")
			require.Len(t, collectedBy(t, a), maxRequests, "what was read before it stays")
			_, err = awaitDispatched(t, p, 0)
			require.ErrorIs(t, err, messages.ErrFailed)
			require.Empty(t, failed)
		})
	}
}

func TestAFaultWhileReadingFailsTheDispatcher(t *testing.T) {
	n := newNode(t)
	dir := path.Join(t.TempDir(), "commitlog")
	w := newLogOn(t, vfs.New(), dir, 1<<20)
	w.fill(5000)
	last := w.log.View().Last()
	require.NoError(t, os.Truncate(last.Path(), 4096))
	failed := make(chan messages.Failed, 1)
	p := n.spawn(New(Config{
		Log: w.log, From: messages.PhysicalOffset(last.Start()), Builders: []Builder{{Peer: n.spawn(newCollector())}},
		OnFailed: func(f messages.Failed) { failed <- f },
	}))
	_, err := awaitDispatched(t, p, w.log.End())
	require.ErrorIs(t, err, vfs.ErrFault)
	require.ErrorIs(t, receive(t, failed).Cause, vfs.ErrFault)
}

func TestTopicsAreForgottenBeyondTheirBound(t *testing.T) {
	var names topics
	for i := range maxTopics + 10 {
		require.Equal(t, fmt.Sprint(i), names.intern([]byte(fmt.Sprint(i))))
		require.LessOrEqual(t, len(names.known), maxTopics)
	}
	require.Len(t, names.known, 10)
}

func TestBellIsHeardBeforeReading(t *testing.T) {
	// A ring while the dispatcher reads must not be lost: ring for every message, wait for each.
	n, w := newNode(t), newLog(t, 4096)
	c := newCollector()
	bell := n.bell()
	// the collector comes after the dispatcher, so its address is known before it is there
	p := n.spawn(New(Config{Log: w.log, Bell: bell, Builders: []Builder{{Peer: actors.NewPeer(n.system.Root, n.system.NewLocalPID("actor-2"))}}}))
	n.spawn(c)
	began := time.Now()
	for range 2000 {
		w.fill(1)
		bell.Ring()
		require.Equal(t, 1, receive(t, c.got))
	}
	require.Less(t, time.Since(began), 20*time.Second)
	_, err := awaitDispatched(t, p, w.log.End())
	require.NoError(t, err)
}
