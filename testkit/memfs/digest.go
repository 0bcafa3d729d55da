package memfs

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
)

// Digest tells disks apart: two that have the same one hold the same files and folders, with the same parts of them synced, so that whatever a
// program does with them, and whatever a power cut takes by some seed, is the same for both. When a file was changed, who has opened or locked
// it, and the hook, are not in it. A loop over all crash points need look at equal disks once only.
func (d *Disk) Digest() [sha256.Size]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := digest{h: sha256.New(), seen: map[*node]int{}, limited: d.capacity > 0}
	g.number(d.capacity)
	g.node(d.root)
	for _, c := range d.pending { // in their order, by which one takes others along
		g.place(c.from)
		g.place(c.to)
		g.node(c.n)
	}
	return [sha256.Size]byte(g.h.Sum(nil))
}

// digest writes nodes in the order in which they are met, each once. What has a variable length has it written in front.
type digest struct {
	h       hash.Hash
	seen    map[*node]int
	limited bool // the disk has an end: which pages have room decides what happens
}

func (g digest) number(n int64) {
	_, _ = g.h.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

func (g digest) flag(b bool) {
	if b {
		g.number(1)
		return
	}
	g.number(0)
}

func (g digest) text(s string) {
	g.number(int64(len(s)))
	_, _ = g.h.Write([]byte(s))
}

func (g digest) place(p place) {
	g.node(p.dir)
	g.text(p.name)
}

// node writes a node, or which one of those before it is. Numbers below zero are none of a node that is met for the first time.
func (g digest) node(n *node) {
	if n == nil {
		g.number(-1)
		return
	}
	if at, met := g.seen[n]; met {
		g.number(-2 - int64(at))
		return
	}
	g.seen[n] = len(g.seen)
	g.flag(n.dir)
	if !n.dir {
		g.content(n)
		return
	}
	for _, names := range []map[string]*node{n.entries, n.durable} {
		g.number(int64(len(names)))
		for _, name := range slices.Sorted(maps.Keys(names)) {
			g.text(name)
			g.node(names[name])
		}
	}
}

// content writes what a file has, and behind each page what is synced of it where that is not the same.
func (g digest) content(n *node) {
	size, count := n.size(), max(pagesOf(n.size()), pagesOf(n.syncedSize))
	g.number(size)
	g.number(n.syncedSize)
	var now page
	for i := range count {
		was := n.synced(i)
		if n.buf == nil {
			_, _ = g.h.Write(was[:])
			g.flag(false)
			continue
		}
		clear(now[n.buf.Snapshot(now[:], int64(i)*pageBytes):])
		_, _ = g.h.Write(now[:])
		if g.flag(now != *was); now != *was {
			_, _ = g.h.Write(was[:])
		}
	}
	g.number(int64(len(n.lost)))
	for _, i := range slices.Sorted(maps.Keys(n.lost)) {
		g.number(int64(i))
		_, _ = g.h.Write(n.lost[i][:])
	}
	for i := range count {
		if g.limited {
			g.flag(i < len(n.taken) && n.taken[i])
		}
	}
}
