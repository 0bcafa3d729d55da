// Package cluster makes nodes one replica group that loses nothing it has acknowledged: one of them leads, the others follow, and
// when the leader falls silent one of those that have everything takes over. Nothing of it is part of package system.
//
// What is so lies in etcd (embedded in the nodes, or an external one), and is changed by compare-and-swap only:
//
//	/actormq/<cluster>/group      Record: identity, epoch, leader, the nodes in sync
//	/actormq/<cluster>/leader     there while the leader's lease lives
//	/actormq/<cluster>/nodes/<id> NodeState, there while the node's lease lives
//
// A Member is an actor. It renews the node's lease, watches the keys, opens the store in the role that they give it, and has what
// serves clients started and stopped (Config.Serve). Safety rests on the record and on the replicas, not on clocks:
//
//   - A put is acknowledged once every node in sync has it; only such a node can be elected, and by its election the record changes, so
//     that the old leader can't take anybody out of it any more.
//   - A node counts for acknowledgements before it is written into the record as in sync, and after it is written out of it.
//   - Each leader has an epoch of its own. Followers refuse one whose epoch is behind what they know, and cut their log back to where it
//     has the same bytes as the leader's (package epochs), before they follow.
//   - Only what is confirmed by all in sync is read and dispatched.
//
// The lease decides who tries, and ends acknowledging early: a leader counts it from before it asked for it, and takes it for shorter
// than it is.
package cluster
