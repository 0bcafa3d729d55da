// Package keeper is what the keepers of configurations have in common (packages topics and groups): an actor that owns a table
// by name and the JSON file that holds it (spec/store.md §13), and the way to it.
//
// The requests that wait in the mailbox are handled as one change:
//
//	draft ← requests → save (durable) → publish → answer
//
// When the save fails, the draft is dropped, nothing is published and each of them is answered with the cause. So what is
// answered survives a power cut, and many changes at once cost one write.
//
// The actor runs on a goroutine of its own, which waits for the disk. Readers look entries up in the published table, which
// never changes, without a hop and without a lock; they see a change before it is answered.
package keeper
