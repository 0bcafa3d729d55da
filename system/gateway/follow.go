package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

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
	n.taken = []ha.SyncStep{
		{What: "topics", Do: n.taking(call, remoting.RequestGetAllTopicConfig, n.takeTopics)},
		{What: "consumer offsets", Do: n.taking(call, remoting.RequestGetAllConsumerOffset, n.takeOffsets)},
		{What: "subscription groups", Do: n.taking(call, remoting.RequestGetAllSubscriptionGroupConfig, n.takeGroups)},
	}
	if n.cfg.Files == nil {
		n.taken = append(n.taken, ha.SyncStep{What: "delay offsets", Do: n.taking(call, remoting.RequestGetAllDelayOffset, n.takeDelayOffsets)})
	}
	sync := ha.NewConfigSync(ha.SyncConfig{
		Steps: n.taken,
		First: n.cfg.SyncFirst, Interval: n.cfg.SyncInterval, Logger: n.broker.Logger,
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

// takeTopics takes over the topics, and deletes the queues and offsets of those that the master has no more. What could not be deleted
// is tried again with the next round.
func (n *Node) takeTopics(ctx context.Context, body []byte) error {
	before := maps.Clone(n.broker.Topics.Table().Topics)
	changed, err := n.broker.Topics.Replace(ctx, body)
	if err != nil {
		return err
	}
	if changed {
		for name := range before {
			if _, there := n.broker.Topics.Lookup(name); !there {
				n.gone.Store(name, nil)
			}
		}
	}
	n.gone.Range(func(name, _ any) bool {
		if err = n.clearTopic(ctx, name.(string)); err == nil {
			n.gone.Delete(name)
		}
		return err == nil
	})
	return err
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

// savedDelays is what was last saved of the master's delay offsets. A round and TakeOver may come together.
type savedDelays struct {
	mu   sync.Mutex
	body []byte
}

// takeDelayOffsets keeps them for a start as a master: a slave delivers nothing. What is saved already is not saved again.
func (n *Node) takeDelayOffsets(_ context.Context, body []byte) error {
	n.delays.mu.Lock()
	defer n.delays.mu.Unlock()
	if bytes.Equal(body, n.delays.body) {
		return nil
	}
	var offsets metadata.DelayOffsets
	if err := json.Unmarshal(body, &offsets); err != nil {
		return fmt.Errorf("read the master's delay offsets: %w", err)
	}
	n.delays.body = nil
	if err := metadata.Save(n.cfg.Disk, n.file("delayOffset.json"), offsets); err != nil {
		return err
	}
	n.delays.body = body
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
