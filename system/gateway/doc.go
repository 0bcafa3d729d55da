// Package gateway puts a store on the network: it starts the keepers of topics, groups, clients, offsets and locks, the name
// server, and the remoting gateway, so that unmodified RocketMQ 4.x clients and tools work with the node (spec/remoting.md).
//
//	store, err := system.Open(system.Options{Dir: dir, StoreHost: host})
//	node, err := gateway.Start(actorSystem.Root, gateway.Config{
//		Store: store, Disk: vfs.New(), ConfigDir: store.ConfigDir(), Listen: ":10911", NameServerListen: ":9876",
//		Broker: broker.Config{StoreHost: host},
//	})
//	defer node.Stop(ctx) // before store.Close
//
// Two ports in one process: name server and broker; a third one (the broker's minus two) is optional. The keepers live in the
// actor system that Start is given, apart from the store's own.
//
//	name server port ─ namesrv ─┐                ┌─ topics  groups  clients
//	broker port ─ produce, consume, admin ─ broker ─ offsets  locks  stats
//	                                             └─ store
package gateway
