package offsets

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// Role is the offset keeper's name in a store.
const Role actors.Role = "offset-keeper"

// Config is what an offset keeper is made of.
type Config struct {
	Disk vfs.Disk
	Path string // of consumerOffset.json
	// LightGroups keeps the offsets of groups %LMQ%… in lmqOffsetTable, as RocketMQ does with enableLmq, in lmqConsumerOffset.json.
	LightGroups bool
	Before      string // file that is read when there is none at Path

	Interval       time.Duration // flushConsumerOffsetInterval: from the first change to the save; 0: 5 s
	RefuseBackward bool          // keep the higher offset, unless a reset is expected
	MaxPositions   int           // queues of all groups together; 0: 4,194,304

	Logger zerolog.Logger
}

const (
	defaultInterval     = 5 * time.Second
	defaultMaxPositions = 1 << 22
	logPause            = 5 * time.Second // between two lines of one kind
	inlineBatches       = 4
)

// keeperActor is the actor behind a Keeper.
type keeperActor struct {
	cfg       Config
	port      *mailbox.Combining
	published atomic.Pointer[table]
	backward  atomic.Int64 // lower commits
	positions atomic.Int64 // cells in the table
	rest      rest
	loadErr   error // why the file could not be used

	resets map[key]time.Time // until when lower commits are expected

	dirty  bool // something is not in the file
	tick   *time.Timer
	saving bool
	saved  chan error    // the result of the running save
	asked  []func(error) // answers that wait for the running save
	queued []func(error) // answers that wait for the next one

	backwardLog, fullLog limiter
}

// offsetsSaved tells that the result of a save is there.
type offsetsSaved struct{}

// ReceiveBatch implements mailbox.BatchReceiver.
func (a *keeperActor) ReceiveBatch(b *mailbox.Batch) {
	for m := b.Next(); m != nil; m = b.Next() {
		a.handle(m)
	}
	a.settle()
}

// Receive implements actor.Actor: all but requests.
func (a *keeperActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.SaveOffsetsTick:
		a.tick = nil
		a.startSave()
	case offsetsSaved:
		a.finishSave(<-a.saved)
		if len(a.queued) > 0 {
			a.startSave()
		}
		a.settle()
	case *actor.Stopping:
		a.stopping()
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		a.reject(m)
	}
}

func (a *keeperActor) handle(message any) {
	switch m := message.(type) {
	case *messages.CommitOffset:
		m.Answer.Complete(struct{}{}, a.commit(m))
	case *messages.QueryOffset:
		m.Answer.Complete(lookup(a.published.Load(), m.Group, m.Queue), nil)
	case *messages.CloneOffsets:
		n := a.clone(m)
		a.whenSaved(func(err error) { m.Answer.Complete(n, err) })
	case *messages.RemoveOffsets:
		a.remove(m)
	case *messages.MergeOffsets:
		m.Answer.Complete(struct{}{}, a.merge(m))
	case *messages.ExpectReset:
		a.resets[key{m.Topic, m.Group}] = m.Until
	case *messages.SaveOffsets:
		a.whenSaved(func(err error) { m.Answer.Complete(struct{}{}, err) })
	default:
		a.reject(message)
	}
}

// commit applies CommitOffset. What it ignores is no error: clients have no use for one (spec/remoting.md §11.1).
func (a *keeperActor) commit(m *messages.CommitOffset) error {
	k := key{m.Queue.Topic, m.Group}
	if m.Offset < 0 || m.Queue.QueueID < 0 || !k.legal() {
		return nil
	}
	p, _ := a.published.Load().Get(k)
	cell := p.cell(m.Queue.QueueID)
	if cell == nil {
		return a.grow(k, p, m.Queue.QueueID, int64(m.Offset))
	}
	before := messages.QueueOffset(cell.Load())
	if before == m.Offset || m.Offset < before && !a.mayLower(k, m, before) {
		return nil
	}
	cell.Store(int64(m.Offset))
	a.dirty = true
	return nil
}

// grow adds a queue that has no cell yet.
func (a *keeperActor) grow(k key, p *progress, queue int32, next int64) error {
	if a.positions.Load() >= int64(a.cfg.MaxPositions) {
		if n, ok := a.fullLog.allow(); ok {
			a.cfg.Logger.Error().Int("limit", a.cfg.MaxPositions).Str("group", k.group).Str("topic", k.topic).
				Int64("since_last", n).Msg("too many consumer offsets: new ones are not kept")
		}
		return fmt.Errorf("%w: %d consumer offsets are kept", messages.ErrBusy, a.cfg.MaxPositions)
	}
	a.positions.Add(1)
	if p != nil {
		p.add(queue, next)
		a.dirty = true
		return nil
	}
	edit := a.published.Load().Edit()
	k.topic, k.group = strings.Clone(k.topic), strings.Clone(k.group) // they may be slices of a whole frame
	p = &progress{}
	p.add(queue, next)
	edit.Set(k, p)
	a.publish(edit)
	return nil
}

func (a *keeperActor) publish(edit *actors.TableEdit[key, *progress]) {
	a.published.Store(edit.Table())
	a.dirty = true
}

// mayLower decides on a commit that goes back. A client in network trouble does that by mistake, and an operator who resets
// a group on purpose.
func (a *keeperActor) mayLower(k key, m *messages.CommitOffset, before messages.QueueOffset) bool {
	if until, expected := a.resets[k]; expected && time.Now().Before(until) {
		return true
	}
	a.backward.Add(1)
	if n, ok := a.backwardLog.allow(); ok {
		a.cfg.Logger.Warn().Str("group", m.Group).Str("topic", m.Queue.Topic).Int32("queue", m.Queue.QueueID).
			Int64("from", int64(before)).Int64("to", int64(m.Offset)).Bool("refused", a.cfg.RefuseBackward).
			Int64("since_last", n).Msg("a consumer offset goes back")
	}
	return !a.cfg.RefuseBackward
}

func (a *keeperActor) clone(m *messages.CloneOffsets) int {
	n := 0
	from := a.published.Load()
	edit := from.Edit()
	for k, p := range from.All() {
		wanted := m.Topic == k.topic || m.Topic == "" && k.topic != messages.RetryTopicPrefix+m.From
		to := key{k.topic, m.To}
		if k.group != m.From || !wanted || m.To == m.From || !to.legal() {
			continue
		}
		before, _ := edit.Get(to)
		edit.Set(to, p.copied())
		a.positions.Add(int64(p.len() - before.len()))
		n++
	}
	if n > 0 {
		a.publish(edit)
	}
	return n
}

func (a *keeperActor) remove(m *messages.RemoveOffsets) {
	if m.Group == "" && m.Topic == "" {
		m.Refuse(errors.New("remove offsets: neither a group nor a topic is named"))
		return
	}
	n := 0
	from := a.published.Load()
	edit := from.Edit()
	for k, p := range from.All() {
		if (m.Group == "" || m.Group == k.group) && (m.Topic == "" || m.Topic == k.topic) {
			edit.Delete(k)
			a.positions.Add(int64(-p.len()))
			n++
		}
	}
	if n > 0 {
		a.publish(edit)
	}
	a.whenSaved(func(err error) { m.Answer.Complete(n, err) })
}

func (a *keeperActor) merge(m *messages.MergeOffsets) error {
	var file metadata.OffsetTable
	if err := metadata.Parse(m.JSON, &file); err != nil {
		return fmt.Errorf("offsets of the master: %w", err)
	}
	changed := false
	edit := a.published.Load().Edit()
	for name, queues := range file.Offsets {
		topic, group, _ := metadata.SplitOffsetKey(name)
		k := key{topic, group}
		if wanted := m.Wanted == nil || m.Wanted(topic); wanted && k.legal() && a.mergeOne(edit, k, queues, m.Lower) {
			changed = true
		}
	}
	if changed {
		a.publish(edit)
	}
	return nil
}

// mergeOne takes over the offsets of a group in a topic and tells whether that changed anything.
func (a *keeperActor) mergeOne(
	edit *actors.TableEdit[key, *progress], k key, queues map[int32]int64, lower bool,
) (changed bool) {
	p, _ := edit.Get(k)
	for queue, next := range queues {
		cell := p.cell(queue)
		switch {
		case next < 0 || queue < 0:
		case cell != nil && (lower && next != cell.Load() || next > cell.Load()):
			cell.Store(next)
			changed = true
		case cell == nil && a.positions.Load() < int64(a.cfg.MaxPositions):
			if p == nil {
				p = &progress{}
				edit.Set(k, p)
			}
			p.add(queue, next)
			a.positions.Add(1)
			changed = true
		}
	}
	return changed
}

// reject does not leave the sender of an unknown message waiting.
func (a *keeperActor) reject(message any) {
	a.cfg.Logger.Warn().Type("message", message).Msg("the offset keeper does not know a message")
	messages.Refuse(message, errors.ErrUnsupported)
}

// panicked is the mailbox's OnPanic. The table is published whole or not at all, so there is nothing to mend.
func (a *keeperActor) panicked(reason any, stack []byte) {
	a.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", stack).Msg("the offset keeper panicked")
}

func lookup(t *table, group string, q messages.QueueKey) messages.QueueOffset {
	p, _ := t.Get(key{q.Topic, group})
	cell := p.cell(q.QueueID)
	if cell == nil {
		return messages.NoOffset
	}
	return messages.QueueOffset(cell.Load())
}

// limiter lets one line of a kind into the log now and then.
type limiter struct {
	next  time.Time
	since int64
}

// allow tells whether to log now, and how many there were since the last line, this one included.
func (l *limiter) allow() (since int64, ok bool) {
	l.since++
	now := time.Now()
	if now.Before(l.next) {
		return 0, false
	}
	since, l.since, l.next = l.since, 0, now.Add(logPause)
	return since, true
}
