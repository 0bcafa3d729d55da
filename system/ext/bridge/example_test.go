package bridge_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/client"
	"github.com/actormq/actormq/system/ext/bridge"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func Example() {
	ctx := context.Background()
	nameServer, stop := anotherNode() // or one of RocketMQ
	defer stop()

	b, err := bridge.New(bridge.Config{
		Side: "berlin", Target: "paris", Topics: []string{"Orders"}, Client: client.Options{NameServers: []string{nameServer}},
	})
	if err != nil {
		panic(err)
	}
	opt := options(memfs.New()) // a real store names a folder: system.Options{Dir: "/var/lib/orders"}
	b.Plug(&opt)
	store, err := system.Open(opt)
	if err != nil {
		panic(err)
	}
	if _, err := store.Put(ctx, &messages.Message{Topic: "Orders", Body: []byte("two coffees")}); err != nil {
		panic(err)
	}
	if err := store.AwaitExtension(ctx, b.Name()); err != nil {
		panic(err)
	}
	now := b.Status(store)
	fmt.Println(now.Copied, "copied,", now.LagBytes, "bytes behind,", now.State)
	if err := store.Close(ctx); err != nil {
		panic(err)
	}
	// Output: 1 copied, 0 bytes behind, running
}

// anotherNode starts a node with a name server.
func anotherNode() (nameServer string, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // what clients are told must be known before the node listens
	if err != nil {
		panic(err)
	}
	host := l.Addr().(*net.TCPAddr).AddrPort()
	if err := l.Close(); err != nil {
		panic(err)
	}
	opt := options(memfs.New())
	opt.StoreHost = host
	store, err := system.Open(opt)
	if err != nil {
		panic(err)
	}
	actors := actor.NewActorSystem(fixture.Quiet, actor.WithDeadLetterThrottleInterval(10*time.Millisecond))
	far, err := gateway.Start(actors.Root, gateway.Config{
		Store: store, Disk: opt.Disk, ConfigDir: store.ConfigDir(), Listen: host.String(), NameServerListen: "127.0.0.1:0",
		Broker: broker.Config{StoreHost: host},
	})
	if err != nil {
		panic(err)
	}
	return far.Addr("namesrv").String(), func() {
		err := far.Stop(context.Background())
		actors.Shutdown()
		if err != nil || store.Close(context.Background()) != nil {
			panic(err)
		}
	}
}
