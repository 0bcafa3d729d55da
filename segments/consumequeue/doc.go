// Package consumequeue keeps the consume queues: for each (topic, queue) a table from queue offset to the place of the
// record in the commit log. It is derived data: all of it can be built again from the log.
//
// A queue is a row of files <topic>/<queueId>/<20 digits = byte offset of the first unit>, each exactly Options.FileBytes
// long (sparse), filled with units of 20 bytes (spec/store.md §6.3):
//
//	0  i64  physical offset of the record
//	8  i32  size of the record
//	12 i64  tagsCode, or the delivery time in the delay topic
//
// Unit n stands at byte 20·n, always. A queue whose first unit is not at the start of a file has filler units {0,
// 0x7FFFFFFF, 0} before it; they are never returned. A zero unit ends the queue.
//
// # Who does what
//
// One builder per queue calls Append, Begin, Cool, Truncate and Destroy. Any number of readers call Read, Search, Min,
// Max, Range and PhysicalEnd at any time. Write, Sync, SetMin and DeleteExpired may come from another goroutine than the
// builder (a flusher, a cleaner); a mutex of the queue, which neither Append nor Read takes, orders them.
//
// The hot tail is memory: Append writes a unit into a chunk and then publishes the new end, so a reader that has seen the
// end finds every unit below it. Chunks that are in the file leave the memory, all but the last two. Older units are read
// with pread through a bounded cache of descriptors, which has a mutex: it is on no put path; a file that is read for long, or here
// and there, is mapped while its descriptor is kept: then a read may wait for the disk in a page fault, which Append never does. A Reader reads ahead for whoever goes on in order. Write puts the tail into
// the file in few large writes, Sync makes it durable. Truncate does not change what a reader may be looking at: it
// publishes a new tail, and who reads a file by the old one notices and gets ErrChanged.
//
// # What is guaranteed
//
// Append never misaligns: a unit goes to its own offset or is refused (ErrGap, ErrOrder). Behind the last unit of a queue
// its files hold zeros only, files are created at full length beside the folder and moved into it, and no last file is
// empty or holds fillers only (spec/store.md §16, W4 and W33). After the process was killed, what was written is a
// prefix. After a power cut, everything below the last Sync is there, and behind it may be holes: recovery cuts
// every queue at the physical offset that the checkpoint vouches for (Search, Truncate) and dispatches again from there.
package consumequeue
