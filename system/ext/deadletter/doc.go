// Package deadletter looks after messages that consumers have given up: those in the topics %DLQ%<group>. It lists and filters
// them, sends them again to where they came from, at a rate, and keeps an audit trail of that in a topic of its own,
// ACTORMQ_DLQ_AUDIT. It is built on the doors of package system alone.
//
// A message that was sent again says so itself (its PreparedTransactionOffset is that of the dead letter, plus 1, below 0), and a dispatcher
// sees it: so it is known after a start too, and not sent a second time unless asked for, whatever crashes. The audit record is
// written after the message: a crash in between leaves that one message without its record.
package deadletter
