// Package bridge copies messages of topics to another node, or to a RocketMQ 4.x cluster, over RocketMQ's wire protocol. It is built
// on the doors of package system and the client of package system/client.
//
//	log ── dispatcher: a batch, a lane a queue ──► sends, one after the other in a lane, Config.InFlight lanes at once ──► target
//
// # What arrives
//
// Body, flag, keys, tags, unique key, all other properties, the time of birth, the number of retries, and whether the body is
// compressed. What would mean something else at the target is left out: a delay, the half of a transaction. The born host
// is the bridge's own. Messages of a queue arrive in their order, all in one queue of the target: the one whose place among the target's
// queues is the number of theirs, or with Config.KeepQueues the one with the same number.
//
// # How often
//
// At least once. The place up to which everything is at the target is the dispatcher's position: it is saved every five seconds and at
// Close, so a crash of the source sends what came since again; and a send without an answer is sent again. Extension dedupe at the target
// drops what comes twice with its unique key. What retention deletes at the source before it is copied is counted as Skipped.
//
// # Errors
//
// A message that can't be sent is tried again with growing pauses for as long as it takes; those behind it in its queue wait, and what
// has arrived of its batch is not sent again. Status has the lag and the last error. What the target refuses as illegal (too large, say)
// holds the bridge up too, unless Config.SkipIllegal says to leave it out, with a line in the log.
//
// # Loops
//
// Each copied message names the sides that it has been at, in property ACTORMQ_ORIGIN, the origin first. A message that has been at the
// target, or has come here a second time, is not copied: two sides may copy the same topic to each other, and so may a ring. In a mesh
// of three or more, where messages could go both ways round, set Config.OwnOnly.
package bridge
