package socket_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/socket"
)

// pair is a connection, both ends.
func pair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	near, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

// parts are n parts of a stream of bytes that do not repeat every power of two, some of them empty.
func parts(n, size int) (list net.Buffers, all []byte) {
	for i := range n {
		b := make([]byte, size*(i%3))
		for j := range b {
			b[j] = byte((len(all) + j) % 251)
		}
		list, all = append(list, b), append(all, b...)
	}
	return list, all
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for name, of := range map[string]struct{ parts, size int }{
		"a small one": {2, 8}, "many parts": {300, 10}, "more than the peer has room for": {100, 60 << 10}, "large ones": {4, 4 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			list, want := parts(of.parts, of.size)
			wrote := make(chan error, 1)
			go func() {
				defer func() { _ = near.Close() }()
				out := socket.Of(near)
				for len(list) > 0 {
					some := append(net.Buffers(nil), list[:min(16, len(list))]...)
					list = list[len(some):]
					if _, err := out.Write(&some); err != nil {
						wrote <- err
						return
					}
				}
				wrote <- nil
			}()
			got, err := io.ReadAll(socket.Of(far))
			require.NoError(t, err)
			require.NoError(t, <-wrote)
			require.True(t, bytes.Equal(want, got), "%d bytes of %d", len(got), len(want))
		})
	}
}

func TestReadingEndsAsThatOfTheConnection(t *testing.T) {
	near, far := pair(t)
	s := socket.Of(near)
	require.NoError(t, near.SetReadDeadline(time.Now()))
	_, err := s.Read(make([]byte, 8))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, near.SetReadDeadline(time.Time{}))
	require.NoError(t, far.Close())
	_, err = s.Read(make([]byte, 8))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, near.Close())
	_, err = s.Read(make([]byte, 8))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = s.Write(&net.Buffers{{1}})
	require.ErrorIs(t, err, net.ErrClosed)
}

// Who is told before a read waits is not told by one that finds something, and may write.
func TestAReadTellsBeforeItWaits(t *testing.T) {
	near, far := pair(t)
	s, told := socket.Of(near), 0
	if !s.BeforeWait(func() bool { return told == 0 }, func() {
		told++
		_, err := s.Write(&net.Buffers{{9}})
		require.NoError(t, err)
	}) {
		t.Skip("connections are used as they are")
	}
	go func() { // sends once it is told
		if _, err := io.ReadFull(far, make([]byte, 1)); err == nil {
			_, _ = far.Write([]byte{1, 2})
		}
	}()
	b := make([]byte, 1)
	for want := range byte(2) {
		_, err := s.Read(b)
		require.NoError(t, err)
		require.Equal(t, want+1, b[0])
		require.Equal(t, 1, told)
	}
}

// Who is told may close the connection.
func TestAReadThatTellsMayFindTheConnectionClosed(t *testing.T) {
	near, _ := pair(t)
	s, told := socket.Of(near), false
	if !s.BeforeWait(func() bool { return !told }, func() {
		told = true
		require.NoError(t, near.Close())
	}) {
		t.Skip("connections are used as they are")
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 8))
		ended <- err
	}()
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

// What waits ends when the connection is closed, in either direction.
func TestClosingEndsWhatWaits(t *testing.T) {
	near, _ := pair(t)
	s, ended := socket.Of(near), make(chan error, 2)
	go func() {
		_, err := s.Read(make([]byte, 8))
		ended <- err
	}()
	go func() {
		for {
			if _, err := s.Write(&net.Buffers{make([]byte, 32<<10)}); err != nil {
				ended <- err
				return
			}
		}
	}()
	require.NoError(t, near.SetReadDeadline(time.Now().Add(time.Hour)))
	require.NoError(t, near.Close())
	for range 2 {
		require.ErrorIs(t, <-ended, net.ErrClosed)
	}
}

// A connection that was reset is not one that has ended in order.
func TestAResetIsNoEnd(t *testing.T) {
	near, far := pair(t)
	require.NoError(t, far.(*net.TCPConn).SetLinger(0))
	require.NoError(t, far.Close())
	_, err := socket.Of(near).Read(make([]byte, 8))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}
