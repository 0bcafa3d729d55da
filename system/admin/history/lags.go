package history

import (
	"maps"
	"slices"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Lag is how far a group is behind in a topic in which it has committed an offset.
type Lag struct {
	Group, Topic string
	Messages     int64 // that it has not committed
}

// Lags lists the lags of all groups, by topic and group; those in one topic only, unless it is empty.
func Lags(b *broker.Broker, only string) []Lag {
	table := b.Offsets.Table().Offsets
	list := make([]Lag, 0, len(table))
	for _, pair := range slices.Sorted(maps.Keys(table)) {
		if topic, group, ok := metadata.SplitOffsetKey(pair); ok && (only == "" || topic == only) {
			list = append(list, Lag{Group: group, Topic: topic, Messages: lagOf(b, topic, table[pair])})
		}
	}
	return list
}

// lagOf counts queues in which a group has no offset as a whole, as tools do.
func lagOf(b *broker.Broker, name string, offsets map[int32]int64) int64 {
	topic, ok := b.Topics.Lookup(name)
	if !ok {
		return 0 // it has been deleted
	}
	total := int64(0)
	for id := range int32(topic.ReadQueueNums) {
		end := b.Store.MaxOffset(messages.QueueKey{Topic: name, QueueID: id})
		total += max(int64(end)-max(offsets[id], 0), 0)
	}
	return total
}

type pair struct{ group, topic string }

// lags are published samples of all lags: a column for each pair.
type lags struct {
	column map[pair]int
	rows   []lagRow
}

type lagRow struct {
	at     time.Time
	values []int64 // by column; a pair that came later has none
}

// unknown is the lag of a pair that is not there any more.
const unknown = -1

// with returns the lags with one sample more. When there is no room for another pair, and there are some whose group has gone,
// it begins anew; otherwise it leaves the pair out.
func (l *lags) with(now time.Time, all []Lag) *lags {
	next := &lags{column: l.column, rows: l.rows}
	row := lagRow{at: now, values: make([]int64, len(l.column), len(l.column)+1)}
	for i := range row.values {
		row.values[i] = unknown
	}
	left := 0
	for _, one := range all {
		key := pair{one.Group, one.Topic}
		at, known := next.column[key]
		if !known && len(next.column) >= maxPairs {
			left++
			continue
		}
		if !known {
			if len(next.column) == len(l.column) { // the published map is not changed
				next.column = maps.Clone(l.column)
				if next.column == nil {
					next.column = map[pair]int{}
				}
			}
			at = len(next.column)
			next.column[key] = at
			row.values = append(row.values, 0)
		}
		row.values[at] = one.Messages
	}
	if left > 0 && slices.Contains(row.values, unknown) {
		return (&lags{}).with(now, all)
	}
	next.rows = bounded(append(next.rows, row), int(LagKept/LagInterval)+1)
	return next
}

// Point is a lag at a time.
type Point struct {
	At       time.Time
	Messages int64
}

// Lag returns the lag of a group in a topic over time, the oldest first; the times at which it was not known are left out.
func (h *History) Lag(group, topic string) []Point {
	l := h.lags.Load()
	at, ok := l.column[pair{group, topic}]
	if !ok {
		return nil
	}
	var points []Point
	for _, row := range l.rows[max(len(l.rows)-int(LagKept/LagInterval)-1, 0):] {
		if at < len(row.values) && row.values[at] != unknown {
			points = append(points, Point{At: row.at, Messages: row.values[at]})
		}
	}
	return points
}
