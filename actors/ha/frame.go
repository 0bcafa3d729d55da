package ha

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// The protocol has two kinds of data, and no framing beyond (spec/store.md §12.2):
//
//	slave → master   i64 end of the slave's log
//	master → slave   i64 physical offset, i32 size, bytes of the log; size 0 is a heartbeat
const (
	reportBytes = 8
	headerBytes = 12
)

const (
	// maxFrameBytes is the largest frame that a slave takes; RocketMQ's masters send haTransferBatchSize at most.
	maxFrameBytes = 16 << 20
	// wholeBytes is up to which size a record is never cut: a slave whose connection ends has whole records then. RocketMQ's
	// slaves take frames of less than 4 MiB.
	wholeBytes = 1 << 20
)

// ErrFrame: what came from the master is no frame.
var ErrFrame = errors.New("not a replication frame")

func putHeader(b []byte, at messages.PhysicalOffset, n int) {
	binary.BigEndian.PutUint64(b, uint64(at))
	binary.BigEndian.PutUint32(b[8:], uint32(n))
}

// parseHeader reads the header of a frame and bounds what it says.
func parseHeader(b []byte) (at messages.PhysicalOffset, n int, err error) {
	at, size := messages.PhysicalOffset(binary.BigEndian.Uint64(b)), int32(binary.BigEndian.Uint32(b[8:]))
	if at < 0 || size < 0 || size > maxFrameBytes {
		return 0, 0, fmt.Errorf("%w: offset %d, %d bytes, at most %d", ErrFrame, at, size, maxFrameBytes)
	}
	return at, int(size), nil
}

// piece is the length of what stands as one piece at the start of b: a record, or, where a blank or damage stands, everything
// that is readable of the segment, which is rest bytes; b may be less.
func piece(b []byte, rest int) int {
	if len(b) < record.BlankBytes {
		return rest
	}
	size, magic := int(record.TotalSize(b)), binary.BigEndian.Uint32(b[4:])
	if (magic == record.Magic || magic == record.MagicV2) && size >= record.MinBytes && size <= rest {
		return size
	}
	return rest
}

// cutter decides where frames end: between records, but for those of more than wholeBytes.
type cutter struct {
	limit  int // haTransferBatchSize
	inside int // bytes that are left of a piece that was cut
}

// frame is how many bytes of b, which is not empty, go into the next frame. rest is as for piece; b is all of it or has room for
// a whole frame.
func (c *cutter) frame(b []byte, rest int) int {
	if c.inside > 0 {
		n := min(c.inside, c.limit, len(b))
		c.inside -= n
		return n
	}
	n := 0
	for n < len(b) {
		size := piece(b[n:], rest-n)
		if n+size <= c.limit {
			n += size
			continue
		}
		switch {
		case n > 0:
		case size <= wholeBytes:
			n = size
		default:
			n = min(c.limit, size)
			c.inside = size - n
		}
		return n
	}
	return n
}
