package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"sort"
	"sync"
	"syscall"
	"time"
)

// OverlayDisk shows another disk and keeps all changes in memory. What is not changed is read from the base each time, so
// that files which a running node makes, extends or deletes are seen as they are. A file that is written is held as a
// private mapping of the base's file, a new one as plain memory. Durability means nothing here: DataSync and SyncDir only
// check that their object exists.
type OverlayDisk struct {
	base Disk

	mu       sync.Mutex // guards the tree and the counts of uses; taken before a file's own lock
	absolute *onode     // what lies under "/"
	relative *onode     // what lies under "."
}

var _ Disk = (*OverlayDisk)(nil)

// Overlay returns a disk that reads through to base and never changes it. Its locks always succeed and exclude nobody.
// Base must not be changed in ways that shrink files that are in use: see Guard.
func Overlay(base Disk) *OverlayDisk {
	return &OverlayDisk{
		base:     base,
		absolute: &onode{name: "/", base: "/", dir: true},
		relative: &onode{name: ".", base: ".", dir: true},
	}
}

// Close gives back the base's files and mappings. No file, mapping or slice of the overlay may be used any more.
func (o *OverlayDisk) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.absolute.releaseAll(), o.relative.releaseAll())
}

// Open shares one content between all who open the same file.
func (o *OverlayDisk) Open(name string, writable bool) (File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.walk(name)
	if err == nil && n.dir {
		err = errNotRegular
	}
	if err == nil {
		err = o.use(n)
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &overlayFile{disk: o, node: n, content: n.content, name: name, writable: writable}, nil
}

// Create makes a file that the base never sees.
func (o *OverlayDisk) Create(name string) (File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.make(name)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	n.content = newContent()
	n.content.handles++
	return &overlayFile{disk: o, node: n, content: n.content, name: name, writable: true}, nil
}

// Remove hides a file or an empty folder.
func (o *OverlayDisk) Remove(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return pathError("remove", name, o.remove(name))
}

func (o *OverlayDisk) remove(name string) error {
	n, err := o.walk(name)
	if err != nil {
		return err
	}
	if n.parent == nil {
		return fs.ErrInvalid
	}
	if n.dir {
		if inside, err := o.list(n); err != nil || len(inside) > 0 {
			return errors.Join(err, syscall.ENOTEMPTY)
		}
	}
	n.leave()
	return n.settle()
}

// Rename moves a file over another, or a folder to a free name.
func (o *OverlayDisk) Rename(oldName, newName string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return pathError("rename to "+newName+" from", oldName, o.rename(oldName, newName))
}

func (o *OverlayDisk) rename(oldName, newName string) error {
	n, err := o.walk(oldName)
	if err != nil || path.Clean(oldName) == path.Clean(newName) {
		return err
	}
	dir, last, err := o.parent(newName)
	if err != nil {
		return err
	}
	if n.parent == nil || dir.within(n) {
		return fs.ErrInvalid
	}
	replaced, err := o.child(dir, last)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		n.leave()
		n.join(dir, last)
		return nil
	case err != nil:
		return err
	case n.dir || replaced.dir:
		return fs.ErrExist
	}
	replaced.leave()
	n.leave()
	n.join(dir, last)
	return replaced.settle()
}

// Mkdir makes a folder in memory.
func (o *OverlayDisk) Mkdir(dir string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, last, err := o.parent(dir)
	if err == nil {
		if _, err = o.child(at, last); err == nil {
			err = fs.ErrExist
		} else if errors.Is(err, fs.ErrNotExist) {
			n := &onode{dir: true, modTime: time.Now()}
			n.join(at, last)
			err = nil
		}
	}
	return pathError("mkdir", dir, err)
}

// MkdirAll makes folders in memory.
func (o *OverlayDisk) MkdirAll(dir string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, names := o.split(dir)
	for _, name := range names {
		next, err := o.child(at, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			next = &onode{dir: true, modTime: time.Now()}
			next.join(at, name)
		case err != nil:
			return pathError("mkdir", dir, err)
		case !next.dir:
			return pathError("mkdir", dir, syscall.ENOTDIR)
		}
		at = next
	}
	return nil
}

// List merges what the base has now with what was changed here.
func (o *OverlayDisk) List(dir string) ([]Entry, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.walk(dir)
	if err != nil {
		return nil, pathError("list", dir, err)
	}
	entries, err := o.list(n)
	return entries, pathError("list", dir, err)
}

func (o *OverlayDisk) list(n *onode) ([]Entry, error) {
	if !n.dir {
		return nil, syscall.ENOTDIR
	}
	var entries []Entry
	if n.base != "" {
		below, err := o.base.List(n.base)
		if err != nil {
			return nil, err
		}
		for _, e := range below {
			if c, known := n.children[e.Name]; !known || (c != nil && !c.changed()) {
				entries = append(entries, e)
			}
		}
	}
	for _, c := range n.children {
		if c == nil || !c.changed() {
			continue
		}
		e, err := o.entry(c)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries, nil
}

// Stat describes a file or folder as it looks through the overlay.
func (o *OverlayDisk) Stat(name string) (Entry, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.walk(name)
	if err != nil {
		return Entry{}, pathError("stat", name, err)
	}
	e, err := o.entry(n)
	return e, pathError("stat", name, err)
}

func (o *OverlayDisk) entry(n *onode) (Entry, error) {
	if n.content != nil && n.content.isChanged() {
		return n.content.entry(n.name)
	}
	if n.base == "" {
		return Entry{Name: n.name, Dir: n.dir, ModTime: n.modTime}, nil
	}
	e, err := o.base.Stat(n.base)
	e.Name = n.name
	return e, err
}

// SyncDir checks that the folder exists.
func (o *OverlayDisk) SyncDir(dir string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.walk(dir)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	return pathError("sync folder", dir, err)
}

// Lock succeeds without touching anything: who only looks excludes nobody, and is excluded by nobody.
func (o *OverlayDisk) Lock(string) (io.Closer, error) { return noLock{}, nil }

type noLock struct{}

func (noLock) Close() error { return nil }

// Usage tells of the base's file system; the changes are not counted.
func (o *OverlayDisk) Usage(dir string) (Usage, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.walk(dir)
	if err != nil {
		return Usage{}, pathError("usage", dir, err)
	}
	for n.base == "" {
		n = n.parent
	}
	u, err := o.base.Usage(n.base)
	return u, pathError("usage", dir, err)
}
