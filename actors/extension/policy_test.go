package extension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPausesDoubleAndGraveFailuresWithinTheWindowPark(t *testing.T) {
	s := strikes{policy: Policy{Failures: 3, Backoff: time.Second, MaxBackoff: 5 * time.Second}.Defaults()}
	now := time.Unix(1000, 0)
	for _, want := range []time.Duration{1, 2, 4, 5, 5} {
		pause, park := s.failed(now, false)
		require.Equal(t, want*time.Second, pause)
		require.False(t, park, "errors are borne for as long as it takes")
	}
	s.succeeded()
	pause, park := s.failed(now, true)
	require.Equal(t, time.Second, pause)
	require.False(t, park)
	_, park = s.failed(now.Add(30*time.Second), true)
	require.False(t, park)
	_, park = s.failed(now.Add(61*time.Second), true)
	require.False(t, park, "the first has left the window")
	_, park = s.failed(now.Add(62*time.Second), true)
	require.True(t, park)
	s.forget()
	_, park = s.failed(now.Add(63*time.Second), true)
	require.False(t, park)
}
