package ext

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// freshSuffix marks a file that is being made, beside the folder of its queue; RocketMQ skips the name.
const freshSuffix = ".new"

// How much is read at once: of one unit, and of a file that is looked through.
const (
	pageBytes = 4096
	walkBytes = 64 << 10
)

// Queue is the extension of one consume queue. All methods are safe for concurrent use.
type Queue struct {
	disk      vfs.Disk
	dir       string
	fileBytes int64
	fresh     bool // begin a new file

	mu      sync.Mutex
	loaded  bool
	off     error   // why nothing is appended any more
	end     int64   // where the next unit goes; in bytes from the beginning of the first file that ever was
	pending []chunk // not in a file yet, in order
	dirty   []int64 // starts of files that are not durable
	names   bool    // names in the folder are not durable

	page   []byte // read last
	pageAt int64
}

// chunk is bytes that follow one another in one file.
type chunk struct {
	at int64
	b  []byte
}

// New returns the extension of a queue in a folder, which need not be there. clean: it goes on with the last file, whose units are all
// durable; else it begins a new one.
func New(disk vfs.Disk, dir string, fileBytes int64, clean bool) *Queue {
	return &Queue{disk: disk, dir: dir, fileBytes: fileBytes, fresh: !clean}
}

// Append adds a unit and returns its address; false when it can't have one: then the tags code stands for itself.
func (q *Queue) Append(u Unit) (address int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.load(); q.off != nil {
		return 0, false
	}
	if left := q.fileBytes - q.end%q.fileBytes; left < fixedBytes+endBytes {
		q.put(appendMark(nil))
		q.end += q.fileBytes - q.end%q.fileBytes
	}
	if !fitsAddress(q.end) {
		return 0, false
	}
	address = addressOf(q.end)
	q.put(appendUnit(nil, u))
	return address, true
}

// put appends bytes at the end.
func (q *Queue) put(b []byte) {
	if n := len(q.pending); n > 0 && q.end%q.fileBytes != 0 {
		q.pending[n-1].b = append(q.pending[n-1].b, b...)
	} else {
		q.pending = append(q.pending, chunk{at: q.end, b: b})
	}
	q.end += int64(len(b))
}

// load finds out where to go on. That the files can't be used is no error: then nothing is appended.
func (q *Queue) load() {
	if q.loaded {
		return
	}
	q.loaded = true
	starts, err := q.files()
	if err == nil && len(starts) > 0 {
		last := starts[len(starts)-1]
		if q.end = last + q.fileBytes; !q.fresh {
			q.end, err = q.walk(last)
		}
	}
	q.off = err
}

// files returns the starts of the files.
func (q *Queue) files() ([]int64, error) {
	entries, err := vfs.ListIfThere(q.disk, q.dir)
	var starts []int64
	for _, e := range entries {
		start, bad := segments.ParseName(e.Name)
		if bad != nil || e.Dir {
			continue
		}
		if e.Size != q.fileBytes || start%q.fileBytes != 0 {
			return nil, fmt.Errorf("%s has %d bytes instead of %d: %w", path.Join(q.dir, e.Name), e.Size, q.fileBytes, segments.ErrSize)
		}
		starts = append(starts, start)
	}
	return starts, err
}

// walk returns the end of the units of a file.
func (q *Queue) walk(start int64) (int64, error) {
	f, err := q.disk.Open(q.filePath(start), false)
	if err != nil {
		return 0, err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, q.fileBytes), walkBytes)
	at := int64(0)
	for err == nil {
		var b []byte
		if b, err = r.Peek(fixedBytes); err != nil {
			break
		}
		size, ok := sizeAt(b)
		if !ok || at+size > q.fileBytes {
			break
		}
		at += size
		_, err = r.Discard(int(size))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return start + at, errors.Join(err, f.Close())
}

// TagsCode resolves an address; false when there is no unit.
func (q *Queue) TagsCode(address int64) (int64, bool) {
	if !IsAddress(address) {
		return 0, false
	}
	at := offsetOf(address)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.pending {
		if at >= c.at && at < c.at+int64(len(c.b)) {
			return tagsCodeIn(c.b[at-c.at:])
		}
	}
	if at < q.pageAt || at-q.pageAt > int64(len(q.page))-fixedBytes {
		if q.readPage(at) != nil {
			return 0, false
		}
	}
	return tagsCodeIn(q.page[at-q.pageAt:])
}

func tagsCodeIn(b []byte) (int64, bool) {
	if _, ok := sizeAt(b); !ok {
		return 0, false
	}
	return decode(b).TagsCode, true
}

func (q *Queue) readPage(at int64) error {
	q.page = q.page[:0]
	start := at - at%q.fileBytes
	f, err := q.disk.Open(q.filePath(start), false)
	if err != nil {
		return err
	}
	b := make([]byte, min(pageBytes, start+q.fileBytes-at))
	n, err := f.ReadAt(b, at-start)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	q.page, q.pageAt = b[:n], at
	return errors.Join(err, f.Close())
}

func (q *Queue) filePath(start int64) string { return path.Join(q.dir, segments.Name(start)) }

// Write puts what is only in memory into the files. On an error nothing is lost: the next Write tries again.
func (q *Queue) Write() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.pending) > 0 {
		c := q.pending[0]
		if err := q.writeChunk(c); err != nil {
			return fmt.Errorf("write the extension %s: %w", q.dir, err)
		}
		q.pending = q.pending[1:]
		q.page = nil // it may have been read before this was there
	}
	q.pending = nil
	return nil
}

func (q *Queue) writeChunk(c chunk) error {
	start := c.at - c.at%q.fileBytes
	f, err := q.disk.Open(q.filePath(start), true)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = q.create(start)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(c.b, c.at-start)
	if !slices.Contains(q.dirty, start) {
		q.dirty = append(q.dirty, start)
	}
	return errors.Join(err, f.Close())
}

// create makes a file beside the folder and moves it in at its full length: RocketMQ starts with no other.
func (q *Queue) create(start int64) (vfs.File, error) {
	if err := q.disk.MkdirAll(q.dir); err != nil {
		return nil, err
	}
	fresh := q.dir + freshSuffix
	if err := vfs.RemoveIfThere(q.disk, fresh); err != nil {
		return nil, err
	}
	f, err := q.disk.Create(fresh)
	if err != nil {
		return nil, err
	}
	if err = f.Truncate(q.fileBytes); err == nil {
		err = q.disk.Rename(fresh, q.filePath(start))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), q.disk.Remove(fresh))
	}
	q.names = true
	return f, nil
}

// Sync makes durable what has been written.
func (q *Queue) Sync() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.dirty) > 0 {
		f, err := q.disk.Open(q.filePath(q.dirty[0]), true)
		if err == nil {
			err = errors.Join(f.DataSync(), f.Close())
		}
		if err != nil {
			return fmt.Errorf("sync the extension %s: %w", q.dir, err)
		}
		q.dirty = q.dirty[1:]
	}
	if q.names {
		if err := q.disk.SyncDir(q.dir); err != nil {
			return fmt.Errorf("sync the extension %s: %w", q.dir, err)
		}
		q.names = false
	}
	q.dirty = nil
	return nil
}

// Empty tells whether there are no files that can be used.
func (q *Queue) Empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	starts, err := q.files()
	return err != nil || len(starts) == 0
}

// DeleteBelow deletes the files that end in front of an address.
func (q *Queue) DeleteBelow(address int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	starts, err := q.files()
	if err != nil {
		return nil //nolint:nilerr // not ours: left alone
	}
	for _, start := range starts {
		if start+q.fileBytes > offsetOf(address) {
			break
		}
		if err := q.remove(start); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) remove(start int64) error {
	q.dirty = slices.DeleteFunc(q.dirty, func(s int64) bool { return s == start })
	q.names, q.page = true, nil
	if err := vfs.RemoveIfThere(q.disk, q.filePath(start)); err != nil {
		return fmt.Errorf("delete an extension: %w", err)
	}
	return nil
}

// Destroy deletes all files; the queue begins anew.
func (q *Queue) Destroy() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	entries, err := vfs.ListIfThere(q.disk, q.dir)
	for _, e := range entries {
		if start, bad := segments.ParseName(e.Name); bad == nil {
			err = errors.Join(err, q.remove(start))
		}
	}
	q.pending, q.dirty, q.page, q.names, q.end, q.loaded, q.off = nil, nil, nil, false, 0, false, nil
	if err != nil || len(entries) == 0 {
		return err
	}
	if err := q.disk.SyncDir(q.dir); err != nil {
		return fmt.Errorf("delete an extension: %w", err)
	}
	return nil
}
