package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"sync"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/vfs"
)

// errUnproven is why a queue is built again from a place on that nobody has found wrong.
var errUnproven = errors.New("a sync of a consume queue had failed, or a start was interrupted that built queues again")

// proven says that the queues are durable, wherever their records are.
const proven = messages.PhysicalOffset(math.MaxInt64)

// unsound has all queues looked at, and only those built again that are damaged.
const unsound = proven - 1

// UnprovenQueuesPath is the marker that consume queues are not to be believed as they can be read: its number is the physical offset
// from which on their units may be missing on the disk, since a sync has failed. RocketMQ ignores it; so it counts whoever has
// closed the store since, and however.
func (p Params) UnprovenQueuesPath() string { return path.Join(p.Dir, "unprovenqueues") }

// queueDoubt writes the marker. A system says just once that a sync has failed; what it shows of a file afterwards is not what the disk
// holds. So the queues are built again from the log from the first record on that is concerned. Safe for concurrent use.
type queueDoubt struct {
	disk vfs.Disk
	path string

	mu      sync.Mutex
	from    messages.PhysicalOffset // of the marker that is there; proven: there is none
	durable bool                    // this process has made it; what can be read of an earlier one's need not be on the disk
}

// mark makes the marker say that units of records at from and behind are in doubt. When it returns nil that survives a power cut.
func (d *queueDoubt) mark(from messages.PhysicalOffset, cause error) error {
	return d.say(mark, from, cause)
}

// note is mark for what has not begun: when it fails, the marker that was there is as it was.
func (d *queueDoubt) note(from messages.PhysicalOffset, cause error) error {
	return d.say(note, from, cause)
}

func (d *queueDoubt) say(
	write func(vfs.Disk, string, messages.PhysicalOffset, error) error, from messages.PhysicalOffset, cause error,
) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if from = max(from, 0); d.durable && from >= d.from {
		return nil
	}
	if err := write(d.disk, d.path, from, cause); err != nil {
		return fmt.Errorf("mark the consume queues as unproven from %d on: %w", from, err)
	}
	d.from, d.durable = min(from, d.from), true
	return nil
}

// MarkQueuesDamaged has the next start, also one after a clean stop, look at all consume queues from end to end, and build again from the log
// what is not sound. For damage that is met while the store is open. When it returns nil that survives a power cut. Safe for concurrent use.
func (s *Store) MarkQueuesDamaged(cause error) error { return s.doubt.mark(unsound, cause) }

// load reads the marker. One that can't be read as such means all queues.
func (d *queueDoubt) load() error {
	var err error
	d.from, err = readUnproven(d.disk, d.path)
	if errors.Is(err, fs.ErrNotExist) {
		d.from, err = proven, nil
	}
	return err
}

// clear removes the marker: all units are durable.
func (d *queueDoubt) clear() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.from == proven {
		return nil
	}
	if err := checkpoint.ClearAbort(d.disk, d.path); err != nil {
		return err
	}
	d.from, d.durable = proven, false
	return nil
}

// queuesUnproven is told of a sync of a queue that has failed.
func (s *Store) queuesUnproven(from messages.PhysicalOffset, cause error) {
	if err := s.doubt.mark(from, cause); err != nil && s.options.OnUnmarked != nil {
		s.options.OnUnmarked(errors.Join(err, cause))
	}
}
