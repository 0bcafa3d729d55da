// Package remoting is the wire format between RocketMQ clients, brokers and name servers (spec/remoting.md): frames,
// the two header codecs, the typed header of each code and the JSON bodies. It does no I/O but on the reader it is
// given, and keeps no state; a [Command] belongs to one goroutine at a time.
//
//	| length i32 | type u8, header length u24 | header: JSON (type 0) or ROCKETMQ binary (type 1) | body |
//	|            |<---------------------------- length bytes ------------------------------------------>|
//
// Reading: [ReadCommand] takes one frame off a connection, then [FromExt] fills the typed header ([SendMessageHeader],
// [PullMessageHeader], …) and [Command.DecodeBody] the body. Writing: [ToExt], [Command.EncodeBody], then
// [Command.AppendHeader] if the body is sent apart (vectored writes), or [Command.Append].
//
// A new code needs a constant and its name (codes.go) and, if it has fields, a struct with one Fields method that
// serves both directions (headers.go).
//
// Everything that arrives is hostile: a length is checked before it is allocated, a large body is allocated only as
// fast as it arrives, the number of ext fields is limited, and an error names the field.
package remoting
