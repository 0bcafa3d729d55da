// Package indexer builds the index files from what the reput dispatcher reads (spec/store.md §6.6).
//
//	Delivery    put the keys of its records, then answer
//	LeaveIndex  the store stops: wait for no room any more
//	FlushIndex  make everything durable, tell the flusher IndexFlushed, then answer
//	flushTick   the same, on the timer
//
// It may block on the disk. A new file that can't be made holds the batch back and is tried again with growing pauses, for want
// of room with puts refused meanwhile; for three seconds, since deletions and consumers wait behind the index. Then building is broken
// off, and dispatching goes on. For want of room it is taken up again, by itself: what the index lacks is read from the log once there
// is room. For any other reason, and after a failed sync, the next start builds it. Queries answer from what is there.
package indexer
