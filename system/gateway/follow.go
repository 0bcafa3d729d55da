package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors/ha"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// follows tells whether the broker is a slave that takes over its master's configuration.
func (n *Node) follows() bool { return n.broker.BrokerID != 0 && n.cfg.Join.Connect != nil }

// startFollowing starts what takes over the master's topics, groups, offsets and, where they do not come with the log, delay offsets.
func (n *Node) startFollowing() error {
	if !n.follows() {
		return nil
	}
	if n.cfg.Master != "" {
		n.master.Store(&n.cfg.Master)
	}
	call, end := n.cfg.Join.Connect(func(string) {})
	t := &taken{Node: n, gone: map[string]struct{}{}}
	steps := []ha.SyncStep{
		{What: "topics", Do: t.clearing(n.taking(call, remoting.RequestGetAllTopicConfig, t.takeTopics))},
		{What: "consumer offsets", Do: n.taking(call, remoting.RequestGetAllConsumerOffset, n.takeOffsets)},
		{What: "subscription groups", Do: n.taking(call, remoting.RequestGetAllSubscriptionGroupConfig, n.takeGroups)},
	}
	if n.cfg.Files == nil {
		steps = append(steps, ha.SyncStep{What: "delay offsets", Do: n.taking(call, remoting.RequestGetAllDelayOffset, t.takeDelayOffsets)})
	}
	sync := ha.NewConfigSync(ha.SyncConfig{
		Steps: steps, First: n.cfg.SyncFirst, Interval: n.cfg.SyncInterval, Logger: n.broker.Logger,
	})
	port := mailbox.New(mailbox.Options{OnPanic: func(reason any, stack []byte) {
		n.broker.Logger.Error().Interface("panic", reason).Bytes("stack", stack).Msg("following the master's configuration panicked")
	}})
	props := actor.PropsFromProducer(func() actor.Actor { return sync }, actor.WithMailbox(port.Producer()))
	pid, err := n.root.SpawnNamed(props, "config-sync")
	if err != nil {
		end()
		return fmt.Errorf("start following the master: %w", err)
	}
	n.configSync = pid
	n.stopping(nil, func() error {
		defer end()
		return n.root.StopFuture(pid).Wait()
	})
	return nil
}

// taking asks the master, and hands on what it answers.
func (n *Node) taking(call Caller, code int, take func(context.Context, []byte) error) func(context.Context) error {
	return func(ctx context.Context) error {
		master := n.master.Load()
		if master == nil {
			return nil // no name server has told it yet
		}
		answer, err := call(ctx, *master, remoting.NewRequest(code, nil))
		if err != nil {
			return err
		}
		if answer.Code != remoting.ResponseSuccess {
			return fmt.Errorf("%s at %s: %s: %s", remoting.RequestName(code), *master, remoting.ResponseName(answer.Code), answer.Remark)
		}
		return take(ctx, answer.Body)
	}
}

// taken is what a slave keeps of its master's answers from round to round. It belongs to the round that runs: there is one at a time.
type taken struct {
	*Node
	gone   map[string]struct{}  // topics that the master has deleted, and that are to be cleared here
	delays []byte               // its delay offsets, as they were last saved
	topics [sha256.Size]byte    // of its topics, as they were last taken: many nodes have thousands, and mostly they are as they were
	since  metadata.DataVersion // that these topics have
}

// clearing takes the topics, and then deletes the queues and offsets of those that the master has no more; of a promotion, whose round is the last
// occasion, also when it does not answer any more. In any other round it may have made them again, and what is in their queues may be of their new life:
// the next one tells. What could not be deleted is tried again with it.
func (t *taken) clearing(take func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := take(ctx)
		if err != nil && !t.takesOver.Load() {
			return err
		}
		for name := range t.gone {
			if _, there := t.broker.Topics.Lookup(name); there && err != nil {
				continue // the table without it may be on its way
			}
			if failed := t.clearTopic(ctx, name); failed != nil {
				return errors.Join(err, failed)
			}
			delete(t.gone, name)
		}
		return err
	}
}

// takeTopics takes over the topics, and notes those that the master has no more.
func (t *taken) takeTopics(ctx context.Context, body []byte) error {
	sum := sha256.Sum256(body)
	if sum == t.topics && t.since == t.broker.Topics.DataVersion() {
		return nil
	}
	var table metadata.TopicTable
	if err := metadata.Parse(body, &table); err != nil {
		return fmt.Errorf("topics of the master: %w", err)
	}
	before := t.broker.Topics.Table()
	if before.DataVersion == table.DataVersion {
		t.topics, t.since = sum, table.DataVersion
		return nil
	}
	if err := t.forget(ctx, before.DeletedSince(table.Deleted)); err != nil {
		return err
	}
	for name := range before.Topics { // noted first: a round that is cut short may leave the table to be taken
		if _, there := table.Topics[name]; !there {
			t.gone[name] = struct{}{}
		}
	}
	_, err := t.broker.Topics.Replace(ctx, body)
	return err
}

// forget removes the offsets of topics that the master has deleted since it was last asked. It may have made them again, so that nothing else
// tells; their queues begin anew with their first record. It comes before the master's table is taken: what fails is tried again with it.
func (n *Node) forget(ctx context.Context, deleted map[string]struct{}) error {
	if len(deleted) == 0 {
		return nil
	}
	have := map[string]struct{}{}
	n.broker.Offsets.Each(func(_ string, q messages.QueueKey, _ messages.QueueOffset) {
		if _, is := deleted[q.Topic]; is {
			have[q.Topic] = struct{}{}
		}
	})
	for name := range have {
		if _, err := n.broker.Offsets.Remove(ctx, "", name); err != nil {
			return err
		}
		n.broker.Logger.Info().Str("topic", name).Msg("the master has deleted a topic: its consumer offsets are removed")
	}
	return nil
}

// clearTopic deletes what belongs to a topic, unless the master has made it again meanwhile.
func (n *Node) clearTopic(ctx context.Context, name string) error {
	if _, there := n.broker.Topics.Lookup(name); there {
		return nil
	}
	if _, err := n.broker.Offsets.Remove(ctx, "", name); err != nil {
		return err
	}
	if d, ok := n.broker.Store.(broker.TopicDeleter); ok {
		if err := d.DeleteTopic(ctx, name); err != nil {
			return err
		}
	}
	n.broker.Logger.Info().Str("topic", name).Msg("the master has deleted a topic")
	return nil
}

func (n *Node) takeGroups(ctx context.Context, body []byte) error {
	_, err := n.broker.Groups.Replace(ctx, body)
	return err
}

// takeOffsets never goes back: consumers may have read here while the master was away. Offsets of topics that are not there are left out:
// a master that deletes one still tells them for a while, and nobody would remove them here any more.
func (n *Node) takeOffsets(ctx context.Context, body []byte) error {
	return n.broker.Offsets.Merge(ctx, body, false, func(topic string) bool {
		_, there := n.broker.Topics.Lookup(topic)
		return there || n.broker.Topics.IsSystem(topic) || strings.HasPrefix(topic, messages.LMQTopicPrefix)
	})
}

// takeDelayOffsets keeps them for a start as a master: a slave delivers nothing. What is saved already is not saved again.
func (t *taken) takeDelayOffsets(_ context.Context, body []byte) error {
	if bytes.Equal(body, t.delays) {
		return nil
	}
	var offsets metadata.DelayOffsets
	if err := json.Unmarshal(body, &offsets); err != nil {
		return fmt.Errorf("read the master's delay offsets: %w", err)
	}
	t.delays = nil
	if err := metadata.Save(t.cfg.Disk, t.file("delayOffset.json"), offsets); err != nil {
		return err
	}
	t.delays = body
	return nil
}

// promoted takes over from a name server who the master is, where no option says it.
func (n *Node) promoted(answer *remoting.Command) {
	var h remoting.RegisterBrokerAnswer
	if !n.follows() || remoting.FromExt(answer.ExtFields, &h) != nil {
		return
	}
	if n.cfg.Master == "" && h.MasterAddr != "" && h.MasterAddr != n.broker.Address {
		n.master.Store(&h.MasterAddr)
	}
	if f, ok := n.broker.Store.(interface{ Follow(replication string) }); ok && h.HAServerAddr != "" && h.MasterAddr != "" {
		f.Follow(h.HAServerAddr)
	}
}
