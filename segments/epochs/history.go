package epochs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrHistory: what was read is no history of a log.
var ErrHistory = errors.New("not a history of epochs")

// mostEpochs are kept; older ones are forgotten, and a replica that knows no younger one copies the log anew.
const mostEpochs = 1024

// Epoch is a part of the log, written by one leader.
type Epoch struct {
	Number int64                   `json:"epoch"`
	Start  messages.PhysicalOffset `json:"start"`
}

// History is all epochs of a log, in order. It is a value: methods return another one.
type History struct {
	Group  string  `json:"group"` // identity of the replica group; empty: the log has never been in one
	Epochs []Epoch `json:"epochs"`
}

// Last is the number of the last epoch, 0 when there is none.
func (h History) Last() int64 {
	if len(h.Epochs) == 0 {
		return 0
	}
	return h.Epochs[len(h.Epochs)-1].Number
}

// Validate tells whether numbers grow and starts do not go back.
func (h History) Validate() error {
	before := Epoch{}
	for _, e := range h.Epochs {
		if e.Number <= before.Number || e.Start < before.Start {
			return fmt.Errorf("%w: epoch %d from %d behind epoch %d from %d", ErrHistory, e.Number, e.Start, before.Number, before.Start)
		}
		before = e
	}
	if len(h.Epochs) > mostEpochs {
		return fmt.Errorf("%w: %d epochs, at most %d", ErrHistory, len(h.Epochs), mostEpochs)
	}
	return nil
}

// CutTo is the history of the log once it ends at an offset.
func (h History) CutTo(end messages.PhysicalOffset) History {
	n := len(h.Epochs)
	for n > 0 && h.Epochs[n-1].Start > end {
		n--
	}
	return History{Group: h.Group, Epochs: slices.Clone(h.Epochs[:n])}
}

// Begin is the history once a leader has taken over a log that ends at an offset. The number must be higher than all before.
func (h History) Begin(number int64, end messages.PhysicalOffset) (History, error) {
	next := h.CutTo(end)
	if number <= h.Last() {
		return h, fmt.Errorf("%w: epoch %d is to begin, epoch %d has", ErrHistory, number, h.Last())
	}
	next.Epochs = append(next.Epochs, Epoch{Number: number, Start: end})
	if n := len(next.Epochs) - mostEpochs; n > 0 {
		next.Epochs = next.Epochs[n:]
	}
	return next, nil
}

// Common is the offset below which a log that ends at end has the same bytes as the leader's: the end, in both, of the last epoch that
// both have. It is false when they have none in common.
func Common(mine History, end messages.PhysicalOffset, leader History, leaderEnd messages.PhysicalOffset) (messages.PhysicalOffset, bool) {
	if mine.Group != leader.Group {
		return 0, false
	}
	mine = mine.CutTo(end)
	for i := len(mine.Epochs) - 1; i >= 0; i-- {
		j := slices.Index(leader.Epochs, mine.Epochs[i])
		if j >= 0 {
			return min(mine.endOf(i, end), leader.endOf(j, leaderEnd)), true
		}
	}
	return 0, false
}

func (h History) endOf(i int, end messages.PhysicalOffset) messages.PhysicalOffset {
	if i+1 < len(h.Epochs) {
		return h.Epochs[i+1].Start
	}
	return end
}

// Load reads a history; one that is not there, or can't be read, is empty: then the log is copied anew.
func Load(disk vfs.Disk, name string) (History, error) {
	var h History
	_, err := metadata.Load(disk, name, &h)
	if errors.Is(err, metadata.ErrDamaged) || err == nil && h.Validate() != nil {
		return History{}, nil
	}
	if err != nil {
		return History{}, fmt.Errorf("load the history of epochs: %w", err)
	}
	return h, nil
}

// Save replaces the file; when it returns nil that survives a power cut.
func Save(disk vfs.Disk, name string, h History) error {
	if err := metadata.Save(disk, name, h); err != nil {
		return fmt.Errorf("save the history of epochs: %w", err)
	}
	return nil
}
