package gateway

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// chain makes frames of some sizes, linked as a burst's; a negative size is a frame with a tail. It returns what they are on the wire.
func chain(sizes []int) (first *frame, wire []byte) {
	next := &first
	for i, size := range sizes {
		f := framePool.Get().(*frame)
		f.head = append(f.head[:0], bytes.Repeat([]byte{byte(i)}, max(size, -size))...)
		if wire = append(wire, f.head...); size < 0 {
			f.attach(bytes.Repeat([]byte{byte(i), 'x'}, 4<<10))
			wire = append(wire, f.tail[0]...)
			f.bytes = int64(len(f.tail[0]))
		}
		f.bytes += int64(len(f.head))
		*next, next = f, &f.next
	}
	return first, wire
}

func TestShortAnswersGoTogetherInTheirOrder(t *testing.T) {
	near, far := socketPair(t)
	o := newOutbox(near, func(err error) { t.Error(err) })
	random := rand.New(rand.NewPCG(7, 8))
	bursts := [][]int{{200}, {200, 200, 200}, {shortAnswer, shortAnswer + 1, 1}, {-20, 200, 200, -1, 3}, {0, 0, 5}}
	for range 200 {
		burst := make([]int, 1+random.IntN(150))
		for i := range burst {
			switch random.IntN(12) {
			case 0:
				burst[i] = -1 - random.IntN(300)
			case 1:
				burst[i] = random.IntN(3 * shortAnswer)
			default:
				burst[i] = random.IntN(shortAnswer + 1)
			}
		}
		bursts = append(bursts, burst)
	}
	for _, burst := range bursts {
		first, want := chain(burst)
		got := make(chan []byte)
		go func() {
			b := make([]byte, len(want))
			_, _ = io.ReadFull(far, b) // what is missing is seen
			got <- b
		}()
		require.True(t, o.claim())
		o.write(first)
		o.finish()
		require.True(t, bytes.Equal(want, <-got), "%v", burst)
		require.Nil(t, o.joined.room, "given back")
	}
}

func TestShortAnswersAreOnePart(t *testing.T) {
	o := new(outbox)
	first, wire := chain([]int{200, 300, 100})
	for f := first; f != nil; f = f.next {
		o.lay(f)
	}
	require.Len(t, o.scratch, 1)
	require.Equal(t, wire, o.scratch[0])
	o.joined.free()
}
