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
)

// sender sends the log to one replica. Its writes block its own mailbox only.
type sender struct {
	cfg   ReplicatorConfig
	r     *replica
	sock  *socket.Socket // its connection
	owner actors.Peer
	acked *actors.Bell
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
}

// What a sender is told.
type (
	begin       struct{}
	firstReport struct{ at messages.PhysicalOffset }
	heartbeat   struct{}
	goOn        struct{}
)

func newSender(cfg ReplicatorConfig, r *replica, owner actors.Peer, acked *actors.Bell, confirmed func() messages.PhysicalOffset) *sender {
	return &sender{cfg: cfg, r: r, sock: socket.Of(r.conn), owner: owner, acked: acked, confirmed: confirmed, cut: cutter{limit: min(cfg.BatchBytes, wholeBytes)},
		decided: make(chan struct{})}
}

// Receive implements actor.Actor.
func (s *sender) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		for next := m.Next(); next != nil; next = m.Next() {
			m.Handled()
			s.grown.Attend()
		}
		s.push()
	case *actor.Started:
		s.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case begin:
		go s.read()
	case firstReport:
		s.begin(m.at)
	case goOn:
		s.push()
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
		s.acked.Ring()
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
	s.push()
}

// end gives the connection up.
func (s *sender) end(err error) {
	s.started = false
	s.owner.Send(ended{id: s.r.id, err: err}) // first: the reader will only say that the connection was closed
	_ = s.r.conn.Close()
}

// push sends until there is nothing left, and lets other messages in between.
func (s *sender) push() {
	for range writesPerTurn {
		if !s.started || s.next >= s.cfg.Log.End() {
			return
		}
		if err := s.burst(); err != nil {
			s.end(err)
			return
		}
	}
	s.self.Send(goOn{})
}

// burst sends some frames of one segment in one write.
func (s *sender) burst() error {
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
	return s.write(2 * frames)
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

// write sends n buffers, behind the first, and before them in a group what is confirmed.
func (s *sender) write(n int) error {
	s.out = s.bufs[1 : 1+n]
	if s.cfg.Group != nil {
		putConfirmed(s.told[:], s.confirmed())
		s.bufs[0] = s.told[:]
		s.out = s.bufs[:1+n]
	}
	s.wrote = time.Now()
	if err := s.r.conn.SetWriteDeadline(s.wrote.Add(s.cfg.Housekeeping)); err != nil {
		return err
	}
	if _, err := s.sock.Write(&s.out); err != nil {
		return fmt.Errorf("send to a slave: %w", err)
	}
	return nil
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
	if err := s.write(1); err != nil {
		s.end(err)
		return
	}
	s.armHeartbeat(s.cfg.Heartbeat)
}

func (s *sender) armHeartbeat(d time.Duration) { s.beat = s.self.After(d, heartbeat{}) }
