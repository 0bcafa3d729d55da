// Command append opens a store directory as a node does, appends messages, and closes it properly or, with -crash, ends without
// closing it. For each message that was acknowledged it writes a line of JSON: the ledger that a store is compared with.
//
//	go run ./testkit/peer/append -dir DIR -params params.json -ledger FILE [-count 50] [-topics A,B] [-queues 2] [-crash]
package main
