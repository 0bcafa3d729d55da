// Package remote puts actors on the network by the actor library's remoting, and keeps what comes from there in its bounds. The node's
// store endpoint (package endpoint) and its client (package client) both stand on it; package wire is what they say to each other.
//
// The library as it is trusts every peer: any actor can be addressed and stopped by name, a type or an index that is not there ends
// the process, answers go wherever a peer says, and nothing holds back who sends too much. So nothing of it is reached but through
// a Host, which
//
//   - looks at each message before the library does, and lets pass only Envelope, to the actors that are named as open, from the
//     address that the peer has introduced itself with; that must be where its connection comes from, unless its certificate is checked;
//   - refuses the library's other calls, and ends the connection of a peer that breaks a rule, with a line in the log;
//   - counts messages before they are decoded, so that few bytes do not become many objects;
//   - reads no more from a peer while too much of what it has sent is unhandled (see Host.Handled): the peer's own queue grows;
//   - waits for a peer that can't be reached instead of trying five times, two seconds apart.
//
// It is at most once, both ways: who wants an answer asks again.
//
// Both sides listen, as the library needs a connection for each direction. Without TLS a Host listens on loopback only; elsewhere both
// sides show certificates.
package remote
