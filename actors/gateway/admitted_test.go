package gateway

import (
	"io"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// What the reader waits for can be what it holds back itself: then nobody else writes it.
func TestTheReaderHoldsNothingBackWhileItWaits(t *testing.T) {
	near, far := socketPair(t)
	require.NoError(t, far.SetReadDeadline(time.Now().Add(20*time.Second)))
	shared := &shared{opt: Options{MaxInFlight: 1, MaxQueuedBytes: 4, MaxSlowEach: 1, Logger: zerolog.Nop()}}
	c := newConn(1, near, 0, shared)
	c.holding = c.out.claim()
	require.True(t, c.holding)
	answer := framePool.Get().(*frame)
	answer.head, answer.bytes = append(answer.head[:0], "whole"...), 5
	require.False(t, c.out.push(answer), "somebody writes")
	over := time.AfterFunc(10*time.Second, func() { c.Close(ErrConnectionClosed) })
	require.True(t, c.admitted(), "the queue is full of what nobody writes")
	over.Stop()
	got := make([]byte, 5)
	_, err := io.ReadFull(far, got)
	require.NoError(t, err)
	require.Equal(t, "whole", string(got))

	c.holding = c.out.claim()
	c.paused.Add(1)
	waits := make(chan bool)
	go func() { waits <- c.admitted() }()
	answer = framePool.Get().(*frame)
	answer.head, answer.bytes = append(answer.head[:0], "late"...), 4
	c.out.put(answer)
	_, err = io.ReadFull(far, got[:4])
	require.NoError(t, err, "a pause lets answers go")
	c.paused.Add(-1)
	c.gate.poke()
	require.True(t, <-waits)
}
