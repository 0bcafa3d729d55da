// Package index keeps the index files: from the hash of "topic#key" to the places of records in the commit log. It is
// derived data: all of it can be built again from the log.
//
// A file index/<17 digits> has a fixed size, all numbers big-endian (spec/store.md §6.6):
//
//	0   i64 beginTimestamp      of the first entry       24  i64 endPhyOffset    of the last entry
//	8   i64 endTimestamp        of the last entry        32  i32 hashSlotCount   slots in use
//	16  i64 beginPhyOffset      of the first entry       36  i32 indexCount      number of the next entry, from 1
//	40                 slots:   i32 number of the slot's newest entry, 0: none
//	40 + 4·Slots       entries: i32 keyHash, i64 physical offset, i32 seconds after beginTimestamp,
//	                            i32 number of the entry before it in the slot; entry 0 is not used
//
// One goroutine (the index builder) calls Put, Build, BuildFrom, Flush, Truncate, DeleteBelow, DropDamaged and Close. Any number
// call Query: an entry's number is published after the entry, a slot is set after that, and the list of files never
// changes once it is published; a file is unmapped when its last reader has left.
//
// Files are mapped; space is reserved for the whole file and pages are made present in windows ahead of the writes, so no
// Put meets a page fault or a full disk. Every access to a map is guarded: a failing disk is an error.
//
// When a file is full it is synced before the next one is made. So a power cut can hurt the newest file only, and
// Truncate mends that one from what was synced. A key that two records share in its hash is found for both: the caller
// compares the key (spec/store.md §16, W17).
package index
