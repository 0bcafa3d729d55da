package topics

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/fastjson"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// Role is the topic keeper's name in a store.
const Role actors.Role = "topic-keeper"

// Config is what a topic keeper is made of.
type Config struct {
	Disk vfs.Disk
	Path string // of topics.json

	ClusterName string // brokerClusterName
	BrokerName  string // brokerName

	AutoCreate    bool   // autoCreateTopicEnable: TBW102 is a template for every producer
	DefaultQueues int    // defaultTopicQueueNums, of TBW102; 0: 8
	ClusterTopic  bool   // clusterTopicEnable: the topic with the cluster's name is a template
	BrokerTopic   bool   // brokerTopicEnable: the topic with the broker's name is a template
	TraceTopic    string // msgTraceTopicName, made at start; empty: none (traceTopicEnable=false)

	Listener actors.Peer // is told TopicsChanged
	Logger   zerolog.Logger
}

const defaultQueues = 8

// keeperActor is the actor behind a Keeper.
type keeperActor struct {
	cfg       Config
	system    map[string]struct{} // names of system topics; never changed
	published atomic.Pointer[state]

	// Of the running batch.
	draft   *draft
	waiting []func(error) // answers that depend on the draft
	rejects int           // messages that nobody knows
}

// load reads the file and completes it. Nothing else runs yet.
func load(cfg Config) (*keeperActor, error) {
	if cfg.DefaultQueues <= 0 {
		cfg.DefaultQueues = defaultQueues
	}
	var file metadata.TopicTable
	report, err := metadata.LoadReport(cfg.Disk, cfg.Path, &file)
	if err != nil {
		return nil, fmt.Errorf("load topics: %w", err)
	}
	if report.MainErr != nil {
		cfg.Logger.Error().Err(report.MainErr).Str("from", report.From).Msg("the topic file is damaged; its backup was loaded")
	}
	a := &keeperActor{cfg: cfg, system: systemNames(&cfg)}
	a.published.Store(a.stateOf(&file))
	a.draft = newDraft(a.published.Load())
	complete(a.draft, &a.cfg)
	if report.From == "" {
		a.draft.version.Counter = 0 // as the original begins
	}
	first := a.draft.state()
	if a.draft.dirty {
		if err := metadata.Save(cfg.Disk, cfg.Path, first.file()); err != nil {
			// Not fatal: it is what every start makes, and the next change saves it.
			cfg.Logger.Error().Err(err).Msg("the topic file could not be written at start")
		}
	}
	a.published.Store(first)
	a.draft = nil
	return a, nil
}

// stateOf takes a table from a file or a master. Names that no topic can have are left out: a name may become that of a
// folder.
func (a *keeperActor) stateOf(file *metadata.TopicTable) *state {
	edit := actors.NewTable[string, metadata.TopicConfig]().Edit()
	for name, topic := range file.Topics {
		// One that is too long is only useless, and the original keeps it.
		if err := messages.CheckTopicName(name[:min(len(name), messages.MaxTopicBytes)]); err != nil {
			a.cfg.Logger.Warn().Err(err).Msg("a topic with a bad name is left out")
			continue
		}
		topic.TopicName = name
		edit.Set(name, topic)
	}
	return &state{topics: edit.Table(), version: file.DataVersion, unknown: file.Unknown}
}

// Receive implements actor.Actor.
func (a *keeperActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *mailbox.Batch:
		a.batch(m)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		a.reject(m)
	}
}

// batch handles the waiting requests as one change.
func (a *keeperActor) batch(b *mailbox.Batch) {
	a.draft = newDraft(a.published.Load())
	for m := b.Next(); m != nil; m = b.Next() {
		a.handle(m)
	}
	err := a.save()
	a.finish(err)
}

func (a *keeperActor) handle(message any) {
	switch m := message.(type) {
	case *messages.EnsureTopicForSend:
		settle(a, a.draft.ensureForSend(m), m.Answer)
	case *messages.EnsureTopic:
		settle(a, a.draft.ensure(m), m.Answer)
	case *messages.UpdateTopic:
		settle(a, a.update(m), m.Answer)
	case *messages.DeleteTopic:
		settle(a, a.remove(m), m.Answer)
	case *messages.OrderTopics:
		a.draft.order(m)
		settle(a, nil, m.Answer)
	case *messages.ReplaceTopics:
		a.replace(m)
	default:
		a.reject(message)
	}
}

// settle answers a refusal at once; anything else waits for the save.
func settle(a *keeperActor, err error, answer *messages.Answer[struct{}]) {
	if err != nil {
		answer.Refuse(err)
		return
	}
	a.waiting = append(a.waiting, func(err error) { answer.Complete(struct{}{}, err) })
}

func (a *keeperActor) update(m *messages.UpdateTopic) error {
	if a.isSystem(m.Topic) {
		return fmt.Errorf("%w: %s", messages.ErrSystemTopic, m.Topic)
	}
	return a.draft.update(m)
}

func (a *keeperActor) remove(m *messages.DeleteTopic) error {
	if a.isSystem(m.Topic) {
		return fmt.Errorf("%w: %s", messages.ErrSystemTopic, m.Topic)
	}
	a.draft.remove(m.Topic)
	return nil
}

func (a *keeperActor) replace(m *messages.ReplaceTopics) {
	var table metadata.TopicTable
	if err := decode(m.JSON, &table); err != nil {
		m.Refuse(fmt.Errorf("topics of the master: %w", err))
		return
	}
	differs := table.DataVersion != a.draft.version
	if differs {
		legal := a.stateOf(&table).file()
		a.draft.replace(&legal)
	}
	a.waiting = append(a.waiting, func(err error) { m.Answer.Complete(differs && err == nil, err) })
}

// decode reads a table in RocketMQ's dialect.
func decode(in []byte, table *metadata.TopicTable) error {
	strict, err := fastjson.Relax(in)
	if err != nil {
		return err
	}
	return json.Unmarshal(strict, table)
}

// reject notes a message that this actor does not know, and does not leave its sender waiting.
func (a *keeperActor) reject(message any) {
	a.rejects++
	a.cfg.Logger.Warn().Type("message", message).Int("count", a.rejects).Msg("the topic keeper does not know a message")
	messages.Refuse(message, errors.ErrUnsupported)
}

// save makes the draft durable, publishes it and tells the listener. On an error nothing has changed.
func (a *keeperActor) save() error {
	if !a.draft.dirty {
		return nil
	}
	next := a.draft.state()
	if err := metadata.Save(a.cfg.Disk, a.cfg.Path, next.file()); err != nil {
		return err
	}
	a.published.Store(next)
	a.cfg.Listener.Send(a.draft.news())
	return nil
}

// finish answers everybody who waits for the draft.
func (a *keeperActor) finish(err error) {
	if err != nil {
		err = fmt.Errorf("topics are not changed: %w", err)
		a.cfg.Logger.Error().Err(err).Int("requests", len(a.waiting)).Msg("saving topics failed")
	}
	answers := a.waiting
	a.waiting, a.draft = nil, nil
	for _, answer := range answers {
		answer(err)
	}
}

// panicked is the mailbox's OnPanic: the batch's draft is dropped; whether it reached the disk is unknown, so the next
// change writes the whole file anyway.
func (a *keeperActor) panicked(reason any, stack []byte) {
	a.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", stack).Msg("the topic keeper panicked")
	a.finish(messages.ErrPanicked)
}
