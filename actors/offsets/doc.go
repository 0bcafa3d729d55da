// Package offsets is the offset keeper: how far each consumer group has consumed each queue, and config/consumerOffset.json
// (spec/store.md §13, spec/remoting.md §11.1).
//
//	CommitOffset                one-way and cheap; goes back too, which is counted and logged
//	QueryOffset                 behind the commits of the same sender
//	MergeOffsets                from the master of a slave
//	CloneOffsets, RemoveOffsets, SaveOffsets   answered when they are durable
//	ExpectReset                 an operator resets a group: lower commits are meant
//
// What is published is a table of (topic, group) that never changes. Each entry points to the list of its queues, which never
// changes either but is replaced by the actor when there is one more, with one cell for each queue that only the actor writes.
// So a commit of a known queue is one atomic store, and readers (Lookup, statistics, the save itself) take no hop.
//
// The mailbox is an inline one: a commit that finds the actor idle is done when Post returns. Nothing in the actor blocks. A
// save runs on a goroutine of its own, one at a time, an interval after the first change; so a power cut costs one interval
// of progress at most, and an idle broker has no timer:
//
//	clean ──change──► dirty ──interval──► saving ──► clean, or dirty again (it failed, or there were changes meanwhile)
//
// A file that can't be read does not stop the start: it is put aside, and reported (LoadErr).
package offsets
