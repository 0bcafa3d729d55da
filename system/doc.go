// Package system is what a Go program imports to have a message store inside: Open, Put, Get, Query, OffsetByTime, Close.
//
//	store, err := system.Open(system.Options{Dir: "/var/lib/orders"})
//	result, err := store.Put(ctx, &messages.Message{Topic: "orders", Body: body})
//	got, err := store.Get(ctx, messages.GetMessage{Queue: messages.QueueKey{Topic: "orders"}, MaxMessages: 32})
//	defer got.Release()
//	for _, raw := range got.Records { // a record of the log each, as it is stored
//		m, _, err := record.Parse(raw, true) // package segments/record: m.Body, m.Properties, …
//	}
//
// The directory has RocketMQ 4.x's format, both ways. Behind the API each part of the store is an actor (package actors),
// in an actor system of its own that no other process can reach; Open wires them. Nothing here knows the network: package
// system/gateway does.
//
// Code of the program's own can look at puts, follow the log, and take the place of parts: Extensions, and docs/EXTENDING.md, which
// also says who owns which bytes when, and what of the API is stable. Every function stands in an example.
//
// Every method is safe for concurrent use. A status is not an error: FLUSH_DISK_TIMEOUT means "stored, not confirmed
// durable in time". What an acknowledgement means depends on Options.FlushDiskType: PUT_OK of an asynchronous flush
// survives the end of the process (the bytes are in the page cache) but not a power cut within the flush interval; PUT_OK
// of a synchronous flush means that fdatasync has returned without an error for those bytes.
package system
