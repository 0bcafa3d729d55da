package topics

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

// Keeper is the way to the topic keeper. Lookups go to the published table; changes go through the actor and wait for its
// answer, at most until the context ends (then they may still take effect). Safe for concurrent use.
type Keeper struct {
	actor *keeperActor
	port  *mailbox.Combining
	root  *actor.RootContext
	pid   *actor.PID
	end   func() error
}

// Start loads the topics, makes the built-in ones, and spawns the actor under a name. It fails when the file is there but
// neither it nor its backup can be read: topics that are lost would be made anew with other queues.
func Start(root *actor.RootContext, name string, cfg Config) (*Keeper, error) {
	a, err := load(cfg)
	if err != nil {
		return nil, err
	}
	port := mailbox.New(mailbox.Options{OnPanic: a.panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(port.Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("start the topic keeper: %w", err)
	}
	end := sync.OnceValue(func() error { return root.PoisonFuture(pid).Wait() })
	return &Keeper{actor: a, port: port, root: root, pid: pid, end: end}, nil
}

// Peer is the actor's address, for messages of package messages.
func (k *Keeper) Peer() actors.Peer { return actors.NewPeer(k.root, k.pid) }

// Close handles what has been sent, refuses what comes later with messages.ErrClosed, and ends the actor. Lookups go on. Only the
// first call does something.
func (k *Keeper) Close() error {
	if err := k.end(); err != nil {
		return fmt.Errorf("stop the topic keeper: %w", err)
	}
	return nil
}

// Lookup returns a topic's configuration. It takes no lock and does not allocate.
func (k *Keeper) Lookup(topic string) (metadata.TopicConfig, bool) {
	return k.actor.published.Load().topics.Get(topic)
}

// All goes through the topics of one moment, in no order.
func (k *Keeper) All() iter.Seq[metadata.TopicConfig] {
	s := k.actor.published.Load()
	return func(yield func(metadata.TopicConfig) bool) {
		for _, topic := range s.topics.All() {
			if !yield(topic) {
				return
			}
		}
	}
}

// Len is the number of topics.
func (k *Keeper) Len() int { return k.actor.published.Load().topics.Len() }

// DataVersion is the version of the published table.
func (k *Keeper) DataVersion() metadata.DataVersion { return k.actor.published.Load().version }

// Table returns a copy of the published table with its version, as it is registered at name servers.
func (k *Keeper) Table() metadata.TopicTable { return k.actor.published.Load().file() }

// JSON is the answer to GET_ALL_TOPIC_CONFIG (spec/remoting.md §18): the published table, compact.
func (k *Keeper) JSON() ([]byte, error) { return json.Marshal(k.Table()) }

// Update makes a topic or replaces its configuration; see messages.UpdateTopic for the errors. Order and Unknown of cfg are
// not looked at.
func (k *Keeper) Update(ctx context.Context, cfg metadata.TopicConfig) error {
	answer := messages.NewAnswer[struct{}]()
	return mailbox.AskDone(ctx, k.port, &messages.UpdateTopic{
		Topic: cfg.TopicName, ReadQueues: cfg.ReadQueueNums, WriteQueues: cfg.WriteQueueNums, Perm: cfg.Perm,
		FilterType: cfg.TopicFilterType, SysFlag: cfg.TopicSysFlag, Answer: answer,
	}, answer)
}

// Delete removes a topic's configuration; see messages.DeleteTopic for the errors.
func (k *Keeper) Delete(ctx context.Context, topic string) error {
	answer := messages.NewAnswer[struct{}]()
	return mailbox.AskDone(ctx, k.port, &messages.DeleteTopic{Topic: topic, Answer: answer}, answer)
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
	err := mailbox.AskDone(ctx, k.port, &messages.EnsureTopicForSend{
		Topic: topic, DefaultTopic: defaultTopic, DefaultQueues: queues, Unit: unit, Answer: answer,
	}, answer)
	return k.made(topic, err)
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
	return k.made(m.Topic, mailbox.AskDone(ctx, k.port, m, m.Answer))
}

// made returns a topic that has just been ensured: it was published before the answer.
func (k *Keeper) made(topic string, err error) (metadata.TopicConfig, error) {
	if err != nil {
		return metadata.TopicConfig{}, err
	}
	cfg, ok := k.Lookup(topic)
	if !ok {
		return cfg, fmt.Errorf("%w: %s was deleted meanwhile", messages.ErrTopicNotExist, topic)
	}
	return cfg, nil
}

// ApplyOrder says which topics are order topics; all others are none.
func (k *Keeper) ApplyOrder(ctx context.Context, topics []string) error {
	answer := messages.NewAnswer[struct{}]()
	return mailbox.AskDone(ctx, k.port, &messages.OrderTopics{Topics: topics, Answer: answer}, answer)
}

// Replace makes the table that of the master, when its version differs, and tells whether it did.
func (k *Keeper) Replace(ctx context.Context, body []byte) (bool, error) {
	m := &messages.ReplaceTopics{JSON: body, Answer: messages.NewAnswer[bool]()}
	return mailbox.Ask(ctx, k.port, m, m.Answer)
}
