// Package gateway is the network edge of the remoting protocol (spec/remoting.md §1): it listens, keeps the connections,
// reads frames and hands each request to the handler of its code, and writes the answers. What a request means is the
// business of its handler; this package knows codes only as keys of a table ([Routes]).
//
//	Gateway actor ── Connection actor, one a connection: its life, and the calls that the node makes to the client
//	                   │
//	   socket ── reader goroutine ── Route.Handle ── Request.Answer ── outbox ── socket
//
// Reading: one goroutine a connection. It handles requests in the order of the wire (lanes Quick and Ordered), so what
// follows a heartbeat sees its effect; requests that take long (lane Slow) get a goroutine each. It stops reading, and so
// lets TCP brake the peer, while MaxInFlight requests are unanswered or MaxQueuedBytes of answers wait to be written.
//
// Writing: an answer may come from any goroutine; it is pushed to the connection's outbox without blocking. Whoever finds
// the outbox idle empties it with vectored writes: the reader itself, once the burst of requests that it has at hand is
// handled, or a goroutine made for it. Who answers a request that is alone writes himself what the peer takes at once (Request.Prompt).
// Records of a pull are written straight from the log and released afterwards.
//
// Suspend and Serve put another [Service] behind the ports while the connections stay: nothing is read meanwhile. A service may have a [Relay]:
// then requests that are for another node go there, by a connection for each client's.
//
// A request is answered exactly once, one-way requests never: see [Request]. A frame that cannot be understood closes its
// connection and nothing else.
package gateway
