package memfs

import (
	"hash/fnv"
	"maps"
	"path"
	"slices"

	"github.com/actormq/actormq/segments/vfs/membuf"
)

// Clone returns what kill -9 leaves: everything that was written, with the same parts of it still unsynced. The disk goes
// on unchanged. The clone has the capacity, but no hook, no locks and no open files. Programs may write meanwhile; what
// they write through a mapping at that moment is in it or not.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := cloner{seen: map[*node]*node{}}
	out := &Disk{capacity: d.capacity, root: c.node(d.root)}
	for _, p := range d.pending {
		out.pending = append(out.pending, change{from: c.place(p.from), to: c.place(p.to), n: c.node(p.n)})
	}
	out.count()
	return out
}

// Crash returns what a power cut leaves, by the rules of the package comment. Equal disks and seeds give equal results.
// The disk goes on unchanged; the result is like that of Clone, with everything in it synced.
func (d *Disk) Crash(seed uint64) *Disk {
	out := d.Clone()
	dice := newDice(seed)
	odds := dice.odds("names")
	out.commit(func(i int, c change) bool {
		return dice.roll("name "+c.from.name+" to "+c.to.name, i)%100 < odds
	})
	out.pending = nil
	out.root.settle("/", dice)
	out.count()
	return out
}

// count adds up the room that the files with names take.
func (d *Disk) count() {
	d.used = 0
	seen := map[*node]bool{}
	var add func(n *node)
	add = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		d.used += n.takenBytes(0)
		for _, c := range n.entries {
			add(c)
		}
	}
	add(d.root)
}

// cloner copies nodes, each once.
type cloner struct{ seen map[*node]*node }

func (c cloner) place(p place) place { return place{dir: c.node(p.dir), name: p.name} }

func (c cloner) node(n *node) *node {
	if n == nil || c.seen[n] != nil {
		return c.seen[n]
	}
	out := &node{
		dir: n.dir, modTime: n.modTime, links: n.links,
		pages: slices.Clone(n.pages), syncedSize: n.syncedSize,
		from: n.from, to: n.to, mapped: n.mapped,
		lost: maps.Clone(n.lost), taken: slices.Clone(n.taken),
	}
	c.seen[n] = out
	if n.buf != nil && (n.mapped || n.from < n.to || n.buf.Size() != n.syncedSize || len(n.lost) > 0) {
		b := make([]byte, n.buf.Size())
		n.buf.Snapshot(b, 0)
		out.buf = membuf.New(b)
	}
	if n.dir {
		out.entries, out.durable = c.names(n.entries), c.names(n.durable)
	}
	return out
}

func (c cloner) names(from map[string]*node) map[string]*node {
	to := make(map[string]*node, len(from))
	for name, n := range from {
		to[name] = c.node(n)
	}
	return to
}

// settle makes the node what the power cut left of it. A file with two names after the cut is settled by the first.
func (n *node) settle(name string, dice dice) {
	n.links = 1
	if !n.dir {
		n.settleContent(name, dice)
		return
	}
	n.entries = maps.Clone(n.durable)
	for _, child := range slices.Sorted(maps.Keys(n.entries)) {
		n.entries[child].settle(path.Join(name, child), dice)
	}
}

func (n *node) settleContent(name string, dice dice) {
	if n.buf == nil {
		n.trimTaken()
		return
	}
	odds := dice.odds("pages of " + name)
	torn := n.tornPage(name, odds, dice)
	for i, now := range n.differing(0, maxBytes) {
		switch {
		case i == torn:
			n.tear(i, now, name, dice)
		case dice.roll("page of "+name, i)%100 < odds:
			n.setSynced(i, now)
		}
	}
	size := n.syncedSize
	if dice.roll("length of "+name, 0)%100 < odds {
		size = n.buf.Size()
	}
	n.settleSize(size)
	n.buf, n.lost = nil, nil
	n.clean()
	n.trimTaken()
}

// tornPage chooses the page that is torn, in every second crash that something but not all survives; -1 is none.
func (n *node) tornPage(name string, odds uint64, dice dice) int {
	if odds == 0 || odds >= 100 || dice.roll("torn: "+name, 0)%2 == 0 {
		return -1
	}
	var changed []int
	for i := range n.differing(0, maxBytes) {
		changed = append(changed, i)
	}
	if len(changed) == 0 {
		return -1
	}
	return changed[dice.roll("torn page of "+name, 0)%uint64(len(changed))]
}

// tear keeps some sectors of a page.
func (n *node) tear(i int, now *page, name string, dice dice) {
	mixed := *n.synced(i)
	for s := 0; s < pageBytes; s += sectorBytes {
		if dice.roll("sector of "+name, i*pageBytes+s)%2 == 0 {
			copy(mixed[s:s+sectorBytes], now[s:s+sectorBytes])
		}
	}
	n.setSynced(i, &mixed)
}

// trimTaken makes the taken room fit the content.
func (n *node) trimTaken() {
	count := pagesOf(n.syncedSize)
	n.taken = n.taken[:min(len(n.taken), count)]
	for i, p := range n.pages {
		if p == nil {
			continue
		}
		for len(n.taken) <= i {
			n.taken = append(n.taken, false)
		}
		n.taken[i] = true
	}
}

// dice draw numbers that depend on the seed and on what they are for, not on what was drawn before.
type dice struct {
	seed uint64
	all  uint64 // odds for everything in percent, or >100: each file its own
}

func newDice(seed uint64) dice {
	d := dice{seed: seed}
	d.all = d.roll("kind of crash", 0) % 6 * 100
	return d
}

// odds are the chances in percent that something unsynced survives.
func (d dice) odds(what string) uint64 {
	if d.all <= 100 {
		return d.all
	}
	return d.roll("odds of "+what, 0) % 5 * 25
}

func (d dice) roll(what string, i int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(what))
	x := h.Sum64() ^ d.seed*0x9E3779B97F4A7C15 ^ uint64(i)*0xD1B54A32D192ED03
	// The finaliser of splitmix64: neighbouring seeds and pages must not look alike.
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
