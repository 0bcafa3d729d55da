// Package groups is the group keeper: it owns the configurations of subscription groups and config/subscriptionGroup.json
// (spec/store.md §13, spec/remoting.md §15.4).
//
//	EnsureGroup                 a group's first use: a heartbeat, a pull, a send-back
//	UpdateGroup, DeleteGroup    tools
//	ReplaceGroups               what a master says
//
// The requests that wait in the mailbox are handled as one change:
//
//	draft ← requests → save (durable) → publish → answer
//
// When the save fails, the draft is dropped, nothing is published and each of them is answered with the cause. So what is
// answered survives a power cut, and many groups made at once cost one write.
//
// The actor runs on a goroutine of its own, which waits for the disk. Readers look groups up in the published table, which
// never changes, without a hop and without a lock. Who is online is not its business: that is package clients.
package groups
