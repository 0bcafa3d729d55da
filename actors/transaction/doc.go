// Package transaction is the transaction actor: it ends transactions, and asks producers about those that they have not ended
// (spec/store.md §11).
//
//	EndTransaction    commit: the message goes to its real queue, then an op message says that the half message is over
//	                  rollback: only the op message
//	HalfPrepared      there are half messages: rounds are due
//	TransactionTick   a round: walk the new half messages, judge those that are undecided, save the progress
//
// A round, in parts of a few hundred steps between which other requests are served:
//
//	walk    half messages behind the last round's, those that are over left out
//	judge   each undecided one: wait, ask its producers (a checker on a goroutine of its own), renew it, give it up
//	settle  progress: below the half offset everything is over; below the op offset every op names only such half messages
//
// What decides is plain code: ledger (which half messages are open, being ended, over; their copies), rules (what is due) and the
// forms of the messages. The two progress offsets are those of RocketMQ's group CID_RMQ_SYS_TRANS, so either program goes on
// where the other ended.
//
// Where the original is weak (spec/store.md §16 W22, field reports L69, L71, L72):
//   - An op message that can't be written is owed: it is tried again until it is there, and the half message is neither checked nor
//     ended a second time meanwhile. After a crash in between, the committed message is found by its unique key, and only the op
//     message is written.
//   - A transaction that is over is not committed again, whichever of its copies a request names.
//   - A check writes nothing: how often a half message was checked is kept in memory, and in the half message whenever it is
//     renewed; that is done when it has become old, or when too many others are behind it. Only checks that were sent count. A restart goes back to
//     the count of the last copy: a half message may be asked about some times more, never fewer.
//   - A half message without an online producer, or within its immunity time, keeps nobody behind it waiting.
//   - A half message that can't be read is skipped and reported.
//   - An op message counts only for a half message in front of it in the log: a power cut may keep it and lose the half message, whose
//     queue offset is then given again.
//   - Giving up is tried again until the copy is stored, and then cannot happen twice.
//
// Nothing runs while nothing is undecided. The actor has a goroutine of its own and waits for nobody: puts come back as messages.
package transaction
