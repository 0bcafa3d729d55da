package groups

import (
	"fmt"
	"math"
	"strings"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/keeper"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// Role is the group keeper's name in a store.
const Role actors.Role = "group-keeper"

// Config is what a group keeper is made of.
type Config struct {
	Disk vfs.Disk
	Path string // of subscriptionGroup.json
	// AutoCreate: a group may be made by its first use (autoCreateSubscriptionGroup). Groups whose names begin with
	// CID_RMQ_SYS_ always may.
	AutoCreate bool
	Logger     zerolog.Logger
}

const (
	systemPrefix      = "CID_RMQ_SYS_"
	maxQueues         = 1 << 16
	defaultRetryTimes = 16
)

// builtIn are there from the start (spec/remoting.md §15.4).
var builtIn = [...]string{
	"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL",
	"CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER",
}

func defaults(group string) metadata.SubscriptionGroupConfig {
	return metadata.SubscriptionGroupConfig{
		GroupName: group, ConsumeEnable: true, ConsumeFromMinEnable: true, ConsumeBroadcastEnable: true,
		RetryQueueNums: 1, RetryMaxTimes: defaultRetryTimes, WhichBrokerWhenConsumeSlowly: 1,
		NotifyConsumerIDsChangedEnable: true,
	}
}

type (
	state = keeper.State[metadata.SubscriptionGroupConfig]
	draft = keeper.Draft[metadata.SubscriptionGroupConfig]
)

// file is the content of subscriptionGroup.json.
func file(s *state) metadata.GroupTable {
	return metadata.GroupTable{DataVersion: s.Version, Groups: s.Entries(), Unknown: s.Unknown}
}

// keeperActor is what the group keeper's actor does with a request.
type keeperActor struct {
	*keeper.Actor[metadata.SubscriptionGroupConfig]
	autoCreate bool
}

// load reads the file and completes it. Nothing else runs yet.
func load(cfg Config) (*keeperActor, error) {
	a := &keeperActor{autoCreate: cfg.AutoCreate}
	var table metadata.GroupTable
	var err error
	a.Actor, err = keeper.Load(keeper.Config[metadata.SubscriptionGroupConfig]{
		What: "subscription group", Disk: cfg.Disk, Path: cfg.Path, Logger: cfg.Logger, Handle: a.handle,
		File: func(s *state) any { return file(s) },
	}, &table, func() *state { return stateOf(&table) }, complete)
	return a, err
}

// complete adds the built-in groups that are missing.
func complete(d *draft) {
	for _, group := range builtIn {
		if _, there := d.Get(group); !there {
			d.Set(group, defaults(group))
		}
	}
}

// stateOf takes a table from a file or a master.
func stateOf(table *metadata.GroupTable) *state {
	edit := actors.NewTable[string, metadata.SubscriptionGroupConfig]().Edit()
	for name, group := range table.Groups {
		group.GroupName = name
		edit.Set(name, group)
	}
	return &state{Table: edit.Table(), Version: table.DataVersion, Unknown: table.Unknown}
}

func (a *keeperActor) handle(d *draft, message any) (known bool) {
	switch m := message.(type) {
	case *messages.EnsureGroup:
		a.Settle(a.ensure(d, m), m.Answer)
	case *messages.UpdateGroup:
		a.Settle(update(d, m), m.Answer)
	case *messages.DeleteGroup:
		d.Remove(m.Group)
		a.Settle(nil, m.Answer)
	case *messages.ReplaceGroups:
		a.replace(d, m)
	default:
		return false
	}
	return true
}

func (a *keeperActor) ensure(d *draft, m *messages.EnsureGroup) error {
	if _, there := d.Get(m.Group); there {
		return nil
	}
	if err := messages.CheckGroupName(m.Group); err != nil {
		return err
	}
	if !a.autoCreate && !strings.HasPrefix(m.Group, systemPrefix) {
		return fmt.Errorf("%w: %s", messages.ErrGroupNotExist, m.Group)
	}
	group := strings.Clone(m.Group) // it may be a slice of a whole frame
	d.Set(group, defaults(group))
	return nil
}

// update applies UpdateGroup.
func update(d *draft, m *messages.UpdateGroup) error {
	if err := messages.CheckGroupName(m.Group); err != nil {
		return err
	}
	switch {
	case m.RetryQueueNums < 0 || m.RetryQueueNums > maxQueues:
		return fmt.Errorf("%w: group %s: retryQueueNums %d, limits 0 and %d",
			messages.ErrGroupConfig, m.Group, m.RetryQueueNums, maxQueues)
	case m.RetryMaxTimes < -1 || m.RetryMaxTimes > math.MaxInt32:
		return fmt.Errorf("%w: group %s: retryMaxTimes %d, limits -1 and %d",
			messages.ErrGroupConfig, m.Group, m.RetryMaxTimes, math.MaxInt32)
	}
	have, _ := d.Get(m.Group)
	group := strings.Clone(m.Group)
	d.Set(group, metadata.SubscriptionGroupConfig{
		GroupName: group, BrokerID: m.BrokerID, ConsumeBroadcastEnable: m.ConsumeBroadcastEnable,
		ConsumeEnable: m.ConsumeEnable, ConsumeFromMinEnable: m.ConsumeFromMinEnable,
		NotifyConsumerIDsChangedEnable: m.NotifyConsumerIDsChangedEnable, RetryMaxTimes: m.RetryMaxTimes,
		RetryQueueNums: m.RetryQueueNums, WhichBrokerWhenConsumeSlowly: m.WhichBrokerWhenConsumeSlowly,
		Unknown: have.Unknown,
	})
	return nil
}

func (a *keeperActor) replace(d *draft, m *messages.ReplaceGroups) {
	var table metadata.GroupTable
	if err := metadata.Parse(m.JSON, &table); err != nil {
		m.Refuse(fmt.Errorf("subscription groups of the master: %w", err))
		return
	}
	differs := table.DataVersion != d.Version
	if differs {
		d.Replace(stateOf(&table))
	}
	a.Later(func(err error) { m.Answer.Complete(differs && err == nil, err) })
}
