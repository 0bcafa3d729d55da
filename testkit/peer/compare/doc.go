// Command compare checks two dumps of one store, and what was acknowledged, against each other: the same queues, the same
// messages at the same offsets with the same bytes, and every line of the ledger.
//
//	go run ./testkit/peer/compare [-golden NAME] OURS.json PEER.json [LEDGER…]
package main
