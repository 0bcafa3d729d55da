package ha

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/actors/socket"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/vfs"
)

const (
	framesPerWrite = 8        // frames that go to the socket in one write
	writesPerTurn  = 16       // writes before other messages are looked at
	coldBytes      = 64 << 20 // what is further behind the log's end is read from the file
	bytesPerWrite  = 512 << 10
	quickBytes     = 64 << 10 // the most that is sent on the goroutine of a put
)

// sender sends the log to one replica. Its writes block its own mailbox only.
type sender struct {
	cfg   ReplicatorConfig
	r     *replica
	sock  *socket.Socket // its connection
	owner actors.Peer
	acked func() // tells the replicator of an acknowledgement
	self  actors.Peer
	grown *actors.Bell

	started   bool
	decide    sync.Once
	confirmed func() messages.PhysicalOffset

	decided chan struct{} // closed when the first report has been looked at, or nobody will look at it any more
	next    messages.PhysicalOffset
	cut     cutter
	wrote   time.Time
	beat    *time.Timer

	headers [framesPerWrite][headerBytes]byte
	bufs    [1 + 2*framesPerWrite][]byte // the first is for told
	out     net.Buffers                  // what of bufs is to be written
	told    [headerBytes]byte            // in a group: what is confirmed
	cold    []byte                       // what was read from the file
	left    []byte                       // what the replica did not take at once; goes first
	limited bool                         // writes have a deadline
}

// What a sender is told.
type (
	begin       struct{}
	firstReport struct{ at messages.PhysicalOffset }
	heartbeat   struct{}
	goOn        struct{}
	broken      struct{ err error }
	// grownAlone is LogGrown on a goroutine that must not block.
	grownAlone struct{}
)

func newSender(cfg ReplicatorConfig, r *replica, owner actors.Peer, acked func(), confirmed func() messages.PhysicalOffset) *sender {
	return &sender{cfg: cfg, r: r, sock: socket.Of(r.conn), owner: owner, acked: acked, confirmed: confirmed, cut: cutter{limit: min(cfg.BatchBytes, wholeBytes)},
		decided: make(chan struct{})}
}

// Receive implements actor.Actor.
func (s *sender) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		wait := true
		for next := m.Next(); next != nil; next = m.Next() {
			m.Handled()
			s.grown.Attend()
			if _, alone := next.(grownAlone); alone {
				wait = false
			}
		}
		s.push(wait)
	case *actor.Started:
		s.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case begin:
		go s.read()
	case firstReport:
		s.begin(m.at)
	case goOn:
		s.push(true)
	case broken:
		s.end(m.err)
	case heartbeat:
		s.heartbeat()
	case *actor.Stopping:
		s.started = false
		_ = s.r.conn.Close()
		s.decide.Do(func() { close(s.decided) })
		if s.beat != nil {
			s.beat.Stop()
		}
	}
}

// read takes the replica's reports until the connection ends. It is the connection's own goroutine.
func (s *sender) read() {
	err := actors.Protect("read reports", s.reports)
	_ = s.r.conn.Close()
	s.owner.Send(ended{id: s.r.id, err: err})
}

func (s *sender) reports() error {
	if s.cfg.Group != nil {
		node, err := s.cfg.Group.GreetFollower(s.r.conn)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrReport, err)
		}
		s.r.node = node
	}
	var b [reportBytes]byte
	due := time.Time{}
	for first := true; ; first = false {
		// Set now and then, not for each report: a replica is dropped when it is silent for so long, or an eighth more.
		if now := time.Now(); now.Add(s.cfg.Housekeeping).After(due) {
			due = now.Add(s.cfg.Housekeeping + s.cfg.Housekeeping/8)
			if err := s.r.conn.SetReadDeadline(due); err != nil {
				return err
			}
		}
		if _, err := io.ReadFull(s.sock, b[:]); err != nil {
			return fmt.Errorf("no report: %w", err)
		}
		at := messages.PhysicalOffset(binary.BigEndian.Uint64(b[:]))
		if first {
			s.self.Send(firstReport{at: at})
			<-s.decided
			continue
		}
		if err := s.acknowledge(int64(at)); err != nil {
			return err
		}
	}
}

// acknowledge takes a later report: a replica can't have what it was not sent (§16, W8).
func (s *sender) acknowledge(at int64) error {
	before, sent := s.r.acked.Load(), s.r.sent.Load()
	if at < before || at > sent {
		return fmt.Errorf("%w: it acknowledges %d, after %d, and was sent what lies below %d", ErrReport, at, before, sent)
	}
	if at > before {
		s.r.acked.Store(at)
		s.acked()
	}
	return nil
}

func (s *sender) begin(report messages.PhysicalOffset) {
	defer s.decide.Do(func() { close(s.decided) })
	from, err := startAt(s.cfg.Log, report)
	if err != nil {
		s.end(err)
		return
	}
	s.next, s.cut.inside, s.started = from.at, from.inside, true
	if report == from.at {
		s.r.acked.Store(int64(report))
	}
	s.r.sent.Store(int64(s.next))
	s.wrote = time.Now()
	s.armHeartbeat(s.cfg.Heartbeat)
	s.owner.Send(reported{id: s.r.id})
	s.push(true)
}

// end gives the connection up.
func (s *sender) end(err error) {
	s.started = false
	s.owner.Send(ended{id: s.r.id, err: err}) // first: the reader will only say that the connection was closed
	_ = s.r.conn.Close()
}

// push sends until there is nothing left, and lets other messages in between. Without waiting it sends what goes out in one write at once, and
// leaves the rest to a goroutine that may wait.
func (s *sender) push(wait bool) {
	for range writesPerTurn {
		if !s.started || len(s.left) == 0 && s.next >= s.cfg.Log.End() {
			return
		}
		if !wait && !s.quick() {
			break
		}
		if err := s.burst(wait); err != nil {
			s.started = false
			s.self.Send(broken{err}) // to end a connection may take a while
			return
		}
	}
	s.self.Send(goOn{})
}

// quick tells whether the rest of the log is small, in memory, and the replica takes what it is sent.
func (s *sender) quick() bool {
	return len(s.left) == 0 && s.cfg.Log.End()-s.next <= quickBytes
}

// burst sends some frames of one segment in one write.
func (s *sender) burst(wait bool) error {
	if len(s.left) > 0 {
		return s.write(0, true)
	}
	slice, err := s.cfg.Log.ReadFrom(s.next)
	if err != nil {
		return fmt.Errorf("send to a slave: %w", err)
	}
	defer slice.Release()
	b, rest, err := s.bytesOf(slice)
	if err != nil {
		return err
	}
	frames, sent := 0, 0
	err = vfs.Guard(slice.Path(), func() error {
		for frames < framesPerWrite && len(b) > 0 && (frames == 0 || sent < bytesPerWrite) {
			n := s.cut.frame(b, rest-sent)
			putHeader(s.headers[frames][:], s.next+messages.PhysicalOffset(sent), n)
			s.bufs[1+2*frames], s.bufs[2+2*frames] = s.headers[frames][:], b[:n]
			b, sent = b[n:], sent+n
			frames++
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.next += messages.PhysicalOffset(sent)
	s.r.sent.Store(int64(s.next)) // before it is sent: an acknowledgement may be quick
	return s.write(2*frames, wait)
}

// bytesOf is what a slice holds, up to the log's end, or a copy of its beginning from the file; rest is how much there is.
func (s *sender) bytesOf(slice commitlog.Slice) (b []byte, rest int, err error) {
	end := s.cfg.Log.End()
	b = slice.Bytes[:min(int64(len(slice.Bytes)), int64(end-s.next))]
	if end-s.next < coldBytes || len(b) < 2*wholeBytes {
		s.cold = nil
		return b, len(b), nil
	}
	if s.cold == nil {
		s.cold = make([]byte, 2*wholeBytes)
	}
	if _, err := slice.Holder().ReadAt(s.cold, slice.Offset()); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, fmt.Errorf("send to a slave: %w", err)
	}
	return s.cold, len(b), nil
}

// write sends n buffers, behind the first, and before them in a group what is confirmed. Without waiting what the replica does not take at
// once is left, and goes first in the next write.
func (s *sender) write(n int, wait bool) error {
	s.out = s.bufs[1 : 1+n]
	if s.cfg.Group != nil {
		putConfirmed(s.told[:], s.confirmed())
		s.bufs[0] = s.told[:]
		s.out = s.bufs[:1+n]
	}
	s.wrote = time.Now()
	if !wait && len(s.left) == 0 {
		return s.offer()
	}
	if err := s.r.conn.SetWriteDeadline(s.wrote.Add(s.cfg.Housekeeping)); err != nil {
		return err
	}
	s.limited = true
	if len(s.left) > 0 {
		rest := net.Buffers{s.left}
		if _, err := s.sock.Write(&rest); err != nil {
			return fmt.Errorf("send to a slave: %w", err)
		}
		s.left = nil
	}
	if _, err := s.sock.Write(&s.out); err != nil {
		return fmt.Errorf("send to a slave: %w", err)
	}
	return nil
}

// offer writes what the replica takes at once. The rest is copied: it lies in a segment that may be unmapped.
func (s *sender) offer() error {
	if s.limited { // a deadline that has passed would end this write too
		s.limited = false
		if err := s.r.conn.SetWriteDeadline(time.Time{}); err != nil {
			return err
		}
	}
	if err := s.sock.Offer(&s.out); err != nil {
		return fmt.Errorf("send to a slave: %w", err)
	}
	return vfs.Guard("send to a slave", func() error {
		for _, b := range s.out {
			s.left = append(s.left, b...)
		}
		return nil
	})
}

// heartbeat tells a replica that has been sent nothing for a while where the log goes on.
func (s *sender) heartbeat() {
	if !s.started {
		return
	}
	if left := s.cfg.Heartbeat - time.Since(s.wrote); left > 0 {
		s.armHeartbeat(left)
		return
	}
	putHeader(s.headers[0][:], s.next, 0)
	s.bufs[1] = s.headers[0][:]
	if err := s.write(1, true); err != nil {
		s.end(err)
		return
	}
	s.armHeartbeat(s.cfg.Heartbeat)
}

func (s *sender) armHeartbeat(d time.Duration) { s.beat = s.self.After(d, heartbeat{}) }
