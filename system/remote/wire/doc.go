// Package wire is what a node's store endpoint and its clients say to each other over actor remoting: the messages of store.proto,
// and what both sides have to agree on beside them.
//
// Only Envelope crosses the network as a type of its own. The actor library ends the process that receives a type which it does not
// know; behind the one type that never changes, what is unknown is an answer (Code_UNSUPPORTED).
//
// # The conversation
//
//	client                                      endpoint
//	hello ────────────────────────────────────► who is it?
//	      ◄──────────────────────────────────── welcome {life, window}
//	put 7 ────────────────────────────────────► stored, and the answer kept
//	      ◄──────────────────────────────────── put-result 7          (may be lost)
//	put 7, retry ─────────────────────────────► known: nothing is stored
//	      ◄──────────────────────────────────── put-result 7, the same
//	put 8, done 8 ────────────────────────────► 7 is forgotten
//	subscribe 9 ──────────────────────────────►
//	      ◄──────────────────────────────────── delivery 9 …          until the window is full
//	ack 9 {acknowledged, received} ───────────► room for more
//
// Ids grow by one from 1 on. An id at or behind done+Window is refused. The library delivers at most once: whoever waits for an answer
// asks again.
//
// To generate the code again: protoc --go_out=. --go_opt=paths=source_relative store.proto, with protoc-gen-go of the version that
// stands in the generated file.
package wire
