package messages

// PutGroup carries several puts of one source to the writer in one message: what a connection has parsed of pipelined
// requests, a follower's records. Each put has a result of its own; one completion serves them all: Lead. The group is
// pooled by its sender under the rules of PutMessage.
type PutGroup struct {
	link Link

	Puts []*PutMessage
	Next int         // the writer's progress: puts below it are done
	Lead *PutMessage // completed when every put of the group is; it carries no records, its result is the last put's
}

// NewPutGroup returns an empty group with its Lead.
func NewPutGroup() *PutGroup {
	g := &PutGroup{Lead: NewPutMessage()}
	g.link.Bind(g)
	return g
}

// MailboxLink returns the link by which a mailbox chains the group.
func (g *PutGroup) MailboxLink() *Link { return &g.link }

// Add puts one more message into the group. Its result is valid once Lead is complete; nothing waits for it on its own.
func (g *PutGroup) Add(p *PutMessage) { g.Puts = append(g.Puts, p) }

// Reset makes a completed group ready for the next use; the puts are not touched.
func (g *PutGroup) Reset() {
	clear(g.Puts)
	g.Puts, g.Next = g.Puts[:0], 0
	g.Lead.Reset()
}

// Refuse completes a group that nothing was done for.
func (g *PutGroup) Refuse(cause error) {
	for _, p := range g.Puts[g.Next:] {
		p.Result.Status, p.Err = ServiceNotAvailable, cause
	}
	g.Lead.Refuse(cause)
}
