package mailbox_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/mailbox"
)

func TestQueueingTellsHowLongMessagesWaitBehindTheRunningOne(t *testing.T) { // L95
	synctest.Test(t, func(t *testing.T) {
		c := &clerk{}
		mb := mailbox.New(mailbox.Options{InlineBatches: 8, Receiver: c, TimeQueueing: true})
		mb.Start()
		leave := make(chan struct{})
		c.onNote = func(m *note, _ *mailbox.Batch) { <-leave }
		for range 2 {
			go func() { _ = mb.Post(newNote(0, 0).MailboxLink()) }()
			<-time.After(time.Minute)
			require.Zero(t, mb.Queueing(), "the running one does not wait")
			require.NoError(t, mb.Post(newNote(0, 1).MailboxLink()))
			<-time.After(2 * time.Second)
			require.NoError(t, mb.Post(newNote(0, 2).MailboxLink()))
			<-time.After(3 * time.Second)
			require.Equal(t, 5*time.Second, mb.Queueing().Round(time.Millisecond), "the first one counts")
			leave <- struct{}{} // the two that waited are taken
			synctest.Wait()
			require.Zero(t, mb.Queueing())
			leave <- struct{}{}
			leave <- struct{}{}
			synctest.Wait()
		}
		require.Len(t, c.seen, 6)
	})
}
