// Package upgrade tests changes of the version, both ways: stores that earlier versions have written (testdata, versions.sh), and nodes that
// are replaced under load.
//
// A rolling upgrade replaces the nodes of a cluster one after the other while clients send, as docs/OPERATIONS.md says: drain, wait for the end,
// start again on the same folder, wait until every name server knows the node again.
//
//	cluster   three masters, processes that know each other's name servers, as docs/deploy/kubernetes.yaml has them
//	load      senders that do what RocketMQ's clients do by themselves: ask for routes from time to time, and send what a broker did not take
//	          to another one, twice at most
//
// What the test requires: no send failed after its retries; every message that was acknowledged is at the place that its answer named; in each
// queue the messages of a sender stand in the order in which they were sent.
//
// A replica group has one broker, so a retry helps nobody there: clients that keep to the address of a drained leader are to see no error at all.
//
// Routes are asked for ten times a second there. UPGRADE_CLIENT=go has RocketMQ's Go client do the work instead, as it is: it asks
// every 30 s, so each node serves 35 s on.
package upgrade
