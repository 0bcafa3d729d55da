package timer

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// TestWhatHasGoneIsNotKept: ten thousand messages that are cancelled long before they are due take the room of a few.
func TestWhatHasGoneIsNotKept(t *testing.T) {
	s := newState()
	due := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	var at messages.PhysicalOffset
	put := func(properties map[string]string) {
		m := messages.StoredMessage{PhysicalOffset: at, StoreSize: 100, StoreTimestampMs: time.Now().UnixMilli()}
		m.Properties = messages.PropertiesOf(properties)
		s.apply([]messages.StoredMessage{m})
		at += 100
	}
	put(map[string]string{DeliverMs: due})
	for range 10_000 {
		put(map[string]string{DeliverMs: due, ID: "order-7"})
		put(map[string]string{cancelID: "order-7"})
		require.LessOrEqual(t, len(s.byTime), 100)
		require.LessOrEqual(t, len(s.byAge), 100)
	}
	require.EqualValues(t, 1, s.pending.Load())
	found, _ := s.due(time.Now().Add(2*time.Hour), 10)
	require.Len(t, found, 1)
	require.Zero(t, found[0].At)
}
