// Package probe has what tests of extensions wait with: a Queue that expects messages of a queue in order, and an Actor that
// expects messages sent to it. Nothing sleeps; the context bounds the waiting.
package probe
