package messages_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

func TestAPutIsCompleteWhenTheLastPromiseIsMet(t *testing.T) {
	p := messages.NewPutMessage()
	for round := range 3 {
		p.Promise()
		p.Promise()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(p.Fulfil)
		}
		p.Wait()
		require.True(t, p.Done())
		wg.Wait()
		p.Reset()
		require.False(t, p.Done(), "round %d", round)
	}
	p.FulfilInline()
	p.Wait()
	p.Reopen()
	require.False(t, p.Done())
	p.Fail(messages.UnknownError, errors.New("why"))
	p.Wait()
	require.Equal(t, messages.UnknownError, p.Result.Status)
}

func TestOnDoneRunsOnceInPlaceOfAWaiter(t *testing.T) {
	p := messages.NewPutMessage()
	calls := 0
	p.OnDone = func(got *messages.PutMessage) { calls++; require.Same(t, p, got) }
	p.Promise()
	p.Fulfil()
	require.Zero(t, calls)
	p.FulfilInline()
	require.Equal(t, 1, calls)
}

func TestAWaiterParksAndIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := messages.NewPutMessage()
		go func() {
			<-time.After(time.Hour)
			p.Fulfil()
		}()
		began := time.Now()
		p.Wait()
		require.Equal(t, time.Hour, time.Since(began))
	})
}

func TestAnAnswerCountsOnce(t *testing.T) {
	a := messages.NewAnswer[int]()
	a.Complete(1, nil)
	a.Complete(2, errors.New("late"))
	a.Refuse(errors.New("later"))
	n, err := a.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	<-a.Done()
	var nobody *messages.Answer[int]
	nobody.Complete(1, nil) // nobody waits: allowed

	cause := errors.New("patience is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err = messages.NewAnswer[int]().Wait(ctx)
	require.ErrorIs(t, err, cause)
}

func TestPutStatuses(t *testing.T) {
	stored := map[string]bool{"PUT_OK": true, "FLUSH_DISK_TIMEOUT": true, "FLUSH_SLAVE_TIMEOUT": true, "SLAVE_NOT_AVAILABLE": true}
	for s := messages.PutOK; s <= messages.LMQConsumeQueueNumExceeded; s++ {
		require.Equal(t, stored[s.String()], s.Stored(), s.String())
	}
	require.Equal(t, "UNKNOWN", messages.PutStatus(99).String())
	require.Equal(t, "NO_MESSAGE_IN_QUEUE", messages.NoMessageInQueue.String())
}

func TestDelayLevels(t *testing.T) {
	l, err := messages.ParseDelayLevels(messages.DefaultDelayLevels)
	require.NoError(t, err)
	require.Equal(t, 18, l.Max())
	ms, highest := l.Millis(18)
	require.EqualValues(t, 7_200_000, ms)
	require.Equal(t, 18, highest)
	for _, bad := range []string{"", "1", "s", "1x", "1s  2s", "-1s", "1s ", "99999999999999999d", "40000d", "1.5s"} {
		_, err := messages.ParseDelayLevels(bad)
		require.ErrorIs(t, err, messages.ErrDelayLevels, bad)
	}
	m := &messages.Message{Topic: "T", QueueID: 2, Properties: "DELAY\x0199"}
	later, err := l.Postponed(m)
	require.NoError(t, err)
	require.Equal(t, messages.TopicSchedule, later.Topic)
	require.EqualValues(t, 17, later.QueueID, "lowered to the highest level")
	require.Equal(t, map[string]string{"DELAY": "18", "REAL_TOPIC": "T", "REAL_QID": "2"}, later.Properties.Map())
	require.Equal(t, "T", m.Topic, "the message itself is unchanged")
	for _, none := range []messages.Properties{"", "DELAY\x010", "DELAY\x01-1", "A\x01b"} {
		same := &messages.Message{Topic: "T", Properties: none}
		got, err := l.Postponed(same)
		require.NoError(t, err)
		require.Same(t, same, got)
	}
	_, err = l.Postponed(&messages.Message{Topic: "T", Properties: "DELAY\x01soon"})
	require.ErrorContains(t, err, "soon")
}

func TestAParkedCallerIsCalledOrAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := messages.NewPutMessage()
		p.Unpark()
		require.False(t, p.Park(), "called before it parked")
		for range 2 {
			go func() {
				<-time.After(time.Hour)
				p.Unpark()
			}()
			began := time.Now()
			require.False(t, p.Park())
			require.Equal(t, time.Hour, time.Since(began))
		}
		go func() {
			<-time.After(time.Hour)
			p.Fulfil()
		}()
		require.True(t, p.Park(), "answered instead")
		require.True(t, p.Park(), "and it stays so")
		p.Wait()
	})
}
