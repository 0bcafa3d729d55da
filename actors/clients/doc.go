// Package clients is the client keeper: which consumers and producers are online, by their heartbeats (spec/remoting.md §7).
//
//	Heartbeat          registers a connection's groups, or renews them
//	UnregisterClient   takes a connection out of a group
//	ClientGone         the connection has ended: it leaves all its groups
//	ClientsTick        while anybody is online: a group that a connection has not named for 120 s loses it; a connection that has
//	                   lost all its groups so is closed
//
// The requests of a batch are one change:
//
//	requests → publish the groups that changed → Heartbeat.Registered → tell their members (ConsumerIDsChanged) → answer
//
// So one who has the answer to a heartbeat finds its subscription published and the others told, and a storm of joins tells each
// member once a batch. The client itself gets its answer before it is told of the change that it has made: a Java client
// rebalances when it is told, and sends its new subscription version in a heartbeat, but not while another one is unanswered;
// its pulls are refused then until the next one, up to 30 s later. The original tells first, and its clients stop so now and then. The subscriptions of a group are those of its last heartbeat, as in the original: members with
// different ones erase each other's.
//
// What is published are pictures that never change; pulls and rebalancing look them up without a hop. The actor never blocks, so
// it may run on the connection's own goroutine. Time is monotonic: a jump of the clock expires nobody.
package clients
