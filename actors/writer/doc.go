// Package writer is the commit-log writer: the only one who appends to the log, rolls it over and assigns offsets. Its
// combining mailbox is what RocketMQ's put lock is there (spec/store.md §3.5): a put that finds the writer idle is appended
// on the caller's own goroutine, with no switch.
//
//	PutMessage, PutGroup   append; answer at once, or hand on to the flusher, which answers when the bytes are durable
//	SegmentReady           the next segment: puts that had to wait for it go first
//	SegmentFailed          why there is none: until the next SegmentReady, puts that need one are answered
//	                       CREATE_MAPEDFILE_FAILED at once, those that wait already at their deadline; on a full disk all
//	                       of them SERVICE_NOT_AVAILABLE at once
//	ForgetTopic            a topic is deleted: its queues begin at offset 0 again
//	WindowReady            pages ahead of the tail are populated
//	Rebuilt                the state has been read from the files again after a panic
//	Failed                 a storage actor has failed: nothing more is acknowledged
//
// State machine: open → rebuilding (a panic: puts wait) → open; open → failed (an I/O error, a fault in the map, a second
// panic within a minute), for good. Only Receive touches the state; nothing in it blocks, locks or allocates in steady
// state.
package writer
