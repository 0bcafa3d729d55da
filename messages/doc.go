// Package messages is the vocabulary of actormq: the stored message, its fields, and the typed messages that the actors
// exchange. It is plain data and imports the standard library only.
//
// A message is immutable once it is sent. A byte slice in a message belongs to the receiver from then on, unless the
// type's comment says otherwise. A request carries the envelope of its answer ([Answer], or the completion inside
// [PutMessage]); exactly one completion counts, and a mailbox that closes answers everything that it still holds by
// calling Refuse ([Refusable]).
//
// Units stand last in a name: TimestampMs is in milliseconds since the Unix epoch, Bytes are bytes. A PhysicalOffset is
// a byte position in the concatenated commit log, a QueueOffset an ordinal inside one queue.
package messages
