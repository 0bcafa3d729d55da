// Package storedump writes down all that can be read from a store directory, as JSON. It opens the directory through an
// overlay, so that load and recovery happen in memory only: the directory is never changed, not even locked, and may be
// that of a running node.
//
// The shape is that of the golden dumps: what a broker finds after it has loaded and recovered the store. Lists have one
// line for each element, so that dumps can be compared with diff:
//
//	format, params, before {checkpoint, abort, files}, config {file: text}, loaded, loadError,
//	commitLog {minOffset, maxOffset},
//	queues [{topic, queueId, minOffset, maxOffset, messages [{offset, cq, status, next, msg}]}],
//	index [{topic, key, phyOffsets}]   newest first, at most 64, records with the same hash included
//	records [{phyOffset, kind, size, topic, queueId, queueOffset, rawSha256}],
//	indexFiles [header], after {checkpoint, abort, files}
//
// A record whose body does not match its checksum is shown too (crcOk false). Messages and records are written as they are
// read; only the keys of the index questions are kept in memory.
package storedump
