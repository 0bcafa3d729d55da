package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
)

// AuditTopic is where the trail is kept, one JSON message for each message that was sent again.
const AuditTopic = "ACTORMQ_DLQ_AUDIT"

// ErrNoTopic: a dead letter does not say which topic it is from.
var ErrNoTopic = errors.New("the dead letter names no topic")

// Letter is a dead letter.
type Letter struct {
	Group string
	Topic string // to which it is sent again
	messages.StoredMessage
	Resent bool
}

// Filter says which dead letters are meant; the zero value: all that have not been sent again.
type Filter struct {
	Group         string // empty: all
	Topic         string // from which they came; empty: all
	Key           string // one of KEYS, or UNIQ_KEY; empty: all
	After, Before time.Time
	Resent        bool // also those that have been sent again
}

// Audit is an entry of the trail.
type Audit struct {
	Operator       string    `json:"operator"`
	At             time.Time `json:"at"`
	Group          string    `json:"group"`
	DeadLetter     int64     `json:"deadLetter"` // physical offset of the dead letter
	Topic          string    `json:"topic"`
	PhysicalOffset int64     `json:"physicalOffset"` // of the message that was sent
}

// Letters is the extension. Plug it into the options of one store.
type Letters struct {
	mu      sync.RWMutex
	resent  map[int64]bool // by physical offset of the dead letter
	sending map[int64]bool // likewise
}

// New returns the extension.
func New() *Letters { return &Letters{resent: map[int64]bool{}, sending: map[int64]bool{}} }

// Plug adds it to a store's options: a dispatcher that sees what was sent again.
func (l *Letters) Plug(opt *system.Options) {
	opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{
		Name: "deadletter", Handle: l.handle,
		// What it knows is in memory: it is read again at each start.
		Load: func(*system.Store) (system.Position, bool, error) { return system.Position{}, false, nil },
	})
}

func (l *Letters) handle(_ context.Context, b *system.Batch) error {
	for i := range b.Requests {
		if r := &b.Requests[i]; r.PreparedTransactionOffset < 0 && messages.TransactionOf(r.SysFlag) == 0 {
			l.note(-int64(r.PreparedTransactionOffset) - 1)
		}
	}
	return nil
}

func (l *Letters) note(at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resent[at] = true
}

// List goes through the dead letters, group by group in the order in which they came.
func (l *Letters) List(ctx context.Context, s *system.Store, f Filter) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		var queues []messages.QueueKey
		s.EachQueue(func(key messages.QueueKey, _, _ messages.QueueOffset) {
			group, dead := strings.CutPrefix(key.Topic, messages.DLQTopicPrefix)
			if dead && (f.Group == "" || f.Group == group) {
				queues = append(queues, key)
			}
		})
		for _, key := range queues {
			if !l.walk(ctx, s, key, f, yield) {
				return
			}
		}
	}
}

// walk goes through one queue; false when nobody wants more.
func (l *Letters) walk(
	ctx context.Context, s *system.Store, key messages.QueueKey, f Filter, yield func(Letter, error) bool,
) bool {
	for at := s.MinOffset(key); at < s.MaxOffset(key); {
		r, err := s.Get(ctx, messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32})
		if err != nil {
			yield(Letter{}, err)
			return false
		}
		found := make([]messages.StoredMessage, 0, len(r.Records))
		for _, raw := range r.Records {
			if rec, _, err := record.Parse(raw, true); err == nil && !rec.Lost() {
				found = append(found, rec.Stored())
			}
		}
		next := r.NextOffset
		r.Release()
		for _, m := range found {
			if letter := l.letter(m); f.wants(&letter) && !yield(letter, nil) {
				return false
			}
		}
		if next <= at {
			return true
		}
		at = next
	}
	return true
}

func (l *Letters) letter(m messages.StoredMessage) Letter {
	l.mu.RLock()
	defer l.mu.RUnlock()
	topic, _ := m.Properties.Get(messages.PropertyRetryTopic)
	return Letter{
		Group: strings.TrimPrefix(m.Topic, messages.DLQTopicPrefix), Topic: topic, StoredMessage: m,
		Resent: l.resent[int64(m.PhysicalOffset)],
	}
}

func (f *Filter) wants(l *Letter) bool {
	at := time.UnixMilli(l.StoreTimestampMs)
	return (f.Topic == "" || f.Topic == l.Topic) && (f.Resent || !l.Resent) && (f.Key == "" || hasKey(l.Properties, f.Key)) &&
		(f.After.IsZero() || !at.Before(f.After)) && (f.Before.IsZero() || at.Before(f.Before))
}

func hasKey(p messages.Properties, key string) bool {
	if unique, _ := p.Get(messages.PropertyUniqKey); unique == key {
		return true
	}
	keys, _ := p.Get(messages.PropertyKeys)
	for k := range strings.FieldsSeq(keys) {
		if k == key {
			return true
		}
	}
	return false
}

// Resend says how dead letters are sent again.
type Resend struct {
	Filter
	Operator  string // for the trail
	PerSecond int    // 0: as quickly as the store takes them
	Limit     int    // 0: all
}

// Resend sends dead letters again to the topics that they are from, in queue 0, with no retries behind them. It returns how
// many were sent. Those that can't be sent as they are stay, and hold up no other; the error says why, of the first few. Any other
// error ends it: then, and after a crash, another call goes on with those that were not sent. Calls may run side by side.
func (l *Letters) Resend(ctx context.Context, s *system.Store, r Resend) (sent int, err error) {
	if err := s.AwaitExtension(ctx, "deadletter"); err != nil {
		return 0, err
	}
	began := time.Now()
	var stay []error
	for letter, err := range l.List(ctx, s, r.Filter) {
		if err != nil {
			return sent, errors.Join(append(stay, err)...)
		}
		if r.Limit > 0 && sent == r.Limit {
			break
		}
		if r.PerSecond > 0 {
			if err := until(ctx, began.Add(time.Duration(sent)*time.Second/time.Duration(r.PerSecond))); err != nil {
				return sent, errors.Join(append(stay, err)...)
			}
		}
		switch done, err := l.resend(ctx, s, &letter, &r); {
		case done && err == nil:
			sent++
		case err == nil: // somebody else has sent it meanwhile
		case errors.Is(err, errStays):
			if len(stay) < maxStay {
				stay = append(stay, err)
			}
		default:
			return sent, errors.Join(append(stay, err)...)
		}
	}
	return sent, errors.Join(stay...)
}

// maxStay is of how many letters that can't be sent an error tells.
const maxStay = 10

// errStays: a letter can't be sent as it is; others can.
var errStays = errors.New("it stays a dead letter")

func until(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// resend sends a letter unless that is done, or being done, by somebody else.
func (l *Letters) resend(ctx context.Context, s *system.Store, letter *Letter, r *Resend) (done bool, err error) {
	if !l.claim(int64(letter.PhysicalOffset), r.Resent) {
		return false, nil
	}
	defer l.release(int64(letter.PhysicalOffset))
	if err := l.send(ctx, s, letter, r.Operator); err != nil {
		return false, fmt.Errorf("send the dead letter at %d again: %w", letter.PhysicalOffset, err)
	}
	return true, nil
}

func (l *Letters) claim(at int64, again bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sending[at] || l.resent[at] && !again {
		return false
	}
	l.sending[at] = true
	return true
}

func (l *Letters) release(at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sending, at)
}

// send puts a message that says of itself, by a PreparedTransactionOffset below 0, which letter it is: so none is sent twice by a crash.
func (l *Letters) send(ctx context.Context, s *system.Store, letter *Letter, operator string) error {
	if letter.Topic == "" {
		return fmt.Errorf("%w: %w", errStays, ErrNoTopic)
	}
	m := letter.Message
	m.Topic, m.QueueID, m.ReconsumeTimes = letter.Topic, 0, 0
	m.Properties = m.Properties.Without(messages.PropertyRetryTopic, messages.PropertyDelay)
	m.PreparedTransactionOffset = -letter.PhysicalOffset - 1
	sent, err := s.Put(ctx, &m)
	if sent.Status == messages.MessageIllegal || sent.Status == messages.PropertiesSizeExceeded {
		return fmt.Errorf("%w: %w", errStays, err)
	}
	if sent.Status.Stored() {
		l.note(int64(letter.PhysicalOffset))
	}
	if err != nil {
		return err
	}
	body, err := json.Marshal(Audit{
		Operator: operator, At: time.Now(), Group: letter.Group, DeadLetter: int64(letter.PhysicalOffset), Topic: letter.Topic,
		PhysicalOffset: int64(sent.PhysicalOffset),
	})
	if err != nil {
		return err
	}
	if _, err := s.Put(ctx, &messages.Message{Topic: AuditTopic, Body: body, BornTimestampMs: time.Now().UnixMilli()}); err != nil {
		return fmt.Errorf("write the audit record: %w", err)
	}
	return nil
}
