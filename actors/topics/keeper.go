package topics

import (
	"context"
	"encoding/json"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors/keeper"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

type table = keeper.Keeper[metadata.TopicConfig]

// Keeper is the way to the topic keeper, with what every [keeper.Keeper] does: Lookup, All, Len and DataVersion of the published
// table, and Close. Changes go through the actor and wait for its answer, at most until the context ends (then they may still
// take effect). Safe for concurrent use.
type Keeper struct {
	*table
	actor *keeperActor
}

// Start loads the topics, makes the built-in ones, and spawns the actor under a name. It fails when the file is there but
// neither it nor its backup can be read: topics that are lost would be made anew with other queues.
func Start(root *actor.RootContext, name string, cfg Config) (*Keeper, error) {
	a, err := load(cfg)
	if err != nil {
		return nil, err
	}
	k, err := a.Start(root, name)
	if err != nil {
		return nil, err
	}
	return &Keeper{table: k, actor: a}, nil
}

// Table returns a copy of the published table with its version, as it is registered at name servers.
func (k *Keeper) Table() metadata.TopicTable { return file(k.Published()) }

// JSON is the answer to GET_ALL_TOPIC_CONFIG (spec/remoting.md §18): the published table, compact.
func (k *Keeper) JSON() ([]byte, error) { return json.Marshal(k.Table()) }

// Update makes a topic or replaces its configuration; see messages.UpdateTopic for the errors. Order and Unknown of cfg are
// not looked at.
func (k *Keeper) Update(ctx context.Context, cfg metadata.TopicConfig) error {
	answer := messages.NewAnswer[struct{}]()
	return k.Do(ctx, &messages.UpdateTopic{
		Topic: cfg.TopicName, ReadQueues: cfg.ReadQueueNums, WriteQueues: cfg.WriteQueueNums, Perm: cfg.Perm,
		FilterType: cfg.TopicFilterType, SysFlag: cfg.TopicSysFlag, Answer: answer,
	}, answer)
}

// Delete removes a topic's configuration; see messages.DeleteTopic for the errors.
func (k *Keeper) Delete(ctx context.Context, topic string) error {
	answer := messages.NewAnswer[struct{}]()
	return k.Do(ctx, &messages.DeleteTopic{Topic: topic, Answer: answer}, answer)
}

// EnsureForSend returns the topic of a send, and makes it when it is not there and the default topic allows it; see
// messages.EnsureTopicForSend for the errors. A topic that is there costs a lookup.
func (k *Keeper) EnsureForSend(
	ctx context.Context, topic, defaultTopic string, queues int, unit bool,
) (metadata.TopicConfig, error) {
	if cfg, ok := k.Lookup(topic); ok {
		return cfg, nil
	}
	answer := messages.NewAnswer[struct{}]()
	return k.Make(ctx, topic, &messages.EnsureTopicForSend{
		Topic: topic, DefaultTopic: defaultTopic, DefaultQueues: queues, Unit: unit, Answer: answer,
	}, answer, messages.ErrTopicNotExist)
}

// EnsureRetry returns the retry topic of a group, and makes it when it is not there (spec/remoting.md §7.1, §10.1).
func (k *Keeper) EnsureRetry(ctx context.Context, group string, queues int, unit bool) (metadata.TopicConfig, error) {
	m := messages.EnsureTopic{Topic: messages.RetryTopicPrefix + group, Queues: queues, Perm: readWrite}
	if unit {
		m.SysFlag = messages.TopicSysFlagUnitSub
	}
	return k.ensure(ctx, &m)
}

// EnsureDLQ returns the dead-letter topic of a group, and makes it when it is not there (spec/remoting.md §10.1).
func (k *Keeper) EnsureDLQ(ctx context.Context, group string) (metadata.TopicConfig, error) {
	return k.ensure(ctx, &messages.EnsureTopic{Topic: messages.DLQTopicPrefix + group, Queues: 1, Perm: readWrite})
}

// EnsureInternal returns a topic of the broker's own that is made on first use (messages.TopicTransactionHalf and its like): one
// queue, readable and writable.
func (k *Keeper) EnsureInternal(ctx context.Context, topic string) (metadata.TopicConfig, error) {
	return k.ensure(ctx, &messages.EnsureTopic{Topic: topic, Queues: 1, Perm: readWrite})
}

func (k *Keeper) ensure(ctx context.Context, m *messages.EnsureTopic) (metadata.TopicConfig, error) {
	if cfg, ok := k.Lookup(m.Topic); ok {
		return cfg, nil
	}
	m.Answer = messages.NewAnswer[struct{}]()
	return k.Make(ctx, m.Topic, m, m.Answer, messages.ErrTopicNotExist)
}

// ApplyOrder says which topics are order topics; all others are none.
func (k *Keeper) ApplyOrder(ctx context.Context, topics []string) error {
	answer := messages.NewAnswer[struct{}]()
	return k.Do(ctx, &messages.OrderTopics{Topics: topics, Answer: answer}, answer)
}

// Replace makes the table that of the master, when its version differs, and tells whether it did.
func (k *Keeper) Replace(ctx context.Context, body []byte) (bool, error) {
	m := &messages.ReplaceTopics{JSON: body, Answer: messages.NewAnswer[bool]()}
	return k.Ask(ctx, m, m.Answer)
}
