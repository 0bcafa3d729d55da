// Package client reaches the stores of other processes: puts, gets, queries, offsets and subscriptions, by the messages of package wire
// over actor remoting. It is for programs, and for actors of programs, that do not have the store themselves.
//
//	callers ── call ──► core, one actor a client ── Envelope ──► store-endpoint of the node that leads the topic
//	   ▲                    │  ▲
//	   └── done ────────────┘  └──────────── Envelope ─────────── answers and deliveries
//
// Where a topic lives is a Resolver's business. When a node does not answer, says that it does not lead the topic, or has no room, the
// client asks the resolver again, and the node that it names, until the request's deadline.
//
// # What is promised
//
//   - A put that returns without an error is stored as its status says. It is stored once, however often the client had to ask: the
//     endpoint knows requests that come again, and one that has lost its memory (another node, or the same one started again) looks
//     for the message's UNIQ_KEY, which each message gets. See package endpoint for the one gap: a store without an index.
//   - ErrUnreachable: nothing was stored. ErrNoAnswer: it may be stored.
//   - Puts of one client to one queue are stored in the order in which they are begun, unless one of them has to be repeated. Who needs the
//     order in any case waits for each.
//   - A subscription delivers each message of its queues at least once, those of a queue in order. It goes on where it was when nodes stop
//     and start or the leader changes; another process goes on at the offset that the group has acknowledged.
//   - A handler that is slow is not sent more than the window: the rest stays in the store.
package client
