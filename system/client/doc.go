// Package client asks name servers and brokers (spec/remoting.md): what the command line and a bridge need to
// send and to read messages, over one connection per address. It registers in no group: a pull brings its subscription along.
//
//	caller ── Call ──► write, one frame at a time ──► broker
//	caller ◄─ answer by opaque ── reader of the link ◄──┘    answers come in any order
//
// Everything ends: dialling, writing and waiting have deadlines, connections and unanswered requests have limits. An error
// is a [*RefusedError] when the peer has answered with an error code, else one that tells with errors.Is whether the peer was
// not reached (ErrConnection) or stayed silent (ErrNoAnswer). Nothing is repeated: that is for the caller to decide.
package client
