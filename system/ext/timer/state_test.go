package timer

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// TestWhatHasGoneIsNotKept: ten thousand messages that are cancelled long before they are due take the room of a few.
func TestWhatHasGoneIsNotKept(t *testing.T) {
	s := newState()
	due := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	var at messages.PhysicalOffset
	put := func(properties map[string]string) {
		at = stored(s, at, properties)
	}
	put(map[string]string{DeliverMs: due})
	for range 10_000 {
		put(map[string]string{DeliverMs: due, ID: "order-7"})
		put(map[string]string{CancelID: "order-7"})
		require.LessOrEqual(t, len(s.byTime), 100)
		require.LessOrEqual(t, len(s.byAge), 100)
	}
	require.EqualValues(t, 1, s.pending.Load())
	found, _ := s.due(time.Now().Add(2*time.Hour), 10)
	require.Len(t, found, 1)
	require.Zero(t, found[0].At)
}

// stored has the log say that there is one more message, and returns the place behind it.
func stored(s *state, at messages.PhysicalOffset, properties map[string]string) messages.PhysicalOffset {
	m := messages.StoredMessage{PhysicalOffset: at, StoreSize: 100, StoreTimestampMs: time.Now().UnixMilli()}
	m.Topic, m.Properties = Topic, messages.PropertiesOf(properties)
	s.apply([]messages.StoredMessage{m})
	return at + 100
}

// TestWhatIsHeldIsHeldThroughItsCopy: a message is being cancelled while its copy comes. The cancellation fails.
func TestWhatIsHeldIsHeldThroughItsCopy(t *testing.T) {
	s := newState()
	now := time.Now()
	due := strconv.FormatInt(now.UnixMilli(), 10)
	next := stored(s, 0, map[string]string{DeliverMs: due, messages.PropertyUniqKey: "7"})
	next = stored(s, next, map[string]string{DeliverMs: due, messages.PropertyUniqKey: "7"})
	carried, _ := s.old(now.Add(time.Second), 0, 1)
	require.Len(t, carried, 1)
	held := s.hold("7")
	require.Len(t, held, 2, "both have the id")
	stored(s, next, map[string]string{DeliverMs: due, messages.PropertyUniqKey: "7", carriedFrom: "0"})
	found, _ := s.due(now, 10)
	require.Empty(t, found)
	s.giveBack(held)
	found, _ = s.due(now, 10)
	require.Len(t, found, 2)
	require.EqualValues(t, 2, s.pending.Load())
	require.Empty(t, s.hold("7"), "they are on their way")
}

// TestWhatCannotBeCarriedIsDeliveredOnce: a message is due after copies of it were refused.
func TestWhatCannotBeCarriedIsDeliveredOnce(t *testing.T) {
	s := newState()
	now := time.Now()
	stored(s, 0, map[string]string{DeliverMs: strconv.FormatInt(now.UnixMilli(), 10)})
	for _, ever := range []bool{true, true, false} {
		carried, _ := s.old(now.Add(time.Second), 0, 10)
		require.Len(t, carried, 1)
		s.notCarried(carried[0], ever)
	}
	carried, _ := s.old(now.Add(time.Second), 0, 10)
	require.Empty(t, carried)
	found, _ := s.due(now, 10)
	require.Len(t, found, 1)
	found, _ = s.due(now, 10)
	require.Empty(t, found)
}

// TestAPanicOfTheServiceLosesNothing: it had taken messages to be delivered, and to be carried; another is being cancelled.
func TestAPanicOfTheServiceLosesNothing(t *testing.T) {
	s := newState()
	now := time.Now()
	due := strconv.FormatInt(now.UnixMilli(), 10)
	next := stored(s, 0, map[string]string{DeliverMs: due, ID: "a"})
	next = stored(s, next, map[string]string{DeliverMs: due, ID: "b"})
	stored(s, next, map[string]string{DeliverMs: due, ID: "c"})
	held := s.hold("b")
	carried, _ := s.old(now.Add(time.Second), 0, 1)
	flying, _ := s.due(now, 10)
	require.Len(t, carried, 1)
	require.Len(t, flying, 1)
	s.regain()
	found, _ := s.due(now, 10)
	require.ElementsMatch(t, append(carried, flying...), found)
	s.giveBack(held)
	found, _ = s.due(now, 10)
	require.Equal(t, held, found)
}

// TestASnapshotIsNotAheadOfTheDurableLog: of what a power cut takes from the log it must not know.
func TestASnapshotIsNotAheadOfTheDurableLog(t *testing.T) {
	k := &snapshot{todo: make(chan snapshotFile, 1)}
	var at system.Position
	at.Offset = 100
	k.take(newState(), at)
	k.flushed(99)
	require.Empty(t, k.todo)
	k.flushed(100)
	require.Len(t, k.todo, 1)
}
