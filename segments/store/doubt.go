package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/vfs"
)

// proven says that there is no marker: what it would be about is durable, wherever its records are.
const proven = messages.PhysicalOffset(math.MaxInt64)

// doubt writes the marker that something derived from the log, from a record on, is not to be believed as it can be read. So it is built again
// from the log from there on. Safe for concurrent use.
type doubt struct {
	disk vfs.Disk
	path string
	what string // is in doubt

	mu      sync.Mutex
	from    messages.PhysicalOffset // of the marker that is there; proven: there is none
	durable bool                    // this process has made it; what can be read of an earlier one's need not be on the disk
}

// mark makes the marker say that what belongs to records at from and behind is in doubt. When it returns nil that survives a power cut.
func (d *doubt) mark(from messages.PhysicalOffset, cause error) error {
	return d.say(mark, from, cause)
}

// note is mark for what has not begun: when it fails, the marker that was there is as it was.
func (d *doubt) note(from messages.PhysicalOffset, cause error) error {
	return d.say(note, from, cause)
}

func (d *doubt) say(
	write func(vfs.Disk, string, messages.PhysicalOffset, error) error, from messages.PhysicalOffset, cause error,
) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if from = max(from, 0); d.durable && from >= d.from {
		return nil
	}
	if err := write(d.disk, d.path, from, cause); err != nil {
		return fmt.Errorf("mark the %s as unproven from %d on: %w", d.what, from, err)
	}
	d.from, d.durable = min(from, d.from), true
	return nil
}

// load reads the marker. One that can't be read as such means everything.
func (d *doubt) load() error {
	var err error
	d.from, err = readUnproven(d.disk, d.path)
	if errors.Is(err, fs.ErrNotExist) {
		d.from, err = proven, nil
	}
	return err
}

// clear removes the marker: everything is durable.
func (d *doubt) clear() error {
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
