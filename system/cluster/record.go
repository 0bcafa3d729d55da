package cluster

import (
	"cmp"
	"slices"

	"github.com/actormq/actormq/messages"
)

// Record is what etcd holds of the replica group.
type Record struct {
	Group  string   `json:"group"` // identity, made with the record
	Epoch  int64    `json:"epoch"` // of the last election
	Leader string   `json:"leader"`
	InSync []string `json:"inSync"` // nodes that have everything acknowledged, the leader among them
}

// NodeState is what a node says of itself.
type NodeState struct {
	ID        string                  `json:"id"`
	Broker    string                  `json:"broker"`           // host:port
	Remote    string                  `json:"remote,omitempty"` // host:port of its store endpoint; empty: it has none
	Base      string                  `json:"base,omitempty"`   // as its own configuration names it; empty: it is of an earlier version
	Role      string                  `json:"role"`
	Epoch     int64                   `json:"epoch"`            // the last one of which it has something
	End       messages.PhysicalOffset `json:"end"`              // of its log
	Confirmed messages.PhysicalOffset `json:"confirmed"`        // as far as it knows
	Yields    bool                    `json:"yields,omitempty"` // it is about to stop, or drains: another one is to lead
}

// view is what a member knows of etcd: one look at all keys.
type view struct {
	known  bool // there has been one
	record *Record
	rev    int64 // of the record's last change
	// leading is the epoch of the leader whose lease lives, 0 without.
	leading int64
	nodes   map[string]NodeState
	secret  kept  // of the group
	at      int64 // revision of the look
}

// leader is who leads, empty while nobody does.
func (v *view) leader() string {
	if v.record == nil || v.leading != v.record.Epoch {
		return ""
	}
	return v.record.Leader
}

// of tells whether the record is that of an election. One that somebody has taken away is of none.
func (v *view) of(r *Record) bool {
	return v.record != nil && v.record.Group == r.Group && v.record.Epoch == r.Epoch
}

// elected is the record with which a node takes over, or nil where it may not: only a node in sync may, and only while nobody leads. The
// leader before it is no longer in sync: it may have more than the new one.
func (v *view) elected(id string) *Record {
	if v.record == nil || v.leading != 0 || !slices.Contains(v.record.InSync, id) {
		return nil
	}
	next := *v.record
	next.Epoch, next.Leader = v.record.Epoch+1, id
	next.InSync = slices.DeleteFunc(slices.Clone(v.record.InSync), func(n string) bool { return n == v.record.Leader && n != id })
	return &next
}

// founder is the node that makes a group that is not there yet: the one with the most, once all are there. Then what one of them has is
// the group's.
func (v *view) founder(all []Node) string {
	if v.record != nil || len(v.nodes) < len(all) {
		return ""
	}
	best := NodeState{End: -1}
	for _, n := range all {
		s, there := v.nodes[n.ID]
		if !there {
			return ""
		}
		if cmp.Or(cmp.Compare(s.Epoch, best.Epoch), cmp.Compare(s.End, best.End)) > 0 {
			best = s
		}
	}
	return best.ID
}

// with is the record with a node more in sync.
func (r *Record) with(id string) *Record {
	next := *r
	next.InSync = append(slices.Clone(r.InSync), id)
	return &next
}

// without is the record with these nodes no longer in sync.
func (r *Record) without(ids []string) *Record {
	next := *r
	next.InSync = slices.DeleteFunc(slices.Clone(r.InSync), func(n string) bool { return slices.Contains(ids, n) })
	return &next
}

// others are the nodes in sync beside one.
func (r *Record) others(id string) []string {
	return slices.DeleteFunc(slices.Clone(r.InSync), func(n string) bool { return n == id })
}
