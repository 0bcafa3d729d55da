//go:build !race

// The race detector makes sync.Pool drop things at random, so allocations are counted without it.

package gateway_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
)

// The way of a send through a node, from the socket to the socket, allocates the request and little more; so does a pull.
func TestAllocationsOverTheWire(t *testing.T) {
	const burst = 32
	w := run(t)
	w.topic("T", 1)
	c := w.dial("broker")
	for _, x := range []struct {
		name    string
		request *remoting.Command
		most    float64
	}{
		{"send", sending("T", string(make([]byte, 128))), 2},
		{"send, binary", sending("T", string(make([]byte, 128))), 2},
		{"pull", pulling("T", 0, "maxMsgNums", "1"), 4}, // what the others have sent
	} {
		name := x.name
		x.request.Opaque, x.request.Binary = 1, name == "send, binary"
		frame, err := x.request.Append(nil)
		require.NoError(t, err)
		frames := strings.Repeat(string(frame), burst)
		size := 0
		_, err = c.sock.Write(frame)
		require.NoError(t, err)
		a := c.read()
		require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
		// The least of a few runs: what else the node does meanwhile, and a collection that empties the pools, allocate too.
		got := leastAllocs(100, func() {
			_, _ = io.WriteString(c.sock, frames)
			for range burst {
				word, err := c.in.Peek(4)
				if err != nil {
					t.Error(err)
					return
				}
				size = 4 + int(word[2])<<8 + int(word[3])
				_, _ = c.in.Discard(size)
			}
		}) / burst
		t.Logf("%s: %.1f allocations, %d bytes of answer", name, got, size)
		require.LessOrEqual(t, got, x.most, name)
	}
}

func leastAllocs(runs int, f func()) float64 {
	least := testing.AllocsPerRun(runs, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
