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

func none(string) int64 { return 0 }

// TestALimitLetsItsRatePass: so many in a second, as many at once after a pause, and what is refused does not count.
func TestALimitLetsItsRatePass(t *testing.T) {
	l := limitsOf(t, "orders=10")
	at, passed := time.Now(), 0
	for range 500 { // 50 a second for ten seconds
		if l.Take("orders", false, 1, 1, at, none) == nil {
			passed++
		}
		at = at.Add(20 * time.Millisecond)
	}
	require.InDelta(t, 110, passed, 2, "ten a second, and ten of the pause before")
	err := l.Take("orders", false, 1, 1, at.Add(-time.Second), none)
	require.ErrorIs(t, err, ErrLimited)
	require.ErrorContains(t, err, "orders takes 10 messages a second")
	require.NoError(t, l.Take("others", false, 1000, 1000, at, none), "they have no limit")
}

// TestALargeSendPassesWhenNothingHas: or it would never pass; those behind it wait for as long as it is too large.
func TestALargeSendPassesWhenNothingHas(t *testing.T) {
	l := limitsOf(t, "orders=,1000")
	at := time.Now()
	require.NoError(t, l.Take("orders", false, 1, 5000, at, none))
	require.ErrorIs(t, l.Take("orders", false, 1, 1, at.Add(3900*time.Millisecond), none), ErrLimited)
	require.NoError(t, l.Take("orders", false, 1, 1, at.Add(4100*time.Millisecond), none))
}

// TestEachOtherTopicHasALimitOfItsOwn, the broker's own topics excepted, which a named limit reaches.
func TestEachOtherTopicHasALimitOfItsOwn(t *testing.T) {
	l := limitsOf(t, " *=1 ; %RETRY%g=1,5;")
	at := time.Now()
	require.NoError(t, l.Take("a", false, 1, 1, at, none))
	require.NoError(t, l.Take("b", false, 1, 1, at, none))
	require.ErrorIs(t, l.Take("a", false, 1, 1, at, none), ErrLimited)
	require.NoError(t, l.Take("own", true, 100, 1, at, none))
	require.NoError(t, l.Take("own", true, 100, 1, at, none))
	require.NoError(t, l.Take("%RETRY%g", true, 1, 5, at, none))
	require.ErrorIs(t, l.Take("%RETRY%g", true, 1, 1, at, none), ErrLimited)
}

// TestARefusalByBytesTakesNoMessages from the other limit.
func TestARefusalByBytesTakesNoMessages(t *testing.T) {
	l := limitsOf(t, "orders=2,10")
	at := time.Now()
	require.NoError(t, l.Take("orders", false, 1, 10, at, none))
	for range 10 {
		require.ErrorContains(t, l.Take("orders", false, 1, 10, at, none), "bytes")
	}
	require.NoError(t, l.Take("orders", false, 1, 1, at.Add(time.Second), none))
}

func TestLimitsThatCannotBeRead(t *testing.T) {
	for _, bad := range []string{"orders", "orders=x", "orders=0", "orders=-1", "orders=1,x", "or ders=1", "=1"} {
		_, err := ParseLimits(bad)
		require.ErrorIs(t, err, ErrLimits, bad)
	}
	require.Nil(t, limitsOf(t, " ; "))
	require.NoError(t, limitsOf(t, "").Take("a", false, 1, 1, time.Now(), none))
}

// TestAQuotaOfMessagesKept: what is kept and what comes together; the rate is not charged for what is refused.
func TestAQuotaOfMessagesKept(t *testing.T) {
	l := limitsOf(t, "orders=5,,10;*=,,3")
	kept := int64(8)
	count := func(string) int64 { return kept }
	at := time.Now()
	require.NoError(t, l.Take("orders", false, 2, 1, at, count))
	err := l.Take("orders", false, 3, 1, at, count)
	require.ErrorIs(t, err, ErrLimited)
	require.ErrorContains(t, err, "orders keeps 10 messages")
	kept = 0
	require.NoError(t, l.Take("orders", false, 3, 1, at, count), "room was made, and three of the second are left")
	require.ErrorIs(t, l.Take("others", false, 4, 1, at, count), ErrLimited)
	require.NoError(t, l.Take("own", true, 4, 1, at, count))
	_, err = ParseLimits("orders=1,2,3,4")
	require.ErrorIs(t, err, ErrLimits)
}
