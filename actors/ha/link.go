package ha

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/socket"
	"github.com/actormq/actormq/messages"
)

var (
	// ErrDiverged: the master sends from another place than where the slave's log ends.
	ErrDiverged = errors.New("the master's log does not continue the slave's")
	// ErrSilent: the master has sent nothing for haHousekeepingInterval.
	ErrSilent = errors.New("the master is silent")
)

// link is one connection of a slave to its master. Its goroutine reads, has the writer append, and acknowledges.
type link struct {
	cfg    FollowerConfig
	owner  actors.Peer
	append *messages.AppendReplica
	conn   net.Conn
	sock   *socket.Socket    // conn, as this goroutine reads and writes it
	said   [reportBytes]byte // the last report
	parts  [1][]byte
	out    net.Buffers // backed by parts

	in       []byte // what has come and is not handled yet: in[from:]
	from     int
	heard    time.Time // when the master last sent something
	reported time.Time // when the last report was sent
	armed    bool      // reading has a deadline that has not passed
	answered bool
	stored   bool
	untold   bool        // bytes were appended, and nobody has been told
	told     time.Time   // when the last ones were, at once
	telling  atomic.Bool // they are going to be
}

// run follows the master until the connection, or the context, ends.
func (l *link) run(ctx context.Context) error {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", l.cfg.Master)
	if err != nil {
		return fmt.Errorf("connect to the master: %w", err)
	}
	conn = l.cfg.Group.dialled(conn, l.cfg.Master)
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	l.conn, l.sock = conn, socket.Of(conn)
	if l.cfg.Group != nil {
		if err := l.cfg.Group.GreetLeader(conn); err != nil {
			return fmt.Errorf("greet the leader: %w", err)
		}
	}
	defer l.ring() // whatever has been appended
	l.heard = time.Now()
	if err := l.acknowledge(); err != nil { // at once: until the master knows where to begin it sends nothing (§16, W10)
		return err
	}
	for {
		at, body, err := l.next()
		if err != nil {
			return err
		}
		if err := l.take(at, body); err != nil {
			return err
		}
	}
}

// end is where the log of this slave goes on, or what stands for it while it is empty.
func (l *link) end() messages.PhysicalOffset {
	switch {
	case l.cfg.Log.Min() >= 0:
		return l.cfg.Log.End()
	case l.cfg.FullCopy:
		return fullCopy
	}
	return 0
}

// take handles one frame.
func (l *link) take(at messages.PhysicalOffset, body []byte) error {
	empty := l.cfg.Log.Min() < 0
	if end := l.end(); at != end && !empty {
		return fmt.Errorf("%w: it sends from %d, the log ends at %d", ErrDiverged, at, end)
	}
	if empty && len(body) > 0 && at != l.cfg.Log.SegmentStart(at) && at != fullCopy {
		return fmt.Errorf("%w: it sends from %d, where no segment begins", ErrDiverged, at)
	}
	if !l.answered {
		l.answered = true
		l.owner.Send(answered{})
	}
	if len(body) > 0 {
		if err := l.store(at, body); err != nil {
			return err
		}
	}
	if l.complete() && time.Since(l.reported) < l.cfg.Heartbeat {
		return nil // one acknowledgement for all that has come
	}
	if len(body) > 0 || time.Since(l.reported) >= l.cfg.Heartbeat {
		return l.acknowledge()
	}
	return nil
}

// store has the writer append. What it can't append ends the connection: the master must not count on this slave (§16, W11).
func (l *link) store(at messages.PhysicalOffset, body []byte) error {
	m := l.append
	m.Done.Reset()
	m.At, m.Bytes = at, body
	if err := l.cfg.Writer.Post(m.MailboxLink()); err != nil {
		return fmt.Errorf("append %d bytes at %d: %w", len(body), at, err)
	}
	m.Done.Wait()
	if m.Done.Result.Status != messages.PutOK || m.Done.Err != nil {
		return fmt.Errorf("append %d bytes at %d: %v: %w", len(body), at, m.Done.Result.Status, m.Done.Err)
	}
	l.untold = true
	if !l.stored {
		l.stored = true
		l.owner.Send(progressed{})
	}
	return nil
}

// acknowledge reports where the log ends: with a Flusher when that is durable. A flush that takes too long is made up for by
// a later report.
func (l *link) acknowledge() error {
	end := l.end()
	if l.cfg.Log.Min() < 0 && !l.reported.IsZero() {
		end = 0 // what stands for an empty log is asked for once
	}
	if l.cfg.Flusher != nil && l.cfg.Log.Min() >= 0 {
		l.tell()
		p := messages.NewPutMessage()
		p.Result.PhysicalOffset = end
		if err := l.cfg.Flusher.Post(p.MailboxLink()); err != nil {
			return fmt.Errorf("flush up to %d: %w", end, err)
		}
		p.Wait()
		if p.Err != nil {
			return fmt.Errorf("flush up to %d: %w", end, p.Err)
		}
		if p.Result.Status != messages.PutOK && l.answered {
			return nil
		}
	}
	err := l.report(end)
	l.tell()
	return err
}

// tellEvery is how often those who follow a slave's log are told that it has grown: waking them for each acknowledgement was half of its
// CPU time. RocketMQ's slaves look as often.
const tellEvery = time.Millisecond

// tell tells those who follow the log what has been appended, at once if they have been let alone for a while.
func (l *link) tell() {
	if !l.untold {
		return
	}
	l.untold = false
	if now := time.Now(); now.Sub(l.told) >= tellEvery && !l.telling.Load() {
		l.told = now
		l.ring()
	} else if l.telling.CompareAndSwap(false, true) {
		time.AfterFunc(tellEvery, func() {
			l.telling.Store(false) // first: who comes now is told of again
			l.ring()
		})
	}
}

func (l *link) ring() {
	for _, bell := range l.cfg.Appended {
		bell.Ring()
	}
}

func (l *link) report(end messages.PhysicalOffset) error {
	binary.BigEndian.PutUint64(l.said[:], uint64(end))
	l.parts[0] = l.said[:]
	l.out = l.parts[:]
	l.reported = time.Now()
	err := l.sock.Offer(&l.out)
	if err == nil && len(l.out) > 0 {
		if err = l.conn.SetWriteDeadline(l.reported.Add(l.cfg.Housekeeping)); err == nil {
			_, err = l.sock.Write(&l.out)
			err = errors.Join(err, l.conn.SetWriteDeadline(time.Time{}))
		}
	}
	if err != nil {
		return fmt.Errorf("report to the master: %w", err)
	}
	return nil
}

// next waits for a whole frame. The body is valid until the next call.
func (l *link) next() (at messages.PhysicalOffset, body []byte, err error) {
	for !l.header() {
		if err := l.need(headerBytes); err != nil {
			return 0, nil, err
		}
	}
	at, n, err := parseHeader(l.in[l.from:])
	if err != nil {
		return 0, nil, err
	}
	if err := l.need(headerBytes + n); err != nil {
		return 0, nil, err
	}
	body = l.in[l.from+headerBytes : l.from+headerBytes+n]
	l.from += headerBytes + n
	return at, body, nil
}

// header tells whether the header of a frame has come. What a group's leader says is confirmed stands in front of it, and is handed on.
func (l *link) header() bool {
	for len(l.in)-l.from >= headerBytes {
		confirmed, ok := parseConfirmed(l.in[l.from:])
		if !ok || l.cfg.Group == nil {
			return true
		}
		l.cfg.Confirmed(confirmed)
		l.from += headerBytes
	}
	return false
}

// complete tells whether another frame with bytes is there already.
func (l *link) complete() bool {
	if !l.header() {
		return false
	}
	_, n, err := parseHeader(l.in[l.from:])
	return err == nil && n > 0 && len(l.in)-l.from >= headerBytes+n
}

// readBytes is how much is read at once: memory grows with what comes, not with what a header says.
const readBytes = 256 << 10

// need reads until n bytes are there. While nothing comes it goes on reporting, and notices a master that has gone.
func (l *link) need(n int) error {
	for len(l.in)-l.from < n {
		if l.from > 0 && cap(l.in)-len(l.in) < readBytes {
			l.in = append(l.in[:0], l.in[l.from:]...)
			l.from = 0
		}
		if cap(l.in)-len(l.in) < readBytes {
			l.in = append(make([]byte, 0, len(l.in)+max(len(l.in), 2*readBytes)), l.in...)
		}
		if !l.armed { // once a heartbeat, not for each read
			if err := l.conn.SetReadDeadline(time.Now().Add(l.cfg.Heartbeat)); err != nil {
				return err
			}
			l.armed = true
		}
		got, err := l.sock.Read(l.in[len(l.in):cap(l.in)])
		if got > 0 {
			l.in, l.heard = l.in[:len(l.in)+got], time.Now()
			continue
		}
		if slow := net.Error(nil); !errors.As(err, &slow) || !slow.Timeout() {
			return fmt.Errorf("read from the master: %w", err)
		}
		l.armed = false
		if silent := time.Since(l.heard); silent >= l.cfg.Housekeeping {
			return fmt.Errorf("%w for %v", ErrSilent, silent)
		}
		if l.answered { // before, a second report would be taken for an acknowledgement
			if err := l.acknowledge(); err != nil {
				return err
			}
		}
	}
	return nil
}
