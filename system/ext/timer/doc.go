// Package timer delivers messages at an arbitrary time, up to Config.MaxDelay ahead: the property TIMER_DELIVER_MS says when,
// in ms of Unix time. It is built on the doors of package system alone.
//
//	put ── hook: the message goes to topic ACTORMQ_TIMER ──► log ── dispatcher: notes when it is due
//	                                                                └► service: puts what is due to its own topic, then a "done" record
//
// What it knows is what the log says: timed messages, cancellations and "done" records of its topic, one record for all that was delivered together. A snapshot with its
// place in the log spares a start the reading of the whole log. Messages are delivered at least once: a crash between
// the delivery and its "done" record delivers again. What has waited for half of FileReservedTime is
// carried: a copy of it is put, which stands for it, so that retention does not delete what is still to come. A disk so full that
// files go before they expire may take timed messages with them. Members of a batch can't be timed.
package timer
