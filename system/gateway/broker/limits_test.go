package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func limitsOf(t *testing.T, text string) *Limits {
	t.Helper()
	l, err := ParseLimits(text)
	require.NoError(t, err)
	return l
}

// TestALimitLetsItsRatePass: so many in a second, as many at once after a pause, and what is refused does not count.
func TestALimitLetsItsRatePass(t *testing.T) {
	l := limitsOf(t, "orders=10")
	at, passed := time.Now(), 0
	for range 500 { // 50 a second for ten seconds
		if l.Take("orders", false, 1, 1, at) == nil {
			passed++
		}
		at = at.Add(20 * time.Millisecond)
	}
	require.InDelta(t, 110, passed, 2, "ten a second, and ten of the pause before")
	err := l.Take("orders", false, 1, 1, at.Add(-time.Second))
	require.ErrorIs(t, err, ErrLimited)
	require.ErrorContains(t, err, "orders takes 10 messages a second")
	require.NoError(t, l.Take("others", false, 1000, 1000, at), "they have no limit")
}

// TestALargeSendPassesWhenNothingHas: or it would never pass; those behind it wait for as long as it is too large.
func TestALargeSendPassesWhenNothingHas(t *testing.T) {
	l := limitsOf(t, "orders=,1000")
	at := time.Now()
	require.NoError(t, l.Take("orders", false, 1, 5000, at))
	require.ErrorIs(t, l.Take("orders", false, 1, 1, at.Add(3900*time.Millisecond)), ErrLimited)
	require.NoError(t, l.Take("orders", false, 1, 1, at.Add(4100*time.Millisecond)))
}

// TestEachOtherTopicHasALimitOfItsOwn, the broker's own topics excepted, which a named limit reaches.
func TestEachOtherTopicHasALimitOfItsOwn(t *testing.T) {
	l := limitsOf(t, " *=1 ; %RETRY%g=1,5;")
	at := time.Now()
	require.NoError(t, l.Take("a", false, 1, 1, at))
	require.NoError(t, l.Take("b", false, 1, 1, at))
	require.ErrorIs(t, l.Take("a", false, 1, 1, at), ErrLimited)
	require.NoError(t, l.Take("own", true, 100, 1, at))
	require.NoError(t, l.Take("own", true, 100, 1, at))
	require.NoError(t, l.Take("%RETRY%g", true, 1, 5, at))
	require.ErrorIs(t, l.Take("%RETRY%g", true, 1, 1, at), ErrLimited)
}

// TestARefusalByBytesTakesNoMessages from the other limit.
func TestARefusalByBytesTakesNoMessages(t *testing.T) {
	l := limitsOf(t, "orders=2,10")
	at := time.Now()
	require.NoError(t, l.Take("orders", false, 1, 10, at))
	for range 10 {
		require.ErrorContains(t, l.Take("orders", false, 1, 10, at), "bytes")
	}
	require.NoError(t, l.Take("orders", false, 1, 1, at.Add(time.Second)))
}

func TestLimitsThatCannotBeRead(t *testing.T) {
	for _, bad := range []string{"orders", "orders=x", "orders=0", "orders=-1", "orders=1,x", "or ders=1", "=1"} {
		_, err := ParseLimits(bad)
		require.ErrorIs(t, err, ErrLimits, bad)
	}
	require.Nil(t, limitsOf(t, " ; "))
	require.NoError(t, limitsOf(t, "").Take("a", false, 1, 1, time.Now()))
}
