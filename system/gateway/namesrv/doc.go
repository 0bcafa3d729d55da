// Package namesrv is the name server of a combined node (spec/remoting.md §5): routes come from the broker's own topics, so
// a topic is in its route as soon as it is made. An actor owns what only a name server has: the key-value namespaces with
// kvConfig.json, and which topics have lost their write permission here.
//
//	PutKV, DeleteKV      durable, published, then answered
//	WipeWrite, AddWrite  published, then answered; not kept over a restart, as in the original
//
// Lookups go to the published state without a hop.
package namesrv
