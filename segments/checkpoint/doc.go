// Package checkpoint keeps two small files of a store: the checkpoint, which says up to which store timestamp the files
// are durable, and the abort marker, which exists while the store is open (spec/store.md §5.6 and §8.1).
//
// The checkpoint is a page of 4096 bytes, big-endian, zero behind what is listed:
//
//	0   i64 physicMsgTimestamp  the commit log is durable up to here
//	8   i64 logicsMsgTimestamp  the consume queues are
//	16  i64 indexMsgTimestamp   the index is
//	24  16 bytes that RocketMQ 5 uses; kept as they are
//
// A value may be too old, never too new: the caller advances it only after the sync (spec/store.md §16, W18). All times are
// in milliseconds since the Unix epoch. The functions are safe for concurrent use on different paths.
package checkpoint
