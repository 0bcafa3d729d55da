package memfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/actormq/actormq/segments/vfs"
)

// Disk is a simulated disk. Safe for concurrent use.
type Disk struct {
	hook atomic.Pointer[func(Op) error]

	mu       sync.Mutex
	root     *node
	pending  []change // changes of names in order, not durable
	capacity int64    // bytes; 0: no limit
	used     int64    // bytes
	locked   int64    // bytes of mappings
}

var _ vfs.Disk = (*Disk)(nil)

// New makes an empty disk.
func New() *Disk { return &Disk{root: newDir(time.Now())} }

// run calls the hook, then fn under the lock; fn's error gets the operation's name.
func (d *Disk) run(op Op, fn func() error) error {
	err := d.before(op)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		err = fn()
	}
	return opError(op, err)
}

// Open implements vfs.Disk.
func (d *Disk) Open(name string, writable bool) (vfs.File, error) {
	var f *file
	err := d.run(Op{Kind: KindOpen, Name: name}, func() error {
		n, err := d.walk(name)
		if err != nil {
			return err
		}
		if n.dir {
			return errors.New("not a regular file")
		}
		f = d.handle(n, name, writable)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Create implements vfs.Disk.
func (d *Disk) Create(name string) (vfs.File, error) {
	var f *file
	err := d.run(Op{Kind: KindCreate, Name: name}, func() error {
		n, err := d.create(name)
		if err == nil {
			f = d.handle(n, name, true)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d *Disk) create(name string) (*node, error) {
	p, err := d.place(name)
	if err != nil {
		return nil, err
	}
	if p.dir.entries[p.name] != nil {
		return nil, fs.ErrExist
	}
	n := &node{modTime: time.Now()}
	d.link(change{to: p, n: n})
	return n, nil
}

// Remove implements vfs.Disk.
func (d *Disk) Remove(name string) error {
	return d.run(Op{Kind: KindRemove, Name: name}, func() error {
		n, err := d.walk(name)
		if err != nil {
			return err
		}
		if n == d.root {
			return fs.ErrInvalid
		}
		if len(n.entries) > 0 {
			return syscall.ENOTEMPTY
		}
		p, err := d.place(name)
		if err == nil {
			d.link(change{from: p, n: n})
		}
		return err
	})
}

// Rename implements vfs.Disk. A folder moves only to a free name.
func (d *Disk) Rename(oldName, newName string) error {
	return d.run(Op{Kind: KindRename, Name: oldName, To: newName}, func() error {
		n, err := d.walk(oldName)
		if err != nil {
			return err
		}
		to, err := d.place(newName)
		if err != nil {
			return err
		}
		old := to.dir.entries[to.name]
		switch {
		case old == n:
			return nil
		case n.dir && within(to.dir, n):
			return fs.ErrInvalid
		case old != nil && (old.dir || n.dir):
			return fs.ErrExist
		}
		from, err := d.place(oldName)
		if err == nil {
			d.link(change{from: from, to: to, n: n})
		}
		return err
	})
}

// Mkdir implements vfs.Disk.
func (d *Disk) Mkdir(dir string) error {
	return d.run(Op{Kind: KindMkdir, Name: dir}, func() error {
		p, err := d.place(dir)
		if err != nil {
			return err
		}
		if p.dir.entries[p.name] != nil {
			return fs.ErrExist
		}
		d.link(change{to: p, n: newDir(time.Now())})
		return nil
	})
}

// MkdirAll implements vfs.Disk.
func (d *Disk) MkdirAll(dir string) error {
	return d.run(Op{Kind: KindMkdir, Name: dir}, func() error {
		at := d.root
		for _, name := range split(dir) {
			next, err := child(at, name)
			if errors.Is(err, fs.ErrNotExist) {
				next = newDir(time.Now())
				d.link(change{to: place{at, name}, n: next})
			} else if err != nil {
				return err
			}
			d.commit(func(_ int, c change) bool { return c.to == place{at, name} })
			at = next
		}
		if !at.dir {
			return syscall.ENOTDIR
		}
		return nil
	})
}

// List implements vfs.Disk.
func (d *Disk) List(dir string) ([]vfs.Entry, error) {
	var entries []vfs.Entry
	err := d.run(Op{Kind: KindList, Name: dir}, func() error {
		n, err := d.walk(dir)
		if err != nil {
			return err
		}
		if !n.dir {
			return syscall.ENOTDIR
		}
		for name, c := range n.entries {
			entries = append(entries, entryOf(name, c))
		}
		return nil
	})
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries, err
}

func entryOf(name string, n *node) vfs.Entry {
	return vfs.Entry{Name: name, Size: n.size(), Dir: n.dir, ModTime: n.modTime}
}

// Stat implements vfs.Disk.
func (d *Disk) Stat(name string) (vfs.Entry, error) {
	var e vfs.Entry
	err := d.run(Op{Kind: KindStat, Name: name}, func() error {
		n, err := d.walk(name)
		if err == nil {
			e = entryOf(path.Base(name), n)
		}
		return err
	})
	return e, err
}

// SyncDir implements vfs.Disk.
func (d *Disk) SyncDir(dir string) error {
	return d.run(Op{Kind: KindSyncDir, Name: dir}, func() error {
		n, err := d.walk(dir)
		if err != nil {
			return err
		}
		if !n.dir {
			return syscall.ENOTDIR
		}
		d.commit(func(_ int, c change) bool { return c.concerns(n) })
		return nil
	})
}

// SyncTree makes everything below a folder durable; to a hook it is a sync of the folder.
func (d *Disk) SyncTree(dir string) (bool, error) {
	op := Op{Kind: KindSyncDir, Name: dir}
	injected := d.before(op)
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.walk(dir)
	switch {
	case err == nil && injected != nil:
		n.failBelow()
		err = injected
	case err == nil:
		err = d.syncBelow(n)
	}
	return true, opError(op, err)
}

// failBelow gives up what is not durable of all files below a folder.
func (n *node) failBelow() {
	if !n.dir {
		n.failSync(0, maxBytes)
	}
	for _, c := range n.entries {
		c.failBelow()
	}
}

func (d *Disk) syncBelow(n *node) error {
	if !n.dir {
		return d.syncAll(n)
	}
	d.commit(func(_ int, c change) bool { return c.concerns(n) })
	var errs []error
	for _, c := range n.entries {
		errs = append(errs, d.syncBelow(c))
	}
	return errors.Join(errs...)
}

// Lock implements vfs.Disk. A Clone and what a Crash leaves are not locked.
func (d *Disk) Lock(name string) (io.Closer, error) {
	l := &lock{d: d, name: name}
	err := d.run(Op{Kind: KindLock, Name: name}, func() error {
		n, err := d.walk(name)
		if errors.Is(err, fs.ErrNotExist) {
			n, err = d.create(name)
		}
		switch {
		case err != nil:
			return err
		case n.locked:
			return vfs.ErrLocked
		}
		n.locked = true
		n.handles++
		l.n = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

type lock struct {
	d    *Disk
	name string
	n    *node // nil: released
}

// Close releases the lock, also when the hook makes it fail.
func (l *lock) Close() error {
	op := Op{Kind: KindClose, Name: l.name}
	injected := l.d.before(op)
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if l.n == nil {
		return opError(op, fs.ErrClosed)
	}
	l.n.locked = false
	l.n.handles--
	l.d.drop(l.n)
	l.n = nil
	return opError(op, injected)
}
