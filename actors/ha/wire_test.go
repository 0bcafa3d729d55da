package ha_test

import (
	"encoding/hex"
	"errors"
	"fmt"
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
	"github.com/actormq/actormq/actors/ha"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/memfs"
)

// vectors is the log of spec/store.md §17.13: segments of 512 bytes; records of 162 bytes at 0, 162, 324 | 512, 674; its end is 836.
func vectors(t *testing.T) *commitlog.Log {
	t.Helper()
	disk := memfs.New()
	require.NoError(t, disk.MkdirAll("log"))
	l, _, err := commitlog.Open(disk, "log", 512)
	require.NoError(t, err)
	for i, n := range []int{3, 2} {
		start := int64(512 * i)
		s, err := segments.Create(disk, path.Join("log", segments.Name(start)), start, 512)
		require.NoError(t, err)
		at := int64(0)
		for range n {
			b, err := record.Append(nil, &messages.Message{Topic: "TopicTest", Body: make([]byte, 162-record.MinBytes-9)})
			require.NoError(t, err)
			require.Len(t, b, 162)
			record.SetPlace(b, 0, messages.PhysicalOffset(start+at), 1)
			at += int64(copy(s.Data()[at:], b))
		}
		if start == 0 {
			record.AppendBlank(s.Data()[at:at], int32(512-at))
			at = 512
		}
		s.SetWrote(at)
		require.NoError(t, s.DataSync())
		s.Retire(nil)
	}
	require.NoError(t, l.Close())
	l, _, err = commitlog.Open(disk, "log", 512)
	require.NoError(t, err)
	require.Empty(t, l.CutTo(836, 1))
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// serve starts a replicator for a log.
func serve(t *testing.T, l *commitlog.Log) *ha.Replicator {
	t.Helper()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}), actor.WithDeadLetterThrottleInterval(time.Millisecond))
	port := mailbox.New(mailbox.Options{})
	r, err := ha.NewReplicator(ha.ReplicatorConfig{
		Log: l, Listen: "127.0.0.1:0", Grown: &actors.Bell{}, Heartbeat: 50 * time.Millisecond, Housekeeping: time.Minute,
		BatchBytes: 32 << 10, FallbehindMax: 1 << 20, Timeout: time.Second, Logger: zerolog.Nop(),
	}, port)
	require.NoError(t, err)
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return r }, actor.WithMailbox(port.Producer())))
	t.Cleanup(func() {
		require.NoError(t, system.Root.StopFuture(pid).Wait())
		system.Shutdown()
	})
	return r
}

func TestTheFramesOfTheSpecification(t *testing.T) { // spec/store.md §17.13
	l := vectors(t)
	r := serve(t, l)
	body := func(from, to messages.PhysicalOffset) string {
		s, err := l.Read(from, int(to-from))
		require.NoError(t, err)
		defer s.Release()
		return hex.EncodeToString(s.Bytes)
	}
	for report, want := range map[string]string{
		"0000000000000000": "000000000000020000000144" + body(512, 836) + "000000000000034400000000",
		"00000000000000a2": "00000000000000a20000015e" + body(162, 512) + "000000000000020000000144" + body(512, 836) + "000000000000034400000000" +
			"000000000000034400000000",
	} {
		t.Run(report, func(t *testing.T) {
			c, err := net.Dial("tcp", r.Address())
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
			raw, err := hex.DecodeString(report)
			require.NoError(t, err)
			_, err = c.Write(raw)
			require.NoError(t, err)
			got := make([]byte, len(want)/2)
			_, err = io.ReadFull(c, got)
			require.NoError(t, err)
			require.Equal(t, want, hex.EncodeToString(got))
		})
	}
}

// many opens connections that send what is said, and waits for an answer where there is one to come.
func many(t *testing.T, r *ha.Replicator, n int, report []byte) []net.Conn {
	t.Helper()
	all := make([]net.Conn, n)
	for i := range all {
		c, err := net.Dial("tcp", r.Address())
		require.NoError(t, err, fmt.Sprint(i))
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = c.Write(report)
		require.NoError(t, err)
		if len(report) == 8 {
			_, err = io.ReadFull(c, make([]byte, 12))
			require.NoError(t, err)
		}
		all[i] = c
	}
	return all
}

func requireClosed(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	var slow net.Error
	require.False(t, errors.As(err, &slow) && slow.Timeout(), "it was closed")
}

func TestTooManySlavesAreClosed(t *testing.T) {
	r := serve(t, vectors(t))
	many(t, r, 64, make([]byte, 8))
	requireClosed(t, many(t, r, 1, nil)[0])
}

func TestSilentConnectionsKeepNoSlaveOut(t *testing.T) {
	r := serve(t, vectors(t))
	silent := many(t, r, 64, []byte("half"))
	many(t, r, 1, make([]byte, 8)) // is served
	requireClosed(t, silent[0])
}
