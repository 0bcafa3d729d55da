package timer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/system"
)

// Names that users see.
const (
	Topic     = messages.TopicTimer // where messages wait
	DeliverMs = "TIMER_DELIVER_MS"  // property: when to deliver, in ms of Unix time
	// ID is the property by whose value Cancel finds a message. One without it is found by its UNIQ_KEY, which clients for
	// Java and Go show as its message id.
	ID = "TIMER_ID"
	// CancelID is the property of a message, to any topic, that cancels those with the id: so clients cancel. It is stored for the timer
	// alone, and may come too late for what is due within the next ms; Cancel tells.
	CancelID = "TIMER_CANCEL"

	done = "TIMER_DONE" // property of the record that said what is delivered, in logs of earlier versions
	// carriedFrom: property of a copy that stands for an older message, whose physical offset it is
	carriedFrom = "TIMER_CARRIED"
)

// Config is what a timer is made of. The zero value of a field is its default.
type Config struct {
	MaxDelay     time.Duration // messages that are due later are refused; default 366 days
	MaxPending   int           // messages that wait; more are refused; default 1,000,000 (some 300 MB)
	SaveInterval time.Duration // of the snapshot; default 10 s
}

// Why a message is refused.
var (
	// ErrTime: TIMER_DELIVER_MS is no number, or is later than MaxDelay from now.
	ErrTime = errors.New("the delivery time is out of range")
	// ErrFull: MaxPending messages wait.
	ErrFull = errors.New("too many timed messages wait")
	// ErrTransaction: messages of transactions can't be timed.
	ErrTransaction = errors.New("a message of a transaction can't be timed")
	// ErrNotWaiting: no message with the id waits. It may never have been there, or is delivered, or cancelled already.
	ErrNotWaiting = errors.New("no timed message with this id waits")
)

// Timer is the extension. Plug it into the options of one store.
type Timer struct {
	cfg   Config
	state *state
	now   func() time.Time // the wall clock
}

// New returns a timer.
func New(cfg Config) *Timer {
	if cfg.MaxDelay <= 0 {
		cfg.MaxDelay = 366 * 24 * time.Hour
	}
	if cfg.MaxPending <= 0 {
		cfg.MaxPending = 1_000_000
	}
	if cfg.SaveInterval <= 0 {
		cfg.SaveInterval = 10 * time.Second
	}
	return &Timer{cfg: cfg, state: newState(), now: time.Now}
}

// Plug adds the timer to a store's options: a hook, a dispatcher and a service.
func (t *Timer) Plug(opt *system.Options) {
	kept := &snapshot{todo: make(chan snapshotFile, 1)}
	opt.PutHooks = append(opt.PutHooks, system.PutHook{Name: "timer-hook", Inline: true, Func: t.hook, Refuse: true})
	opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{
		Name: "timer", Load: func(s *system.Store) (system.Position, bool, error) { return kept.load(s, t.state) },
		Handle: func(_ context.Context, b *system.Batch) error { return t.handle(b, kept) },
	})
	opt.Services = append(opt.Services, system.Service{Name: "timer-service", Run: func(ctx context.Context, s *system.Store) error {
		var saving sync.WaitGroup
		defer saving.Wait()
		ctx, end := context.WithCancel(ctx)
		defer end()
		saving.Go(func() { kept.save(ctx, s) })
		return t.run(ctx, s, kept)
	}, Policy: system.ExtensionPolicy{Backoff: 10 * time.Millisecond, MaxBackoff: time.Second}}) // others are due meanwhile
}

// hook sends a timed message, or a cancellation, to the timer's topic.
func (t *Timer) hook(m *messages.Message) error {
	if m.Topic == Topic || !strings.Contains(string(m.Properties), "TIMER_") {
		return nil
	}
	if _, cancels := m.Properties.Get(CancelID); cancels {
		m.Topic, m.QueueID, m.Properties = Topic, 0, m.Properties.Without(messages.PropertyDelay)
		return nil
	}
	text, timed := m.Properties.Get(DeliverMs)
	if !timed {
		return nil
	}
	due, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || due > t.now().Add(t.cfg.MaxDelay).UnixMilli():
		return fmt.Errorf("%w: %s is %q", ErrTime, DeliverMs, text)
	case m.Topic == messages.TopicTransactionHalf || messages.TransactionOf(m.SysFlag) != 0:
		return ErrTransaction
	case t.Pending() >= t.cfg.MaxPending:
		return ErrFull
	}
	m.Properties = m.Properties.Without(messages.PropertyDelay).With(messages.PropertyRealTopic, m.Topic).
		With(messages.PropertyRealQueueID, strconv.Itoa(int(m.QueueID)))
	m.Topic, m.QueueID = Topic, 0
	return nil
}

// Cancel makes sure that the messages with an id are not delivered. It returns nil when that is as durable as any put, and
// ErrNotWaiting when there is none that waits: none is delivered after the one, and none is kept back by the other. After any
// other error they may be cancelled or not.
func (t *Timer) Cancel(ctx context.Context, s *system.Store, id string) error {
	if err := messages.CheckProperty(CancelID, id); err != nil {
		return err
	}
	if err := s.AwaitExtension(ctx, "timer"); err != nil { // what is in the log by now is known then
		return err
	}
	held := t.state.hold(id)
	if len(held) == 0 {
		return fmt.Errorf("%w: %q", ErrNotWaiting, id)
	}
	_, err := s.Put(ctx, &messages.Message{
		Topic: Topic, Properties: messages.PropertiesOf(map[string]string{CancelID: id}), BornTimestampMs: t.now().UnixMilli(),
	})
	if err != nil {
		t.state.giveBack(held)
		t.state.wake()
	}
	return err
}

// Pending is the number of messages that wait.
func (t *Timer) Pending() int { return int(t.state.pending.Load()) }

// handle notes what a batch says.
func (t *Timer) handle(b *system.Batch, kept *snapshot) error {
	var list []messages.StoredMessage
	for i := range b.Requests {
		r := &b.Requests[i]
		if r.Queue.Topic != Topic {
			if r.PreparedTransactionOffset > 0 && messages.TransactionOf(r.SysFlag) == 0 && !r.Further {
				list = append(list, delivery(r))
			}
			continue
		}
		m, err := b.Message(r)
		if errors.Is(err, system.ErrNoMessage) {
			continue
		}
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	t.state.apply(list)
	t.state.wake()
	if time.Since(kept.taken) < t.cfg.SaveInterval {
		return nil
	}
	at, err := b.Position()
	if err != nil {
		return err
	}
	kept.take(t.state, at)
	return nil
}

// lookAgain is after how long the clock is looked at again while something waits: it may have been set forward.
const lookAgain = time.Second

// run delivers what is due.
func (t *Timer) run(ctx context.Context, s *system.Store, kept *snapshot) error {
	// What was delivered already is known once the log has been read.
	if err := s.AwaitExtension(ctx, "timer"); err != nil {
		return ended(ctx, err)
	}
	t.state.regain()
	for ctx.Err() == nil {
		kept.flushed(s.FlushedTo())
		wait, err := t.put(s)
		if err != nil {
			return ended(ctx, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.state.woken:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// put puts what is due now and tells how long to wait for more.
func (t *Timer) put(s *system.Store) (wait time.Duration, err error) {
	if s.Options().Role == messages.Slave {
		return lookAgain, nil // its master delivers
	}
	room := max(1, min(atOnce, s.Options().MaxPendingPuts/2)) // the other half is for those who put
	due, wait := t.state.due(t.now(), room)
	if len(due) > 0 {
		return 0, t.deliver(s, due)
	}
	old, next := t.state.old(t.now().Add(-s.Retention().FileReservedTime/2), endangered(s), room)
	if len(old) > 0 {
		return 0, t.carry(s, old)
	}
	if wait = min(wait, next); wait < math.MaxInt64 {
		wait = min(wait, lookAgain)
	}
	return wait, nil
}

// endangered is the place in the log below which files may go any time, as the disk is so full; 0 when it is not.
func endangered(s *system.Store) int64 {
	const margin, round = 5, 10 // %; segments that go at a time, at most
	retention := s.Retention()
	if used, _ := s.DiskUse(); retention.NoForcedCleaning || used < retention.CleanForcibly-margin {
		return 0
	}
	first, end := s.LogRange()
	return int64(first) + min(round*s.Options().SegmentBytes, int64(end-first)/2)
}

// ended is nil when the store is closing: then that is why.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// atOnce is how many messages are put before their answers are looked at.
const atOnce = 4096

// deliver puts messages to their own topics, each with the place where it waited: so the log says in one record that it is delivered
// and that it waits no more. It waits until they are in the log, not for a sync: what a power cut takes waits again.
func (t *Timer) deliver(s *system.Store, due []*entry) error {
	var failed []*entry
	var why error
	for i, a := range t.putAll(s, due, restored) {
		switch e := due[i]; {
		case a.err == nil: // it is gone once the log says so
		case a.hopeless():
			t.leaveOut(s, e, a.err)
		default:
			if failed = append(failed, e); why == nil { // the first says enough
				why = fmt.Errorf("deliver the timed message at %d: %w", e.At, a.err)
			}
		}
	}
	t.state.giveBack(failed)
	return why
}

// carry puts copies of messages that retention will delete before long.
func (t *Timer) carry(s *system.Store, old []*entry) (why error) {
	for i, a := range t.putAll(s, old, copied) {
		switch e := old[i]; {
		case a.err == nil:
		case errors.Is(a.err, system.ErrNoMessage) || damaged(a.err):
			t.leaveOut(s, e, a.err)
		default:
			if t.state.notCarried(e, !a.hopeless()); why == nil {
				why = fmt.Errorf("carry the timed message at %d: %w", e.At, a.err)
			}
		}
	}
	return why
}

// answer is what came of a message.
type answer struct {
	status messages.PutStatus
	err    error
}

// hopeless tells that the message is lost, or will never be taken as it is.
func (a answer) hopeless() bool {
	return errors.Is(a.err, system.ErrNoMessage) || damaged(a.err) ||
		a.status == messages.MessageIllegal || a.status == messages.PropertiesSizeExceeded
}

// putAll reads messages, puts what is made of each, in order, and tells what came of them.
func (t *Timer) putAll(s *system.Store, list []*entry, as func(*messages.StoredMessage) *messages.Message) []answer {
	got := make([]answer, len(list))
	var answers sync.WaitGroup
	defer answers.Wait() // after a panic too: what is put must be in the log before anybody looks there for it
	for i, e := range list {
		m, err := s.MessageAt(messages.PhysicalOffset(e.At))
		if err != nil {
			got[i] = answer{messages.UnknownError, fmt.Errorf("read it: %w", err)}
			continue
		}
		own := as(&m)
		answers.Add(1)
		s.PutDueAsync(own, time.Time{}, func(r messages.PutResult, err error) {
			got[i] = answer{r.Status, err}
			answers.Done()
		})
	}
	answers.Wait()
	return got
}

// damaged tells whether an error is about one record, whose neighbours may be whole.
func damaged(err error) bool {
	var c *segments.CorruptionError
	return errors.As(err, &c)
}

// leaveOut gives a message up, so that it holds nobody up.
func (t *Timer) leaveOut(s *system.Store, e *entry, err error) {
	t.state.forget(e)
	log := s.Options().Logger
	log.Error().Err(err).Int64("offset", e.At).Msg("a timed message can't be delivered: it is left out")
}

// copied is a copy of a message that stands for it.
func copied(m *messages.StoredMessage) *messages.Message {
	m.Message.Properties = m.Properties.With(carriedFrom, strconv.FormatInt(int64(m.PhysicalOffset), 10))
	return &m.Message
}

// restored is a timed message as it was put.
func restored(m *messages.StoredMessage) *messages.Message {
	own := m.Message
	own.Topic, _ = m.Properties.Get(messages.PropertyRealTopic)
	if id, err := strconv.ParseInt(get(m.Properties, messages.PropertyRealQueueID), 10, 32); err == nil {
		own.QueueID = int32(id)
	}
	own.Properties = m.Properties.Without(DeliverMs, ID, carriedFrom, messages.PropertyRealTopic, messages.PropertyRealQueueID)
	own.PreparedTransactionOffset = m.PhysicalOffset + 1
	return &own
}

// delivery is what a delivered message says of the one that waited. Only a timer gives a message that is of no transaction such an
// offset; it is not 0 there.
func delivery(r *messages.DispatchRequest) messages.StoredMessage {
	m := messages.StoredMessage{PhysicalOffset: r.PhysicalOffset, StoreSize: r.SizeBytes}
	m.Topic, m.PreparedTransactionOffset = r.Queue.Topic, r.PreparedTransactionOffset
	return m
}

func get(p messages.Properties, name string) string {
	value, _ := p.Get(name)
	return value
}
