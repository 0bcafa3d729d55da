package commitlog

import (
	"hash/crc32"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// markBytes is how much of the log in front of its place a mark vouches for, at most.
const markBytes = 16 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mark is a place in the log, with what it takes to find out later whether the log in front of it is still the same: RocketMQ
// may have run in between, or the end of the log may have been lost.
type Mark struct {
	Offset    int64  `json:"offset"`    // physical offset
	LastBytes int64  `json:"lastBytes"` // in front of it, within its segment; 0: they are not there
	LastCRC   uint32 `json:"lastCrc"`   // CRC-32C of them
}

// MarkAt describes the log in front of a place. An error is one of the disk.
func (l *Log) MarkAt(off messages.PhysicalOffset) (Mark, error) {
	m := Mark{Offset: int64(off)}
	seg := l.View().Find(m.Offset - 1)
	if seg == nil || off > l.End() || !seg.Hold() {
		return m, nil
	}
	defer seg.Release()
	to := m.Offset - seg.Start()
	m.LastBytes = min(to, markBytes)
	return m, vfs.Guard(seg.Path(), func() error {
		m.LastCRC = crc32.Checksum(seg.Data()[to-m.LastBytes:to], castagnoli)
		return nil
	})
}

// Fits tells whether the log in front of a mark is what it was. Where nothing is in front any more, at or before the log's
// beginning, there is nothing to compare, and it fits. An error is one of the disk.
func (l *Log) Fits(m Mark) (bool, error) {
	if m.Offset < 0 || m.Offset > int64(l.End()) {
		return false, nil
	}
	if m.Offset <= int64(max(l.Min(), 0)) {
		return true, nil
	}
	now, err := l.MarkAt(messages.PhysicalOffset(m.Offset))
	return err == nil && now == m, err
}
