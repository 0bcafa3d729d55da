package ha

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrReport: what came on the replication port is no report of a slave of this log. It has no effect on acknowledgements.
var ErrReport = errors.New("not the report of a slave of this log")

// fullCopy is the first report of an empty slave that wants all that there is. RocketMQ's masters begin at the last segment
// for 0 and take any other offset as it is; the byte that is not asked for, the first of the size of the first record, is 0.
const fullCopy = 1

// start is where a replica is sent from on.
type start struct {
	at     messages.PhysicalOffset
	inside int // bytes that are left of the piece that begins before at
}

// startAt finds where sending begins for a first report (spec/store.md §12.3), or says why it can't be one: it is ahead of
// the log, before it, or in the middle of a record that no frame would cut (§16, W8).
func startAt(log *commitlog.Log, report messages.PhysicalOffset) (start, error) {
	first, end := log.Min(), log.End()
	switch {
	case report == 0:
		return start{at: log.SegmentStart(end)}, nil
	case report == fullCopy && (first > 0 || end == 0):
		return start{at: max(first, 0)}, nil
	case report < 0 || report > end:
		return start{}, fmt.Errorf("%w: it reports %d, the log ends at %d", ErrReport, report, end)
	case report < first:
		return start{}, fmt.Errorf("%w: it reports %d, the log begins at %d", ErrReport, report, first)
	case report == end:
		return start{at: end}, nil
	}
	inside, err := insideOf(log, report)
	if err != nil {
		return start{}, err
	}
	return start{at: report, inside: inside}, nil
}

// insideOf is how much is left behind an offset of the piece that it lies in, 0 at the start of one.
func insideOf(log *commitlog.Log, at messages.PhysicalOffset) (int, error) {
	from := log.SegmentStart(at)
	s, err := log.ReadFrom(from)
	if err != nil {
		return 0, fmt.Errorf("%w: it reports %d: %w", ErrReport, at, err)
	}
	defer s.Release()
	inside := 0
	err = vfs.Guard(s.Path(), func() error {
		inside, err = locate(s.Bytes, int(at-from), at)
		return err
	})
	return inside, err
}

// locate looks for a place in a segment's readable bytes.
func locate(b []byte, to int, at messages.PhysicalOffset) (int, error) {
	if to == 0 || beginsAt(b[to:], at) {
		return 0, nil
	}
	for n := 0; n < len(b); {
		size := piece(b[n:], len(b)-n)
		if n+size > to {
			if size > wholeBytes || at == fullCopy {
				return n + size - to, nil
			}
			break
		}
		if n += size; n == to {
			return 0, nil
		}
	}
	return 0, fmt.Errorf("%w: it reports %d, where no record begins", ErrReport, at)
}

// beginsAt tells whether a record stands at the start of b that says so itself, or a blank that fills the segment.
func beginsAt(b []byte, at messages.PhysicalOffset) bool {
	if len(b) < record.BlankBytes {
		return false
	}
	if binary.BigEndian.Uint32(b[4:]) == record.BlankMagic {
		return int(record.TotalSize(b)) == len(b)
	}
	return record.StandsAt(b[:piece(b, len(b))], at)
}
