// Package timer delivers messages at an arbitrary time, up to Config.MaxDelay ahead: the property TIMER_DELIVER_MS says when,
// in ms of Unix time. It is built on the doors of package system alone.
//
//	put ── hook: the message goes to topic ACTORMQ_TIMER ──► log ── dispatcher: notes when it is due, or that it has been delivered
//	                          ▲                                                     └► service: puts what is due to its own topic
//	                          └─────────────────────────────────────────────────────────┘
//
// What it knows is what the log says: timed messages, cancellations, and delivered messages, each of which names the place where it waited
// (as its PreparedTransactionOffset, plus 1). So a message is in its topic once, whatever crashes: the record that delivers it is the
// one that says so. Consumers may get it again for other reasons, as any message. A snapshot with its place in the log spares a
// start the reading of the whole log. What has waited for half of FileReservedTime is
// carried: a copy of it is put, which stands for it, so that retention does not delete what is still to come; and so is what is in the oldest
// files of a disk that is nearly so full that files go before they expire. What is lost with a file all the same is logged.
//
// Time is the wall clock's; when that is set forward, what is due by it comes within a second. Of a time and a delay level the time counts.
// Members of a batch can't be timed, and messages of transactions are refused. Hooks see a message when it is put, not when it is delivered.
package timer
