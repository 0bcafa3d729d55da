package vfs

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
)

// onode is a file or folder of the overlay. The tree holds folders that were walked through, and the files that are open
// or changed; every other name is looked up in the base. All fields are guarded by OverlayDisk.mu.
type onode struct {
	parent   *onode // nil: a root, or removed
	name     string // in the parent
	base     string // path in the base; empty when it is not from there
	dir      bool
	own      bool // made, or moved, here: the base does not have it under this name
	modTime  time.Time
	children map[string]*onode // nil value: the base's name is hidden
	content  *ocontent         // of a file: not nil while in use or changed
}

// split cuts a name into its elements below one of the two roots.
func (o *OverlayDisk) split(name string) (*onode, []string) {
	root, clean := o.relative, path.Clean(name)
	if strings.HasPrefix(clean, "/") {
		root, clean = o.absolute, clean[1:]
	}
	if clean == "" || clean == "." {
		return root, nil
	}
	return root, strings.Split(clean, "/")
}

func (o *OverlayDisk) walk(name string) (*onode, error) {
	at, names := o.split(name)
	for _, next := range names {
		var err error
		if at, err = o.child(at, next); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// parent finds the folder of a name that need not exist.
func (o *OverlayDisk) parent(name string) (dir *onode, last string, err error) {
	at, names := o.split(name)
	if len(names) == 0 {
		return nil, "", fs.ErrExist
	}
	for _, next := range names[:len(names)-1] {
		if at, err = o.child(at, next); err != nil {
			return nil, "", err
		}
	}
	if !at.dir {
		return nil, "", syscall.ENOTDIR
	}
	return at, names[len(names)-1], nil
}

// child looks one name up. A folder of the base is kept in the tree, so that changes below it have a place.
func (o *OverlayDisk) child(dir *onode, name string) (*onode, error) {
	if !dir.dir {
		return nil, syscall.ENOTDIR
	}
	if c, known := dir.children[name]; known {
		if c == nil {
			return nil, fs.ErrNotExist
		}
		return c, nil
	}
	if dir.base == "" {
		return nil, fs.ErrNotExist
	}
	below := path.Join(dir.base, name)
	e, err := o.base.Stat(below)
	if err != nil {
		return nil, bare(err)
	}
	c := &onode{parent: dir, name: name, base: below, dir: e.Dir}
	if c.dir {
		dir.set(name, c)
	}
	return c, nil
}

// make enters a new file.
func (o *OverlayDisk) make(name string) (*onode, error) {
	dir, last, err := o.parent(name)
	if err != nil {
		return nil, err
	}
	_, err = o.child(dir, last)
	if err == nil {
		return nil, fs.ErrExist
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	n := &onode{}
	n.join(dir, last)
	return n, nil
}

// use counts one more handle on a file; the first opens it in the base.
func (o *OverlayDisk) use(n *onode) error {
	if n.content == nil {
		f, err := o.base.Open(n.base, false)
		if err != nil {
			return err
		}
		n.content = &ocontent{base: f}
		n.parent.set(n.name, n)
	}
	n.content.handles++
	return nil
}

func (n *onode) set(name string, c *onode) {
	if n.children == nil {
		n.children = map[string]*onode{}
	}
	n.children[name] = c
}

// join enters n under a name that is free.
func (n *onode) join(dir *onode, name string) {
	n.parent, n.name, n.own = dir, name, true
	dir.set(name, n)
}

// leave takes n out of its folder and hides what the base has under its name.
func (n *onode) leave() {
	if n.parent.base == "" {
		delete(n.parent.children, n.name)
	} else {
		n.parent.set(n.name, nil)
	}
	n.parent = nil
}

// within tells whether n is dir or lies below it.
func (n *onode) within(dir *onode) bool {
	for at := n; at != nil; at = at.parent {
		if at == dir {
			return true
		}
	}
	return false
}

// changed tells whether the base's listing is wrong about n.
func (n *onode) changed() bool {
	return n.own || (n.content != nil && n.content.isChanged())
}

// settle gives up what nobody uses: the content of a file that is not open and either not changed or removed.
func (n *onode) settle() error {
	c := n.content
	if c == nil || c.handles > 0 || c.maps > 0 || (n.parent != nil && c.isChanged()) {
		return nil
	}
	n.content = nil
	if n.parent != nil && !n.own {
		delete(n.parent.children, n.name)
	}
	return c.release()
}

func (n *onode) releaseAll() error {
	var errs []error
	if n.content != nil {
		errs = append(errs, n.content.release())
	}
	for _, c := range n.children {
		if c != nil {
			errs = append(errs, c.releaseAll())
		}
	}
	return errors.Join(errs...)
}
