// Package locks is the lock keeper: which client of a group may consume a queue in order (spec/remoting.md §11.2).
//
//	LockQueues     granted when free, when the client has it already (that renews it), or when it has expired
//	UnlockQueues   by the client that has it; anybody else's is ignored
//	LocksTick      forgets what has expired, while there are locks at all
//
//	free ──lock──► held ──unlock, or 60 s without renewal──► free
//
// Locks live in memory only: after a restart every queue is free, and clients, who renew every 20 s, take them again. They do
// not end with a connection, so that a client that connects again keeps its queues.
//
// The actor never blocks. Time is monotonic: a jump of the clock neither frees nor prolongs a lock.
package locks
