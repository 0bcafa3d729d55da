// Package clients is the client keeper: which consumers and producers are online, by their heartbeats (spec/remoting.md §7).
//
//	Heartbeat         registers a connection's groups; the members of a group that has changed are told at once
//	UnregisterClient  takes a connection out of a group
//	ClientGone        the connection has ended: it leaves every group
//	ClientsTick       its own timer: clients without a heartbeat for 120 s leave, and their connections are closed
//
// A group's members and subscriptions are published as pictures that never change; pulls look them up without a hop. The actor
// never blocks, so it may run on the connection's own goroutine: a heartbeat is published before the next frame is read.
package clients
