package broker

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
)

var (
	// ErrLimits: a list of limits cannot be read.
	ErrLimits = errors.New("bad limits of topics")
	// ErrLimited: more is sent to a topic than its limit allows.
	ErrLimited = errors.New("the topic's limit is reached")

	errLimitedBytes = fmt.Errorf("%w in bytes", ErrLimited)
	errLimitedKept  = fmt.Errorf("%w in messages kept", ErrLimited)
)

// Limits bound what may be sent to topics in a second, and how many messages their queues may keep. They are safe for concurrent
// use.
type Limits struct {
	named  map[string]*limit
	each   *limit   // of every other topic that is not the broker's own; nil: none
	others sync.Map // of *limit, by topic: those that each has made
}

// limit bounds one topic: a zero rate is none, nor is a quota of 0.
type limit struct {
	messages, bytes rate
	kept            int64 // messages in all its queues
}

// rate lets so much pass in a second, and as much at once after a pause. One request that finds it idle passes however large it
// is, and what it is too large by has to pass in time before the next.
type rate struct {
	perSecond int64
	next      atomic.Int64 // ns since epoch: what has passed is paid for then
}

var epoch = time.Now()

// take counts n, or tells that they are too many now.
func (r *rate) take(n int, now time.Duration) bool {
	if r.perSecond == 0 {
		return true
	}
	for {
		next := r.next.Load()
		after := max(next, int64(now)) + r.cost(n)
		if next > int64(now) && after > int64(now+time.Second) {
			return false
		}
		if r.next.CompareAndSwap(next, after) {
			return true
		}
	}
}

func (r *rate) cost(n int) int64 {
	return int64(float64(n) / float64(r.perSecond) * float64(time.Second))
}

// ParseLimits reads a list like "orders=1000,5000000;payments=50;logs=,,100000;*=,1000000": messages and bytes a second and messages
// kept, by topic, * for each topic that is not named. An empty list is nil: no limits.
func ParseLimits(text string) (*Limits, error) {
	l := &Limits{named: map[string]*limit{}}
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		topic, values, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%w: %q: want TOPIC=MESSAGES,BYTES,KEPT", ErrLimits, part)
		}
		one, err := parseLimit(values)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrLimits, part, err)
		}
		if topic == "*" {
			l.each = one
			continue
		}
		if err := messages.CheckTopicName(topic); err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrLimits, part, err)
		}
		l.named[topic] = one
	}
	if len(l.named) == 0 && l.each == nil {
		return nil, nil
	}
	return l, nil
}

func parseLimit(text string) (*limit, error) {
	l := &limit{}
	to := []*int64{&l.messages.perSecond, &l.bytes.perSecond, &l.kept}
	values := strings.Split(text, ",")
	if len(values) > len(to) {
		return nil, fmt.Errorf("%d values, at most %d", len(values), len(to))
	}
	for i, value := range values {
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n <= 0 {
			return nil, errors.New("a limit is a whole number above 0")
		}
		*to[i] = n
	}
	return l, nil
}

// Take counts a send of so many messages and bytes to a topic, or refuses it with ErrLimited. A topic of the broker's own has a
// limit only if it is named. kept is asked for the messages of the topic when they have a quota. nil limits nothing.
func (l *Limits) Take(topic string, own bool, count, bytes int, at time.Time, kept func(topic string) int64) error {
	one := l.of(topic, own)
	if one == nil {
		return nil
	}
	if one.kept != 0 && kept(topic)+int64(count) > one.kept {
		return fmt.Errorf("%w: %s keeps %d messages", errLimitedKept, topic, one.kept)
	}
	now := at.Sub(epoch)
	if !one.messages.take(count, now) {
		return fmt.Errorf("%w: %s takes %d messages a second", ErrLimited, topic, one.messages.perSecond)
	}
	if !one.bytes.take(bytes, now) {
		if one.messages.perSecond != 0 {
			one.messages.next.Add(-one.messages.cost(count)) // they did not pass
		}
		return fmt.Errorf("%w: %s takes %d bytes a second", errLimitedBytes, topic, one.bytes.perSecond)
	}
	return nil
}

// of is the limit of a topic, nil when it has none.
func (l *Limits) of(topic string, own bool) *limit {
	if l == nil {
		return nil
	}
	one := l.named[topic]
	if one == nil && l.each != nil && !own {
		one = l.other(topic)
	}
	return one
}

// other is the limit of a topic that is not named.
func (l *Limits) other(topic string) *limit {
	if known, ok := l.others.Load(topic); ok {
		return known.(*limit)
	}
	one := &limit{kept: l.each.kept}
	one.messages.perSecond, one.bytes.perSecond = l.each.messages.perSecond, l.each.bytes.perSecond
	known, _ := l.others.LoadOrStore(strings.Clone(topic), one)
	return known.(*limit)
}
