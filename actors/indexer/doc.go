// Package indexer builds the index files from what the reput dispatcher reads (spec/store.md §6.6).
//
//	Delivery    put the keys of its records, then answer
//	LeaveIndex  the store stops: wait for no room any more
//	FlushIndex  make everything durable, tell the flusher IndexFlushed, then answer
//	flushTick   the same, on the timer
//
// It may block on the disk. A new file that can't be made holds the batch back and is tried again with growing pauses. For want
// of room that goes on until there is room, and puts are refused meanwhile; for any other reason (no memory map) five seconds, since
// consumers wait behind the index once its credit is used up. Then, and after a failed sync, the index is not built any further:
// queries answer from what is there, and the next start rebuilds it.
package indexer
