package offsets

import (
	"cmp"
	"iter"
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

// blockPositions is the most that one block holds.
const blockPositions = 512

// progress is a group's progress in a topic. The actor adds queues, readers see those that there are.
type progress struct {
	at atomic.Pointer[positions]
}

// positions are sorted by queue, in blocks of which none is empty. A new queue makes a new list of blocks and one new block, so
// that a client that names a hundred thousand queues is no burden to others.
type positions struct {
	blocks [][]position
	n      int
}

// now is what there is, nil for nothing.
func (p *progress) now() *positions {
	if p == nil {
		return nil
	}
	return p.at.Load()
}

// search returns the block that has the queue, or would have it, and its place there. There is a block.
func (p *positions) search(queue int32) (block, at int, found bool) {
	block, found = slices.BinarySearchFunc(p.blocks, queue, func(b []position, queue int32) int { return cmp.Compare(b[0].queue, queue) })
	if !found {
		block = max(block-1, 0)
	}
	at, found = slices.BinarySearchFunc(p.blocks[block], queue, func(at position, queue int32) int { return cmp.Compare(at.queue, queue) })
	return block, at, found
}

// cell returns the cell of a queue, nil when there is none.
func (p *progress) cell(queue int32) *atomic.Int64 {
	now := p.now()
	if now == nil {
		return nil
	}
	if block, at, found := now.search(queue); found {
		return now.blocks[block][at].next
	}
	return nil
}

// all goes through the queues in order.
func (p *progress) all() iter.Seq[position] {
	return func(yield func(position) bool) {
		now := p.now()
		if now == nil {
			return
		}
		for _, block := range now.blocks {
			for _, at := range block {
				if !yield(at) {
					return
				}
			}
		}
	}
}

// add adds a queue that is not there.
func (p *progress) add(queue int32, next int64) {
	one := position{queue, new(atomic.Int64)}
	one.next.Store(next)
	now := p.now()
	if now == nil {
		p.at.Store(&positions{blocks: [][]position{{one}}, n: 1})
		return
	}
	block, at, _ := now.search(queue)
	grown := slices.Insert(slices.Clip(now.blocks[block]), at, one) // clipped: a new one
	parts := [][]position{grown}
	if half := len(grown) / 2; len(grown) > blockPositions {
		parts = [][]position{grown[:half:half], grown[half:]}
	}
	p.at.Store(&positions{blocks: slices.Concat(now.blocks[:block], parts, now.blocks[block+1:]), n: now.n + 1})
}

// copied returns the same progress in cells of its own.
func (p *progress) copied() *progress {
	c := &progress{}
	now := p.now()
	if now == nil {
		return c
	}
	own := &positions{blocks: make([][]position, len(now.blocks)), n: now.n}
	for i, block := range now.blocks {
		own.blocks[i] = make([]position, len(block))
		for k, from := range block {
			cell := new(atomic.Int64)
			cell.Store(from.next.Load())
			own.blocks[i][k] = position{from.queue, cell}
		}
	}
	c.at.Store(own)
	return c
}

func (p *progress) len() int {
	if now := p.now(); now != nil {
		return now.n
	}
	return 0
}

func (p *progress) offsets() map[int32]int64 {
	m := make(map[int32]int64, p.len())
	for at := range p.all() {
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
