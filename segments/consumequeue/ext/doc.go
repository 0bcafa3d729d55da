// Package ext keeps the extension files of consume queues (spec/store.md §6.5): beside each unit of a queue, what its 20 bytes have no room
// for. The unit then has an address in the place of its tags code, a number below the 32 bits of a hash.
//
//	consumequeue_ext/<topic>/<queueId>/00000000000000000000   units, then -1 where the next one did not fit, then zeros
//
//	unit: i16 size | i64 tagsCode | i64 storeTimestamp | i16 bitmap length | bitmap
//
// They are weakly reliable, as in RocketMQ: who finds no unit at an address takes the message for one that matches. So that an address
// never names another message's unit, no file is gone on with after an unclean stop: a new one is begun. Units are memory until
// Write, which comes before the units of the queue are written; so with Sync.
package ext
