package memfs

import (
	"iter"
	"time"

	"github.com/actormq/actormq/segments/vfs/membuf"
)

const (
	pageBytes   = 4096
	sectorBytes = 512
	// maxBytes bounds offsets and lengths, so that sums do not overflow.
	maxBytes = 1 << 50
)

// page is a synced page; it is never changed, so that disks can share it.
type page [pageBytes]byte

var zeroPage page

// node is a file or folder, whatever its names. Guarded by Disk.mu.
type node struct {
	dir     bool
	modTime time.Time

	entries map[string]*node // of a folder: the names that programs see
	durable map[string]*node // of a folder: the names after a power cut

	links   int // names in entries
	handles int // open files and mappings
	locked  bool

	buf        *membuf.Buffer // content; nil: the same as what is synced
	pages      []*page        // synced content, zero behind the synced size; nil: a page of zeros
	syncedSize int64
	from, to   int64         // bytes that may have changed by calls since the last sync
	shared     int           // writable mappings
	mapped     bool          // there was one since the last sync: every byte may have changed
	lost       map[int]*page // what pages were when a sync failed on them
	taken      []bool        // pages that have room on the disk
}

func newDir(now time.Time) *node {
	return &node{dir: true, modTime: now, entries: map[string]*node{}, durable: map[string]*node{}}
}

func pagesOf(size int64) int { return int((size + pageBytes - 1) / pageBytes) }

func (n *node) size() int64 {
	switch {
	case n.dir:
		return 0
	case n.buf == nil:
		return n.syncedSize
	}
	return n.buf.Size()
}

// content builds the bytes that programs see, when nobody has needed them before.
func (n *node) content() *membuf.Buffer {
	if n.buf != nil {
		return n.buf
	}
	b := make([]byte, n.syncedSize)
	for i, p := range n.pages {
		if p != nil {
			copy(b[i*pageBytes:], p[:])
		}
	}
	n.buf = membuf.New(b)
	return n.buf
}

func (n *node) synced(i int) *page {
	if i < len(n.pages) && n.pages[i] != nil {
		return n.pages[i]
	}
	return &zeroPage
}

// wrote remembers that [from, to) may differ from what is synced, and that its pages are dirty again.
func (n *node) wrote(from, to int64) {
	for i := range n.lost {
		if at := int64(i) * pageBytes; at < to && from < at+pageBytes {
			delete(n.lost, i)
		}
	}
	if n.from == n.to {
		n.from, n.to = from, to
		return
	}
	n.from, n.to = min(n.from, from), max(n.to, to)
}

func (n *node) clean() {
	n.from, n.to, n.mapped = 0, 0, n.shared > 0
}

// differing yields the pages of a range that differ from what is synced. The content of one is valid until the next.
func (n *node) differing(low, high int64) iter.Seq2[int, *page] {
	return func(yield func(int, *page) bool) {
		if n.buf == nil {
			return
		}
		from, to := n.from, n.to
		if n.mapped {
			from, to = 0, n.buf.Size()
		}
		from, to = max(from, low), min(to, high)
		var now page
		for i := int(from / pageBytes); i < pagesOf(min(to, n.buf.Size())); i++ {
			clear(now[n.buf.Snapshot(now[:], int64(i)*pageBytes):])
			if now != *n.synced(i) && !yield(i, &now) {
				return
			}
		}
	}
}

// setSynced makes content the synced content of page i.
func (n *node) setSynced(i int, content *page) {
	for len(n.pages) <= i {
		n.pages = append(n.pages, nil)
	}
	kept := *content
	n.pages[i] = &kept
}

// settleSize makes the synced content end at size.
func (n *node) settleSize(size int64) {
	n.syncedSize = size
	if count := pagesOf(size); count < len(n.pages) {
		clear(n.pages[count:])
		n.pages = n.pages[:count]
	}
	last := int(size / pageBytes)
	if last >= len(n.pages) || n.pages[last] == nil {
		return
	}
	end := *n.pages[last]
	clear(end[size%pageBytes:])
	n.pages[last] = &end
}

// failSync gives up the pages of a range that differ, as the page cache does when writing them failed.
func (n *node) failSync(from, to int64) {
	for i, now := range n.differing(from, to) {
		if n.lost == nil {
			n.lost = map[int]*page{}
		}
		kept := *now
		n.lost[i] = &kept
	}
}
