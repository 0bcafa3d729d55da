//go:build linux && !race

package socket_test

import (
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/socket"
)

// A peer that sends without a pause does not keep what others have sent from being read. There is one processor; without the reader's giving
// way the runtime looks at its poller after 10 ms.
func TestAReaderThatNeverWaitsGivesWay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	busyNear, busyFar := pair(t)
	_, err := busyFar.Write(make([]byte, 256<<10))
	require.NoError(t, err)
	near, far := pair(t)
	var read atomic.Bool
	waits, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		close(waits)
		_, err := socket.Of(near).Read(make([]byte, 8))
		read.Store(true)
		ended <- err
	}()
	<-waits
	_, err = far.Write([]byte{1})
	require.NoError(t, err)

	busy, b := socket.Of(busyNear), make([]byte, 1)
	const longer, atLeast = 3 * time.Millisecond, 3 // of reads behind it, should somebody else have had the processor till then
	for began, late := time.Now(), 0; late < atLeast && !read.Load(); {
		if time.Since(began) > longer {
			late++
		}
		_, err := busy.Read(b)
		require.NoError(t, err)
	}
	require.True(t, read.Load(), "nothing else was read while this one went on")
	require.NoError(t, <-ended)
}

// A goroutine that gives way while nobody else wants to run goes on.
func TestGivingWayToNobody(t *testing.T) {
	near, far := pair(t)
	_, err := far.Write(make([]byte, 64<<10))
	require.NoError(t, err)
	s, b := socket.Of(near), make([]byte, 1)
	const longer = 5 * time.Millisecond
	for began := time.Now(); time.Since(began) < longer; {
		_, err := s.Read(b)
		require.NoError(t, err)
	}
}

// However many connections never have to wait at a time, giving way takes a bounded number of descriptors.
func TestGivingWayTakesFewDescriptors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close some
	const readers, most, longer = 150, 64, 2 * time.Millisecond
	var socks [readers]net.Conn
	for i := range socks {
		near, far := pair(t)
		_, err := far.Write(make([]byte, 64<<10))
		require.NoError(t, err)
		socks[i] = near
	}
	descriptors := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(open)
	}
	before := descriptors()
	var wg sync.WaitGroup
	for _, near := range socks {
		wg.Go(func() {
			s, b := socket.Of(near), make([]byte, 1)
			for began, n := time.Now(), 0; time.Since(began) < longer && n < 64<<10; n++ {
				_, _ = s.Read(b)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, descriptors()-before, most)
}
