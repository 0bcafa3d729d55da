package ha

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// A burst of a group's leader is acknowledged once, though what is confirmed stands between its frames: one wait for the disk.
func TestWhatIsConfirmedDoesNotEndABurst(t *testing.T) {
	var told []messages.PhysicalOffset
	group := FollowerConfig{Group: &Group{}, Confirmed: func(at messages.PhysicalOffset) { told = append(told, at) }}
	confirmed := func(in []byte, at messages.PhysicalOffset) []byte {
		in = append(in, make([]byte, headerBytes)...)
		putConfirmed(in[len(in)-headerBytes:], at)
		return in
	}
	frame := make([]byte, headerBytes+5)
	putHeader(frame, 30, 5)
	l := &link{cfg: group, in: append(confirmed(confirmed(nil, 10), 20), frame...)}
	require.True(t, l.complete())
	require.Equal(t, []messages.PhysicalOffset{10, 20}, told)
	at, body, err := l.next()
	require.NoError(t, err)
	require.EqualValues(t, 30, at)
	require.Len(t, body, 5)
	require.Equal(t, []messages.PhysicalOffset{10, 20}, told, "each is told once")
	require.False(t, l.complete(), "nothing is left")

	l = &link{cfg: group, in: append(confirmed(nil, 40), frame[:headerBytes+4]...)}
	require.False(t, l.complete(), "a byte is missing")
	l = &link{cfg: group, in: confirmed(nil, 50)}
	require.False(t, l.complete(), "no frame is there")
	l = &link{in: append(confirmed(nil, 60), frame...)}
	require.False(t, l.complete(), "RocketMQ's protocol does not know it")
	require.Equal(t, []messages.PhysicalOffset{10, 20, 40, 50}, told)
}
