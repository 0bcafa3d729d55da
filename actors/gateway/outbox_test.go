package gateway

import (
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/socket"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// pulled is what a pull found: 32 records of 1 KiB in a mapped file.
const (
	pulledRecords = 32
	pulledBytes   = 1 << 10
)

// mapped maps a file of the records and returns it with its name.
func mapped(tb testing.TB) ([]byte, string) {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "log")
	data := make([]byte, pulledRecords*pulledBytes)
	for i := range data {
		data[i] = byte(i * 31 >> 3)
	}
	require.NoError(tb, os.WriteFile(name, data, 0o600))
	f, err := vfs.New().Open(name, true)
	require.NoError(tb, err)
	m, err := f.Map(int64(len(data)), vfs.MapRead)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, m.Unmap())
		require.NoError(tb, f.Close())
	})
	return m.Bytes(), name
}

// answers returns frames that hold the records, as Conn.send makes them.
func answers(log []byte) func() *frame {
	result := &messages.GetResult{}
	head := []byte("a header")
	return func() *frame {
		result.Records, result.Bytes = result.Records[:0], len(log)
		for at := 0; at < len(log); at += pulledBytes {
			result.Records = append(result.Records, log[at:at+pulledBytes])
		}
		f := framePool.Get().(*frame)
		f.head = append(f.head[:0], head...)
		f.hold, f.tail, f.bytes = result, result.Records, int64(len(f.head)+result.Bytes)
		return f
	}
}

// socketPair returns two ends of a loopback connection.
func socketPair(tb testing.TB) (ours, theirs *net.TCPConn) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer func() { require.NoError(tb, l.Close()) }()
	far, err := net.Dial("tcp", l.Addr().String())
	require.NoError(tb, err)
	near, err := l.Accept()
	require.NoError(tb, err)
	tb.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near.(*net.TCPConn), far.(*net.TCPConn)
}

func newOutbox(sock net.Conn, onBroken func(error)) *outbox {
	return &outbox{sock: socket.Of(sock), onWrote: func() {}, onBroken: onBroken}
}

func TestRecordsGoFromTheMapToTheSocketWithoutAllocation(t *testing.T) {
	log, _ := mapped(t)
	ours, theirs := socketPair(t)
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	o := newOutbox(ours, func(error) {})
	next := answers(log)
	require.Zero(t, testing.AllocsPerRun(200, func() { o.write(next()) }))
}

func TestShortWritesLoseNothing(t *testing.T) {
	log, _ := mapped(t)
	ours, theirs := socketPair(t)
	require.NoError(t, ours.SetWriteBuffer(16<<10))
	require.NoError(t, theirs.SetReadBuffer(16<<10))
	o := newOutbox(ours, func(err error) { t.Error(err) })
	next := answers(log)
	const rounds = 4
	go func() {
		for range rounds {
			o.write(next())
		}
		_ = ours.Close()
	}()
	want, got := crc32.NewIEEE(), crc32.NewIEEE()
	for range rounds {
		_, _ = want.Write([]byte("a header"))
		_, _ = want.Write(log)
	}
	odd := make([]byte, 777) // reads of an odd size, so that writes end anywhere
	n, err := io.CopyBuffer(struct{ io.Writer }{got}, struct{ io.Reader }{theirs}, odd)
	require.NoError(t, err)
	require.EqualValues(t, rounds*(len("a header")+len(log)), n)
	require.Equal(t, want.Sum32(), got.Sum32())
}

func TestAFaultInTheMapEndsTheConnectionOnly(t *testing.T) {
	log, name := mapped(t)
	next := answers(log)
	require.NoError(t, os.Truncate(name, 4096)) // what lies behind faults from now on
	ours, theirs := socketPair(t)
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	broken := make(chan error, 1)
	o := newOutbox(ours, func(err error) { broken <- err })
	o.write(next())
	require.ErrorContains(t, <-broken, "bad address", "the kernel tells; nothing is sent in the place of the records")
	o.write(next()) // what comes later is dropped, and released
}

// BenchmarkPull is the way of 32 records of 1 KiB from the map to a socket whose other end takes everything.
func BenchmarkPull(b *testing.B) {
	log, _ := mapped(b)
	ours, theirs := socketPair(b)
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	o := newOutbox(ours, func(err error) { b.Error(err) })
	next := answers(log)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		o.write(next())
	}
}

// Sockets are written without the runtime's knowledge only where that does not wait for the disk.
func TestWhatMayBeOnTheDiskIsOld(t *testing.T) {
	for _, c := range []struct {
		behind int64
		size   int
		old    bool
	}{{1 << 30, 5000, true}, {1 << 30, 4000, false}, {1 << 20, 5000, false}} {
		f := &frame{hold: &messages.GetResult{Oldest: c.behind}, tail: [][]byte{make([]byte, 100), make([]byte, c.size)}}
		require.Equal(t, c.old, f.old(), "%+v", c)
	}
	require.False(t, new(frame).old())
}

// A prompt answer is written by whoever answers, as far as the peer takes it: he does not wait, the order stays, and nothing is lost.
func TestAPromptAnswerWaitsForNobody(t *testing.T) {
	log, _ := mapped(t)
	ours, theirs := socketPair(t)
	require.NoError(t, ours.SetWriteBuffer(16<<10))
	require.NoError(t, theirs.SetReadBuffer(16<<10))
	o := newOutbox(ours, func(err error) { t.Error(err) })
	want := crc32.NewIEEE()
	const rounds = 60 // 2 MB: more than the system takes
	for i := range rounds {
		f := answers(log)() // with a result of its own
		f.tail = append([][]byte{{byte(i)}}, f.tail...)
		f.bytes++
		_, _ = want.Write(f.head)
		for _, b := range f.tail {
			_, _ = want.Write(b)
		}
		if i%3 == 2 {
			o.put(f)
		} else {
			o.putPrompt(f)
		}
	}
	require.Positive(t, o.bytes.Load(), "the peer has read nothing: some is left")
	got := crc32.NewIEEE()
	_, err := io.CopyN(got, theirs, int64(rounds*(len("a header")+1+len(log))))
	require.NoError(t, err)
	require.Equal(t, want.Sum32(), got.Sum32())
	require.Eventually(t, func() bool { return o.bytes.Load() == 0 && o.head.Load() == nil }, 20*time.Second, time.Millisecond)
}

func TestAPromptAnswerToAPeerThatHasGoneBreaksTheOutbox(t *testing.T) {
	ours, _ := socketPair(t)
	require.NoError(t, ours.Close())
	broken := make(chan error, 2)
	o := newOutbox(ours, func(err error) { broken <- err })
	for range 3 {
		f := framePool.Get().(*frame)
		f.head, f.bytes = append(f.head[:0], "an answer"...), 9
		o.putPrompt(f)
	}
	require.Error(t, <-broken)
	require.Eventually(t, func() bool { return o.bytes.Load() == 0 && o.head.Load() == nil }, 20*time.Second, time.Millisecond)
	require.Empty(t, broken, "it is told once")
}
