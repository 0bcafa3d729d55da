package keeper

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// Keeper is the way to a keeper's actor. Lookups go to the published table; changes go through the actor and wait for its
// answer, at most until the context ends (then they may still take effect). Safe for concurrent use.
type Keeper[V any] struct {
	actor *Actor[V]
	port  *mailbox.Combining
	peer  actors.Peer
	end   func() error
}

// Start spawns the actor under a name.
func (a *Actor[V]) Start(root *actor.RootContext, name string) (*Keeper[V], error) {
	port := mailbox.New(mailbox.Options{OnPanic: a.panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(port.Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("start the %s keeper: %w", a.cfg.What, err)
	}
	end := sync.OnceValue(func() error { return root.PoisonFuture(pid).Wait() })
	return &Keeper[V]{actor: a, port: port, peer: actors.NewPeer(root, pid), end: end}, nil
}

// Peer is the actor's address, for messages of package messages.
func (k *Keeper[V]) Peer() actors.Peer { return k.peer }

// Close handles what has been sent, refuses what comes later with messages.ErrClosed, and ends the actor. Lookups go on. Only the
// first call does something.
func (k *Keeper[V]) Close() error {
	if err := k.end(); err != nil {
		return fmt.Errorf("stop the %s keeper: %w", k.actor.cfg.What, err)
	}
	return nil
}

// Published is the state of this moment.
func (k *Keeper[V]) Published() *State[V] { return k.actor.published.Load() }

// Lookup returns an entry. It takes no lock and does not allocate.
func (k *Keeper[V]) Lookup(name string) (V, bool) { return k.Published().Table.Get(name) }

// All goes through the entries of one moment, in no order.
func (k *Keeper[V]) All() iter.Seq[V] {
	s := k.Published()
	return func(yield func(V) bool) {
		for _, v := range s.Table.All() {
			if !yield(v) {
				return
			}
		}
	}
}

// Len is the number of entries.
func (k *Keeper[V]) Len() int { return k.Published().Table.Len() }

// DataVersion is the version of the published table.
func (k *Keeper[V]) DataVersion() metadata.DataVersion { return k.Published().Version }

// Do sends a request whose answer says only whether it was done.
func (k *Keeper[V]) Do(ctx context.Context, m messages.Linked, answer *messages.Answer[struct{}]) error {
	return mailbox.AskDone(ctx, k.port, m, answer)
}

// Make is Do of a request that makes an entry, and returns the entry: it is published before the answer. Gone is the error
// for one that was deleted before it could be looked up.
func (k *Keeper[V]) Make(
	ctx context.Context, name string, m messages.Linked, answer *messages.Answer[struct{}], gone error,
) (v V, err error) {
	if err := k.Do(ctx, m, answer); err != nil {
		return v, err
	}
	v, ok := k.Lookup(name)
	if !ok {
		return v, fmt.Errorf("%w: %s was deleted meanwhile", gone, name)
	}
	return v, nil
}

// Ask sends a request whose answer tells whether something was changed.
func (k *Keeper[V]) Ask(ctx context.Context, m messages.Linked, answer *messages.Answer[bool]) (bool, error) {
	return mailbox.Ask(ctx, k.port, m, answer)
}
