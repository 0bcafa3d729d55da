package memfs

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// place is a name in a folder.
type place struct {
	dir  *node
	name string
}

// change is a change of names that no SyncDir has covered: n leaves from and comes to to. A create has no from, a remove
// no to.
type change struct {
	from, to place
	n        *node
}

func (c change) apply() {
	if c.from.dir != nil {
		delete(c.from.dir.durable, c.from.name)
	}
	if c.to.dir != nil {
		c.to.dir.durable[c.to.name] = c.n
	}
}

func (c change) concerns(dir *node) bool { return c.from.dir == dir || c.to.dir == dir }

// link makes the change in what programs see, and remembers it for SyncDir.
func (d *Disk) link(c change) {
	if c.from.dir != nil {
		delete(c.from.dir.entries, c.from.name)
		c.n.links--
	}
	if c.to.dir != nil {
		if old := c.to.dir.entries[c.to.name]; old != nil {
			old.links--
			d.drop(old)
		}
		c.to.dir.entries[c.to.name] = c.n
		c.n.links++
	}
	d.pending = append(d.pending, c)
	d.drop(c.n)
}

// commit makes the pending changes that want chooses durable, and with each those before it on the same names. The rest
// stays pending.
func (d *Disk) commit(want func(i int, c change) bool) {
	chosen := make([]bool, len(d.pending))
	touched := map[place]bool{}
	for i := len(d.pending) - 1; i >= 0; i-- {
		c := d.pending[i]
		if !want(i, c) && !touched[c.from] && !touched[c.to] {
			continue
		}
		chosen[i] = true
		for _, p := range []place{c.from, c.to} {
			if p.dir != nil {
				touched[p] = true
			}
		}
	}
	rest := d.pending[:0]
	for i, c := range d.pending {
		if chosen[i] {
			c.apply()
		} else {
			rest = append(rest, c)
		}
	}
	clear(d.pending[len(rest):])
	d.pending = rest
}

func split(name string) []string {
	clean := strings.TrimPrefix(path.Clean(name), "/")
	if clean == "" || clean == "." {
		return nil
	}
	return strings.Split(clean, "/")
}

func child(dir *node, name string) (*node, error) {
	if !dir.dir {
		return nil, syscall.ENOTDIR
	}
	n := dir.entries[name]
	if n == nil {
		return nil, fs.ErrNotExist
	}
	return n, nil
}

func (d *Disk) walk(name string) (*node, error) {
	at := d.root
	for _, next := range split(name) {
		var err error
		if at, err = child(at, next); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// place finds the folder of a name that need not exist.
func (d *Disk) place(name string) (place, error) {
	names := split(name)
	if len(names) == 0 {
		return place{}, fs.ErrExist
	}
	at := d.root
	for _, next := range names[:len(names)-1] {
		var err error
		if at, err = child(at, next); err != nil {
			return place{}, err
		}
	}
	if !at.dir {
		return place{}, syscall.ENOTDIR
	}
	return place{dir: at, name: names[len(names)-1]}, nil
}

// within tells whether dir is top or lies below it.
func within(dir, top *node) bool {
	if dir == top {
		return true
	}
	for _, c := range top.entries {
		if c.dir && within(dir, c) {
			return true
		}
	}
	return false
}
