// Package segments is the storage engine without actors: fixed-size files that are mapped, have real space behind them,
// and are read by many while one appends.
//
//	Segment   one file: name = physical offset of its first byte, 20 digits; counted references; a published end
//	View      an immutable, sorted list of segments: what a reader works on
//
// Invariants that let readers do without a lock: a segment's bytes below Wrote never change; Wrote only grows, and is
// stored after the bytes it covers; a View never changes; a segment is unmapped when its last holder has left.
//
// The sub-packages know one file format each: record, commitlog, consumequeue, index, checkpoint, metadata. Package vfs is
// the way to the operating system; package store opens, recovers and closes a whole directory.
package segments
