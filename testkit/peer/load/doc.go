// Command load sends messages to a broker from several connections until it is told to stop or the broker is gone, and writes
// a line of JSON for each one that was acknowledged: the ledger that a crash test compares a store with.
//
//	go run ./testkit/peer/load -broker 127.0.0.1:10911 -topic T -ledger FILE [-connections 8] [-seconds 5]
package main
