package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/actormq/actormq/messages"
)

// Parts of the format.
const (
	headerBytes = 40
	slotBytes   = 4
	entryBytes  = 20
)

// maxTimeMs bounds timestamps, so that adding to them is safe: the year 287396.
const maxTimeMs = 1 << 53

// Errors of the index; test them with errors.Is.
var (
	// ErrParams: the sizes make no sense.
	ErrParams = errors.New("invalid index parameters")
	// ErrHeader: the header of a file contradicts itself or the sizes.
	ErrHeader = errors.New("invalid index header")
	// ErrClosed: the set has been closed.
	ErrClosed = errors.New("index is closed")
	// ErrFailed: an earlier sync failed; what is durable is unknown.
	ErrFailed = errors.New("index has failed")
)

// Params are the sizes that every file has, the clock, and who is told what queries find.
type Params struct {
	Slots   int32            // hash slots in a file (maxHashSlotNum)
	Entries int32            // entries in a file, the unused entry 0 counted (maxIndexNum)
	Now     func() time.Time // names new files, in the location of the time; nil: time.Now

	// Found, if there is one, is told each place of a query as soon as it is known, before the query goes on: to fetch what is there. It does
	// not block, and may be called by any number of goroutines.
	Found func(messages.PhysicalOffset)
}

// Validate reports all problems; the error wraps ErrParams.
func (p Params) Validate() error {
	var errs []error
	if p.Slots < 1 {
		errs = append(errs, fmt.Errorf("%w: Slots is %d, must be at least 1", ErrParams, p.Slots))
	}
	if p.Entries < 2 {
		errs = append(errs, fmt.Errorf("%w: Entries is %d, must be at least 2", ErrParams, p.Entries))
	}
	return errors.Join(errs...)
}

// FileBytes is the length of a file.
func (p Params) FileBytes() int64 { return p.entryOffset(p.Entries) }

func (p Params) slotOffset(slot int32) int64 { return headerBytes + int64(slot)*slotBytes }

func (p Params) entryOffset(n int32) int64 {
	return headerBytes + int64(p.Slots)*slotBytes + int64(n)*entryBytes
}

// slotOf is the slot of a key hash, which is not negative.
func (p Params) slotOf(hash int32) int32 { return hash % p.Slots }

// header is the first part of a file.
type header struct {
	beginMs, endMs   int64 // store timestamps of the first and the last entry
	beginPhy, endPhy int64 // physical offsets of the same
	slotsUsed        int32
	count            int32 // number of the next entry, from 1
}

func decodeHeader(b []byte) header {
	return header{
		beginMs: int64(binary.BigEndian.Uint64(b)), endMs: int64(binary.BigEndian.Uint64(b[8:])),
		beginPhy: int64(binary.BigEndian.Uint64(b[16:])), endPhy: int64(binary.BigEndian.Uint64(b[24:])),
		slotsUsed: int32(binary.BigEndian.Uint32(b[32:])), count: int32(binary.BigEndian.Uint32(b[36:])),
	}
}

// encode writes the header; the count goes last, because it makes the newest entry count.
func (h header) encode(b []byte) {
	_ = b[headerBytes-1]
	binary.BigEndian.PutUint64(b, uint64(h.beginMs))
	binary.BigEndian.PutUint64(b[8:], uint64(h.endMs))
	binary.BigEndian.PutUint64(b[16:], uint64(h.beginPhy))
	binary.BigEndian.PutUint64(b[24:], uint64(h.endPhy))
	binary.BigEndian.PutUint32(b[32:], uint32(h.slotsUsed))
	binary.BigEndian.PutUint32(b[36:], uint32(h.count))
}

// check refuses a header that no writer leaves, crashed or not. Timestamps may fall: the clock may have jumped.
func (h header) check(p Params) error {
	bad := func(what string, got int64, limit string) error {
		return fmt.Errorf("%w: %s is %d, must be %s", ErrHeader, what, got, limit)
	}
	switch {
	case h.count > p.Entries:
		return bad("indexCount", int64(h.count), fmt.Sprintf("at most %d", p.Entries))
	case h.slotsUsed < 0 || h.slotsUsed > p.Slots:
		return bad("hashSlotCount", int64(h.slotsUsed), fmt.Sprintf("in 0..%d", p.Slots))
	case h.beginPhy < 0:
		return bad("beginPhyOffset", h.beginPhy, "at least 0")
	case h.endPhy < h.beginPhy:
		return bad("endPhyOffset", h.endPhy, fmt.Sprintf("at least beginPhyOffset %d", h.beginPhy))
	case h.beginMs < 0 || h.beginMs > maxTimeMs:
		return bad("beginTimestamp", h.beginMs, fmt.Sprintf("in 0..%d", int64(maxTimeMs)))
	case h.endMs < 0 || h.endMs > maxTimeMs:
		return bad("endTimestamp", h.endMs, fmt.Sprintf("in 0..%d", int64(maxTimeMs)))
	case h.count < 0:
		return bad("indexCount", int64(h.count), "at least 0")
	}
	return nil
}

// entry is one key of one record.
type entry struct {
	hash     int32
	physical int64
	seconds  int32 // after the file's beginTimestamp
	before   int32 // the older entry in the same slot, 0: none
}

func decodeEntry(b []byte) entry {
	_ = b[entryBytes-1]
	return entry{
		hash: int32(binary.BigEndian.Uint32(b)), physical: int64(binary.BigEndian.Uint64(b[4:])),
		seconds: int32(binary.BigEndian.Uint32(b[12:])), before: int32(binary.BigEndian.Uint32(b[16:])),
	}
}

func (e entry) encode(b []byte) {
	_ = b[entryBytes-1]
	binary.BigEndian.PutUint32(b, uint32(e.hash))
	binary.BigEndian.PutUint64(b[4:], uint64(e.physical))
	binary.BigEndian.PutUint32(b[12:], uint32(e.seconds))
	binary.BigEndian.PutUint32(b[16:], uint32(e.before))
}

// timeMs is the store timestamp of an entry, rounded down to a second after begin. The first entry of a file is at begin by
// definition: RocketMQ writes there the distance from the file before (spec/store.md §6.6).
func (e entry) timeMs(n int32, beginMs int64) int64 {
	if n == 1 {
		return beginMs
	}
	return beginMs + int64(e.seconds)*1000
}

// secondsAfter is the time field of an entry.
func secondsAfter(beginMs, storeTimestampMs int64) int32 {
	if beginMs <= 0 || storeTimestampMs <= beginMs {
		return 0
	}
	return int32(min((storeTimestampMs-beginMs)/1000, math.MaxInt32))
}

// hashOf is the key hash of the bytes "topic#key".
func hashOf(text []byte) int32 {
	switch h := messages.JavaHashBytes(text); {
	case h == math.MinInt32: // has no absolute value
		return 0
	case h < 0:
		return -h
	default:
		return h
	}
}

// A slot is read by queries while the builder sets it, so both go through an atomic word. The mapping starts at a page and
// slots are 4-aligned in it.

func loadSlot(b []byte, off int64) int32 {
	var raw [slotBytes]byte
	binary.NativeEndian.PutUint32(raw[:], atomic.LoadUint32((*uint32)(unsafe.Pointer(&b[off]))))
	return int32(binary.BigEndian.Uint32(raw[:]))
}

func storeSlot(b []byte, off int64, n int32) {
	var raw [slotBytes]byte
	binary.BigEndian.PutUint32(raw[:], uint32(n))
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&b[off])), binary.NativeEndian.Uint32(raw[:]))
}
