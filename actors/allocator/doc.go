// Package allocator makes commit-log segments before they are needed: the next one and the one behind it, with real space
// reserved, and the pages of a bounded window ahead of the tail written with zeros and populated, so that the writer neither waits nor
// faults (spec/store.md §4.5). With SYNC_FLUSH the zeros go to the disk instead, so that syncs meet blocks that were written before. It may
// block on the disk; its mailbox runs on a goroutine of its own.
//
// A segment is made under its name in a folder beside the log, and renamed into the log's folder at full length: whatever
// happens, that folder holds whole segments only (spec/store.md §1.1).
//
//	SegmentWanted → SegmentReady | SegmentFailed (and another attempt after a pause)
//	WindowWanted  → WindowReady; at a middling rate a step a millisecond
//	SpaceFreed    what failed is tried again at once
//	BufferFree    a write buffer of the transient store pool is free again, and likewise
//
// A segment that is to be warm is handed over like any other, and gets its pages step by step between the requests.
//
// A full disk is said once, and then once a minute: to the log, and by SpaceProblem to the cleaner. While the ballast is
// given up, its room is left alone.
package allocator
