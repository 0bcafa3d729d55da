package offsets

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// Keeper is the way to the offset keeper. Safe for concurrent use. Methods with a context wait for the actor's answer, at
// most until the context ends (then the request may still take effect).
type Keeper struct {
	actor *keeperActor
	peer  actors.Peer
	end   func() error
}

// Start loads the offsets and spawns the actor under a name. A file that can't be read does not make it fail: see LoadErr.
func Start(root *actor.RootContext, name string, cfg Config) (*Keeper, error) {
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.MaxPositions <= 0 {
		cfg.MaxPositions = defaultMaxPositions
	}
	a := &keeperActor{cfg: cfg, resets: map[key]time.Time{}, saved: make(chan error, 1)}
	a.load()
	a.port = mailbox.New(mailbox.Options{InlineBatches: inlineBatches, Receiver: a, OnPanic: a.panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(a.port.Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("start the offset keeper: %w", err)
	}
	end := sync.OnceValue(func() error { return root.PoisonFuture(pid).Wait() })
	return &Keeper{actor: a, peer: actors.NewPeer(root, pid), end: end}, nil
}

// Peer is the actor's address, for messages of package messages.
func (k *Keeper) Peer() actors.Peer { return k.peer }

// LoadErr is why the file of offsets could not be used at start, nil when it could. The file was put aside.
func (k *Keeper) LoadErr() error { return k.actor.loadErr }

// Backward counts commits that were lower than the offset before and not expected, since the start.
func (k *Keeper) Backward() int64 { return k.actor.backward.Load() }

// Len is the number of queues, over all groups, that have an offset.
func (k *Keeper) Len() int { return int(k.actor.positions.Load()) }

// Commit notes a group's offset of a queue and does not wait; see messages.CommitOffset. It is usually done on return. The error is
// messages.ErrBusy when too much is waiting; after Close a commit is dropped.
func (k *Keeper) Commit(group string, q messages.QueueKey, offset messages.QueueOffset) error {
	m := &messages.CommitOffset{Group: group, Queue: q, Offset: offset}
	return k.actor.port.Post(m.MailboxLink())
}

// CommitWait is Commit that returns once the offset is published.
func (k *Keeper) CommitWait(ctx context.Context, group string, q messages.QueueKey, offset messages.QueueOffset) error {
	m := &messages.CommitOffset{Group: group, Queue: q, Offset: offset, Answer: messages.NewAnswer[struct{}]()}
	_, err := mailbox.Ask(ctx, k.actor.port, m, m.Answer)
	return err
}

// Query returns a group's offset of a queue, NoOffset when there is none, behind every commit that the caller has made before.
func (k *Keeper) Query(ctx context.Context, group string, q messages.QueueKey) (messages.QueueOffset, error) {
	m := &messages.QueryOffset{Group: group, Queue: q, Answer: messages.NewAnswer[messages.QueueOffset]()}
	return mailbox.Ask(ctx, k.actor.port, m, m.Answer)
}

// Lookup is Query of what is published: without a hop, a lock or an allocation. A commit that is still in the mailbox is not
// seen.
func (k *Keeper) Lookup(group string, q messages.QueueKey) messages.QueueOffset {
	return lookup(k.actor.published.Load(), group, q)
}

// Queues returns a group's offsets in a topic by queue; empty when it has none.
func (k *Keeper) Queues(group, topic string) map[int32]messages.QueueOffset {
	p, _ := k.actor.published.Load().Get(key{topic, group})
	offsets := make(map[int32]messages.QueueOffset, p.len())
	for at := range p.all() {
		offsets[at.queue] = messages.QueueOffset(at.next.Load())
	}
	return offsets
}

// Topics returns the topics that a group has offsets in, sorted. It goes through the whole table: some ms for 100,000
// entries.
func (k *Keeper) Topics(group string) []string {
	var topics []string
	for pair := range k.actor.published.Load().All() {
		if pair.group == group {
			topics = append(topics, pair.topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// Groups returns the groups that have offsets in a topic, sorted. It goes through the whole table, as Topics does.
func (k *Keeper) Groups(topic string) []string {
	var groups []string
	for pair := range k.actor.published.Load().All() {
		if pair.topic == topic {
			groups = append(groups, pair.group)
		}
	}
	slices.Sort(groups)
	return groups
}

// Each calls fn for every queue that a group has an offset in, in no order.
func (k *Keeper) Each(fn func(group string, q messages.QueueKey, next messages.QueueOffset)) {
	for pair, p := range k.actor.published.Load().All() {
		for at := range p.all() {
			fn(pair.group, messages.QueueKey{Topic: pair.topic, QueueID: at.queue}, messages.QueueOffset(at.next.Load()))
		}
	}
}

// Table returns a copy of all offsets.
func (k *Keeper) Table() metadata.OffsetTable { return fileOf(k.actor.published.Load(), k.actor.rest) }

// JSON is the answer to GET_ALL_CONSUMER_OFFSET (spec/remoting.md §18), compact.
func (k *Keeper) JSON() ([]byte, error) { return json.Marshal(k.Table()) }

// Clone gives the group to the offsets of the group from, in one topic or in all (""), and returns the number of topics; it
// is durable then.
func (k *Keeper) Clone(ctx context.Context, from, to, topic string) (int, error) {
	m := &messages.CloneOffsets{From: from, To: to, Topic: topic, Answer: messages.NewAnswer[int]()}
	return mailbox.Ask(ctx, k.actor.port, m, m.Answer)
}

// Remove forgets the offsets of a group ("": all) in a topic ("": all), not both "", and returns the number of pairs; it is
// durable then.
func (k *Keeper) Remove(ctx context.Context, group, topic string) (int, error) {
	m := &messages.RemoveOffsets{Group: group, Topic: topic, Answer: messages.NewAnswer[int]()}
	return mailbox.Ask(ctx, k.actor.port, m, m.Answer)
}

// Merge takes over the offsets of the master, from the body of GET_ALL_CONSUMER_OFFSET; see messages.MergeOffsets for lower and wanted.
func (k *Keeper) Merge(ctx context.Context, body []byte, lower bool, wanted func(topic string) bool) error {
	m := &messages.MergeOffsets{JSON: body, Lower: lower, Wanted: wanted, Answer: messages.NewAnswer[struct{}]()}
	_, err := mailbox.Ask(ctx, k.actor.port, m, m.Answer)
	return err
}

// ExpectReset announces lower commits of a group in a topic, for as long as d.
func (k *Keeper) ExpectReset(group, topic string, d time.Duration) error {
	m := &messages.ExpectReset{Group: group, Topic: topic, Until: time.Now().Add(d)}
	return k.actor.port.Post(m.MailboxLink())
}

// Save makes every offset durable that was committed before.
func (k *Keeper) Save(ctx context.Context) error {
	m := &messages.SaveOffsets{Answer: messages.NewAnswer[struct{}]()}
	_, err := mailbox.Ask(ctx, k.actor.port, m, m.Answer)
	return err
}

// Close handles what has been sent, saves it, refuses what comes later with messages.ErrClosed, and ends the actor. Lookups
// go on. Only the first call does something. A save that failed is in the log; call Save before to know.
func (k *Keeper) Close() error {
	if err := k.end(); err != nil {
		return fmt.Errorf("stop the offset keeper: %w", err)
	}
	return nil
}
