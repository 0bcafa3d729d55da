// Package endpoint is a node's store as an actor on the network: clients put, get, query, ask for offsets and subscribe by the messages of
// package wire, over a remote.Host.
//
//	peers ── Envelope ──► store-endpoint ──► caller, one actor a client ── PutAsync, Get, Query, Park ──► store
//	  ▲                                         │
//	  └──────────────── Envelope ◄──────────────┘
//
// # What is promised
//
//   - A request that has been answered with PutResult is in the store as its status says, like a put in process.
//   - A put is carried out once, however often it comes, as long as the endpoint lives and the client is heard of at least every thirty
//     seconds: its answer is kept until the client says that it has it, for the last wire.Window ids.
//   - Where the endpoint does not remember a put that says that it has been sent before (the node has been started again, another node
//     has become the leader, the client was silent), it looks for the message's UNIQ_KEY in the index, first: a put is stored twice only
//     if the index is switched off, or damaged. A message that is found so is confirmed only as far as is known: under SYNC_FLUSH it
//     must be behind the last flush, a SYNC_MASTER answers FLUSH_SLAVE_TIMEOUT.
//   - Messages of a subscription come in order, each at least once: what is not acknowledged comes again when somebody subscribes from
//     the last acknowledged offset.
//
// # What is bounded
//
// Clients, subscriptions of a client, what is delivered and not acknowledged, what is answered and not confirmed, of a client and of all
// together (Limits). Who asks for more is answered with BUSY, or waits for room in its window. A client that is silent is forgotten.
package endpoint
