package system

import (
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
)

// How much is touched ahead of a part, whatever lies between its records; and where most of it will be read, if the second-level cache
// has room for it.
const (
	warmBytes      = 64 << 10
	warmDenseBytes = 256 << 10
)

// ahead fetches into the cache what will be looked at of these units' records, and, where the reader goes on, the heads of those which
// the next get will look at: the processor waits for them while it is at something else.
func (g *get) ahead(units []consumequeue.Unit) {
	switch {
	case g.m.WillRead && g.warm(units):
	case g.m.Tags == nil:
		g.units.Fetch(g.held.Bytes, g.heldAt, record.PlaceBytes)
	}
}

// warm touches what the records of these units lie in, line by line: one stream of loads that the processor fetches ahead, where
// a look at each record and then a copy of it would wait for memory twice.
// It is false when they lie too far apart.
func (g *get) warm(units []consumequeue.Unit) bool {
	if len(units) == 0 {
		return true
	}
	last := units[len(units)-1]
	from, to := units[0].PhysicalOffset-g.heldAt, last.PhysicalOffset+messages.PhysicalOffset(last.Size)-g.heldAt
	if from < 0 || to < from || to > messages.PhysicalOffset(len(g.held.Bytes)) || to-from > warmBytes && !g.dense(units, to-from) {
		return false
	}
	g.touch(g.held.Bytes[from:to])
	return true
}

// dense tells whether half of so many bytes at least are records of these units that will be read, and the cache has room for all.
func (g *get) dense(units []consumequeue.Unit, span messages.PhysicalOffset) bool {
	if g.m.Tags != nil || span > warmDenseBytes {
		return false
	}
	wanted := messages.PhysicalOffset(0)
	for i := range units {
		wanted += messages.PhysicalOffset(units[i].Size)
	}
	return span <= 2*wanted
}

// touch reads from each cache line of b.
func (g *get) touch(b []byte) {
	var sum byte
	for ; len(b) >= 64; b = b[64:] {
		sum ^= b[0]
	}
	g.touched = sum
}
