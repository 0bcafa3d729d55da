// Package verify looks at everything in a store directory and says what is damaged; it changes nothing, takes no lock, and
// recovers nothing.
//
//	every record           whole, with its checksum, at its own place; zeros behind the end
//	every unit of a queue  names its record, with its size and tag; every record of a queue has its unit
//	every entry of an index file   names a record with such a key; every key has its entry; slots and chains fit
//	checkpoint             there, and not outside of the log's times
//	files                  of the right size and name: RocketMQ does not start otherwise
//
// A store that was not closed is judged as it lies there: what its next start will make good (units and index entries that
// had not been written when the process died) counts as damage too, since it is missing.
//
// Log and index are read once each, in order, and the queues beside the log; memory is a few hundred bytes a queue and four
// bytes an index slot.
package verify
