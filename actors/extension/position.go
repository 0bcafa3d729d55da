package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// flushTimeout bounds the wait for the flusher before a save.
const flushTimeout = 30 * time.Second

// ErrPosition: a saved position does not belong to this log any more.
var ErrPosition = errors.New("the saved position is of another log")

// Position is how far a dispatcher has come. Who keeps it beside data of its own keeps all of it.
type Position struct {
	Generation int64 `json:"generation"` // one more at each save
	commitlog.Mark
	LogEnd int64 `json:"logEnd"` // when it was saved
}

// PositionAt describes a place in the log, to be kept.
func PositionAt(log *commitlog.Log, at messages.PhysicalOffset) (Position, error) {
	m, err := log.MarkAt(at)
	return Position{Mark: m, LogEnd: int64(log.End())}, err
}

// Check tells whether a position belongs to the log: nil, ErrPosition, or an error of the disk.
func (p Position) Check(log *commitlog.Log) error {
	fits, err := log.Fits(p.Mark)
	switch {
	case err != nil:
		return fmt.Errorf("check a saved position: %w", err)
	case !fits:
		return fmt.Errorf("%w: offset %d", ErrPosition, p.Offset)
	}
	return nil
}

// LoadPosition reads a position; false when there is none that can be used, and then why.
func LoadPosition(disk vfs.Disk, path string, log *commitlog.Log) (Position, bool, error) {
	var p Position
	found, err := metadata.Load(disk, path, &p)
	if err != nil || !found {
		return Position{}, false, err
	}
	if err := p.Check(log); err != nil {
		return Position{Generation: p.Generation}, false, fmt.Errorf("%s: %w", path, err)
	}
	return p, true, nil
}

// keeper saves positions of one dispatcher.
type keeper struct {
	disk    vfs.Disk
	path    string
	log     *commitlog.Log
	flusher actors.Peer
}

// save makes the log durable up to a position, and then the position: the other way round a power cut could leave a
// position that the log does not reach.
func (k keeper) save(ctx context.Context, at messages.PhysicalOffset, generation int64) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	answer := messages.NewAnswer[messages.PhysicalOffset]()
	k.flusher.Send(messages.FlushNow{Answer: answer})
	flushed, err := answer.Wait(ctx)
	if err != nil {
		return fmt.Errorf("flush the log before a position is saved: %w", err)
	}
	if flushed < at {
		return fmt.Errorf("the log is durable up to %d: position %d is not saved", flushed, at)
	}
	p, err := PositionAt(k.log, at)
	if err != nil {
		return err
	}
	p.Generation = generation
	return metadata.Save(k.disk, k.path, p)
}
