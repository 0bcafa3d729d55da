// Package storebackup copies the directory of a store, which a node may be using, to another one, and back. The copy is a
// store of its own, recovered and whole.
//
//	abort ──► config, extensions, floors ──► consume queues ──► commit log up to the last whole record ──► recovery of the copy
//
// The order makes the copy one that a crash could have left: what is copied first never speaks of more than what is copied
// later, but for the marker of consume queues that are not to be believed, which is copied before and after them, as are floors and config. It has no checkpoint before it
// is recovered, so that all of its queues are compared with its log, and the index is built from the log again. Only commit-log files that will
// not change any more are kept when a copy is made again, so the second one takes what has come since; their checksums stand in backup.json, and
// whether the copy was finished. Where there is no backup.json nothing is replaced, and no message that the store has not.
package storebackup
