// Package storebackup copies the directory of a store, which a node may be using, to another one, and back. The copy is a
// store of its own, recovered and whole. Everything goes through a vfs.Disk, so that tests cut the power at each of its operations.
//
//	abort ──► consume queues ──► floors ──► config, extensions ──► commit log up to the last whole record ──► floors the same? ──► in place ──► recovery
//	                               ▲                                                                              │ no
//	                               └──────────────────────────────────────────────────────────────────────────────┘
//
// The order makes the copy one that a crash could have left: what is copied first never speaks of more than what is copied later, but for the
// marker of consume queues that are not to be believed, which is copied before and behind them. Floors, config and the log's end are of one
// moment: when a topic was deleted meanwhile they are copied again. The copy has no checkpoint before it is recovered, so that all of its
// queues are compared with its log, and the index is built from the log again.
//
// A run that ends anywhere leaves what the copy had before, or all of itself. Of the log it only adds files, or makes the last one longer; all
// else goes to the folder backup.next, and to its place once all is there and durable. Three states stand in backup.json:
//
//	unfinished  what is in its place, with the log up to logEnd, is the copy before (none: whole is not set)
//	staged      what is named there is, or was, in backup.next, and is the copy with the log up to logEnd
//	finished    the copy is recovered, and all of its log has checksums
//
// Only commit-log files that will not change any more are kept when a copy is made again, so the second one takes what has come since; their
// checksums stand in backup.json. Where there is no backup.json nothing is replaced, and no message that the store has not.
package storebackup
