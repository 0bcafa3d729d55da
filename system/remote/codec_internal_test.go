package remote

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	library "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/actormq/actormq/system/remote/wire"
)

// frames are what a peer of ours sends, and what nobody should.
func frames(t testing.TB) [][]byte {
	t.Helper()
	batch := func(envelopes int) []byte {
		b := &library.MessageBatch{
			TypeNames: []string{string(wire.EnvelopeName)}, Targets: []*actor.PID{{Address: "127.0.0.1:1", Id: "open"}},
			Senders: []*actor.PID{{Address: "127.0.0.1:2", Id: "me"}},
		}
		for range envelopes {
			b.Envelopes = append(b.Envelopes, &library.MessageEnvelope{Sender: 1, MessageData: []byte("x")})
		}
		f, err := proto.Marshal(&library.RemoteMessage{MessageType: &library.RemoteMessage_MessageBatch{MessageBatch: b}})
		require.NoError(t, err)
		return f
	}
	header, err := proto.Marshal(&library.RemoteMessage{MessageType: &library.RemoteMessage_MessageBatch{MessageBatch: &library.MessageBatch{
		Envelopes: []*library.MessageEnvelope{{MessageHeader: &library.MessageHeader{HeaderData: map[string]string{"a": "b"}}}},
	}}})
	require.NoError(t, err)
	return [][]byte{batch(1), batch(batchMessages), batch(5000), header, {0xff}, {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, nil}
}

func TestElementsAreCountedBeforeTheyAreMade(t *testing.T) {
	for i, want := range []bool{true, true, false, false, false, false, true} {
		err := codec{}.Unmarshal(frames(t)[i], &library.RemoteMessage{})
		require.Equal(t, want, err == nil, "%d: %v", i, err)
	}
	_, err := codec{}.Marshal("no message")
	require.ErrorIs(t, err, errFrame)
	require.ErrorIs(t, codec{}.Unmarshal(nil, "no message"), errFrame)
}

func TestTheNamesOfTheWireStay(t *testing.T) {
	require.Equal(t, wire.EnvelopeName, (&wire.Envelope{}).ProtoReflect().Descriptor().FullName())
	fields := (&library.RemoteMessage{}).ProtoReflect().Descriptor().Fields()
	require.Equal(t, protoreflect.Name("message_batch"), fields.ByNumber(fieldBatch).Name())
	batch := fields.ByNumber(fieldBatch).Message().Fields()
	require.Equal(t, protoreflect.Name("envelopes"), batch.ByNumber(fieldParts).Name())
	require.Equal(t, protoreflect.Name("message_header"), batch.ByNumber(fieldParts).Message().Fields().ByNumber(fieldHeader).Name())
}

func FuzzFrame(f *testing.F) {
	for _, b := range frames(f) {
		f.Add(b)
	}
	self := "127.0.0.1:1"
	g := newGuard(Config{Open: []string{"open"}})
	g.self.Store(&self)
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &library.RemoteMessage{}
		if (codec{}).Unmarshal(b, m) != nil {
			return
		}
		w := &watched{guard: g, from: "127.0.0.1:2", gate: &gate{}}
		batch := m.GetMessageBatch()
		if batch == nil || w.batch(batch) != nil {
			return
		}
		// What passes is what the library can take.
		for _, e := range batch.GetEnvelopes() {
			require.Equal(t, string(wire.EnvelopeName), batch.GetTypeNames()[e.GetTypeId()])
			require.Equal(t, "open", batch.GetTargets()[e.GetTarget()].GetId())
			require.Equal(t, "127.0.0.1:2", batch.GetSenders()[e.GetSender()-1].GetAddress())
		}
	})
}
