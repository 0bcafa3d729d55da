package groups

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/fastjson"
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

// state is what is published: it never changes.
type state struct {
	groups  *actors.Table[string, metadata.SubscriptionGroupConfig]
	version metadata.DataVersion
	unknown metadata.Unknown // members of the file that this version does not know
}

// file is the content of subscriptionGroup.json.
func (s *state) file() metadata.GroupTable {
	return metadata.GroupTable{DataVersion: s.version, Groups: maps.Collect(s.groups.All()), Unknown: s.unknown}
}

// keeperActor is the actor behind a Keeper. It runs on a goroutine of its own, which waits for the disk.
type keeperActor struct {
	cfg       Config
	published atomic.Pointer[state]

	// Of the running batch.
	draft   *draft
	waiting []func(error) // answers that depend on the draft
}

// draft is a change in the making.
type draft struct {
	edit    *actors.TableEdit[string, metadata.SubscriptionGroupConfig]
	version metadata.DataVersion
	unknown metadata.Unknown
	dirty   bool
}

func newDraft(s *state) *draft {
	return &draft{edit: s.groups.Edit(), version: s.version, unknown: s.unknown}
}

func (d *draft) set(group metadata.SubscriptionGroupConfig) {
	if have, there := d.edit.Get(group.GroupName); there && reflect.DeepEqual(have, group) {
		return
	}
	d.edit.Set(group.GroupName, group)
	d.advance()
}

func (d *draft) remove(group string) {
	if d.edit.Delete(group) {
		d.advance()
	}
}

func (d *draft) advance() {
	d.version.Advance(time.Now().UnixMilli())
	d.dirty = true
}

func (d *draft) state() *state {
	return &state{groups: d.edit.Table(), version: d.version, unknown: d.unknown}
}

// load reads the file and completes it. Nothing else runs yet.
func load(cfg Config) (*keeperActor, error) {
	var file metadata.GroupTable
	report, err := metadata.LoadReport(cfg.Disk, cfg.Path, &file)
	if err != nil {
		return nil, fmt.Errorf("load subscription groups: %w", err)
	}
	if report.MainErr != nil {
		cfg.Logger.Error().Err(report.MainErr).Str("from", report.From).
			Msg("the subscription group file is damaged; its backup was loaded")
	}
	a := &keeperActor{cfg: cfg}
	a.published.Store(stateOf(&file))
	d := newDraft(a.published.Load())
	for _, group := range builtIn {
		if _, there := d.edit.Get(group); !there {
			d.set(defaults(group))
		}
	}
	if report.From == "" {
		d.version.Counter = 0 // as the original begins
	}
	first := d.state()
	if d.dirty {
		if err := metadata.Save(cfg.Disk, cfg.Path, first.file()); err != nil {
			// Not fatal: it is what every start makes, and the next change saves it.
			cfg.Logger.Error().Err(err).Msg("the subscription group file could not be written at start")
		}
	}
	a.published.Store(first)
	return a, nil
}

// stateOf takes a table from a file or a master.
func stateOf(file *metadata.GroupTable) *state {
	edit := actors.NewTable[string, metadata.SubscriptionGroupConfig]().Edit()
	for name, group := range file.Groups {
		group.GroupName = name
		edit.Set(name, group)
	}
	return &state{groups: edit.Table(), version: file.DataVersion, unknown: file.Unknown}
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
	case *messages.EnsureGroup:
		a.settle(a.ensure(m), m.Answer)
	case *messages.UpdateGroup:
		a.settle(a.draft.update(m), m.Answer)
	case *messages.DeleteGroup:
		a.draft.remove(m.Group)
		a.settle(nil, m.Answer)
	case *messages.ReplaceGroups:
		a.replace(m)
	default:
		a.reject(message)
	}
}

// settle answers a refusal at once; anything else waits for the save.
func (a *keeperActor) settle(err error, answer *messages.Answer[struct{}]) {
	if err != nil {
		answer.Refuse(err)
		return
	}
	a.waiting = append(a.waiting, func(err error) { answer.Complete(struct{}{}, err) })
}

func (a *keeperActor) ensure(m *messages.EnsureGroup) error {
	if _, there := a.draft.edit.Get(m.Group); there {
		return nil
	}
	if err := messages.CheckGroupName(m.Group); err != nil {
		return err
	}
	if !a.cfg.AutoCreate && !strings.HasPrefix(m.Group, systemPrefix) {
		return fmt.Errorf("%w: %s", messages.ErrGroupNotExist, m.Group)
	}
	a.draft.set(defaults(strings.Clone(m.Group))) // it may be a slice of a whole frame
	return nil
}

// update applies UpdateGroup.
func (d *draft) update(m *messages.UpdateGroup) error {
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
	have, _ := d.edit.Get(m.Group)
	group := strings.Clone(m.Group)
	d.set(metadata.SubscriptionGroupConfig{
		GroupName: group, BrokerID: m.BrokerID, ConsumeBroadcastEnable: m.ConsumeBroadcastEnable,
		ConsumeEnable: m.ConsumeEnable, ConsumeFromMinEnable: m.ConsumeFromMinEnable,
		NotifyConsumerIDsChangedEnable: m.NotifyConsumerIDsChangedEnable, RetryMaxTimes: m.RetryMaxTimes,
		RetryQueueNums: m.RetryQueueNums, WhichBrokerWhenConsumeSlowly: m.WhichBrokerWhenConsumeSlowly,
		Unknown: have.Unknown,
	})
	return nil
}

func (a *keeperActor) replace(m *messages.ReplaceGroups) {
	var table metadata.GroupTable
	strict, err := fastjson.Relax(m.JSON)
	if err == nil {
		err = json.Unmarshal(strict, &table)
	}
	if err != nil {
		m.Refuse(fmt.Errorf("subscription groups of the master: %w", err))
		return
	}
	differs := table.DataVersion != a.draft.version
	if differs {
		next := stateOf(&table)
		a.draft = &draft{edit: next.groups.Edit(), version: next.version, unknown: next.unknown, dirty: true}
	}
	a.waiting = append(a.waiting, func(err error) { m.Answer.Complete(differs && err == nil, err) })
}

// reject does not leave the sender of an unknown message waiting.
func (a *keeperActor) reject(message any) {
	a.cfg.Logger.Warn().Type("message", message).Msg("the group keeper does not know a message")
	messages.Refuse(message, errors.ErrUnsupported)
}

// save makes the draft durable and publishes it. On an error nothing has changed.
func (a *keeperActor) save() error {
	if !a.draft.dirty {
		return nil
	}
	next := a.draft.state()
	if err := metadata.Save(a.cfg.Disk, a.cfg.Path, next.file()); err != nil {
		return err
	}
	a.published.Store(next)
	return nil
}

// finish answers everybody who waits for the draft.
func (a *keeperActor) finish(err error) {
	if err != nil {
		err = fmt.Errorf("subscription groups are not changed: %w", err)
		a.cfg.Logger.Error().Err(err).Int("requests", len(a.waiting)).Msg("saving subscription groups failed")
	}
	answers := a.waiting
	a.waiting, a.draft = nil, nil
	for _, answer := range answers {
		answer(err)
	}
}

// panicked is the mailbox's OnPanic: the batch's draft is dropped. Whether it reached the disk is unknown; the next change
// writes the whole file anyway.
func (a *keeperActor) panicked(reason any, stack []byte) {
	a.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", stack).Msg("the group keeper panicked")
	a.finish(messages.ErrPanicked)
}
