package timer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/system"
)

// Names that users see.
const (
	Topic     = "ACTORMQ_TIMER"    // where messages wait
	DeliverMs = "TIMER_DELIVER_MS" // property: when to deliver, in ms of Unix time
	ID        = "TIMER_ID"         // property: the name by which Cancel finds a message; of equal ones the last counts

	cancelID = "TIMER_CANCEL" // property of a cancellation
	done     = "TIMER_DONE"   // property of a "done" record
	// carriedFrom: property of a copy that stands for an older message, whose physical offset it is
	carriedFrom = "TIMER_CARRIED"
)

// Config is what a timer is made of. The zero value of a field is its default.
type Config struct {
	MaxDelay     time.Duration // messages that are due later are refused; default 366 days
	MaxPending   int           // messages that wait; more are refused; default 1,000,000 (some 200 MB)
	SaveInterval time.Duration // of the snapshot; default 10 s
}

// Why a message is refused.
var (
	// ErrTime: TIMER_DELIVER_MS is no number, or is later than MaxDelay from now.
	ErrTime = errors.New("the delivery time is out of range")
	// ErrFull: MaxPending messages wait.
	ErrFull = errors.New("too many timed messages wait")
)

// Timer is the extension. Plug it into the options of one store.
type Timer struct {
	cfg   Config
	state *state
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
	return &Timer{cfg: cfg, state: newState()}
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
		return t.run(ctx, s)
	}})
}

// hook sends a timed message to the timer's topic.
func (t *Timer) hook(m *messages.Message) error {
	text, timed := m.Properties.Get(DeliverMs)
	if !timed || m.Topic == Topic {
		return nil
	}
	due, err := strconv.ParseInt(text, 10, 64)
	if now := time.Now(); err != nil || due > now.Add(t.cfg.MaxDelay).UnixMilli() {
		return fmt.Errorf("%w: %s is %q", ErrTime, DeliverMs, text)
	}
	if t.Pending() >= t.cfg.MaxPending {
		return ErrFull
	}
	m.Properties = m.Properties.With(messages.PropertyRealTopic, m.Topic).
		With(messages.PropertyRealQueueID, strconv.Itoa(int(m.QueueID)))
	m.Topic, m.QueueID = Topic, 0
	return nil
}

// Cancel makes sure that the message with an id is not delivered, if it has not been yet. It returns when that is as durable
// as any put.
func (t *Timer) Cancel(ctx context.Context, s *system.Store, id string) error {
	if err := messages.CheckProperty(cancelID, id); err != nil {
		return err
	}
	_, err := s.Put(ctx, &messages.Message{
		Topic: Topic, Properties: messages.PropertiesOf(map[string]string{cancelID: id}), BornTimestampMs: time.Now().UnixMilli(),
	})
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
			continue
		}
		m, err := b.Message(r)
		if errors.Is(err, system.ErrNoMessage) {
			continue
		}
		if damaged(err) {
			log := b.Store().Options().Logger
			log.Error().Err(err).Msg("a message of the timer can't be read: it is left out")
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

// run delivers what is due.
func (t *Timer) run(ctx context.Context, s *system.Store) error {
	// What was delivered already is known once the log has been read.
	if err := s.AwaitExtension(ctx, "timer"); err != nil {
		return ended(ctx, err)
	}
	f := &flights{landed: make(chan landing)}
	defer f.wait()
	room := max(1, min(maxFlying, s.Options().MaxPendingPuts/2)) // the other half is for those who put
	for ctx.Err() == nil {
		wait := time.Duration(math.MaxInt64)
		if f.flying < room {
			var due []*entry
			if due, wait = t.state.due(time.Now(), min(room-f.flying, atOnce)); len(due) > 0 {
				t.deliver(s, due, f)
				continue
			}
		}
		old, next := t.state.old(time.Now().Add(-s.Retention().FileReservedTime/2), atOnce)
		if len(old) > 0 {
			if err := t.carry(s, old); err != nil {
				return ended(ctx, err)
			}
			continue
		}
		timer := time.NewTimer(min(wait, next))
		select {
		case l := <-f.landed:
			if f.flying -= l.messages; l.err != nil {
				return ended(ctx, l.err)
			}
		case <-timer.C:
		case <-t.state.woken:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// ended is nil when the store is closing: then that is why.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

const (
	maxFlying = 1 << 15 // messages being delivered at a time, and half of the puts that the store takes, at most
	atOnce    = 4096    // messages put together, with one record that says so
)

// flights are the deliveries that are not answered yet. With a synchronous flush an answer takes a sync or two: what comes due meanwhile
// does not wait for it, but shares the next sync.
type flights struct {
	flying int // messages
	landed chan landing
}

type landing struct {
	messages int
	err      error
}

// wait waits for all; what is not delivered is due again.
func (f *flights) wait() {
	for f.flying > 0 {
		f.flying -= (<-f.landed).messages
	}
}

// deliver puts messages to their own topics, and once they are answered the record that says so. It waits for neither.
func (t *Timer) deliver(s *system.Store, due []*entry, f *flights) {
	f.flying += len(due)
	there, own, err := t.read(s, due, restored)
	answered := putAll(s, own)
	go func() {
		err := errors.Join(err, actors.Protect("deliver timed messages", func() error { return t.landed(s, there, answered()) }))
		t.state.giveBack(due)
		f.landed <- landing{messages: len(due), err: err}
	}()
}

// landed notes what came of a delivery.
func (t *Timer) landed(s *system.Store, there []*entry, answers []answer) (err error) {
	var delivered []*entry
	var places []byte
	for i, a := range answers {
		switch e := there[i]; {
		case a.err == nil:
			delivered = append(delivered, e)
			places = binary.BigEndian.AppendUint64(places, uint64(e.At))
		case a.hopeless():
			t.leaveOut(s, e, a.err)
		case err == nil: // the first says enough
			err = fmt.Errorf("deliver the timed message at %d: %w", e.At, a.err)
		}
	}
	t.state.delivered(delivered)
	if len(delivered) > 0 {
		err = errors.Join(err, noteDone(s, places))
	}
	return err
}

// carry puts copies of messages that retention will delete before long.
func (t *Timer) carry(s *system.Store, old []*entry) error {
	there, copies, err := t.read(s, old, func(m *messages.StoredMessage) *messages.Message {
		m.Message.Properties = m.Properties.With(carriedFrom, strconv.FormatInt(int64(m.PhysicalOffset), 10))
		return &m.Message
	})
	for i, a := range putAll(s, copies)() {
		if a.err == nil {
			continue
		}
		t.state.notCarried(there[i], !a.hopeless())
		if err == nil {
			err = fmt.Errorf("carry the timed message at %d: %w", there[i].At, a.err)
		}
	}
	return err
}

// read reads messages and makes of each what is to be put. Those that are not there any more, or damaged, are forgotten; those
// that can't be read now stay; the error is the first one's.
func (t *Timer) read(s *system.Store, list []*entry, as func(*messages.StoredMessage) *messages.Message) (
	there []*entry, puts []*messages.Message, failed error,
) {
	for _, e := range list {
		m, err := s.MessageAt(messages.PhysicalOffset(e.At))
		switch {
		case errors.Is(err, system.ErrNoMessage): // retention was quicker
			t.state.forget(e)
		case damaged(err):
			t.leaveOut(s, e, err)
		case err != nil:
			t.state.notCarried(e, true)
			if failed == nil {
				failed = fmt.Errorf("read the timed message at %d: %w", e.At, err)
			}
		default:
			there, puts = append(there, e), append(puts, as(&m))
		}
	}
	return there, puts, failed
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

// noteDone puts the record that says which messages are delivered: their physical offsets, 8 bytes each, big-endian. It waits for no
// flush: the deliveries that a power cut leaves without the record come again, as those do that a crash leaves without it.
func noteDone(s *system.Store, places []byte) error {
	answer := make(chan error, 1)
	s.PutAsync(&messages.Message{
		Topic: Topic, Body: places, Properties: done + "\x01" + "yes", BornTimestampMs: time.Now().UnixMilli(),
	}, false, time.Time{}, func(_ messages.PutResult, err error) { answer <- err })
	if err := <-answer; err != nil {
		return fmt.Errorf("note what is delivered: %w", err)
	}
	return nil
}

// restored is a timed message as it was put.
func restored(m *messages.StoredMessage) *messages.Message {
	own := m.Message
	own.Topic, _ = m.Properties.Get(messages.PropertyRealTopic)
	if id, err := strconv.ParseInt(get(m.Properties, messages.PropertyRealQueueID), 10, 32); err == nil {
		own.QueueID = int32(id)
	}
	own.Properties = m.Properties.Without(DeliverMs, ID, carriedFrom, messages.PropertyRealTopic, messages.PropertyRealQueueID)
	return &own
}

// answer is what came of a put.
type answer struct {
	status messages.PutStatus
	err    error
}

// hopeless tells that the message will never be taken as it is. What a hook refuses it may take later.
func (a answer) hopeless() bool {
	return (a.status == messages.MessageIllegal || a.status == messages.PropertiesSizeExceeded) && !errors.Is(a.err, system.ErrRefused)
}

// putAll puts messages in their order; what it returns waits for the answers, and tells what came of each.
func putAll(s *system.Store, list []*messages.Message) (answered func() []answer) {
	got := make([]answer, len(list))
	var answers sync.WaitGroup
	answers.Add(len(list))
	for i, m := range list {
		s.PutAsync(m, true, time.Time{}, func(r messages.PutResult, err error) {
			got[i] = answer{r.Status, err}
			answers.Done()
		})
	}
	return func() []answer {
		answers.Wait()
		return got
	}
}

func get(p messages.Properties, name string) string {
	value, _ := p.Get(name)
	return value
}
