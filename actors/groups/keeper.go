package groups

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors/keeper"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

type table = keeper.Keeper[metadata.SubscriptionGroupConfig]

// Keeper is the way to the group keeper, with what every [keeper.Keeper] does: Lookup, All, Len and DataVersion of the published
// table, and Close. Changes go through the actor and wait for its answer, at most until the context ends (then they may still
// take effect). Safe for concurrent use.
type Keeper struct {
	*table
}

// Start loads the groups, adds the built-in ones, and spawns the actor under a name. It fails when the file is there but
// neither it nor its backup can be read: groups that an operator has switched off would be on again.
func Start(root *actor.RootContext, name string, cfg Config) (*Keeper, error) {
	a, err := load(cfg)
	if err != nil {
		return nil, err
	}
	k, err := a.Start(root, name)
	if err != nil {
		return nil, err
	}
	return &Keeper{k}, nil
}

// JSON is the answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG: the published table, compact.
func (k *Keeper) JSON() ([]byte, error) { return json.Marshal(k.Table()) }

// Table returns a copy of the published table with its version.
func (k *Keeper) Table() metadata.GroupTable { return file(k.Published()) }

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
	m := &messages.EnsureGroup{Group: group, Answer: answer}
	return k.Make(ctx, group, m, answer, messages.ErrGroupNotExist)
}

// Update makes a group or replaces its configuration; see messages.UpdateGroup for the errors.
func (k *Keeper) Update(ctx context.Context, c metadata.SubscriptionGroupConfig) error {
	answer := messages.NewAnswer[struct{}]()
	return k.Do(ctx, &messages.UpdateGroup{
		Group: c.GroupName, BrokerID: c.BrokerID, ConsumeBroadcastEnable: c.ConsumeBroadcastEnable,
		ConsumeEnable: c.ConsumeEnable, ConsumeFromMinEnable: c.ConsumeFromMinEnable,
		NotifyConsumerIDsChangedEnable: c.NotifyConsumerIDsChangedEnable, RetryMaxTimes: c.RetryMaxTimes,
		RetryQueueNums: c.RetryQueueNums, WhichBrokerWhenConsumeSlowly: c.WhichBrokerWhenConsumeSlowly, Answer: answer,
	}, answer)
}

// Delete removes a group's configuration.
func (k *Keeper) Delete(ctx context.Context, group string) error {
	answer := messages.NewAnswer[struct{}]()
	return k.Do(ctx, &messages.DeleteGroup{Group: group, Answer: answer}, answer)
}

// Replace makes the table that of the master, when its version differs, and tells whether it did.
func (k *Keeper) Replace(ctx context.Context, body []byte) (bool, error) {
	m := &messages.ReplaceGroups{JSON: body, Answer: messages.NewAnswer[bool]()}
	return k.Ask(ctx, m, m.Answer)
}

// IsBuiltIn tells whether a group is one that every broker has.
func (k *Keeper) IsBuiltIn(group string) bool {
	return slices.Contains(builtIn[:], group) || strings.HasPrefix(group, systemPrefix)
}
