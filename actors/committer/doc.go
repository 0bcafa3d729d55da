// Package committer copies what the writer has appended to write buffers into the log's files, and makes it readable: the
// transient store pool (spec/store.md §3.8, §5.4). There is one only with transientStorePoolEnable; without it the writer
// writes to the map, and what it appends is readable at once.
//
//	LogGrown     commit if enough pages are dirty, or the last commit was long enough ago; else at the timer
//	commitTick   the timer: one is pending only while there is something to commit
//	FlushNow     commit everything, then hand the message on to the flusher
//	CommitNow    commit everything, then answer with the end
//
// What is not committed is lost when the process ends: that is what the pool costs. What is committed is in the page cache, and
// the flusher makes it durable like any other byte. Everybody who follows the log is rung here, not by the writer. A commit that fails
// is final, as a failed sync is; one that finds no room is tried again, and puts are refused meanwhile. It may block on the
// disk: its mailbox runs on a goroutine of its own.
package committer
