package groups

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// Keeper is the way to the group keeper. Lookups go to the published table; changes go through the actor and wait for its
// answer, at most until the context ends (then they may still take effect). Safe for concurrent use.
type Keeper struct {
	actor *keeperActor
	port  *mailbox.Combining
	root  *actor.RootContext
	pid   *actor.PID
	end   func() error
}

// Start loads the groups, adds the built-in ones, and spawns the actor under a name. It fails when the file is there but
// neither it nor its backup can be read: groups that an operator has switched off would be on again.
func Start(root *actor.RootContext, name string, cfg Config) (*Keeper, error) {
	a, err := load(cfg)
	if err != nil {
		return nil, err
	}
	port := mailbox.New(mailbox.Options{OnPanic: a.panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(port.Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("start the group keeper: %w", err)
	}
	end := sync.OnceValue(func() error { return root.PoisonFuture(pid).Wait() })
	return &Keeper{actor: a, port: port, root: root, pid: pid, end: end}, nil
}

// Peer is the actor's address, for messages of package messages.
func (k *Keeper) Peer() actors.Peer { return actors.NewPeer(k.root, k.pid) }

// Close handles what has been sent, refuses what comes later with messages.ErrClosed, and ends the actor. Lookups go on.
// Only the first call does something.
func (k *Keeper) Close() error {
	if err := k.end(); err != nil {
		return fmt.Errorf("stop the group keeper: %w", err)
	}
	return nil
}

// Lookup returns a group's configuration. It takes no lock and does not allocate.
func (k *Keeper) Lookup(group string) (metadata.SubscriptionGroupConfig, bool) {
	return k.actor.published.Load().groups.Get(group)
}

// All goes through the groups of one moment, in no order.
func (k *Keeper) All() iter.Seq[metadata.SubscriptionGroupConfig] {
	s := k.actor.published.Load()
	return func(yield func(metadata.SubscriptionGroupConfig) bool) {
		for _, g := range s.groups.All() {
			if !yield(g) {
				return
			}
		}
	}
}

// Len is the number of groups that have a configuration.
func (k *Keeper) Len() int { return k.actor.published.Load().groups.Len() }

// DataVersion is the version of the published table.
func (k *Keeper) DataVersion() metadata.DataVersion { return k.actor.published.Load().version }

// JSON is the answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG: the published table, compact.
func (k *Keeper) JSON() ([]byte, error) { return json.Marshal(k.Table()) }

// Table returns a copy of the published table with its version.
func (k *Keeper) Table() metadata.GroupTable { return k.actor.published.Load().file() }

// Defaults is the configuration that a group gets by itself (spec/remoting.md §15.4). Members that a tool's request lacks mean
// these.
func (k *Keeper) Defaults(group string) metadata.SubscriptionGroupConfig { return defaults(group) }

// Ensure returns a group's configuration, and makes it when it is not there and may be made so; see messages.EnsureGroup for
// the errors. A group that is there costs a lookup.
func (k *Keeper) Ensure(ctx context.Context, group string) (metadata.SubscriptionGroupConfig, error) {
	if cfg, ok := k.Lookup(group); ok {
		return cfg, nil
	}
	answer := messages.NewAnswer[struct{}]()
	if err := mailbox.AskDone(ctx, k.port, &messages.EnsureGroup{Group: group, Answer: answer}, answer); err != nil {
		return metadata.SubscriptionGroupConfig{}, err
	}
	cfg, ok := k.Lookup(group)
	if !ok {
		return cfg, fmt.Errorf("%w: %s was deleted meanwhile", messages.ErrGroupNotExist, group)
	}
	return cfg, nil
}

// Update makes a group or replaces its configuration; see messages.UpdateGroup for the errors.
func (k *Keeper) Update(ctx context.Context, c metadata.SubscriptionGroupConfig) error {
	answer := messages.NewAnswer[struct{}]()
	return mailbox.AskDone(ctx, k.port, &messages.UpdateGroup{
		Group: c.GroupName, BrokerID: c.BrokerID, ConsumeBroadcastEnable: c.ConsumeBroadcastEnable,
		ConsumeEnable: c.ConsumeEnable, ConsumeFromMinEnable: c.ConsumeFromMinEnable,
		NotifyConsumerIDsChangedEnable: c.NotifyConsumerIDsChangedEnable, RetryMaxTimes: c.RetryMaxTimes,
		RetryQueueNums: c.RetryQueueNums, WhichBrokerWhenConsumeSlowly: c.WhichBrokerWhenConsumeSlowly, Answer: answer,
	}, answer)
}

// Delete removes a group's configuration.
func (k *Keeper) Delete(ctx context.Context, group string) error {
	answer := messages.NewAnswer[struct{}]()
	return mailbox.AskDone(ctx, k.port, &messages.DeleteGroup{Group: group, Answer: answer}, answer)
}

// Replace makes the table that of the master, when its version differs, and tells whether it did.
func (k *Keeper) Replace(ctx context.Context, body []byte) (bool, error) {
	m := &messages.ReplaceGroups{JSON: body, Answer: messages.NewAnswer[bool]()}
	return mailbox.Ask(ctx, k.port, m, m.Answer)
}
