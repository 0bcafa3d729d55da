package mailbox_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
)

// deliver sends a note and waits for its answer.
func deliver(mb *mailbox.Combining, m *note) {
	if err := mb.PostWaiting(m); err != nil {
		panic(err)
	}
	<-m.done
}

func TestWhoWaitsComesBehindWhatItPosted(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		mb, _ := spawn(t, c, opt)
		const senders, each = 8, 2000
		var wg sync.WaitGroup
		for s := range senders {
			wg.Go(func() {
				for n := range each {
					if n%5 == 4-s%3 {
						deliver(mb, newNote(s, n))
					} else if err := mb.Post(newNote(s, n).MailboxLink()); err != nil {
						panic(err)
					}
				}
				deliver(mb, newNote(s, each))
			})
		}
		wg.Wait()
		next := [senders]int{}
		for _, m := range c.seen {
			require.Equal(t, next[m.sender], m.n, "sender %d", m.sender)
			require.EqualValues(t, 1, m.answered.Load())
			next[m.sender]++
		}
		require.Len(t, c.seen, senders*(each+1))
		require.Zero(t, mb.UserMessageCount())
	})
}

func TestSendersThatOnlyWaitAreAllServed(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		mb, _ := spawn(t, c, opt)
		const senders, each = 32, 500
		var wg sync.WaitGroup
		for s := range senders {
			wg.Go(func() {
				for n := range each {
					deliver(mb, newNote(s, n))
				}
			})
		}
		wg.Wait()
		require.Len(t, c.seen, senders*each)
		require.Zero(t, mb.UserMessageCount())
	})
}

// A sender that others go ahead of is served by them once it has waited too long, and before they go on.
func TestAStarvingSenderIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{}
		mb := mailbox.New(mailbox.Options{InlineBatches: 8, Receiver: &brisk{clerk: c}, TimeQueueing: true})
		mb.Start()
		c.onNote = func(m *note, _ *mailbox.Batch) {
			if m.sender == 0 {
				<-time.After(time.Second)
			}
		}
		served := make(chan struct{})
		for round := range 3 {
			n := round
			if round == 0 {
				go func() {
					<-time.After(time.Millisecond)
					deliver(mb, newNote(1, 0))
					close(served)
				}()
			}
			deliver(mb, newNote(0, n))
		}
		<-served
		synctest.Wait()
		require.Len(t, c.seen, 4)
		require.Equal(t, 0, c.seen[3].sender, "the last of the three came behind it")
		require.Zero(t, mb.Queueing())
		require.Zero(t, mb.UserMessageCount())
	})
}

func TestSendersThatWaitAreCountedAndTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{}
		mb := mailbox.New(mailbox.Options{InlineBatches: 8, Receiver: &brisk{clerk: c}, TimeQueueing: true, Limit: 2})
		mb.Start()
		leave := make(chan struct{})
		c.onNote = func(m *note, _ *mailbox.Batch) { <-leave }
		for n := range 3 {
			go deliver(mb, newNote(n, 0))
			<-time.After(time.Second)
		}
		require.Equal(t, 2, mb.UserMessageCount())
		require.Equal(t, 2*time.Second, mb.Queueing().Round(time.Millisecond), "the first one counts")
		over := newNote(3, 0)
		require.ErrorIs(t, mb.PostWaiting(over), messages.ErrBusy)
		require.Zero(t, over.answered.Load(), "not taken, so not answered")
		leave <- struct{}{}
		synctest.Wait()
		require.Equal(t, 1, mb.UserMessageCount())
		require.Equal(t, time.Second, mb.Queueing().Round(time.Millisecond))
		close(leave)
		synctest.Wait()
		require.Zero(t, mb.UserMessageCount())
		require.Zero(t, mb.Queueing())
		require.Len(t, c.seen, 3)
	})
}

func TestWhoWaitsIsRefusedWhenTheMailboxIsClosed(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		mb, _ := spawn(t, c, opt)
		cause := errors.New("the disk is on fire")
		entered, leave := make(chan struct{}), make(chan struct{})
		c.onNote = func(m *note, _ *mailbox.Batch) {
			close(entered)
			<-leave
		}
		go deliver(mb, newNote(0, 0))
		<-entered
		mb.Close(cause)
		var wg sync.WaitGroup
		late := make([]*note, 10)
		for n := range late {
			late[n] = newNote(1, n)
			wg.Go(func() { deliver(mb, late[n]) })
		}
		c.onNote = nil
		close(leave)
		wg.Wait()
		for _, l := range late {
			require.ErrorIs(t, l.refusal, cause)
		}
	})
}

func TestAPanicCostsOneOfThoseWhoWait(t *testing.T) {
	everyWay(t, func(t *testing.T, c *clerk, opt mailbox.Options) {
		opt.OnPanic = func(any, []byte) {}
		mb, _ := spawn(t, c, opt)
		var wg sync.WaitGroup
		all := make([]*note, 64)
		for n := range all {
			all[n] = newNote(n, 0)
			all[n].boom = n%10 == 3
			wg.Go(func() { deliver(mb, all[n]) })
		}
		wg.Wait()
		for n, l := range all {
			if n%10 == 3 {
				require.ErrorIs(t, l.refusal, messages.ErrPanicked)
			} else {
				require.NoError(t, l.refusal)
			}
		}
	})
}

func TestPostWaitingDoesNotAllocate(t *testing.T) {
	c := &quiet{}
	mb := mailbox.New(mailbox.Options{InlineBatches: 4, Receiver: c})
	system := actor.NewActorSystem()
	t.Cleanup(system.Shutdown)
	props := actor.PropsFromProducer(func() actor.Actor { return c }, actor.WithMailbox(mb.Producer()))
	_, err := system.Root.SpawnNamed(props, "quiet-too")
	require.NoError(t, err)
	p := messages.NewPutMessage()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if err := mb.PostWaiting(p); err != nil {
			panic(err)
		}
	}))
	require.Positive(t, c.n)
}
