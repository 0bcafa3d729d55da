// Package flusher makes the log durable: group commit for puts that wait (SYNC_FLUSH), on a timer for all others
// (ASYNC_FLUSH), and the checkpoint that says so (spec/store.md §5).
//
//	PutMessage, PutGroup   appended already: answer when the bytes are durable, FLUSH_DISK_TIMEOUT at the deadline
//	FlushTick              the timer of the asynchronous flush
//	LogGrown               flush what there is (SYNC_FLUSH, for puts that do not wait) or enough pages (flushCommitLogTimed=false)
//	QueuesFlushed, IndexFlushed   what the builders have made durable, for the checkpoint
//	FlushNow               flush everything, write the checkpoint, then answer
//	Failed                 nothing more is acknowledged
//
// One sync runs at a time, on a goroutine of its own, so that deadlines are kept while the disk is slow; everybody who came
// in meanwhile is served by the next one. A failed sync is final: the page cache no longer tells what is on the disk, so
// it is not tried again; every waiting put is answered with the cause, and the store stops acknowledging. Where the sync runs it is told
// (OnFailed), so that it is known also when the actor has failed for another reason, or has stopped.
package flusher
