package ha

import (
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"path"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/memfs"
)

// masterRig is a replicator with a log of one segment, and a slave's connection to it.
type masterRig struct {
	t     *testing.T
	log   *commitlog.Log
	r     *Replicator
	grown *actors.Bell
	slave net.Conn
	first messages.PhysicalOffset // where it began to follow
	here  int                     // puts that went the way of one that is alone
}

func newMasterRig(t *testing.T) *masterRig {
	t.Helper()
	const segmentBytes = 32 << 20
	disk := memfs.New()
	require.NoError(t, disk.MkdirAll("log"))
	log, _, err := commitlog.Open(disk, "log", segmentBytes)
	require.NoError(t, err)
	s, err := segments.Create(disk, path.Join("log", segments.Name(0)), 0, segmentBytes)
	require.NoError(t, err)
	b, err := record.Append(nil, &messages.Message{Topic: "T", Body: make([]byte, 100)})
	require.NoError(t, err)
	first := messages.PhysicalOffset(copy(s.Data(), b))
	s.SetWrote(int64(first))
	require.NoError(t, s.DataSync())
	s.Retire(nil)
	require.NoError(t, log.Close())
	log, _, err = commitlog.Open(disk, "log", segmentBytes)
	require.NoError(t, err)
	require.Empty(t, log.CutTo(first, 1))

	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}), actor.WithDeadLetterThrottleInterval(time.Millisecond))
	m := &masterRig{t: t, log: log, grown: &actors.Bell{}, first: first}
	port := mailbox.New(mailbox.Options{})
	m.r, err = NewReplicator(ReplicatorConfig{
		Log: log, Listen: "127.0.0.1:0", Grown: m.grown, Heartbeat: time.Minute, Housekeeping: time.Minute,
		BatchBytes: 32 << 10, FallbehindMax: 1 << 30, Timeout: time.Minute, Logger: zerolog.Nop(),
	}, port)
	require.NoError(t, err)
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return m.r }, actor.WithMailbox(port.Producer())))
	*m.grown = *actors.NewBell(actors.NewPeer(system.Root, pid), messages.Announce(messages.LogGrown{}))
	m.slave, err = net.Dial("tcp", m.r.Address())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.slave.Close())
		require.NoError(t, system.Root.StopFuture(pid).Wait())
		system.Shutdown()
		require.NoError(t, log.Close())
	})
	require.NoError(t, m.slave.SetDeadline(time.Now().Add(30*time.Second)))
	m.acknowledge(first)
	require.Eventually(t, func() bool { return len(*m.r.list.Load()) == 1 }, 20*time.Second, time.Millisecond)
	return m
}

func (m *masterRig) acknowledge(at messages.PhysicalOffset) {
	_, err := m.slave.Write(binary.BigEndian.AppendUint64(nil, uint64(at)))
	require.NoError(m.t, err)
}

// put appends a record and hands it on, as the writer does.
func (m *masterRig) put(bytes int) *messages.PutMessage {
	b, err := record.Append(nil, &messages.Message{Topic: "T", Body: make([]byte, bytes)})
	require.NoError(m.t, err)
	at, seg := m.log.End(), m.log.View().Last()
	record.SetPlace(b, 0, at, 1)
	copy(seg.Data()[at:], b)
	m.log.Publish(seg, int64(at)+int64(len(b)), 1)
	p := messages.NewPutMessage()
	p.Result = messages.PutResult{PhysicalOffset: at, Bytes: int32(len(b)), Count: 1}
	if m.r.AwaitHere(p) {
		m.here++
		p.Fulfil()
		m.r.SendHere()
		return p
	}
	m.r.Await(p)
	p.Fulfil()
	m.grown.Ring()
	return p
}

// sent tells whether the sender has given everything to the socket within a moment: it blocks otherwise.
func (m *masterRig) sent() bool {
	for range 500 {
		if (*m.r.list.Load())[0].sent.Load() == int64(m.log.End()) {
			return true
		}
		<-time.After(time.Millisecond)
	}
	return false
}

// Nobody who puts waits for a slave that takes nothing, and nothing of what it did not take is lost, or comes twice.
func TestASlaveThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	m := newMasterRig(t)
	require.NoError(t, m.slave.(*net.TCPConn).SetReadBuffer(16<<10))
	var last *messages.PutMessage
	for i := range 400 { // 24 MB: more than the system takes for it
		bytes := 100
		if i >= 2*aloneAfter {
			bytes = 60 << 10
		}
		if last = m.put(bytes); !m.sent() {
			break
		}
		m.acknowledge(m.log.End()) // it has read nothing
		last.Wait()
		require.Equal(t, messages.PutOK, last.Result.Status)
	}
	require.Greater(t, m.here, aloneAfter)
	require.False(t, last.Done(), "the connection is full")
	end := m.put(100).Result.End()

	got, head := make([]byte, m.first, end), make([]byte, headerBytes)
	for len(got) < int(end) {
		_, err := io.ReadFull(m.slave, head)
		require.NoError(t, err)
		at, n, err := parseHeader(head)
		require.NoError(t, err)
		require.EqualValues(t, len(got), at)
		_, err = io.ReadFull(m.slave, got[len(got):len(got)+n])
		require.NoError(t, err)
		got = got[:len(got)+n]
	}
	require.True(t, m.sent())
	require.True(t, string(m.log.View().Last().Data()[m.first:end]) == string(got[m.first:]), "the slave has the log") //nolint:testifylint // 24 MB of difference help nobody
	m.acknowledge(end)
	last.Wait()
	require.Equal(t, messages.PutOK, last.Result.Status)
}

// Who is alone overtakes nobody: puts are answered in the order of the log, in whatever order they come to the replicator.
func TestPutsWaitInTheOrderOfTheLog(t *testing.T) {
	r := &Replicator{deadline: time.NewTimer(time.Hour), expires: time.Now()}
	for _, end := range []messages.PhysicalOffset{10, 20, 40, 30, 50, 15} {
		r.await(&messages.ReplicaWait{End: end, Deadline: time.Now()})
	}
	var ends []int
	for _, w := range r.waiting {
		ends = append(ends, int(w.End))
	}
	require.Equal(t, []int{10, 15, 20, 30, 40, 50}, ends)
}
