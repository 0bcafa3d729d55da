// Failing connections log beside the next Dial, which sets the global logger of gRPC (docs/adr/0008): the race detector minds.

//go:build !race

package cluster_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/cluster"
	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/client"
	"github.com/actormq/actormq/system/remote/endpoint"
)

// join starts a node of a cluster that serves its store to actors of other processes.
func join(root *actor.RootContext, dir, id string, nodes []cluster.Node) (*cluster.Member, error) {
	var at string
	for _, n := range nodes {
		if n.ID == id {
			at = n.Port(cluster.PortBroker)
		}
	}
	return cluster.Start(root, cluster.Config{
		Name: "coffee", ID: id, Nodes: nodes, Remote: at, Lease: time.Second,
		Store: system.Options{Dir: filepath.Join(dir, id), SegmentBytes: 1 << 20, IndexSlots: 100, IndexEntries: 1000},
		Serve: func(s *system.Store, _ cluster.Role, _ vfs.Disk) (stop func(context.Context) error, err error) {
			e, err := endpoint.Start(endpoint.Config{Remote: remote.Config{Listen: at}, Store: s})
			if err != nil {
				return nil, err
			}
			return e.Stop, nil
		},
	})
}

// waiter is an actor on a node that does not lead. It says where nothing lives: its client asks the node's own membership.
type waiter struct {
	store  *client.Client
	served chan string
}

func (w *waiter) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case string: // an order
		w.store.PutAsync(&messages.Message{Topic: "Orders", Body: []byte(m)}, time.Now().Add(time.Minute), func(_ client.Placed, err error) {
			check(err)
		})
	case *client.Delivery:
		w.served <- string(m.Message.Body)
		m.Ack()
	}
}

// An actor on one node puts to a topic that another node leads, and consumes it; the leader leaves in between, and another one comes.
func ExampleMember_Leader() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "coffee")
	check(err)
	defer os.RemoveAll(dir)
	actors := actor.NewActorSystem()
	defer actors.Shutdown()
	nodes, members := threeNodes(), map[string]*cluster.Member{}
	for _, n := range nodes {
		members[n.ID], err = join(actors.Root, dir, n.ID, nodes)
		check(err)
	}
	leader := leads(ctx, nodes, "")
	var other string // the actor's node
	for id := range members {
		if id != leader {
			other = id
		}
	}

	store, err := client.Dial(client.Options{Resolver: members[other]})
	check(err)
	_, err = store.Put(ctx, &messages.Message{Topic: "Orders", Body: []byte("water")}) // a topic is there with its first message
	check(err)
	w := &waiter{store: store, served: make(chan string)}
	pid := actors.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return w }))
	orders, err := store.Subscribe(ctx, client.Subscription{Topic: "Orders", From: client.FromFirst, Handle: func(_ context.Context, d *client.Delivery) {
		actors.Root.Send(pid, d)
	}})
	check(err)
	served := map[string]bool{}
	serve := func(order string) {
		actors.Root.Send(pid, order)
		for !served[order] {
			served[<-w.served] = true // a message may come twice
		}
	}
	for i := range 10 {
		serve(fmt.Sprint("coffee ", i))
	}
	check(members[leader].Close())
	delete(members, leader)
	for i := range 10 {
		serve(fmt.Sprint("tea ", i))
	}
	fmt.Println(len(served), "orders; another node leads:", leads(ctx, nodes, leader) != leader)

	orders.Close()
	check(store.Close())
	for _, m := range members {
		check(m.Close())
	}
	// Output: 21 orders; another node leads: true
}

// leads waits until a node leads, and is not that one.
func leads(ctx context.Context, nodes []cluster.Node, but string) string {
	var etcd []string
	for _, n := range nodes {
		if n.ID != but {
			etcd = append(etcd, n.Port(cluster.PortClient))
		}
	}
	for ; ; check(ctx.Err()) {
		all, err := cluster.Read(ctx, etcd, nil)
		if err == nil && len(all) == 1 && all[0].Leads && all[0].Leader != but && len(all[0].InSync) > 1 {
			return all[0].Leader
		}
	}
}

// threeNodes are on ports of this machine that are free.
func threeNodes() (nodes []cluster.Node) {
	for first := 26000 + os.Getpid()%400*10; len(nodes) < 3; first += cluster.PortBroker + 1 {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first))); err == nil {
			check(l.Close())
			nodes = append(nodes, cluster.Node{ID: strconv.Itoa(len(nodes) + 1), Base: l.Addr().String()})
		}
	}
	return nodes
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
