package mailbox_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// note is a linked message that knows its sender and its place among that sender's messages.
type note struct {
	link     messages.Link
	sender   int
	n        int
	answered atomic.Int32
	refusal  error
	done     chan struct{}
	called   chan struct{} // its sender waits, and is to look again
	boom     bool
}

func newNote(sender, n int) *note {
	m := &note{sender: sender, n: n, done: make(chan struct{}), called: make(chan struct{}, 1)}
	m.link.Bind(m)
	return m
}

func (m *note) MailboxLink() *messages.Link { return &m.link }

func (m *note) answer(err error) {
	if m.answered.Add(1) == 1 {
		m.refusal = err
		close(m.done)
	}
}

func (m *note) Park() (complete bool) {
	select {
	case <-m.done:
		return true
	case <-m.called:
		return false
	}
}

func (m *note) Unpark() { m.called <- struct{}{} }

func (m *note) Refuse(cause error) { m.answer(cause) }

// ask is a message without a link.
type ask struct{ answer *messages.Answer[int] }

func (m ask) Refuse(cause error) { m.answer.Refuse(cause) }

// clerk handles notes; it keeps what it has seen in plain fields: a second goroutine in it is a data race.
type clerk struct {
	seen    []*note
	batches int
	onNote  func(*note, *mailbox.Batch)
	system  []string
}

func (c *clerk) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		c.ReceiveBatch(m)
	case ask:
		m.answer.Complete(len(c.seen), nil)
	case *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Restarting:
		c.system = append(c.system, fmt.Sprintf("%T", m))
	}
}

func (c *clerk) ReceiveBatch(b *mailbox.Batch) {
	c.batches++
	for m := b.Next(); m != nil; m = b.Next() {
		n := m.(*note)
		if n.boom {
			panic("boom")
		}
		c.seen = append(c.seen, n)
		if c.onNote != nil {
			c.onNote(n, b)
		}
		b.Handled()
		n.answer(nil)
	}
}

// brisk is a clerk that has a shorter way for a note that finds it idle.
type brisk struct {
	*clerk
	singles int
	settle  func(*note) // when set, who answers a single note
}

func (c *brisk) ReceiveSingle(message any) (taken, owed bool) {
	n, ok := message.(*note)
	if !ok || n.boom || c.onNote != nil {
		return false, false
	}
	c.singles++
	c.seen = append(c.seen, n)
	if c.settle != nil {
		return true, true
	}
	n.answer(nil)
	return true, false
}

func (c *brisk) Settle(message any) { c.settle(message.(*note)) }

var names atomic.Int64

func spawn(t *testing.T, c *clerk, opt mailbox.Options) (*mailbox.Combining, actors) {
	t.Helper()
	system := actor.NewActorSystem()
	mb := mailbox.New(opt)
	props := actor.PropsFromProducer(func() actor.Actor { return c }, actor.WithMailbox(mb.Producer()))
	pid, err := system.Root.SpawnNamed(props, fmt.Sprintf("clerk-%d", names.Add(1)))
	require.NoError(t, err)
	t.Cleanup(system.Shutdown)
	return mb, actors{root: system.Root, pid: pid}
}

type actors struct {
	root *actor.RootContext
	pid  *actor.PID
}

// everyWay runs a test for each way in which the actor can be run.
func everyWay(t *testing.T, test func(t *testing.T, c *clerk, opt mailbox.Options)) {
	for _, way := range []struct {
		name   string
		inline int
		direct bool
		single bool
	}{
		{name: "inline", inline: 4},
		{name: "inline direct", inline: 4, direct: true},
		{name: "inline single", inline: 4, direct: true, single: true},
		{name: "goroutine"},
		{name: "goroutine direct", direct: true},
		{name: "goroutine single", direct: true, single: true},
	} {
		t.Run(way.name, func(t *testing.T) {
			c := &clerk{}
			opt := mailbox.Options{InlineBatches: way.inline}
			if way.direct {
				opt.Receiver = c
			}
			if way.single {
				opt.Receiver = &brisk{clerk: c}
			}
			test(t, c, opt)
		})
	}
}

func TestEachSendersOrderIsKept(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		mb, _ := spawn(t, c, opt)
		const senders, each = 8, 2000
		var wg sync.WaitGroup
		for s := range senders {
			wg.Add(1)
			go func() {
				defer wg.Done()
				var last *note
				for n := range each {
					last = newNote(s, n)
					if err := mb.Post(last.MailboxLink()); err != nil {
						panic(err)
					}
				}
				<-last.done
			}()
		}
		wg.Wait()
		next := [senders]int{}
		for _, m := range c.seen {
			require.Equal(t, next[m.sender], m.n, "sender %d", m.sender)
			next[m.sender]++
		}
		require.Len(t, c.seen, senders*each)
		require.LessOrEqual(t, c.batches, senders*each)
		require.Zero(t, mb.UserMessageCount())
	})
}

func TestAnIdleMailboxRunsOnTheSendersGoroutine(t *testing.T) {
	for _, direct := range []bool{false, true} {
		c := &clerk{}
		quick := &brisk{clerk: c}
		opt := mailbox.Options{InlineBatches: 4}
		if direct {
			opt.Receiver = quick
		}
		mb, _ := spawn(t, c, opt)
		for n := range 3 {
			m := newNote(0, n)
			require.NoError(t, mb.Post(m.MailboxLink()))
			require.EqualValues(t, 1, m.answered.Load(), "handled when Post returns")
		}
		require.Len(t, c.seen, 3)
		if direct {
			require.NotZero(t, quick.singles, "on the shorter way")
			boom := newNote(0, 3)
			boom.boom = true
			require.NoError(t, mb.Post(boom.MailboxLink()))
			require.ErrorIs(t, boom.refusal, messages.ErrPanicked, "what it leaves comes in a batch")
		}
	}
}

func TestOthersRunTheActorWhileASenderIsTold(t *testing.T) {
	quick := &brisk{clerk: &clerk{}}
	mb, _ := spawn(t, quick.clerk, mailbox.Options{InlineBatches: 4, Receiver: quick})
	first, second := newNote(0, 0), newNote(1, 0)
	quick.settle = func(n *note) {
		quick.settle = nil
		require.NoError(t, mb.Post(second.MailboxLink()))
		require.EqualValues(t, 1, second.answered.Load(), "the actor was let go before")
		n.answer(nil)
	}
	require.NoError(t, mb.Post(first.MailboxLink()))
	require.EqualValues(t, 1, first.answered.Load(), "told when Post returns")
	require.Equal(t, 2, quick.singles)
}

func TestWhatComesInWhileBusyIsOneBatch(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		mb, _ := spawn(t, c, opt)
		entered, leave := make(chan struct{}), make(chan struct{})
		c.onNote = func(m *note, b *mailbox.Batch) {
			if m.n == 0 {
				close(entered)
				<-leave
			} else if m.n < 10 && b.Last() {
				panic("the batch ended early")
			}
		}
		first := newNote(0, 0)
		go func() { _ = mb.Post(first.MailboxLink()) }()
		<-entered
		var last *note
		for n := 1; n <= 10; n++ {
			last = newNote(0, n)
			require.NoError(t, mb.Post(last.MailboxLink()), "busy: queued, not run")
			require.Zero(t, last.answered.Load())
		}
		require.Equal(t, 10, mb.UserMessageCount())
		close(leave)
		<-last.done
		require.Equal(t, 2, c.batches)
	})
}

func TestTheInlineBudgetSetsTheSenderFree(t *testing.T) {
	c := &clerk{}
	mb, _ := spawn(t, c, mailbox.Options{InlineBatches: 2})
	// Each note brings the next one in, so the mailbox is never empty: without a budget the sender would run all of them.
	const chain = 100
	done := make(chan struct{})
	returned := make(chan struct{})
	c.onNote = func(m *note, _ *mailbox.Batch) {
		if m.n == 3 {
			<-returned // on the sender's goroutine this would wait for ever
		}
		if m.n == chain {
			close(done)
			return
		}
		if err := mb.Post(newNote(0, m.n+1).MailboxLink()); err != nil {
			panic(err)
		}
	}
	require.NoError(t, mb.Post(newNote(0, 0).MailboxLink()))
	close(returned)
	<-done
}

func TestAFullMailboxSaysSo(t *testing.T) {
	c := &clerk{}
	mb, to := spawn(t, c, mailbox.Options{Limit: 3})
	entered, leave := make(chan struct{}), make(chan struct{})
	c.onNote = func(m *note, _ *mailbox.Batch) {
		if m.n == 0 {
			close(entered)
			<-leave
		}
	}
	require.NoError(t, mb.Post(newNote(0, 0).MailboxLink()))
	<-entered
	for n := 1; n <= 3; n++ {
		require.NoError(t, mb.Post(newNote(0, n).MailboxLink()))
	}
	over := newNote(0, 4)
	require.ErrorIs(t, mb.Post(over.MailboxLink()), messages.ErrBusy)
	require.Zero(t, over.answered.Load(), "not taken, so not answered")
	to.root.Send(to.pid, over)
	<-over.done
	require.ErrorIs(t, over.refusal, messages.ErrBusy, "by Send nobody sees an error, so the message is refused")
	// A message without a link is exempt: its sender keeps one outstanding.
	q := ask{answer: messages.NewAnswer[int]()}
	to.root.Send(to.pid, q)
	close(leave)
	n, err := q.answer.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, n, "in order behind what was queued before it")
}

func TestAPanicCostsOneMessage(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		var panics atomic.Int32
		opt.OnPanic = func(reason any, stack []byte) {
			if reason == "boom" && len(stack) > 0 {
				panics.Add(1)
			}
		}
		mb, _ := spawn(t, c, opt)
		var all []*note
		for n := range 50 {
			m := newNote(0, n)
			m.boom = n%10 == 3
			all = append(all, m)
			require.NoError(t, mb.Post(m.MailboxLink()))
		}
		for _, m := range all {
			<-m.done
			if m.boom {
				require.ErrorIs(t, m.refusal, messages.ErrPanicked)
			} else {
				require.NoError(t, m.refusal)
			}
		}
		require.EqualValues(t, 5, panics.Load())
		require.Len(t, c.seen, 45)
	})
}

func TestASupervisorRestartsAndNothingQueuedIsLost(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		mb, _ := spawn(t, c, opt) // no OnPanic: the panic goes to the guardian, whose default is a restart
		var all []*note
		for n := range 40 {
			m := newNote(0, n)
			m.boom = n == 7
			all = append(all, m)
			require.NoError(t, mb.Post(m.MailboxLink()))
		}
		for _, m := range all {
			<-m.done
			if m.boom {
				require.ErrorIs(t, m.refusal, messages.ErrPanicked)
			} else {
				require.NoError(t, m.refusal, "note %d", m.n)
			}
		}
	})
}

func TestAClosedMailboxAnswersAtOnce(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		mb, to := spawn(t, c, opt)
		cause := errors.New("the disk is on fire")
		entered, leave := make(chan struct{}), make(chan struct{})
		c.onNote = func(m *note, _ *mailbox.Batch) {
			close(entered)
			<-leave
		}
		go func() { _ = mb.Post(newNote(0, 0).MailboxLink()) }()
		<-entered
		before := newNote(0, 1)
		require.NoError(t, mb.Post(before.MailboxLink()))
		mb.Close(cause)
		mb.Close(errors.New("a later cause"))
		queued := newNote(0, 2)
		require.NoError(t, mb.Post(queued.MailboxLink()))
		q := ask{answer: messages.NewAnswer[int]()}
		to.root.Send(to.pid, q)
		c.onNote = nil
		close(leave)
		<-before.done
		require.NoError(t, before.refusal, "what came before the close is handled")
		<-queued.done
		require.ErrorIs(t, queued.refusal, cause)
		_, err := q.answer.Wait(t.Context())
		require.ErrorIs(t, err, cause)
		late := newNote(0, 3)
		require.NoError(t, mb.Post(late.MailboxLink()))
		<-late.done
		require.ErrorIs(t, late.refusal, cause)
	})
}

func TestStopAndPoisonAnswerWhatIsQueued(t *testing.T) {
	for _, how := range []string{"stop", "poison"} {
		t.Run(how, func(t *testing.T) {
			everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
				mb, to := spawn(t, c, opt)
				const senders, each = 4, 500
				notes := make([][]*note, senders)
				var wg sync.WaitGroup
				for s := range senders {
					wg.Add(1)
					go func() {
						defer wg.Done()
						for n := range each {
							m := newNote(s, n)
							notes[s] = append(notes[s], m)
							if err := mb.Post(m.MailboxLink()); err != nil {
								m.answer(err)
							}
							if s == 0 && n == each/2 {
								if how == "stop" {
									to.root.Stop(to.pid)
								} else {
									to.root.Poison(to.pid)
								}
							}
							runtime.Gosched()
						}
					}()
				}
				wg.Wait()
				for _, list := range notes {
					for _, m := range list {
						<-m.done // every one is answered, one way or the other
						if m.refusal != nil {
							require.ErrorIs(t, m.refusal, messages.ErrClosed)
						}
						require.EqualValues(t, 1, m.answered.Load())
					}
				}
			})
		})
	}
}

func TestPostDoesNotAllocate(t *testing.T) {
	c := &quiet{}
	mb := mailbox.New(mailbox.Options{InlineBatches: 4, Receiver: c})
	system := actor.NewActorSystem()
	t.Cleanup(system.Shutdown)
	props := actor.PropsFromProducer(func() actor.Actor { return c }, actor.WithMailbox(mb.Producer()))
	_, err := system.Root.SpawnNamed(props, "quiet")
	require.NoError(t, err)
	m := newNote(0, 0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if err := mb.Post(m.MailboxLink()); err != nil {
			panic(err)
		}
	}))
	require.Positive(t, c.n)
}

type quiet struct{ n int }

func (q *quiet) Receive(actor.Context) {}

func (q *quiet) ReceiveBatch(b *mailbox.Batch) {
	for b.Next() != nil {
		q.n++
	}
}

// An actor with goroutines of its own takes one message on the sender's goroutine, if it is idle; what comes meanwhile it takes on its own.
func TestAnIdleActorTakesAMessageHere(t *testing.T) {
	c := &clerk{}
	mb, _ := spawn(t, c, mailbox.Options{})
	for n := range 100 {
		m, behind := newNote(0, n), newNote(1, n)
		c.onNote = func(got *note, _ *mailbox.Batch) {
			if got == m {
				require.NoError(t, mb.PostHere(behind.MailboxLink()), "it is busy: this is queued")
				require.Zero(t, behind.answered.Load())
			}
		}
		require.NoError(t, mb.PostHere(m.MailboxLink()))
		<-m.done
		<-behind.done
	}
	require.Len(t, c.seen, 200)
}

func TestTheRestOfWhatIsTakenHereIsLeftToAGoroutine(t *testing.T) {
	c := &clerk{}
	mb, _ := spawn(t, c, mailbox.Options{InlineBatches: 8})
	m, behind := newNote(0, 0), newNote(1, 0)
	held := make(chan struct{})
	c.onNote = func(got *note, _ *mailbox.Batch) {
		if got == m {
			require.NoError(t, mb.Post(behind.MailboxLink()))
			return
		}
		<-held // who posts m does not wait for this
	}
	require.NoError(t, mb.PostHere(m.MailboxLink()))
	require.EqualValues(t, 1, m.answered.Load(), "it was handled before PostHere has returned")
	require.Zero(t, behind.answered.Load())
	close(held)
	<-behind.done
}
