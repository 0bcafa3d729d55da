// Package indexer builds the index files from what the reput dispatcher reads (spec/store.md §6.6).
//
//	Delivery    put the keys of its records, then answer
//	FlushIndex  make everything durable, tell the flusher IndexFlushed, then answer
//	flushTick   the same, on the timer
//
// It may block on the disk. A new file that can't be made (no space, no memory map) holds the batch back and is tried
// again with growing pauses: puts and pulls go on meanwhile, as the consume queues do not wait for the index. A failed
// sync is final: the index is not built any further, queries answer from what is there, and the next start rebuilds it.
package indexer
