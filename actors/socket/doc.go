// Package socket reads and writes TCP connections without telling the runtime that a system call begins. The calls are ones that do not
// wait: the descriptor does not block, and the runtime's poller is what a goroutine waits by, as with package net. What is saved is the
// runtime's monitor: it sleeps while a process has nothing to do, any system call that is announced wakes it, and for a node that answers
// one message at a time it was a sixth of the CPU time (docs/adr/0009).
//
// A goroutine that reads gives way to the readers of other connections when it has not had to wait for a while (docs/adr/0014).
//
// Where that can't be had (TLS, other systems, the race detector, which learns of the order from package net) the connection is used as
// it is.
package socket
