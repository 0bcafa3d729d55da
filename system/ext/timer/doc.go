// Package timer delivers messages at an arbitrary time, up to Config.MaxDelay ahead: the property TIMER_DELIVER_MS says when,
// in ms of Unix time. It is built on the doors of package system alone.
//
//	put ── hook: the message goes to topic ACTORMQ_TIMER ──► log ── dispatcher: notes when it is due
//	                                                                └► service: puts what is due to its own topic, then a "done" record
//
// What it knows is what the log says: timed messages, cancellations and "done" records of its topic, one record for all that was delivered together. A snapshot with its
// place in the log spares a start the reading of the whole log. Messages are delivered at least once: a crash between
// the delivery and its "done" record delivers again. A timed message is lost when retention deletes it before it is due:
// keep MaxDelay below FileReservedTime. Members of a batch can't be timed.
package timer
