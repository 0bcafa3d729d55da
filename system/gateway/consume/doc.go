// Package consume answers the requests of consumers: heartbeats and who is online, pulls with long polling, offsets, and the
// locks of orderly consumption (spec/remoting.md §7, §9, §11).
//
//	pull → checks of §9.2 → commit → Store.Get ─ found ──────────────────────────► answer, records straight from the log
//	                                      └ nothing, may wait ─► Store.Park ─ woken ─► checks → Store.Get ─► answer
//
// A held pull lives on its connection: it ends with it. While too much is waiting to be written to a connection, its woken
// pulls are answered empty, so that a slow consumer holds no part of the log.
package consume
