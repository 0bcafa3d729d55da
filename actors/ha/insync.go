package ha

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"slices"
	"sync/atomic"

	"github.com/actormq/actormq/messages"
)

// Group makes a replicator that of a leader, and a follower that of a replica, of a replica group. Their port is not RocketMQ's: each
// connection begins with a greeting, and the leader tells what is confirmed.
type Group struct {
	// GreetFollower is called by a leader with each connection before anything else; it names the node, or says why it is refused.
	GreetFollower func(net.Conn) (node string, err error)
	// GreetLeader is called by a follower, likewise. An error ends the connection; it is tried again.
	GreetLeader func(net.Conn) error
	// TLS is for the connections of the nodes with each other, as server and as client; it is asked anew for each. Nil: none.
	TLS func() (server, client *tls.Config)
	// Fenced tells that a leader may not acknowledge any more: its lease may have passed on. Any goroutine calls it.
	Fenced func() bool
	// CutAt, above 0, is where a longer log is cut when the store opens.
	CutAt messages.PhysicalOffset
}

// A leader tells what is confirmed by a header of its own, without bytes: the offset is −1 − confirmed.

func putConfirmed(b []byte, confirmed messages.PhysicalOffset) { putHeader(b, -1-confirmed, 0) }

// parseConfirmed is false when the header is that of a frame.
func parseConfirmed(b []byte) (messages.PhysicalOffset, bool) {
	at, size := messages.PhysicalOffset(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint32(b[8:])
	return -1 - at, at < 0 && size == 0
}

// inSync is what a leader's replicator knows of its group.
type inSync struct {
	set       *messages.InSync    // nil: nothing is confirmed yet
	joining   *messages.SetInSync // to be answered once those that join have what lies below before
	before    int64
	acked     map[string]int64 // of nodes whose connections have ended
	confirmed atomic.Int64     // every node in sync has everything below; never goes back
}

// Confirmed is the offset below which every replica in sync has everything. Safe for any goroutine.
func (r *Replicator) Confirmed() messages.PhysicalOffset {
	return messages.PhysicalOffset(r.sync.confirmed.Load())
}

func (r *Replicator) setInSync(m messages.SetInSync) {
	if r.cfg.Group == nil || r.stopped {
		m.Refuse(messages.ErrClosed)
		return
	}
	r.refuseJoining()
	r.sync.set = &m.InSync
	r.settle(false)
	r.sync.joining, r.sync.before = &m, r.sync.confirmed.Load()
	r.joined()
}

// joined answers when those that join have everything that was acknowledged before they counted.
func (r *Replicator) joined() {
	m := r.sync.joining
	if m == nil || slices.ContainsFunc(m.Joining, func(node string) bool { return r.ackedBy(node) < r.sync.before }) {
		return
	}
	r.sync.joining = nil
	m.Answer.Complete(messages.PhysicalOffset(r.sync.before), nil)
}

// refuseJoining ends the wait for those that join.
func (r *Replicator) refuseJoining() {
	if m := r.sync.joining; m != nil {
		r.sync.joining = nil
		m.Refuse(messages.ErrClosed)
	}
}

// confirm looks how far the slowest node in sync is, and tells whether enough of them are.
func (r *Replicator) confirm() (enough bool) {
	set := r.sync.set
	if set == nil {
		return false
	}
	end := int64(r.cfg.Log.End())
	for _, nodes := range [][]string{set.Nodes, set.Joining} {
		for _, node := range nodes {
			end = min(end, r.ackedBy(node))
		}
	}
	if end > r.sync.confirmed.Load() {
		r.sync.confirmed.Store(end)
		r.cfg.Confirmed(messages.PhysicalOffset(end))
	}
	return 1+len(set.Nodes) >= set.Min && !r.cfg.Group.Fenced()
}

func (r *Replicator) ackedBy(node string) int64 {
	for _, x := range r.replicas {
		if x.reports && x.node == node {
			return x.acked.Load()
		}
	}
	return r.sync.acked[node]
}

// settled is the offset below which puts are acknowledged.
func (r *Replicator) settled() messages.PhysicalOffset {
	if r.cfg.Group == nil {
		if best := r.furthest(); best != r.best.Load() {
			r.best.Store(best)
		}
		return messages.PhysicalOffset(r.best.Load())
	}
	enough := r.confirm()
	r.joined()
	if !enough {
		return -1
	}
	return r.Confirmed()
}

// replaced ends older connections of a node that has come again.
func (r *Replicator) replaced(fresh *replica) {
	for _, x := range r.replicas {
		if x != fresh && x.reports && x.node == fresh.node {
			_ = x.conn.Close() // its reader tells of the end
			x.reports = false
		}
	}
}
