package offsets

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// key names the progress of a group in a topic.
type key struct {
	topic, group string
}

// position is the progress in one queue. The cell is written by the actor only, the rest never changes.
type position struct {
	queue int32
	next  *atomic.Int64
}

// progress is a group's progress in a topic: sorted by queue; a new queue makes a new slice.
type progress struct {
	positions []position
}

func (p *progress) search(queue int32) (int, bool) {
	return slices.BinarySearchFunc(p.positions, queue, func(at position, queue int32) int { return cmp.Compare(at.queue, queue) })
}

// cell returns the cell of a queue, nil when there is none.
func (p *progress) cell(queue int32) *atomic.Int64 {
	if p == nil {
		return nil
	}
	if i, found := p.search(queue); found {
		return p.positions[i].next
	}
	return nil
}

// with returns a copy that has one more queue.
func (p *progress) with(queue int32, next int64) *progress {
	cell := new(atomic.Int64)
	cell.Store(next)
	grown := &progress{}
	i := 0
	if p != nil {
		i, _ = p.search(queue)
		grown.positions = make([]position, 0, len(p.positions)+1)
		grown.positions = append(grown.positions, p.positions[:i]...)
	}
	grown.positions = append(grown.positions, position{queue, cell})
	if p != nil {
		grown.positions = append(grown.positions, p.positions[i:]...)
	}
	return grown
}

// copied returns the same progress in cells of its own.
func (p *progress) copied() *progress {
	c := &progress{positions: make([]position, len(p.positions))}
	for i, from := range p.positions {
		cell := new(atomic.Int64)
		cell.Store(from.next.Load())
		c.positions[i] = position{from.queue, cell}
	}
	return c
}

func (p *progress) len() int {
	if p == nil {
		return 0
	}
	return len(p.positions)
}

func (p *progress) offsets() map[int32]int64 {
	m := make(map[int32]int64, len(p.positions))
	for _, at := range p.positions {
		m[at.queue] = at.next.Load()
	}
	return m
}

// table is what is published.
type table = actors.Table[key, *progress]

// rest is what the file holds beside the table, to be written again.
type rest struct {
	lmq     map[string]int64 // when it is not ours
	split   bool             // the offsets of light groups stand apart
	unknown metadata.Unknown
}

// fileOf is the content of consumerOffset.json. It reads the cells as they are now.
func fileOf(t *table, r rest) metadata.OffsetTable {
	file := metadata.OffsetTable{Offsets: make(map[string]map[int32]int64, t.Len()), LMQOffsets: r.lmq, Unknown: r.unknown}
	for k, p := range t.All() {
		name, queues := metadata.OffsetKey(k.topic, k.group), p.offsets()
		if next, light := queues[0]; light && r.split && len(queues) == 1 && strings.HasPrefix(k.group, messages.LMQTopicPrefix) {
			if file.LMQOffsets == nil {
				file.LMQOffsets = map[string]int64{}
			}
			file.LMQOffsets[name] = next
			continue
		}
		file.Offsets[name] = queues
	}
	return file
}

// withLight is all offsets of a file, those of light groups too, which are in queue 0 (spec/store.md §13.2).
func withLight(file metadata.OffsetTable) map[string]map[int32]int64 {
	all := file.Offsets
	if all == nil {
		all = map[string]map[int32]int64{}
	}
	for name, next := range file.LMQOffsets {
		if all[name] == nil {
			all[name] = map[int32]int64{0: next}
		}
	}
	return all
}

// legal tells whether the file can name the pair: a key is cut at its first @, and names are bounded.
func (k key) legal() bool {
	if k.topic == "" || k.group == "" || len(k.topic) > messages.MaxTopicBytes || len(k.group) > messages.MaxGroupBytes {
		return false
	}
	topic, _, _ := metadata.SplitOffsetKey(metadata.OffsetKey(k.topic, k.group))
	return topic == k.topic
}
