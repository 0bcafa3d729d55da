package index

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrChain: the slots and entries of a file do not fit together.
var ErrChain = errors.New("index chain is broken")

// Hash is the hash under which a key of a topic is indexed.
func Hash(topic, key string) int32 { return hashOf([]byte(topic + "#" + key)) }

// Entry is one entry, for those who look at the whole index.
type Entry struct {
	Hash           int32
	PhysicalOffset messages.PhysicalOffset
	Path           string
	FileOffset     int64
}

// Check reads every file from end to end and gives every entry to fn, in the order of the records, until fn fails. It
// returns what is wrong: chains that are no chains, slots that lead elsewhere, headers that do not fit. The second error is
// one of fn or the disk. It uses four bytes a slot; the set must not grow meanwhile.
func (s *Set) Check(fn func(Entry) error) (damage []error, err error) {
	for _, f := range s.list() {
		c := checker{file: f, newest: make([]int32, f.params.Slots)}
		if err := vfs.Guard(f.path, func() error { return c.run(fn) }); err != nil {
			return damage, fmt.Errorf("check index: %w", err)
		}
		damage = append(damage, c.damage...)
	}
	return damage, nil
}

// maxDamage bounds what is reported of one file.
const maxDamage = 100

type checker struct {
	file   *file
	newest []int32 // entry of each slot
	damage []error
}

func (c *checker) bad(at int64, format string, args ...any) {
	if len(c.damage) < maxDamage {
		err := fmt.Errorf("%w: "+format, append([]any{ErrChain}, args...)...)
		c.damage = append(c.damage, &segments.CorruptionError{File: c.file.path, Offset: at, Err: err})
	}
}

func (c *checker) run(fn func(Entry) error) error {
	f := c.file
	used, last := int32(0), entry{physical: f.head.endPhy}
	for n := int32(1); n < f.head.count; n++ {
		at := f.params.entryOffset(n)
		e := decodeEntry(f.data[at:])
		if e.hash < 0 {
			c.bad(at, "entry %d has the hash %d", n, e.hash)
			continue
		}
		slot := &c.newest[f.params.slotOf(e.hash)]
		if *slot == 0 {
			used++
		}
		if e.before != *slot {
			c.bad(at, "entry %d leads to %d, the one before in its slot is %d", n, e.before, *slot)
		}
		*slot, last = n, e
		if err := fn(Entry{Hash: e.hash, PhysicalOffset: messages.PhysicalOffset(e.physical), Path: f.path, FileOffset: at}); err != nil {
			return err
		}
	}
	for slot, newest := range c.newest {
		at := f.params.slotOffset(int32(slot))
		if got := loadSlot(f.data, at); got != newest {
			c.bad(at, "slot %d leads to entry %d, its newest is %d", slot, got, newest)
		}
	}
	switch h := f.head; {
	case h.count <= 1:
	case h.slotsUsed != used:
		c.bad(32, "hashSlotCount is %d, %d slots are in use", h.slotsUsed, used)
	case h.endPhy != last.physical:
		c.bad(24, "endPhyOffset is %d, the last entry names %d", h.endPhy, last.physical)
	}
	return nil
}
