package system_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// master are small options of a store that serves slaves.
func master(disk vfs.Disk, role messages.BrokerRole) system.Options {
	opt := small(disk)
	opt.Role, opt.HAListen = role, "127.0.0.1:0"
	opt.HAHeartbeat, opt.HAHousekeeping = 50*time.Millisecond, 500*time.Millisecond
	return opt
}

// slaveOf are small options of a store that follows the one at an address.
func slaveOf(disk vfs.Disk, addr string) system.Options {
	opt := small(disk)
	opt.Role, opt.HAMaster = messages.Slave, addr
	opt.HAHeartbeat, opt.HAHousekeeping = 50*time.Millisecond, 500*time.Millisecond
	return opt
}

// until waits for a state that others bring about, and looks again whenever they may have.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	require.Eventually(t, reached, 20*time.Second, 5*time.Millisecond, what)
}

// follows waits until a slave follows.
func follows(t *testing.T, m *system.Store) {
	t.Helper()
	until(t, "a slave follows", func() bool { return len(m.Replicas()) == 1 })
}

// caughtUp waits until a slave has the master's log, and both have built it.
func caughtUp(t *testing.T, m, s *system.Store) {
	t.Helper()
	end := m.Status().WrittenTo
	until(t, fmt.Sprintf("the slave has everything below %d", end), func() bool {
		return m.Status().DispatchedTo >= end && s.Status().DispatchedTo >= end
	})
}

// sameLog compares the commit logs of two directories that nobody has open, file by file, from the slave's first one on.
func sameLog(t *testing.T, m, s vfs.Disk) {
	t.Helper()
	theirs, err := s.List("store/commitlog")
	require.NoError(t, err)
	require.NotEmpty(t, theirs)
	for _, e := range theirs {
		name := path.Join("store/commitlog", e.Name)
		require.Equal(t, fixture.ReadFile(t, m, name), fixture.ReadFile(t, s, name), name)
	}
	ours, err := m.List("store/commitlog")
	require.NoError(t, err)
	require.Equal(t, ours[len(ours)-1].Name, theirs[len(theirs)-1].Name)
}

func putMany(t *testing.T, s *system.Store, from, to, bytes int) {
	t.Helper()
	for i := from; i < to; i++ {
		m := message("T", int32(i%2), fmt.Sprintf("%06d%0*d", i, bytes, 0))
		r, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, messages.PutOK, r.Status, "put %d", i)
	}
}

func TestASlaveHasItsMastersBytes(t *testing.T) {
	for _, flush := range []system.FlushDiskType{system.AsyncFlush, system.SyncFlush} {
		t.Run(flush.String(), func(t *testing.T) {
			md, sd := memfs.New(), memfs.New()
			m := open(t, master(md, messages.AsyncMaster))
			opt := slaveOf(sd, m.HAAddress())
			opt.FlushDiskType = flush
			s := open(t, opt)
			follows(t, m)
			putMany(t, m, 0, 200, 500) // four segments
			caughtUp(t, m, s)
			require.Len(t, read(t, s, messages.QueueKey{Topic: "T"}, 0, 100), 100)
			if flush == system.SyncFlush {
				until(t, "an acknowledgement means durable", func() bool {
					r := m.Replicas()
					return len(r) == 1 && r[0].Acked == m.Status().WrittenTo && s.Status().FlushedTo >= r[0].Acked
				})
			}
			_, err := s.Put(t.Context(), message("T", 0, "x"))
			require.ErrorIs(t, err, system.ErrSlave)
			require.True(t, s.Following().Connected)
			require.NoError(t, s.Close(t.Context()))
			require.NoError(t, m.Close(t.Context()))
			sameLog(t, md, sd)
		})
	}
}

func TestASlaveResumesAfterAStopAndAfterItsMastersStop(t *testing.T) {
	md, sd := memfs.New(), memfs.New()
	mopt := master(md, messages.AsyncMaster)
	m := open(t, mopt)
	mopt.HAListen = m.HAAddress()
	for round := range 3 {
		s := open(t, slaveOf(sd, m.HAAddress()))
		putMany(t, m, 100*round, 100*round+50, 400)
		caughtUp(t, m, s)
		require.NoError(t, m.Close(t.Context()))
		m = open(t, mopt)
		putMany(t, m, 100*round+50, 100*round+100, 400)
		caughtUp(t, m, s)
		require.NoError(t, s.Close(t.Context()))
	}
	require.NoError(t, m.Close(t.Context()))
	sameLog(t, md, sd)
}

func TestAnEmptySlaveCopiesTheLastSegmentOrEverything(t *testing.T) { // W12
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprint("full=", full), func(t *testing.T) {
			md, sd := memfs.New(), memfs.New()
			m := open(t, master(md, messages.AsyncMaster))
			putMany(t, m, 0, 150, 500)
			opt := slaveOf(sd, m.HAAddress())
			opt.HAFullCopy = full
			s := open(t, opt)
			caughtUp(t, m, s)
			lo, hi := int64(-1), int64(-1)
			s.EachQueue(func(_ messages.QueueKey, first, end messages.QueueOffset) { lo, hi = int64(first), int64(end) })
			require.EqualValues(t, 75, hi)
			require.Equal(t, full, lo == 0, "the first message is there: %d", lo)
			require.NoError(t, s.Close(t.Context()))
			require.NoError(t, m.Close(t.Context()))
			sameLog(t, md, sd)
			s = open(t, opt)
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

func TestAWaitingPutIsAnsweredWhenASlaveHasIt(t *testing.T) {
	for _, flush := range []system.FlushDiskType{system.AsyncFlush, system.SyncFlush} {
		t.Run(flush.String(), func(t *testing.T) {
			opt := master(memfs.New(), messages.SyncMaster)
			opt.FlushDiskType = flush
			m := open(t, opt)
			r, err := m.Put(t.Context(), message("T", 0, "alone"))
			require.NoError(t, err)
			require.Equal(t, messages.SlaveNotAvailable, r.Status)
			s := open(t, slaveOf(memfs.New(), m.HAAddress()))
			follows(t, m) // W10: at once, not after 5 s
			for i := range 300 {
				r, err := m.Put(t.Context(), message("T", 0, fmt.Sprint("with a slave ", i)))
				require.NoError(t, err)
				require.Equal(t, messages.PutOK, r.Status)
				require.GreaterOrEqual(t, s.Status().WrittenTo, r.End(), "acknowledged means replicated")
			}
			require.NoError(t, s.Close(t.Context()))
			until(t, "the slave has gone", func() bool { return len(m.Replicas()) == 0 })
			r, err = m.Put(t.Context(), message("T", 0, "alone again"))
			require.NoError(t, err)
			require.Equal(t, messages.SlaveNotAvailable, r.Status)
		})
	}
}

// fake is a connection to the replication port that does what it is told.
func fake(t *testing.T, m *system.Store, reports ...int64) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", m.HAAddress())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	send(t, c, reports...)
	return c
}

func send(t *testing.T, c net.Conn, reports ...int64) {
	t.Helper()
	for _, r := range reports {
		_, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(r)))
		require.NoError(t, err)
	}
}

func TestEachWaitingPutHasItsOwnDeadline(t *testing.T) { // W10, L65
	opt := master(memfs.New(), messages.SyncMaster)
	opt.HAHousekeeping, opt.SlaveTimeout = time.Minute, time.Minute
	m := open(t, opt)
	fake(t, m, 0) // a slave that takes everything and acknowledges nothing
	follows(t, m)
	statuses := make(chan string, 2)
	put := func(name string, deadline time.Time) {
		m.PutAsync(message("T", 0, name), true, deadline, func(r messages.PutResult, err error) {
			statuses <- fmt.Sprint(name, " ", r.Status, " ", err)
		})
	}
	put("long", time.Now().Add(time.Hour))
	put("short", time.Now().Add(20*time.Millisecond))
	require.Equal(t, "short FLUSH_SLAVE_TIMEOUT <nil>", <-statuses, "though it stands behind the other")
	require.Empty(t, statuses)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // half of it is for the slave
	defer cancel()
	require.NoError(t, m.Close(ctx), "a slave that hangs does not hold up a stop")
	require.Equal(t, "long FLUSH_SLAVE_TIMEOUT <nil>", <-statuses)
}

func TestWhatIsNoReportHasNoEffectOnAcknowledgements(t *testing.T) { // W8, L61
	m := open(t, master(memfs.New(), messages.SyncMaster))
	r, err := m.Put(t.Context(), message("T", 0, "first"))
	require.NoError(t, err)
	end := int64(r.End())
	for name, reports := range map[string][]int64{
		"far ahead":                      {0x7fffffffffffffff},
		"a byte ahead":                   {end + 1},
		"negative":                       {-1},
		"in the middle of a record":      {end - 7},
		"an acknowledgement far ahead":   {end, 0x7fffffffffffffff},
		"one of what was not sent":       {end, end + 100},
		"one that goes back":             {end, 0},
		"text":                           {0x474554202f204854, 0x54502f312e310d0a},
		"a first one ahead, then a good": {1_000_000, end},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake(t, m, reports...)
			_, err := io.Copy(io.Discard, c)
			require.NoError(t, ignoreReset(err), "the connection is closed")
			until(t, "it is gone", func() bool { return len(m.Replicas()) == 0 })
			r, err := m.Put(t.Context(), message("T", 0, "nobody has this"))
			require.NoError(t, err)
			require.Equal(t, messages.SlaveNotAvailable, r.Status)
			end = int64(r.End())
		})
	}
}

// ignoreReset takes a reset for an end: the peer has closed with something unread.
func ignoreReset(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && !op.Timeout() {
		return nil
	}
	return err
}

// Whoever may not follow is closed before it has said anything, and the log and a counter tell.
func TestOnlyHostsThatAreAllowedFollow(t *testing.T) {
	var said bytes.Buffer
	opt := master(memfs.New(), messages.AsyncMaster)
	opt.HAAllow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.2/32")}
	opt.Logger = zerolog.New(zerolog.SyncWriter(&said))
	m := open(t, opt)
	putMany(t, m, 0, 3, 100)
	from := func(host string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
		c, err := d.DialContext(t.Context(), "tcp", m.HAAddress())
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for range 2 {
		_, err := from("127.0.0.1").Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	slave := from("127.0.0.2")
	_, err := slave.Write(binary.BigEndian.AppendUint64(nil, 1)) // all of the log
	require.NoError(t, err)
	_, err = io.ReadFull(slave, make([]byte, 12))
	require.NoError(t, err)
	require.EqualValues(t, 2, m.ReplicasRefused())
	follows(t, m)
	require.NoError(t, m.Close(t.Context())) // the log is written
	require.Equal(t, 1, strings.Count(said.String(), "its host is none of haAllow"), said.String())

	for _, bad := range []netip.Prefix{{}, netip.MustParsePrefix("::ffff:10.1.0.0/112")} { // the second one would let nobody in
		opt.HAAllow = []netip.Prefix{bad}
		require.ErrorContains(t, opt.Defaults().Validate(), "HAAllow")
	}
}

func TestWhoMayNotFollowFillsNoLog(t *testing.T) {
	var said bytes.Buffer
	opt := master(memfs.New(), messages.AsyncMaster)
	opt.HAAllow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	opt.Logger = zerolog.New(zerolog.SyncWriter(&said))
	m := open(t, opt)
	const strangers = 200
	for i := range strangers {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i+1))}}
		c, err := d.DialContext(t.Context(), "tcp", m.HAAddress())
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, c.Close())
	}
	require.EqualValues(t, strangers, m.ReplicasRefused())
	require.NoError(t, m.Close(t.Context()))
	lines := strings.Count(said.String(), "its host is none of haAllow")
	require.Positive(t, lines)
	require.LessOrEqual(t, lines, 10)
}

func TestASlaveAheadOfItsMasterIsRefused(t *testing.T) { // L63
	md, sd := memfs.New(), memfs.New()
	m := open(t, master(md, messages.AsyncMaster))
	s := open(t, slaveOf(sd, m.HAAddress()))
	putMany(t, m, 0, 20, 300)
	caughtUp(t, m, s)
	before := s.Status().WrittenTo
	require.NoError(t, s.Close(t.Context()))
	other := open(t, master(memfs.New(), messages.AsyncMaster)) // has lost everything
	putMany(t, other, 0, 1, 10)
	s = open(t, slaveOf(sd, other.HAAddress()))
	until(t, "it is refused", func() bool { f := s.Following(); return !f.Connected && f.Err != nil })
	require.Empty(t, other.Replicas())
	require.Equal(t, before, s.Status().WrittenTo, "nothing is cut")
}

func TestASilentMasterIsGivenUp(t *testing.T) { // W11
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	s := open(t, slaveOf(memfs.New(), l.Addr().String()))
	for range 2 { // and tried again
		c, err := l.Accept()
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, c) // until the slave gives up
		require.NoError(t, ignoreReset(err))
		require.NoError(t, c.Close())
	}
	require.Error(t, s.Following().Err)
}

func TestASlaveTakesFramesThatCutRecordsAnywhere(t *testing.T) {
	md := memfs.New()
	m := open(t, small(md))
	putMany(t, m, 0, 20, 100)
	end := m.Status().WrittenTo
	require.NoError(t, m.Close(t.Context()))
	log := fixture.ReadFile(t, md, "store/commitlog/00000000000000000000")[:end]

	sd := memfs.New()
	s, c, report := scripted(t, slaveOf(sd, ""))
	require.Zero(t, report())
	whole := 0
	for at := 0; at < len(log)-3; {
		n := min(37, len(log)-3-at) // the last record lacks three bytes
		_, err := c.Write(frame(int64(at), log[at:at+n]))
		require.NoError(t, err)
		at += n
		for report() != int64(at) { // heartbeats in between
		}
	}
	for next := 0; next <= len(log)-3; next += int(record.TotalSize(log[next:])) {
		whole = next
	}
	until(t, "whole records are built", func() bool { return int(s.Status().DispatchedTo) == whole })
	require.Len(t, read(t, s, messages.QueueKey{Topic: "T"}, 0, 10), 10)
	require.NoError(t, s.Close(t.Context()), "a part of a record holds nothing up")
	require.NoError(t, c.Close())
	s = open(t, slaveOf(sd, ""))
	require.EqualValues(t, whole, s.Status().WrittenTo, "the part is asked for again")
}

func TestASlaveThatLosesItsPowerGetsTheRestAgain(t *testing.T) {
	for seed := range uint64(20) {
		md, sd := memfs.New(), memfs.New()
		m, err := system.Open(master(md, messages.AsyncMaster))
		require.NoError(t, err)
		s, err := system.Open(slaveOf(sd, m.HAAddress()))
		require.NoError(t, err)
		putMany(t, m, 0, 60+int(seed), 700)
		caughtUp(t, m, s)
		after := sd.Crash(seed)
		require.NoError(t, s.Close(t.Context()))
		s, err = system.Open(slaveOf(after, m.HAAddress()))
		require.NoError(t, err)
		putMany(t, m, 100, 140, 700)
		caughtUp(t, m, s)
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, m.Close(context.WithoutCancel(t.Context())))
		sameLog(t, md, after)
	}
}

func TestASlaveThatCannotAppendDoesNotCount(t *testing.T) { // W11, L64
	m := open(t, master(memfs.New(), messages.SyncMaster))
	sd := memfs.New()
	s := open(t, slaveOf(sd, m.HAAddress()))
	follows(t, m)
	putMany(t, m, 0, 10, 100)
	sd.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindAllocate {
			return fmt.Errorf("%s: %w", op.Name, vfs.ErrNoSpace)
		}
		return nil
	})
	got := map[messages.PutStatus]int{}
	for i := 0; got[messages.SlaveNotAvailable] == 0; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		r, err := m.Put(ctx, message("T", 0, fmt.Sprintf("%d%0*d", i, 3000, 0)))
		cancel()
		if err != nil { // a machine that is busy for so long
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		got[r.Status]++
	}
	require.Error(t, s.Following().Err)
	sd.Inject(nil)
	until(t, "it catches up by itself", func() bool { return s.Status().WrittenTo == m.Status().WrittenTo })
}

func TestASlaveFarBehindDoesNotCount(t *testing.T) {
	opt := master(memfs.New(), messages.SyncMaster)
	opt.HAFallbehind, opt.HAHousekeeping, opt.SlaveTimeout = 1000, time.Minute, time.Minute
	m := open(t, opt)
	c := fake(t, m, 0)
	follows(t, m)
	answered := make(chan messages.PutStatus, 3)
	for _, n := range []int{500, 600, 10} {
		m.PutAsync(message("T", 0, fmt.Sprintf("%0*d", n, 0)), true, time.Time{}, func(r messages.PutResult, _ error) { answered <- r.Status })
	}
	require.Equal(t, messages.SlaveNotAvailable, <-answered, "the second and the third do not wait")
	require.Equal(t, messages.SlaveNotAvailable, <-answered)
	end := int64(m.Status().WrittenTo)
	for at := int64(0); at < end; {
		var header [12]byte
		_, err := io.ReadFull(c, header[:])
		require.NoError(t, err)
		n := int64(binary.BigEndian.Uint32(header[8:]))
		_, err = io.CopyN(io.Discard, c, n)
		require.NoError(t, err)
		at = int64(binary.BigEndian.Uint64(header[:])) + n
	}
	send(t, c, end)
	require.Equal(t, messages.PutOK, <-answered)
}

// scripted is a master that a test writes the frames of; report returns what the slave reports next.
func scripted(t *testing.T, opt system.Options) (s *system.Store, c net.Conn, report func() int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	opt.HAMaster = l.Addr().String()
	s = open(t, opt)
	c, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return s, c, func() int64 {
		var b [8]byte
		_, err := io.ReadFull(c, b[:])
		require.NoError(t, err)
		return int64(binary.BigEndian.Uint64(b[:]))
	}
}

func frame(at int64, b []byte) []byte {
	f := binary.BigEndian.AppendUint64(nil, uint64(at))
	return append(binary.BigEndian.AppendUint32(f, uint32(len(b))), b...)
}

func TestAnEmptySlaveBeginsWithItsMastersSegment(t *testing.T) { // spec/store.md §17.13, with larger segments
	opt := slaveOf(memfs.New(), "")
	s, c, report := scripted(t, opt)
	require.Zero(t, report(), "at once")
	b, err := record.Append(nil, &messages.Message{Topic: "TopicTest", Body: make([]byte, 162-record.MinBytes-9)})
	require.NoError(t, err)
	require.Len(t, b, 162)
	at := 5 * opt.SegmentBytes
	record.SetPlace(b, 3, messages.PhysicalOffset(at), 1)
	_, err = c.Write(frame(at, b))
	require.NoError(t, err)
	for got := int64(0); got != at+162; got = report() {
		require.Zero(t, got)
	}
	q := messages.QueueKey{Topic: "TopicTest"}
	until(t, "it is built", func() bool { return s.MaxOffset(q) == 4 })
	require.EqualValues(t, 3, s.MinOffset(q))
}

func TestWhatDoesNotFollowIsNotAppended(t *testing.T) { // W11
	opt := slaveOf(memfs.New(), "")
	for name, bytes := range map[string][]byte{
		"elsewhere":           frame(4096, []byte("abc")),
		"over a segment":      frame(0, make([]byte, opt.SegmentBytes+1)),
		"too long":            frame(0, nil)[:8:8],
		"a negative offset":   frame(-1, nil),
		"a heartbeat ahead":   append(frame(0, []byte("abc")), frame(100, nil)...),
		"a second one behind": append(frame(0, []byte("abc")), frame(1, []byte("bcd"))...),
	} {
		if name == "too long" {
			bytes = append(bytes, 0x7f, 0xff, 0xff, 0xff)
		}
		t.Run(name, func(t *testing.T) {
			opt := opt
			opt.Disk = memfs.New()
			s, c, report := scripted(t, opt)
			require.Zero(t, report())
			_, err := c.Write(bytes)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, c)
			require.NoError(t, ignoreReset(err), "the connection is closed")
			until(t, "it is told", func() bool { return s.Following().Err != nil })
			require.LessOrEqual(t, int64(s.Status().WrittenTo), int64(3))
		})
	}
}

func TestTheCheckpointOfASlaveMovesOn(t *testing.T) { // L38
	sd := memfs.New()
	m := open(t, master(memfs.New(), messages.AsyncMaster))
	opt := slaveOf(sd, m.HAAddress())
	opt.FlushThorough, opt.FlushInterval, opt.QueueFlushThorough, opt.QueueFlushInterval = 10*time.Millisecond, 5*time.Millisecond,
		10*time.Millisecond, 5*time.Millisecond
	open(t, opt)
	follows(t, m)
	putMany(t, m, 0, 400, 500)
	r, err := m.Put(t.Context(), message("T", 0, "last"))
	require.NoError(t, err)
	until(t, "the checkpoint has the time of the master's last record", func() bool {
		v, err := checkpoint.Load(sd, "store/checkpoint")
		return err == nil && v.PhysicMs == r.StoreTimestampMs && v.LogicsMs == r.StoreTimestampMs
	})
}

func TestATopicThatIsMadeAgainHasTheSameOffsetsAtASlave(t *testing.T) { // L89
	m := open(t, master(memfs.New(), messages.AsyncMaster))
	s := open(t, slaveOf(memfs.New(), m.HAAddress()))
	follows(t, m)
	q := messages.QueueKey{Topic: "T"}
	for round := range 5 {
		putMany(t, m, 0, 20+round, 50)
		caughtUp(t, m, s)
		require.Equal(t, m.MinOffset(q), s.MinOffset(q))
		require.Equal(t, m.MaxOffset(q), s.MaxOffset(q))
		require.NoError(t, m.DeleteTopic(t.Context(), "T"))
	}
}

func TestASlaveThatIsStartedAsAMasterGoesOn(t *testing.T) {
	sd := memfs.New()
	m := open(t, master(memfs.New(), messages.AsyncMaster))
	s := open(t, slaveOf(sd, m.HAAddress()))
	follows(t, m)
	putMany(t, m, 0, 50, 300)
	caughtUp(t, m, s)
	require.NoError(t, s.Close(t.Context()))
	s = open(t, master(sd, messages.AsyncMaster))
	putMany(t, s, 50, 60, 300)
	require.Len(t, read(t, s, messages.QueueKey{Topic: "T", QueueID: 1}, 0, 30), 30, "queue offsets go on")
	s2 := slaveOf(memfs.New(), s.HAAddress())
	s2.HAFullCopy = true
	caughtUp(t, s, open(t, s2))
}
