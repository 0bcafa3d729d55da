// Package vouch is how a node of a replica group that relays tells the leader for which client it does, and proves that it is one of the
// group's nodes (docs/adr/0011): what a leader does by a client's address, it then does by the client's own. So does a node that asks another
// one for itself, which rules of access then need not name.
//
//	node → leader   RELAY_BROKER, vouch=true
//	leader → node   nonce, epoch                 both of this connection
//	node → leader   RELAY_HELLO, its body:
//
//	node → node     NODE_HELLO, without a body
//	node → node     nonce
//	node → node     NODE_HELLO, the body with Nobody in the place of the client:
//
//	| version u8 | length u8, node | length u8, address 4 or 16 bytes | port u16 | TLS u8 | proof 32 bytes |
//
// The proof is HMAC-SHA256 with the group's [Secret] over all that there is to be claimed ([Claim]), each field behind its length. It is
// good for one connection: for its nonce, which is asked once, and between the two ends of its TLS.
//
// A [Secret] shows itself to nobody who prints it; its one way out is [Secret.Text], for the group's etcd.
package vouch
