// Package extension runs what a user plugs into a store, so that it can do the store no harm: dispatchers that follow the log,
// listeners for arrivals, services. System wires them; see docs/EXTENDING.md for what users see.
//
//	dispatcher's reader (reput) ── Delivery ──► Dispatcher ──► the user's function, on a goroutine of its own
//	queue builder ── MessagesArrived ──► Listener ──► the user's function, likewise
//	                                     Service ──► the user's function, for as long as the store is open
//
// The user's code never runs in Receive: an actor of this package always answers, and knows when a call panics, takes too
// long or does not come back.
//
// # Policy
//
//	running ──error─────────────► backing off ──pause──► running      the pause doubles with each failure in a row
//	running ──panic or stall────► backing off ──pause──► running
//	                                   └── Policy.Failures within Policy.Window ──► parked ──resume──► running
//	running ──not back for Policy.StallAfter──► stalled ──comes back──► running, or backing off
//
// What is being handled when something fails is handled again: at least once. A call that has not come back after
// StallAfter has its context cancelled; one that ignores that stays stalled, is reported, and holds up nobody but itself.
//
// # Position
//
// A dispatcher's position is a file of its own, written atomically, after a flush of the log up to there: the position is
// never ahead of what a power cut leaves. It carries the checksum of the log in front of it; when that does not fit, because
// RocketMQ has cut the log in between, it is ignored and the dispatcher begins anew.
package extension
