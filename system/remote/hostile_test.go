package remote_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	library "github.com/asynkron/protoactor-go/remote"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/wire"
)

// open is a host with one actor that peers may send to, and one that they may not.
type open struct {
	*remote.Host
	took   chan *wire.Envelope // what the open actor was sent
	secret chan any            // what the other one was sent
	log    *lines
}

// lines are what a host has logged.
type lines struct{ all chan string }

func (l *lines) Write(b []byte) (int, error) {
	select {
	case l.all <- string(b):
	default:
	}
	return len(b), nil
}

func start(t *testing.T) *open {
	t.Helper()
	o := &open{took: make(chan *wire.Envelope, 100), secret: make(chan any, 100), log: &lines{make(chan string, 10_000)}}
	var err error
	o.Host, err = remote.Start(remote.Config{
		Listen: "127.0.0.1:0", Open: []string{"open"}, Logger: zerolog.New(o.log).Level(zerolog.WarnLevel),
	})
	require.NoError(t, err)
	t.Cleanup(o.Stop)
	root := o.System.Root
	_, err = root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		if m, ok := c.Message().(*wire.Envelope); ok {
			o.took <- m
			o.Handled(c.Sender().GetAddress(), 1, proto.Size(m))
		}
	}), "open")
	require.NoError(t, err)
	_, err = root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		if _, started := c.Message().(*actor.Started); !started {
			o.secret <- c.Message()
		}
	}), "secret")
	require.NoError(t, err)
	return o
}

// stream is a peer that says what it likes.
func (o *open) stream(t *testing.T) library.Remoting_ReceiveClient {
	t.Helper()
	conn, err := grpc.NewClient(o.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	s, err := library.NewRemotingClient(conn).Receive(ctx)
	require.NoError(t, err)
	return s
}

const own = "127.0.0.1:1" // where the peer says that it is

func introduction(address string) *library.RemoteMessage {
	return &library.RemoteMessage{MessageType: &library.RemoteMessage_ConnectRequest{ConnectRequest: &library.ConnectRequest{
		ConnectionType: &library.ConnectRequest_ServerConnection{ServerConnection: &library.ServerConnection{SystemId: "x", Address: address}},
	}}}
}

// batch is what a peer of ours sends, changed.
func (o *open) batch(t *testing.T, change func(*library.MessageBatch)) *library.RemoteMessage {
	t.Helper()
	data, err := proto.Marshal(&wire.Envelope{Version: 1, Kind: "good"})
	require.NoError(t, err)
	b := &library.MessageBatch{
		TypeNames: []string{string(wire.EnvelopeName)}, Targets: []*actor.PID{{Address: o.Address(), Id: "open"}},
		Senders: []*actor.PID{{Address: own, Id: "me"}}, Envelopes: []*library.MessageEnvelope{{MessageData: data, Sender: 1}},
	}
	if change != nil {
		change(b)
	}
	return &library.RemoteMessage{MessageType: &library.RemoteMessage_MessageBatch{MessageBatch: b}}
}

// ended waits for the end of a stream.
func ended(t *testing.T, s library.Remoting_ReceiveClient) error {
	t.Helper()
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
}

// good shows that a peer who keeps the rules is served.
func (o *open) good(t *testing.T) {
	t.Helper()
	s := o.stream(t)
	require.NoError(t, s.Send(introduction(own)))
	require.NoError(t, s.Send(o.batch(t, nil)))
	select {
	case m := <-o.took:
		require.Equal(t, "good", m.GetKind())
	case <-time.After(20 * time.Second):
		require.Fail(t, "nothing came")
	}
	require.NoError(t, s.CloseSend())
	require.ErrorIs(t, ended(t, s), io.EOF)
	require.Empty(t, o.secret)
}

// refused waits for the line that says so.
func (o *open) refused(t *testing.T) {
	t.Helper()
	for {
		select {
		case line := <-o.log.all:
			if strings.Contains(line, "refused") {
				return
			}
		case <-time.After(20 * time.Second):
			require.FailNow(t, "the log does not say that somebody was refused")
		}
	}
}

// Each of these ends the process of the library as it is, stops an actor, sends answers elsewhere, or is obeyed by somebody who should
// not.
func TestWhoBreaksTheRulesIsRefusedAndNobodyNotices(t *testing.T) {
	o := start(t)
	for name, change := range map[string]func(*library.MessageBatch){
		"an unknown type":        func(b *library.MessageBatch) { b.TypeNames[0] = "no.such.Type" },
		"a stop":                 func(b *library.MessageBatch) { b.TypeNames[0], b.Envelopes[0].MessageData = "actor.Stop", nil },
		"a poison pill":          func(b *library.MessageBatch) { b.TypeNames[0], b.Envelopes[0].MessageData = "actor.PoisonPill", nil },
		"a watch":                func(b *library.MessageBatch) { b.TypeNames[0] = "actor.Watch" },
		"an activation":          func(b *library.MessageBatch) { b.TypeNames[0], b.Targets[0].Id = "remote.ActorPidRequest", "activator" },
		"another actor":          func(b *library.MessageBatch) { b.Targets[0].Id = "secret" },
		"the activator":          func(b *library.MessageBatch) { b.Targets[0].Id = "activator" },
		"another host":           func(b *library.MessageBatch) { b.Targets[0].Address = "127.0.0.1:2" },
		"answers elsewhere":      func(b *library.MessageBatch) { b.Senders[0].Address = "127.0.0.1:2" },
		"a long name":            func(b *library.MessageBatch) { b.Senders[0].Id = strings.Repeat("x", 1000) },
		"no sender":              func(b *library.MessageBatch) { b.Envelopes[0].Sender = 0 },
		"a type beyond":          func(b *library.MessageBatch) { b.Envelopes[0].TypeId = 1 },
		"a type below":           func(b *library.MessageBatch) { b.Envelopes[0].TypeId = -1 },
		"a target beyond":        func(b *library.MessageBatch) { b.Envelopes[0].Target = 7 },
		"a sender beyond":        func(b *library.MessageBatch) { b.Envelopes[0].Sender = 2 },
		"a sender below":         func(b *library.MessageBatch) { b.Envelopes[0].Sender = -1 },
		"another serializer":     func(b *library.MessageBatch) { b.Envelopes[0].SerializerId = 1 },
		"a serializer beyond":    func(b *library.MessageBatch) { b.Envelopes[0].SerializerId = 9 },
		"a request of the other": func(b *library.MessageBatch) { b.Envelopes[0].TargetRequestId = 1 },
		"a header":               func(b *library.MessageBatch) { b.Envelopes[0].MessageHeader = &library.MessageHeader{} },
		"too many": func(b *library.MessageBatch) {
			b.Envelopes = make([]*library.MessageEnvelope, 5000)
			for i := range b.Envelopes {
				b.Envelopes[i] = &library.MessageEnvelope{}
			}
		},
	} {
		before := o.Refused()
		s := o.stream(t)
		require.NoError(t, s.Send(introduction(own)), name)
		require.NoError(t, s.Send(o.batch(t, change)), name)
		require.Contains(t, []codes.Code{codes.InvalidArgument, codes.Internal}, status.Code(ended(t, s)), name)
		require.Greater(t, o.Refused(), before, name)
		o.good(t)
	}
	for range 10 {
		o.refused(t)
	}
	require.Empty(t, o.log.all, "peers fill no disk with lines")
}

func TestPayloadsThatAreNoEnvelopeEndTheStreamOnly(t *testing.T) {
	o := start(t)
	s := o.stream(t)
	require.NoError(t, s.Send(introduction(own)))
	require.NoError(t, s.Send(o.batch(t, func(b *library.MessageBatch) { b.Envelopes[0].MessageData = []byte{0xff, 0xff, 0xff} })))
	require.Error(t, ended(t, s))
	o.good(t)
}

func TestAPeerMustSayWhereItIsBeforeItSpeaks(t *testing.T) {
	o := start(t)
	for name, say := range map[string][]*library.RemoteMessage{
		"nothing":         {o.batch(t, nil)},
		"another machine": {introduction("192.0.2.1:80")},
		"no address":      {introduction("nonsense")},
		"a name":          {introduction("localhost:1")},
		"twice":           {introduction(own), introduction(own)},
		"as a client": {{MessageType: &library.RemoteMessage_ConnectRequest{ConnectRequest: &library.ConnectRequest{
			ConnectionType: &library.ConnectRequest_ClientConnection{ClientConnection: &library.ClientConnection{SystemId: "x"}},
		}}}},
		"a farewell": {introduction(own), {MessageType: &library.RemoteMessage_DisconnectRequest{DisconnectRequest: &library.DisconnectRequest{}}}},
		"empty":      {{}},
	} {
		s := o.stream(t)
		for _, m := range say {
			require.NoError(t, s.Send(m), name)
		}
		require.Equal(t, codes.InvalidArgument, status.Code(ended(t, s)), name)
		o.refused(t)
	}
	o.good(t)
}

// The library panics in these.
func TestTheLibrarysOtherCallsAreNotServed(t *testing.T) {
	o := start(t)
	conn, err := grpc.NewClient(o.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = library.NewRemotingClient(conn).ListProcesses(t.Context(), &library.ListProcessesRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	o.refused(t)
	_, err = library.NewRemotingClient(conn).GetProcessDiagnostics(t.Context(), &library.GetProcessDiagnosticsRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	o.good(t)
}

func TestGarbageOnThePortIsRefusedAndLogged(t *testing.T) {
	o := start(t)
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for _, garbage := range []string{
		strings.Repeat("garbage ", 100), "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a hello of TLS, and more",
		preface + strings.Repeat("\xff", 1000), preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 100),
	} {
		before := o.Refused()
		conn, err := net.Dial("tcp", o.Address())
		require.NoError(t, err)
		_, err = io.WriteString(conn, garbage)
		require.NoError(t, err)
		_ = conn.(*net.TCPConn).CloseWrite() // the host may have closed it already
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
		_, _ = io.Copy(io.Discard, conn) // until the host closes it
		require.NoError(t, conn.Close())
		o.refused(t)
		require.Greater(t, o.Refused(), before)
	}
	o.good(t)
}

func TestWithoutCertificatesAHostListensOnLoopbackOnly(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "[::]:0", "nonsense", "example.org:1"} {
		_, err := remote.Start(remote.Config{Listen: listen})
		require.ErrorIs(t, err, remote.ErrConfig, listen)
	}
	o := start(t)
	_, err := remote.Start(remote.Config{Listen: o.Address()})
	require.Error(t, err, "the port is taken")
}
