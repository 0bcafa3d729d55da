// Package actors is what the actors of a store share: their roles, how they find and wake each other, and the messages
// that carry segments. Each actor is a package of its own below this one, so that its state stays private; siblings never
// import each other, they meet in package messages and are wired in package system.
//
// Rules that hold for all of them: state is touched from Receive only; a message is immutable once sent; no actor on the
// put path waits for anything; every request is answered, by a failed or stopped actor at once and with the cause. Timers
// serve time itself: an actor re-arms its own with After.
package actors
