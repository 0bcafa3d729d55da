package gateway_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

const (
	codeEcho = 1 + iota
	codeOrdered
	codeSlow
	codePanic
	codeHold
	codeAbandon
)

func echo(r *gateway.Request) {
	c := r.Command.Answer(0, r.Remark)
	c.Body = r.Body
	r.Answer(c)
}

func TestAnswers(t *testing.T) {
	g := start(t, gateway.Options{}, gateway.Routes{codeEcho: {Handle: echo}})
	p := dial(t, g)
	for i, binary := range []bool{false, true, true, false} {
		c := request(codeEcho, int32(7+i))
		c.Binary, c.Remark, c.Body = binary, "as it was", []byte(strings.Repeat("b", 1<<(4*i)))
		p.send(c)
		a := p.read()
		require.Equal(t, binary, a.Binary)
		require.True(t, a.IsResponse())
		require.Equal(t, c.Opaque, a.Opaque)
		require.Equal(t, "as it was", a.Remark)
		require.Equal(t, c.Body, a.Body)
		require.Equal(t, remoting.Version, a.Version)
	}
	p.send(request(999, 5))
	a := p.read()
	require.Equal(t, remoting.ResponseRequestCodeNotSupported, a.Code)
	require.Equal(t, " request type 999 not supported", a.Remark)

	once := request(codeEcho, 6)
	once.Flag = remoting.FlagOneWay
	unknown := request(999, 6)
	unknown.Flag = remoting.FlagOneWay
	p.send(once, unknown, request(codeEcho, 8))
	require.Equal(t, int32(8), p.read().Opaque, "one-way requests are not answered")
	p.silent()
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	g := start(t, gateway.Options{MaxInFlight: 64}, gateway.Routes{codeEcho: {Handle: echo}, codeOrdered: {Handle: echo, Lane: gateway.Ordered}})
	p := dial(t, g)
	const n = 5000
	go func() {
		var b []byte
		for i := range n {
			c := request(codeEcho+i%2, int32(i))
			c.Body = make([]byte, i%300)
			b, _ = c.Append(b)
		}
		_, _ = p.sock.Write(b)
	}()
	for i := range n {
		a := p.read()
		require.Equal(t, int32(i), a.Opaque)
		require.Len(t, a.Body, i%300)
	}
}

// A request is answered though of the next one only a part comes: its peer may wait for that answer.
func TestAnswersDoNotWaitForTheRestOfAFrame(t *testing.T) {
	g := start(t, gateway.Options{}, gateway.Routes{codeEcho: {Handle: echo}})
	p := dial(t, g)
	for i := range int32(20) {
		b, err := request(codeEcho, 2*i).Append(nil)
		require.NoError(t, err)
		next, err := request(codeEcho, 2*i+1).Append(nil)
		require.NoError(t, err)
		p.write(append(b, next[:1+int(i)]...))
		require.Equal(t, 2*i, p.read().Opaque)
		p.write(next[1+int(i):])
		require.Equal(t, 2*i+1, p.read().Opaque)
	}
}

func TestOrderedRequestsAreSeenByLaterOnes(t *testing.T) {
	var state atomic.Int32
	g := start(t, gateway.Options{}, gateway.Routes{
		codeOrdered: {Lane: gateway.Ordered, Handle: func(r *gateway.Request) {
			select {
			case <-time.After(time.Millisecond): // as an actor's answer would take
			case <-r.Conn.Closed():
			}
			state.Store(r.Opaque)
			r.OK(nil)
		}},
		codeEcho: {Handle: func(r *gateway.Request) { r.Fail(int(state.Load()), "") }},
	})
	p := dial(t, g)
	for i := int32(1); i < 20; i++ {
		p.send(request(codeOrdered, i), request(codeEcho, 1000+i))
		require.Equal(t, i, p.read().Opaque)
		require.Equal(t, int(i), p.read().Code)
	}
}

func TestSlowRequestsHoldNothingUp(t *testing.T) {
	release, running := make(chan struct{}), make(chan int32, 10)
	g := start(t, gateway.Options{MaxSlow: 2}, gateway.Routes{
		codeEcho: {Handle: echo},
		codeSlow: {Lane: gateway.Slow, Handle: func(r *gateway.Request) {
			running <- r.Opaque
			<-release
			r.OK(nil)
		}},
	})
	p := dial(t, g)
	p.send(request(codeSlow, 1), request(codeSlow, 2), request(codeSlow, 3), request(codeEcho, 4))
	require.Equal(t, int32(4), p.read().Opaque)
	arrives(t, running)
	arrives(t, running)
	quiet(t, running)
	close(release)
	got := map[int32]bool{}
	for range 3 {
		got[p.read().Opaque] = true
	}
	require.Equal(t, map[int32]bool{1: true, 2: true, 3: true}, got)
}

// A peer that asks for many large answers and takes none gets no more of them made than its connection may hold, and keeps
// nobody else from being served: one with a thousand requests in flight cost gigabytes, and everybody's turn.
func TestSlowAnswersThatNobodyTakesAreNotMade(t *testing.T) {
	const body, n, each = 1 << 20, 200, 2
	var handled atomic.Int64
	begin := make(chan struct{})
	g := start(t, gateway.Options{MaxSlow: 3, MaxSlowEach: each, MaxQueuedBytes: 1 << 20}, gateway.Routes{codeEcho: {Handle: echo}, codeSlow: {
		Lane: gateway.Slow, Handle: func(r *gateway.Request) {
			<-begin
			handled.Add(1)
			c := r.Command.Answer(0, "")
			c.Body = make([]byte, body)
			r.Answer(c)
		},
	}})
	p := dial(t, g)
	require.NoError(t, p.sock.(*net.TCPConn).SetReadBuffer(64<<10))
	for i := range n {
		p.send(request(codeSlow, int32(i)))
	}
	p.send(request(codeEcho, n))
	require.Equal(t, int32(n), p.read().Opaque, "all are in flight")
	close(begin)
	last := int64(-1)
	for now := int64(0); now == 0 || now != last; now = handled.Load() {
		last = now
		<-time.After(soon)
	}
	require.Less(t, last, int64(n)/2)
	other := dial(t, g)
	other.send(request(codeSlow, 5))
	require.Len(t, other.read().Body, body)
	for range n {
		require.Len(t, p.read().Body, body)
	}
}

// Slow requests of one connection do not take all turns.
func TestOneConnectionDoesNotTakeAllTurns(t *testing.T) {
	release, running := make(chan struct{}), make(chan int32, 10)
	g := start(t, gateway.Options{MaxSlow: 3, MaxSlowEach: 2}, gateway.Routes{codeSlow: {Lane: gateway.Slow, Handle: func(r *gateway.Request) {
		running <- r.Opaque
		<-release
		r.OK(nil)
	}}})
	p, other := dial(t, g), dial(t, g)
	p.send(request(codeSlow, 1), request(codeSlow, 1), request(codeSlow, 1), request(codeSlow, 1))
	require.Equal(t, int32(1), arrives(t, running))
	require.Equal(t, int32(1), arrives(t, running))
	quiet(t, running)
	other.send(request(codeSlow, 2))
	require.Equal(t, int32(2), arrives(t, running))
	close(release)
	for range 4 {
		p.read()
	}
	other.read()
}

func TestPanicCostsOneRequest(t *testing.T) {
	boom := func(*gateway.Request) { panic("boom") }
	g := start(t, gateway.Options{}, gateway.Routes{
		codeEcho: {Handle: echo}, codePanic: {Handle: boom}, codeSlow: {Handle: boom, Lane: gateway.Slow},
	})
	p := dial(t, g)
	for _, code := range []int{codePanic, codeSlow} {
		p.send(request(code, 1))
		a := p.read()
		require.Equal(t, remoting.ResponseSystemError, a.Code)
		require.Contains(t, a.Remark, "panicked")
	}
	p.send(request(codeEcho, 2))
	require.Equal(t, int32(2), p.read().Opaque)
}

func TestOnlyTheFirstAnswerCounts(t *testing.T) {
	g := start(t, gateway.Options{}, gateway.Routes{codeEcho: {Handle: func(r *gateway.Request) {
		r.OK(nil)
		r.Fail(1, "late")
		r.Abandon(messages.ErrClosed)
		r.ReplyRecords(0, "", nil, &messages.GetResult{})
	}}})
	p := dial(t, g)
	p.send(request(codeEcho, 1))
	require.Equal(t, 0, p.read().Code)
	p.silent()
	p.send(request(codeEcho, 2))
	require.Equal(t, int32(2), p.read().Opaque)
}

func TestHostileBytesCloseTheirConnectionOnly(t *testing.T) {
	g := start(t, gateway.Options{FrameBytes: 1 << 20}, gateway.Routes{codeEcho: {Handle: echo}})
	good := dial(t, g)
	frame := func(length, word uint32, rest string) []byte {
		b := binary.BigEndian.AppendUint32(nil, length)
		return append(binary.BigEndian.AppendUint32(b, word), rest...)
	}
	for name, b := range map[string][]byte{
		"HTTP":                      []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS":                       {0x16, 3, 1, 2, 0, 1, 0, 1},
		"length over the limit":     frame(1<<20+1, 10, ""),
		"negative length":           frame(1<<31, 10, ""),
		"length below its header":   frame(3, 0, ""),
		"header beyond the frame":   frame(20, 100, strings.Repeat("x", 16)),
		"unknown codec":             frame(20, 7<<24|16, strings.Repeat("x", 16)),
		"header that is no JSON":    frame(20, 16, strings.Repeat("x", 16)),
		"binary header of nonsense": frame(20, 1<<24|16, strings.Repeat("\xff", 16)),
	} {
		t.Run(name, func(t *testing.T) {
			p := dial(t, g)
			p.write(b)
			p.gone()
			good.send(request(codeEcho, 1))
			require.Equal(t, int32(1), good.read().Opaque)
		})
	}
	cut := dial(t, g)
	cut.write(frame(100, 50, "{"))
	require.NoError(t, cut.sock.(*net.TCPConn).CloseWrite())
	cut.gone()
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	held := make(chan *gateway.Request, 10)
	g := start(t, gateway.Options{MaxInFlight: 2}, gateway.Routes{codeHold: {Handle: func(r *gateway.Request) { held <- r }}})
	p := dial(t, g)
	for i := range 4 {
		p.send(request(codeHold, int32(i)))
	}
	first, second := arrives(t, held), arrives(t, held)
	quiet(t, held)
	second.OK(nil)
	third := arrives(t, held)
	quiet(t, held)
	first.OK(nil)
	fourth := arrives(t, held)
	third.OK(nil)
	fourth.OK(nil)
	for _, want := range []int32{1, 0, 2, 3} {
		require.Equal(t, want, p.read().Opaque)
	}
}

func TestParkedRequestsDoNotCountInFlight(t *testing.T) {
	held := make(chan *gateway.Request, 10)
	g := start(t, gateway.Options{MaxInFlight: 1}, gateway.Routes{
		codeEcho: {Handle: echo},
		codeHold: {Handle: func(r *gateway.Request) { r.Park(); held <- r }},
	})
	p := dial(t, g)
	for i := range 5 {
		p.send(request(codeHold, int32(i)))
	}
	p.send(request(codeEcho, 100))
	require.Equal(t, int32(100), p.read().Opaque)
	for i := range 5 {
		arrives(t, held).OK(nil)
		require.Equal(t, int32(i), p.read().Opaque)
	}
}

// A peer that reads nothing stops being read, and what waits for it stays bounded; once it reads, it gets everything.
func TestSlowPeerIsBraked(t *testing.T) {
	var handled atomic.Int64
	const body, n = 256 << 10, 400
	g := start(t, gateway.Options{MaxQueuedBytes: 1 << 20}, gateway.Routes{codeEcho: {Handle: func(r *gateway.Request) {
		handled.Add(1)
		c := r.Command.Answer(0, "")
		c.Body = make([]byte, body)
		r.Answer(c)
	}}})
	p := dial(t, g)
	require.NoError(t, p.sock.(*net.TCPConn).SetReadBuffer(64<<10))
	go func() {
		for i := range n {
			b, _ := request(codeEcho, int32(i)).Append(nil)
			_, _ = p.sock.Write(b)
		}
	}()
	last := int64(-1)
	for now := int64(0); now != last; now = handled.Load() {
		last = now
		<-time.After(soon)
	}
	require.Less(t, last, int64(n)/2, "the requests behind wait in the sockets")
	for i := range n {
		a := p.read()
		require.Equal(t, int32(i), a.Opaque)
		require.Len(t, a.Body, body)
	}
}

type release func()

func (r release) Release() { r() }

func recordsOf(parts []string, freed func()) *messages.GetResult {
	found := &messages.GetResult{}
	for _, s := range parts {
		found.Records = append(found.Records, []byte(s))
		found.Bytes += len(s)
	}
	found.Hold(release(freed))
	return found
}

func TestRecordsAreReleasedOnceWritten(t *testing.T) {
	freed := make(chan struct{}, 10)
	g := start(t, gateway.Options{}, gateway.Routes{codeEcho: {Handle: func(r *gateway.Request) {
		r.ReplyRecords(0, "FOUND", nil, recordsOf([]string{"one", "", "three"}, func() { freed <- struct{}{} }))
	}}})
	p := dial(t, g)
	p.send(request(codeEcho, 1))
	require.Equal(t, "onethree", string(p.read().Body))
	arrives(t, freed)
	once := request(codeEcho, 2)
	once.Flag = remoting.FlagOneWay
	p.send(once)
	arrives(t, freed)
	p.silent()
	quiet(t, freed)
}

// Answers given aside come all, whoever writes them.
func TestAnswersGivenAside(t *testing.T) {
	g := start(t, gateway.Options{}, gateway.Routes{codeHold: {Handle: func(r *gateway.Request) {
		r.Go(func(r *gateway.Request) { r.Reply(0, "aside", nil) })
	}}})
	p := dial(t, g)
	const n = 200
	for i := range int32(n) {
		p.send(request(codeHold, i))
	}
	seen := map[int32]bool{}
	for range n {
		a := p.read()
		require.Equal(t, "aside", a.Remark)
		seen[a.Opaque] = true
	}
	require.Len(t, seen, n)
}

func TestRecordsAreReleasedWhenTheConnectionBreaks(t *testing.T) {
	held, freed, closed := make(chan *gateway.Request, 1), make(chan struct{}, 1), make(chan *gateway.Conn, 1)
	g := serve(t, gateway.Options{}, gateway.Service{OnClosed: func(c *gateway.Conn) { closed <- c }},
		gateway.Routes{codeHold: {Handle: func(r *gateway.Request) { held <- r }}})
	p := dial(t, g)
	p.send(request(codeHold, 1))
	r := arrives(t, held)
	require.NoError(t, p.sock.Close())
	arrives(t, closed)
	r.ReplyRecords(0, "", nil, recordsOf([]string{"late"}, func() { freed <- struct{}{} }))
	arrives(t, freed)
}

func TestAbandonClosesWithoutAnswer(t *testing.T) {
	g := start(t, gateway.Options{}, gateway.Routes{codeAbandon: {Handle: func(r *gateway.Request) { r.Abandon(messages.ErrBusy) }}})
	p := dial(t, g)
	p.send(request(codeAbandon, 1))
	p.gone()
}

func TestAnswerThatFitsNoFrameBecomesAnError(t *testing.T) {
	g := start(t, gateway.Options{}, gateway.Routes{codeEcho: {Handle: func(r *gateway.Request) {
		c := r.Command.Answer(0, "")
		c.Body = make([]byte, remoting.DefaultFrameBytes+1)
		r.Answer(c)
	}}})
	p := dial(t, g)
	p.send(request(codeEcho, 1))
	a := p.read()
	require.Equal(t, remoting.ResponseSystemError, a.Code)
	require.Equal(t, int32(1), a.Opaque)
}

func TestPushAndCall(t *testing.T) {
	conns := make(chan *gateway.Conn, 1)
	g := start(t, gateway.Options{}, gateway.Routes{codeEcho: {Handle: func(r *gateway.Request) { conns <- r.Conn; r.OK(nil) }}})
	p := dial(t, g)
	hello := request(codeEcho, 1)
	hello.Binary = true
	p.send(hello)
	p.read()
	c := arrives(t, conns)

	require.NoError(t, c.Push(&remoting.Command{Code: 40}))
	pushed := p.read()
	require.True(t, pushed.IsOneWay())
	require.False(t, pushed.IsResponse())
	require.True(t, pushed.Binary, "in the codec of the last request")

	answer := c.Call(&remoting.Command{Code: 307, Body: []byte("?")}, patience)
	asked := p.read()
	require.False(t, asked.IsOneWay())
	require.NotEqual(t, pushed.Opaque, asked.Opaque)
	reply := asked.Answer(0, "here")
	reply.Body = []byte("!")
	stray := reply
	p.send(&remoting.Command{Code: 0, Opaque: 4711, Flag: remoting.FlagResponse}, stray)
	got, err := answer.Wait(context.Background())
	require.NoError(t, err)
	require.Equal(t, "!", string(got.Body))

	_, err = c.Call(&remoting.Command{Code: 307}, soon).Wait(context.Background())
	require.ErrorIs(t, err, gateway.ErrCallTimeout)
	late := c.Call(&remoting.Command{Code: 307}, patience)
	require.NoError(t, p.sock.Close())
	_, err = late.Wait(context.Background())
	require.ErrorIs(t, err, gateway.ErrConnectionClosed)
	<-c.Closed()
	require.ErrorIs(t, c.Push(&remoting.Command{Code: 40}), gateway.ErrConnectionClosed)
	_, err = c.Call(&remoting.Command{Code: 307}, patience).Wait(context.Background())
	require.ErrorIs(t, err, gateway.ErrConnectionClosed)
}

func TestTellIsTranslated(t *testing.T) {
	g := serve(t, gateway.Options{}, gateway.Service{OnTell: func(c *gateway.Conn, m any) {
		_ = c.Push(&remoting.Command{Code: 40, Remark: fmt.Sprint(m)})
	}}, gateway.Routes{codeEcho: {Handle: func(r *gateway.Request) {
		var channel messages.ClientChannel = r.Conn
		channel.Tell("before the answer")
		r.OK(nil)
	}}})
	p := dial(t, g)
	p.send(request(codeEcho, 1))
	require.Equal(t, "before the answer", p.read().Remark)
	require.Equal(t, int32(1), p.read().Opaque)
}

func TestIdleConnectionIsClosed(t *testing.T) {
	closed := make(chan *gateway.Conn, 1)
	g := serve(t, gateway.Options{IdleTimeout: 4 * soon}, gateway.Service{OnClosed: func(c *gateway.Conn) { closed <- c }},
		gateway.Routes{codeEcho: {Handle: echo}})
	p := dial(t, g)
	for range 6 {
		quiet(t, closed)
		p.send(request(codeEcho, 1))
		p.read()
	}
	p.gone()
	c := arrives(t, closed)
	require.ErrorContains(t, c.Cause(), "idle")
	require.Equal(t, p.sock.LocalAddr().String(), c.RemoteAddr())
	require.Equal(t, "test", c.Port())
}

func TestPeerThatTakesNothingIsClosed(t *testing.T) {
	closed := make(chan *gateway.Conn, 1)
	g := serve(t, gateway.Options{WriteTimeout: 2 * soon}, gateway.Service{OnClosed: func(c *gateway.Conn) { closed <- c }},
		gateway.Routes{codeEcho: {Handle: func(r *gateway.Request) {
			c := r.Command.Answer(0, "")
			c.Body = make([]byte, 12<<20)
			r.Answer(c)
		}}})
	p := dial(t, g)
	p.send(request(codeEcho, 1), request(codeEcho, 2))
	require.ErrorContains(t, arrives(t, closed).Cause(), "takes nothing")
}

func TestConnectionsAreBounded(t *testing.T) {
	closed := make(chan *gateway.Conn, 4)
	g := serve(t, gateway.Options{MaxConnections: 2}, gateway.Service{OnClosed: func(c *gateway.Conn) { closed <- c }},
		gateway.Routes{codeEcho: {Handle: echo}})
	a, b := dial(t, g), dial(t, g)
	for _, p := range []*peer{a, b} {
		p.send(request(codeEcho, 1))
		p.read()
	}
	require.Equal(t, 2, g.Connections())
	dial(t, g).gone()
	require.NoError(t, a.sock.Close())
	arrives(t, closed)
	for g.Connections() == 2 {
		<-time.After(time.Millisecond)
	}
	c := dial(t, g)
	c.send(request(codeEcho, 1))
	c.read()
}

// One connection that has announced a large frame and sends none holds up other large frames, but no small ones, and not for ever:
// its end gives the room back.
func TestLargeFramesShareABudget(t *testing.T) {
	g := start(t, gateway.Options{FrameBytes: 1 << 20, MaxLargeBytes: 1 << 20}, gateway.Routes{codeEcho: {Handle: echo}})
	staller, other := dial(t, g), dial(t, g)
	staller.write(binary.BigEndian.AppendUint32(nil, 1<<20))
	<-time.After(soon)
	large := request(codeEcho, 2)
	large.Body = make([]byte, 200<<10)
	other.send(request(codeEcho, 1), large)
	require.Equal(t, int32(1), other.read().Opaque)
	other.silent()
	require.NoError(t, staller.sock.Close())
	require.Len(t, other.read().Body, len(large.Body))
	for range 20 { // it is given back after each
		other.send(large)
		require.Len(t, other.read().Body, len(large.Body))
	}
}

// An answer does not wait until there is room for the large frame behind its request.
func TestAnswersDoNotWaitForTheBudget(t *testing.T) {
	held := make(chan *gateway.Request, 1)
	g := start(t, gateway.Options{FrameBytes: 1 << 20, MaxLargeBytes: 1 << 20}, gateway.Routes{
		codeEcho: {Handle: echo}, codeHold: {Handle: func(r *gateway.Request) { held <- r }},
	})
	holder, other := dial(t, g), dial(t, g)
	large := request(codeHold, 1)
	large.Body = make([]byte, 900<<10)
	holder.send(large)
	r := arrives(t, held) // has its room until it is answered
	b, err := request(codeEcho, 2).Append(nil)
	require.NoError(t, err)
	other.write(append(binary.BigEndian.AppendUint32(b, 200<<10), 0))
	require.Equal(t, int32(2), other.read().Opaque)
	r.OK(nil)
	holder.read()
}

// TestClaimedFramesThatDoNotComeHoldNobodyUp: eight peers that claim the whole budget between them and send nothing are cut
// off, and the frame behind them is served.
func TestClaimedFramesThatDoNotComeHoldNobodyUp(t *testing.T) {
	g := start(t, gateway.Options{FrameBytes: 1 << 20, MaxLargeBytes: 8 << 20}, gateway.Routes{codeEcho: {Handle: echo}})
	var liars []*peer
	for range 8 {
		liar := dial(t, g)
		liar.write(binary.BigEndian.AppendUint32(nil, 1<<20))
		liars = append(liars, liar)
	}
	honest := dial(t, g)
	large := request(codeEcho, 1)
	large.Body = make([]byte, 200<<10)
	honest.send(large)
	require.Len(t, honest.read().Body, len(large.Body))
	for _, liar := range liars {
		liar.gone()
	}
}

type tenant struct {
	r       *gateway.Request
	evicted chan struct{}
}

func (e *tenant) Evict() {
	e.r.Fail(19, "evicted")
	close(e.evicted)
}

func TestStopFinishesWhatIsInFlight(t *testing.T) {
	held, moved := make(chan *gateway.Request, 1), make(chan *tenant, 1)
	g := start(t, gateway.Options{}, gateway.Routes{
		codeEcho: {Handle: echo, RefuseWhenStopping: true},
		codeHold: {Handle: func(r *gateway.Request) { held <- r }},
		codeSlow: {Handle: func(r *gateway.Request) {
			e := &tenant{r: r, evicted: make(chan struct{})}
			r.Park()
			require.True(t, r.Conn.MoveIn(e))
			moved <- e
		}},
	})
	p, idle := dial(t, g), dial(t, g)
	idle.send(request(codeEcho, 1))
	idle.read()
	p.send(request(codeSlow, 1), request(codeHold, 2))
	e, r := arrives(t, moved), arrives(t, held)

	stopped := make(chan error, 1)
	go func() { stopped <- g.Stop(context.Background()) }()
	arrives(t, e.evicted)
	evicted := p.read()
	require.Equal(t, 19, evicted.Code)
	idle.gone()
	_, err := net.DialTimeout("tcp", g.Address(0).String(), patience)
	require.Error(t, err, "nobody is accepted")

	p.send(request(codeEcho, 3))
	refused := p.read()
	require.Equal(t, remoting.ResponseServiceNotAvailable, refused.Code)
	quiet(t, stopped)
	r.OK(nil)
	require.Equal(t, int32(2), p.read().Opaque)
	p.gone()
	require.NoError(t, p.sock.Close())
	require.NoError(t, arrives(t, stopped))
	require.Zero(t, g.Connections())
}

func TestStopGivesUpWhenItsTimeIsOver(t *testing.T) {
	held := make(chan *gateway.Request, 1)
	g := start(t, gateway.Options{}, gateway.Routes{codeHold: {Handle: func(r *gateway.Request) { held <- r }}})
	p := dial(t, g)
	p.send(request(codeHold, 1))
	r := arrives(t, held)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	require.ErrorIs(t, g.Stop(ctx), context.DeadlineExceeded)
	p.gone()
	r.OK(nil) // nobody is there any more
}

func TestTenantsEndWithTheirConnection(t *testing.T) {
	moved, conns := make(chan *tenant, 1), make(chan *gateway.Conn, 1)
	g := start(t, gateway.Options{}, gateway.Routes{codeHold: {Handle: func(r *gateway.Request) {
		e := &tenant{r: r, evicted: make(chan struct{})}
		require.True(t, r.Conn.MoveIn(e))
		moved <- e
		conns <- r.Conn
	}}})
	p := dial(t, g)
	p.send(request(codeHold, 1))
	e, c := arrives(t, moved), arrives(t, conns)
	require.Equal(t, 1, c.Tenants())
	require.True(t, c.MoveOut(e))
	require.False(t, c.MoveOut(e))
	require.True(t, c.MoveIn(e))
	require.NoError(t, p.sock.Close())
	arrives(t, e.evicted)
	require.False(t, c.MoveIn(e), "the connection is over")
}

func TestManyConnectionsAtOnce(t *testing.T) {
	var ended atomic.Int64
	g := serve(t, gateway.Options{}, gateway.Service{OnClosed: func(*gateway.Conn) { ended.Add(1) }}, gateway.Routes{codeEcho: {Handle: echo}})
	var wg sync.WaitGroup
	const clients, each = 32, 200
	for range clients {
		p := dial(t, g)
		wg.Go(func() {
			for i := range each {
				p.send(request(codeEcho, int32(i)))
				require.Equal(t, int32(i), p.read().Opaque)
			}
			_ = p.sock.Close()
		})
	}
	wg.Wait()
	for ended.Load() < clients {
		<-time.After(time.Millisecond)
	}
	require.Equal(t, int64(clients), ended.Load())
}

func TestOptions(t *testing.T) {
	require.NoError(t, gateway.Options{}.Defaults().Validate())
	bad := gateway.Options{MaxConnections: -1, MaxLargeBytes: 1}.Defaults()
	err := bad.Validate()
	require.ErrorIs(t, err, gateway.ErrOptions)
	require.ErrorContains(t, err, "MaxConnections is -1")
	require.ErrorContains(t, err, "MaxLargeBytes is 1")
}
