package cluster

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/epochs"
)

// A connection to a replication port of the cluster begins with a greeting of the follower and one of the leader: a magic number, the
// length of what follows, and JSON. Then it goes on as RocketMQ's protocol does.
const (
	greetMagic   = 0x414d5147 // AMQG
	greetVersion = 1
	maxGreeting  = 256 << 10
	greetTimeout = 5 * time.Second
)

var (
	// ErrGreeting: what came is no greeting of a node of this cluster.
	ErrGreeting = errors.New("not a greeting of a node of this cluster")
	// ErrDeposed: the leader's epoch is over; nothing is taken from it, and nothing acknowledged to it.
	ErrDeposed = errors.New("the leader's epoch is over")
	// ErrDiverged: the replica's log is not a part of the leader's; it is cut before it follows.
	ErrDiverged = errors.New("the replica's log goes on otherwise than the leader's")
)

// hello is what a follower says.
type hello struct {
	Version int    `json:"version"`
	Cluster string `json:"cluster"`
	Group   string `json:"group"`
	Node    string `json:"node"`
	Epoch   int64  `json:"epoch"` // the highest of which it knows
}

// welcome is what a leader says.
type welcome struct {
	Refused string                  `json:"refused,omitempty"` // why
	Epoch   int64                   `json:"epoch"`
	History epochs.History          `json:"history"`
	First   messages.PhysicalOffset `json:"first"` // of its log; -1: it is empty
	End     messages.PhysicalOffset `json:"end"`
}

func writeGreeting(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	b := binary.BigEndian.AppendUint32(nil, greetMagic)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	if _, err := w.Write(append(b, body...)); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	return nil
}

func readGreeting(r io.Reader, v any) error {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	n := binary.BigEndian.Uint32(head[4:])
	if binary.BigEndian.Uint32(head[:]) != greetMagic || n > maxGreeting {
		return fmt.Errorf("%w: it begins with %x", ErrGreeting, head)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	return nil
}

// greeted runs one side of a greeting within its time.
func greeted(conn net.Conn, what func() error) error {
	if err := conn.SetDeadline(time.Now().Add(greetTimeout)); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	if err := what(); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	return nil
}

// greetFollower is the leader's side.
func (t *term) greetFollower(conn net.Conn) (node string, err error) {
	err = greeted(conn, func() error {
		var h hello
		if err := readGreeting(conn, &h); err != nil {
			return err
		}
		w, err := t.welcome(h)
		if err != nil {
			w.Refused = err.Error()
		}
		node = h.Node
		return errors.Join(err, writeGreeting(conn, w))
	})
	return node, err
}

func (t *term) welcome(h hello) (welcome, error) {
	begun, history := t.begun.Load(), t.history()
	switch {
	case h.Version != greetVersion || h.Cluster != t.cfg.Name || t.cfg.node(h.Node).ID == "" || h.Node == t.cfg.ID:
		return welcome{}, fmt.Errorf("%w: version %d, node %.40q of cluster %.40q", ErrGreeting, h.Version, h.Node, h.Cluster)
	case begun == nil:
		return welcome{}, fmt.Errorf("%w: this one is just beginning", ErrDeposed)
	case h.Group != history.Group:
		return welcome{}, fmt.Errorf("%w: it is of group %.40q", ErrGreeting, h.Group)
	case h.Epoch > t.epoch || t.fenced():
		return welcome{}, fmt.Errorf("%w: %d, node %s knows %d", ErrDeposed, t.epoch, h.Node, h.Epoch)
	}
	first, end := begun.store.LogRange()
	return welcome{Epoch: t.epoch, History: history, First: first, End: end}, nil
}

// greetLeader is the follower's side. When it returns nil the replica's log is a part of the leader's, and its history says so.
func (t *term) greetLeader(conn net.Conn) error {
	seat := t.seat.Load()
	begun := t.begun.Load()
	if seat == nil || begun == nil {
		return fmt.Errorf("%w: nobody leads", ErrDeposed)
	}
	var w welcome
	err := greeted(conn, func() error {
		err := writeGreeting(conn, hello{
			Version: greetVersion, Cluster: t.cfg.Name, Group: seat.group, Node: t.cfg.ID, Epoch: seat.epoch,
		})
		if err != nil {
			return err
		}
		return readGreeting(conn, &w)
	})
	switch {
	case err != nil:
		return err
	case w.Refused != "":
		return fmt.Errorf("%w: %.200s", ErrDeposed, w.Refused)
	case w.Epoch < seat.epoch:
		return fmt.Errorf("%w: %d, this node knows %d", ErrDeposed, w.Epoch, seat.epoch)
	case w.History.Group != seat.group || w.History.Validate() != nil || w.History.Last() != w.Epoch:
		return fmt.Errorf("%w: its history is of group %.40q", ErrGreeting, w.History.Group)
	}
	return t.reconcile(begun, w)
}

// reconcile compares the replica's log with the leader's.
func (t *term) reconcile(begun *begun, w welcome) error {
	first, end := begun.store.LogRange()
	mine := t.history()
	if first >= 0 && end > 0 {
		common, ok := epochs.Common(mine, end, w.History, w.End)
		if !ok || common < w.First || common < first {
			common = 0 // all of it
		}
		if common < end {
			t.diverged(common)
			return fmt.Errorf("%w: it ends at %d, they have the same below %d", ErrDiverged, end, common)
		}
	}
	return t.adopt(w.History)
}
