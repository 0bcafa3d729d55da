// Package pullhold holds reads back until there is something to read: long polling (spec/store.md §6.7).
//
//	ParkPull         held by its queue, woken once: by a message at or behind its offset that passes its filter, by its
//	                 deadline, by UnparkPull, or by the stop
//	UnparkPull       the reader has gone
//	MessagesArrived  from the queue builders, after the messages have become readable
//
// A pull that is parked looks once more whether its queue has grown, so that a message that arrives between the reader's
// look and its parking is not missed. It is woken by messages and by one timer for the earliest deadline; there is no
// sweep. The number of parked pulls is bounded: beyond it a pull is woken at once with WakeClosed.
package pullhold
