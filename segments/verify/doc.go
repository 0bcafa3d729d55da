// Package verify looks at everything in a store directory and says what is damaged; it changes nothing, takes no lock, and
// recovers nothing.
//
//	every record           whole, with its checksum, at its own place; zeros behind the end
//	every unit of a queue  names its record, with its size and tag; every record of a queue has its unit
//	every entry of an index file   names a record with such a key; every key has its entry; slots and chains fit
//	checkpoint             there, and not outside of the log's times
//	files                  of the right size and name: RocketMQ does not start otherwise
//
// What is wrong with queues and index of a store that was not closed properly, as after kill -9, is mostly what had not been written when the
// process died: the next start makes it good. Whether it does is tried out: the start is made in memory, and what it leaves is looked at from
// where something was wrong. Only what is wrong then too is damage. So are units and entries of records that the log has lost, which the start
// only clears away, queues of which the log has nothing, and everything that is wrong in the log.
//
// Log and index are read once each, in order, and the queues beside the log; memory is a few hundred bytes a queue and four
// bytes an index slot, and what a start changes when one is made.
package verify
