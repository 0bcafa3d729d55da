// Package ha replicates the commit log between a master and its slaves, in RocketMQ's HA protocol (spec/store.md §12):
// a slave reports how far its log goes, the master sends what follows, and each later report is an acknowledgement.
//
//	Replicator (master)   LogGrown      there is something to send: every sender is woken, none while there is no replica
//	                      ReplicaWait   a put that waits for a replica (SYNC_MASTER): answered at an acknowledgement, or
//	                                    FLUSH_SLAVE_TIMEOUT at its own deadline, whatever becomes of the others
//	sender, one a replica               checks the first report, then writes frames straight from the log's map; what is far
//	                                    behind the end is read from the file, so that it does not fill the map
//	Follower (slave)                    connects, reports at once, and has the writer append what comes (AppendReplica)
//	ConfigSync (slave)                  fetches the master's configuration every 10 s, and when it is told to (SyncNow)
//
// Sockets are read by goroutines of their own, which end with their connection. A put that is alone needs no others: it is sent on the goroutine
// that puts, and answered on the one that reads the acknowledgement (alone.go).
//
// What a report must be is told in report.go. The protocol has no authentication: whoever reaches the port reads the log, so
// it listens on loopback unless told otherwise, and closes the connections of hosts that it is not told to allow, before anything is read.
package ha
