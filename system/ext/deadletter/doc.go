// Package deadletter looks after messages that consumers have given up: those in the topics %DLQ%<group>. It lists and filters
// them, sends them again to where they came from, at a rate, and keeps an audit trail of that in a topic of its own,
// ACTORMQ_DLQ_AUDIT. It is built on the doors of package system alone.
//
// A dispatcher follows the audit topic, so what has been sent again is known after a start too, and is not sent a second time
// unless asked for. The audit record is written after the message: a crash in between sends that one message again.
package deadletter
