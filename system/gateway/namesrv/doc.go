// Package namesrv is the name server of a node (spec/remoting.md §5): the routes of the broker's own topics, so that a topic is in
// its route as soon as it is made, and those of brokers that register here, RocketMQ's own or other nodes. An actor owns what
// only a name server has: the key-value namespaces with kvConfig.json, which topics have lost their write permission here, and
// the brokers that have registered, with when and on which connection each of them was heard of.
//
//	PutKV, DeleteKV        durable, published, then answered
//	WipeWrite, AddWrite    published, then answered; not kept over a restart, as in the original
//	Register, Unregister   published, then answered; a broker goes when its connection ends, or after 120 s of silence
//
// Lookups go to the published state without a hop. A registration in the name of the node's own broker is refused.
package namesrv
