package consumequeue

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/actormq/actormq/segments/vfs"
)

// fileKey names a file: its queue, and the queue offset at which it starts.
type fileKey struct {
	queue *Queue
	start int64
}

// openFile is a descriptor in the cache; it stays open while somebody uses it.
type openFile struct {
	vfs.File
	key        fileKey
	users      int
	dropped    bool // no longer in the cache: closed by the last user
	prev, next *openFile

	page   page                        // what was read of it last
	mapped atomic.Pointer[vfs.Mapping] // for single units; nil until somebody looks here and there
}

// fileCache keeps the descriptors that were used last, at most limit (more only while more are in use at once). One
// serves all queues of a table. Its mutex is held for a look-up, never for a system call, and is on no put path.
type fileCache struct {
	disk  vfs.Disk
	limit int

	mu     sync.Mutex
	byKey  map[fileKey]*openFile
	ring   openFile // sentinel: next is the newest, prev the oldest
	closed bool
	failed error // what closing has said
}

func newFileCache(disk vfs.Disk, limit int) *fileCache {
	c := &fileCache{disk: disk, limit: limit, byKey: map[fileKey]*openFile{}}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	return c
}

// acquire returns the open file of a queue that starts at a queue offset; release ends its use.
func (c *fileCache) acquire(q *Queue, start int64) (*openFile, error) {
	key := fileKey{q, start}
	if f := c.use(key); f != nil {
		return f, nil
	}
	opened, err := c.disk.Open(q.filePath(start), true)
	if err != nil {
		return nil, err
	}
	f := &openFile{File: opened, key: key, users: 1}
	c.finish(c.insert(f))
	return f, nil
}

// use finds a file and counts one more user.
func (c *fileCache) use(key fileKey) *openFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.byKey[key]
	if f == nil {
		return nil
	}
	f.users++
	c.unlink(f)
	c.link(f)
	return f
}

// insert puts a new file into the cache and returns what must be closed for it. When another goroutine was faster, or the
// cache is closed, the new one serves its caller only.
func (c *fileCache) insert(f *openFile) *openFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.byKey[f.key] != nil {
		f.dropped = true
		return nil
	}
	c.byKey[f.key] = f
	c.link(f)
	if len(c.byKey) <= c.limit {
		return nil
	}
	for old := c.ring.prev; old != &c.ring; old = old.prev {
		if old.users == 0 {
			c.remove(old)
			return old
		}
	}
	return nil
}

// release ends a use.
func (c *fileCache) release(f *openFile) {
	c.mu.Lock()
	f.users--
	last := f.dropped && f.users == 0
	c.mu.Unlock()
	if last {
		c.finish(f)
	}
}

// drop takes a file out that is about to be removed from the disk.
func (c *fileCache) drop(q *Queue, start int64) {
	c.mu.Lock()
	f := c.byKey[fileKey{q, start}]
	if f != nil {
		c.remove(f)
		if f.users > 0 {
			f = nil
		}
	}
	c.mu.Unlock()
	c.finish(f)
}

// finish closes a file that left the cache unused. Its data was written and synced through whatever descriptor was
// open, so an error here is kept for close and fails nobody's read.
func (c *fileCache) finish(f *openFile) {
	if f == nil {
		return
	}
	if err := errors.Join(f.unmap(), f.Close()); err != nil {
		c.mu.Lock()
		c.failed = errors.Join(c.failed, err)
		c.mu.Unlock()
	}
}

// close closes what is not in use and makes the rest close after use.
func (c *fileCache) close() error {
	c.mu.Lock()
	c.closed = true
	var unused []*openFile
	for _, f := range c.byKey {
		c.remove(f)
		if f.users == 0 {
			unused = append(unused, f)
		}
	}
	c.mu.Unlock()
	for _, f := range unused {
		c.finish(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *fileCache) remove(f *openFile) {
	delete(c.byKey, f.key)
	c.unlink(f)
	f.dropped = true
}

func (c *fileCache) link(f *openFile) {
	f.prev, f.next = &c.ring, c.ring.next
	f.prev.next, f.next.prev = f, f
}

func (c *fileCache) unlink(f *openFile) {
	f.prev.next, f.next.prev = f.next, f.prev
	f.prev, f.next = nil, nil
}
