package namesrv

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// What the actor is told.
type (
	// setKV sets a value, or takes it out when it is nil.
	setKV struct {
		namespace, key string
		value          *string
		answer         *messages.Answer[struct{}]
	}
	// wipe replaces the set of topics without write permission.
	wipe struct {
		topics map[string]struct{}
		answer *messages.Answer[struct{}]
	}
)

// Refuse answers with an error.
func (m setKV) Refuse(cause error) { m.answer.Refuse(cause) }

// Refuse answers with an error.
func (m wipe) Refuse(cause error) { m.answer.Refuse(cause) }

// keeper is the actor.
type keeper struct {
	disk      vfs.Disk
	path      string
	log       zerolog.Logger
	published atomic.Pointer[state]
	self      actors.Peer
	pulses    map[string]pulse // by address, of each that is registered
	timer     *time.Timer      // nil while nobody is
}

// startKeeper loads the namespaces and spawns the actor.
func startKeeper(root *actor.RootContext, cfg Config) (*keeper, actors.Peer, error) {
	k := &keeper{disk: cfg.Disk, path: cfg.KVPath, log: cfg.Logger, pulses: map[string]pulse{}}
	first := &state{remote: &remotes{}}
	if k.disk != nil {
		var file kvFile
		if _, err := metadata.Load(k.disk, k.path, &file); err != nil {
			return nil, actors.Peer{}, fmt.Errorf("load the key-value configuration: %w", err)
		}
		for namespace, space := range file.Table {
			for key, value := range space {
				next, err := first.withKV(namespace, key, &value)
				if err != nil {
					return nil, actors.Peer{}, fmt.Errorf("load %s: %w", k.path, err)
				}
				first = next
			}
		}
	}
	k.published.Store(first)
	port := mailbox.New(mailbox.Options{OnPanic: k.panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return k }, actor.WithMailbox(port.Producer()))
	pid, err := root.SpawnNamed(props, "name-server")
	if err != nil {
		return nil, actors.Peer{}, fmt.Errorf("spawn the name server: %w", err)
	}
	return k, actors.NewPeer(root, pid), nil
}

// Receive implements actor.Actor.
func (k *keeper) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		k.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case *actor.Stopping:
		if k.timer != nil {
			k.timer.Stop()
		}
	case setKV:
		m.answer.Complete(struct{}{}, k.setKV(m))
	case wipe:
		next := *k.published.Load()
		next.wiped = m.topics
		k.published.Store(&next)
		m.answer.Complete(struct{}{}, nil)
	case change:
		k.change(m)
	case alive:
		k.alive(m)
	case gone:
		k.gone(m)
	case scan:
		k.scan()
	}
}

func (k *keeper) setKV(m setKV) error {
	next, err := k.published.Load().withKV(m.namespace, m.key, m.value)
	if err != nil {
		return err
	}
	if k.disk != nil {
		if err := metadata.Save(k.disk, k.path, kvFile{Table: next.kv}); err != nil {
			return err
		}
	}
	k.published.Store(next)
	return nil
}

func (k *keeper) panicked(reason any, stack []byte) {
	k.log.Error().Interface("panic", reason).Bytes("stack", stack).Msg("BUG: the name server panicked")
}
