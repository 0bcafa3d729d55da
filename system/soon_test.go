package system_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// What somebody waits for is readable at once, and what nobody waits for within a millisecond: the clock of the bubble tells them apart.
func TestAMessageThatSomebodyWaitsForIsReadableAtOnce(t *testing.T) {
	awaited, other := messages.QueueKey{Topic: "awaited"}, messages.QueueKey{Topic: "other"}
	inBubble(t, small(memfs.New()), func(t *testing.T, s *system.Store) {
		woken := make(chan messages.WakeReason, 10)
		park := func(key messages.QueueKey, offset messages.QueueOffset) {
			s.Park(&messages.ParkPull{Queue: key, Offset: offset, Wake: func(why messages.WakeReason) { woken <- why }})
			synctest.Wait()
		}
		readable := func(key messages.QueueKey, n int) {
			t.Helper()
			synctest.Wait()
			require.EqualValues(t, n, s.MaxOffset(key))
		}
		say := func(key messages.QueueKey) { put(t, s, &messages.Message{Topic: key.Topic, Body: []byte("x")}) }
		say(other)
		readable(other, 1) // the queue begins to be there
		say(other)
		readable(other, 1)
		settle()
		readable(other, 2)

		park(awaited, 0)
		say(other)
		readable(other, 2)
		say(awaited)
		readable(awaited, 1)
		readable(other, 3) // it stands before the other in the log
		require.Equal(t, messages.WakeArrived, <-woken)
		say(awaited)
		readable(awaited, 2) // who has just been woken comes again
		for range 100 {
			say(awaited)
			synctest.Wait()
		}
		settle()
		say(awaited)
		readable(awaited, 102) // but not for ever

		settle()
		say(other)
		readable(other, 3)
		park(other, 3) // it comes to wait
		readable(other, 4)
		require.Equal(t, messages.WakeArrived, <-woken)
	})
}

// Who waits for everything to be dispatched, a stop for one, is somebody who waits.
func TestNothingIsLeftToTheTimerWhereSomebodyAwaitsAll(t *testing.T) {
	key := messages.QueueKey{Topic: "T"}
	inBubble(t, small(memfs.New()), func(t *testing.T, s *system.Store) {
		for range 3 {
			put(t, s, &messages.Message{Topic: key.Topic, Body: []byte("x")})
			settle()
		}
		began := time.Now()
		put(t, s, &messages.Message{Topic: key.Topic, Body: []byte("x")})
		require.NoError(t, s.AwaitDispatched(t.Context()))
		require.EqualValues(t, 4, s.MaxOffset(key))
		require.Equal(t, began, time.Now())
	})
}

// A listener hears of each message at once.
func TestAListenerHearsAtOnce(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt, heard := small(memfs.New()), make(chan time.Time, 1)
		opt.Listeners = []system.Listener{{Name: "l", Handle: func(context.Context, map[messages.QueueKey]messages.QueueOffset) error {
			heard <- time.Now()
			return nil
		}}}
		s := openIn(t, opt)
		put(t, s, &messages.Message{Topic: "T", Body: []byte("x")})
		now := time.Now()
		require.Equal(t, now, <-heard)
		closeIn(t, s)
	})
}
