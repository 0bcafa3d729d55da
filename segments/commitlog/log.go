package commitlog

import (
	"errors"
	"fmt"
	"path"
	"sync/atomic"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrNotInLog: the range is not (yet, or no longer) readable: outside of Min to End, or in a gap between segments.
var ErrNotInLog = errors.New("not in the commit log")

// Foreign is a file in the log's folder that is no segment: it is left alone and reported.
type Foreign struct {
	Name   string
	Size   int64
	Reason error
}

// Log is a commit log. One owner (recovery, then the writer) calls Add, Publish and CutTo; every other method is safe for
// any goroutine.
type Log struct {
	disk         vfs.Disk
	dir          string
	segmentBytes int64

	view    atomic.Pointer[segments.View]
	end     atomic.Int64 // readable end; stored after the bytes and after the view that holds them
	storeMs atomic.Int64 // store timestamp of a record below end; stored after end

	written   atomic.Int64 // with a transient store pool: the appended end; 0: whatever is appended is readable
	writtenMs atomic.Int64 // store timestamp of a record below written; stored after it
}

// Open maps every segment in dir; a missing folder is an empty log. Files that are no segments of the right size are
// returned as foreign. Every segment counts as fully written: CutTo sets the end that recovery has found.
func Open(disk vfs.Disk, dir string, segmentBytes int64) (*Log, []Foreign, error) {
	l := &Log{disk: disk, dir: dir, segmentBytes: segmentBytes}
	entries, err := vfs.ListIfThere(disk, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open commit log: %w", err)
	}
	var segs []*segments.Segment
	var foreign []Foreign
	for _, e := range entries {
		start, reason := l.accept(e)
		if reason != nil {
			foreign = append(foreign, Foreign{Name: e.Name, Size: e.Size, Reason: reason})
			continue
		}
		s, err := segments.Open(disk, path.Join(dir, e.Name), start, segmentBytes)
		if err != nil {
			l.view.Store(segments.NewView(segs))
			return nil, nil, errors.Join(fmt.Errorf("open commit log: %w", err), l.Close())
		}
		segs = append(segs, s)
	}
	l.view.Store(segments.NewView(segs))
	if n := len(segs); n > 0 {
		l.end.Store(segs[n-1].Start() + segs[n-1].Size())
	}
	return l, foreign, nil
}

// accept tells whether a folder entry is a segment of this log, and where it starts.
func (l *Log) accept(e vfs.Entry) (int64, error) {
	start, err := segments.ParseName(e.Name)
	switch {
	case err != nil:
		return 0, err
	case e.Dir:
		return 0, fmt.Errorf("%s is a folder: %w", e.Name, segments.ErrName)
	case e.Size != l.segmentBytes:
		return 0, fmt.Errorf("%s has %d bytes instead of %d: %w", e.Name, e.Size, l.segmentBytes, segments.ErrSize)
	case start%l.segmentBytes != 0:
		return 0, fmt.Errorf("%s is no multiple of the segment size %d: %w", e.Name, l.segmentBytes, segments.ErrName)
	}
	return start, nil
}

// SegmentBytes is the size of each file.
func (l *Log) SegmentBytes() int64 { return l.segmentBytes }

// Dir is the folder of the segments.
func (l *Log) Dir() string { return l.dir }

// View returns the current list of segments.
func (l *Log) View() *segments.View { return l.view.Load() }

// Min is the physical offset of the first byte, or -1 when the log has no segment (spec/store.md §7.7).
func (l *Log) Min() messages.PhysicalOffset {
	if first := l.view.Load().First(); first != nil {
		return messages.PhysicalOffset(first.Start())
	}
	return -1
}

// End is the physical offset behind the last readable byte; 0 when the log is empty.
func (l *Log) End() messages.PhysicalOffset { return messages.PhysicalOffset(l.end.Load()) }

// SegmentStart is the physical offset at which the segment that contains off begins.
func (l *Log) SegmentStart(off messages.PhysicalOffset) messages.PhysicalOffset {
	return off - off%messages.PhysicalOffset(l.segmentBytes)
}

// Close unmaps and closes every segment once its readers have left; the log is empty afterwards. It returns the errors of
// those that were closed at once: a segment that a reader still holds is closed by that reader.
func (l *Log) Close() error {
	v := l.view.Swap(nil)
	closed := make(chan error, v.Len())
	for i := range v.Len() {
		v.At(i).Retire(func(err error) { closed <- err })
	}
	var errs []error
	for range len(closed) {
		errs = append(errs, <-closed)
	}
	return errors.Join(errs...)
}
