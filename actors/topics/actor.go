package topics

import (
	"fmt"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/keeper"
	"github.com/actormq/actormq/messages"
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

// keeperActor is what the topic keeper's actor does with a request.
type keeperActor struct {
	*keeper.Actor[metadata.TopicConfig]
	cfg    Config
	system map[string]struct{} // names of system topics; never changed
}

// state is what is published.
type state = keeper.State[metadata.TopicConfig]

// file is the content of topics.json.
func file(s *state) metadata.TopicTable {
	return metadata.TopicTable{DataVersion: s.Version, Topics: s.Entries(), Deleted: s.Deleted, Unknown: s.Unknown}
}

// load reads the file and completes it. Nothing else runs yet.
func load(cfg Config) (*keeperActor, error) {
	if cfg.DefaultQueues <= 0 {
		cfg.DefaultQueues = defaultQueues
	}
	a := &keeperActor{cfg: cfg, system: systemNames(&cfg)}
	var table metadata.TopicTable
	var err error
	a.Actor, err = keeper.Load(keeper.Config[metadata.TopicConfig]{
		What: "topic", Disk: cfg.Disk, Path: cfg.Path, Logger: cfg.Logger, Handle: a.handle,
		File: func(s *state) any { return file(s) },
		Saved: func(d *keeper.Draft[metadata.TopicConfig]) {
			changed, removed := d.News()
			cfg.Listener.Send(messages.TopicsChanged{Changed: changed, Removed: removed})
		},
	}, &table, func() *state { return a.stateOf(&table) }, func(d *keeper.Draft[metadata.TopicConfig]) {
		complete(draft{d}, &a.cfg)
	})
	return a, err
}

// stateOf takes a table from a file or a master. Names that no topic can have are left out: a name may become that of a
// folder.
func (a *keeperActor) stateOf(table *metadata.TopicTable) *state {
	edit := actors.NewTable[string, metadata.TopicConfig]().Edit()
	for name, topic := range table.Topics {
		// One that is too long is only useless, and the original keeps it.
		if err := messages.CheckTopicName(name[:min(len(name), messages.MaxTopicBytes)]); err != nil {
			a.cfg.Logger.Warn().Err(err).Msg("a topic with a bad name is left out")
			continue
		}
		topic.TopicName = name
		edit.Set(name, topic)
	}
	return &state{Table: edit.Table(), Version: table.DataVersion, Deleted: table.Deleted, Unknown: table.Unknown}
}

func (a *keeperActor) handle(change *keeper.Draft[metadata.TopicConfig], message any) (known bool) {
	d := draft{change}
	switch m := message.(type) {
	case *messages.EnsureTopicForSend:
		a.Settle(d.ensureForSend(m), m.Answer)
	case *messages.EnsureTopic:
		a.Settle(d.ensure(m), m.Answer)
	case *messages.UpdateTopic:
		a.Settle(a.update(d, m), m.Answer)
	case *messages.DeleteTopic:
		a.Settle(a.remove(d, m), m.Answer)
	case *messages.OrderTopics:
		d.order(m)
		a.Settle(nil, m.Answer)
	case *messages.ReplaceTopics:
		a.replace(d, m)
	default:
		return false
	}
	return true
}

func (a *keeperActor) update(d draft, m *messages.UpdateTopic) error {
	if a.isSystem(m.Topic) {
		return fmt.Errorf("%w: %s", messages.ErrSystemTopic, m.Topic)
	}
	return d.update(m)
}

func (a *keeperActor) remove(d draft, m *messages.DeleteTopic) error {
	if a.isSystem(m.Topic) {
		return fmt.Errorf("%w: %s", messages.ErrSystemTopic, m.Topic)
	}
	if _, there := d.Get(m.Topic); there {
		d.Remove(m.Topic)
		d.Deleted = metadata.NoteDeleted(d.Deleted, m.Topic, d.Version) // slaves can't see it otherwise, once it is made again
	}
	return nil
}

func (a *keeperActor) replace(d draft, m *messages.ReplaceTopics) {
	var table metadata.TopicTable
	if err := metadata.Parse(m.JSON, &table); err != nil {
		m.Refuse(fmt.Errorf("topics of the master: %w", err))
		return
	}
	differs := table.DataVersion != d.Version
	if differs {
		d.Replace(a.stateOf(&table))
	}
	a.Later(func(err error) { m.Answer.Complete(differs && err == nil, err) })
}
