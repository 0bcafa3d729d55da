package messages

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DefaultDelayLevels are the 18 levels of RocketMQ (messageDelayLevel).
const DefaultDelayLevels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

// ErrDelayLevels: a list of delay levels can't be read.
var ErrDelayLevels = errors.New("bad delay levels")

// maxDelay keeps sums with a time of day in range: a hundred years.
const maxDelay = 100 * 365 * 24 * time.Hour

// DelayLevels are the delays that a message can ask for by its DELAY property; level 1 is the first.
type DelayLevels []time.Duration

// ParseDelayLevels reads a list like DefaultDelayLevels: numbers with s, m, h or d, separated by single spaces
// (spec/store.md §10.1).
func ParseDelayLevels(text string) (DelayLevels, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	var levels DelayLevels
	for i, word := range strings.Split(text, " ") {
		if word == "" {
			return nil, fmt.Errorf("%w: level %d of %q is empty", ErrDelayLevels, i+1, text)
		}
		unit, ok := units[word[len(word)-1]]
		n, err := strconv.ParseInt(word[:len(word)-1], 10, 32)
		if !ok || err != nil || n < 0 || n > int64(maxDelay/unit) {
			return nil, fmt.Errorf("%w: level %d is %q, no number with s, m, h or d", ErrDelayLevels, i+1, word)
		}
		levels = append(levels, time.Duration(n)*unit)
	}
	return levels, nil
}

// Max is the highest level.
func (l DelayLevels) Max() int { return len(l) }

// Millis returns the delay of a level in ms (1000 for one that is not there, as RocketMQ has it) and the highest level.
func (l DelayLevels) Millis(level int) (ms int64, highest int) {
	if level < 1 || level > len(l) {
		return time.Second.Milliseconds(), len(l)
	}
	return l[level-1].Milliseconds(), len(l)
}

// Postponed returns the message as it is stored when it asks for a delay (spec/store.md §3.4): in the schedule topic, its
// destination kept in properties. A message that asks for none comes back as it is. A DELAY that is no number is an error.
func (l DelayLevels) Postponed(m *Message) (*Message, error) {
	text, ok := m.Properties.Get(PropertyDelay)
	if !ok || !TakesQueueOffset(m.SysFlag) || m.Topic == TopicSchedule {
		return m, nil
	}
	level, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("property %s is %q: %w", PropertyDelay, text, err)
	}
	if level <= 0 {
		return m, nil
	}
	level = min(level, l.Max())
	later := *m
	later.Properties = m.Properties.With(PropertyDelay, strconv.Itoa(level)).
		With(PropertyRealTopic, m.Topic).With(PropertyRealQueueID, strconv.Itoa(int(m.QueueID)))
	later.Topic, later.QueueID = TopicSchedule, int32(level-1)
	return &later, nil
}
