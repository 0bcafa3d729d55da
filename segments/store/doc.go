// Package store opens the directory of a store and brings it into order: commit log, consume queues, index, checkpoint.
//
//	lock ─► load ─► plan (reads only) ─► abort ─► apply: cut ─► dispatch ─► sync ─► checkpoint
//
// The commit log is the truth; everything else is made to agree with it. What the plan decides is a value that can be
// printed and compared ([Plan]); applying it may be interrupted at any moment, and opening again gives the same store.
//
//   - Where the log ends (spec/store.md §8.4): behind the last record that parses, has its body's checksum and names its
//     own place. A blank record at the very end belongs to the log (§16, W9).
//   - Damage in the middle loses what is damaged, not what follows (§16, W3): the walk goes on at the next record that a
//     consume queue names, or in front of it from where a chain of records runs to a known end (record.Resync), or at the
//     start of a later segment. So nothing inside a body is taken for a record, also when the queues are gone.
//   - Such a hole is copied to quarantine/ and then closed with records of the same size, topic and queue offset that stand for
//     the lost ones (record.AppendLost), so that RocketMQ, which would stop there, keeps what follows. Readers are told that
//     the message is gone.
//   - What has to be cut off behind the end is copied to quarantine/ first, then zeroed and synced, so that it never comes
//     back behind a later record.
//   - Where dispatch starts: at the first record that a queue or the index does not have. Records of the scanned part are
//     compared with their queues one by one; a queue that is missing, short, damaged or ahead of the log is mended from
//     the log, from its beginning where need be. After an unclean stop the checkpoint only says how far back to scan
//     (§8.5), with a margin, and the index is cut back to what the checkpoint vouches for.
//
// One goroutine walks over the log. Others look at stretches of it before, where most is as it should be, and keep keys that the index is
// going to lack; what the walk finds is the same without them (ahead.go, kept.go).
//
// After a failed sync of the log (marker file unproven) the page cache cannot be believed any more: what lies behind the last
// good flush is copied to new files, synced, and moved into place, before anything is loaded.
//
// A store that is as its last clean stop has left it is opened without reading the log: CloseClean writes a manifest
// (cleanstop.json) with the log's end, the checksum of its last bytes, the ends of queues and index. When that does not fit what
// is there, because RocketMQ has run in between or something is missing, the last segments are read as above; what has been damaged
// further inside since the stop is not noticed by opening, but by `actormq store verify`.
//
// Open does all that on the calling goroutine, but for what is only read, without actors. The writer, the dispatcher and the others take over from
// what it returns.
package store
