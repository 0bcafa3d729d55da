package messages

// InSync says which replicas must have a put before it is acknowledged, beside the leader itself. A node that joins counts like one that
// is in sync: from the moment on at which it may become the leader it has to have everything.
type InSync struct {
	Nodes   []string // in sync, by the record of the group
	Joining []string // about to be
	Min     int      // nodes in sync, the leader among them, below which nothing is acknowledged
}

// SetInSync changes that. The answer is the confirmed offset: what was acknowledged before lies below it. It comes once those that join
// have everything below it: under load they lack something at any instant until they count. The next SetInSync ends the wait.
//
// Sender: the elector of the group. Receiver: replicator. Bound: one at a time.
type SetInSync struct {
	InSync
	Answer *Answer[PhysicalOffset]
}

// Refuse answers with an error.
func (m SetInSync) Refuse(cause error) { m.Answer.Refuse(cause) }
