package memfs

import "github.com/actormq/actormq/segments/vfs"

// unlimitedBytes is what Usage tells of a disk without a limit.
const unlimitedBytes = 1 << 40

// SetCapacity limits the room for content, in whole 4 KiB pages; 0 is no limit. Names and folders take none. A write
// into pages that have room always succeeds, and one that runs out is short. Safe for concurrent use.
func (d *Disk) SetCapacity(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = bytes
}

// Usage tells the capacity and what is left of it.
func (d *Disk) Usage(dir string) (vfs.Usage, error) {
	op := Op{Kind: KindUsage, Name: dir}
	if err := d.before(op); err != nil {
		return vfs.Usage{}, opError(op, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.walk(dir); err != nil {
		return vfs.Usage{}, opError(op, err)
	}
	total := d.capacity
	if total == 0 {
		total = unlimitedBytes
	}
	return vfs.Usage{TotalBytes: total, UsedBytes: min(d.used, total), FreeBytes: max(0, total-d.used)}, nil
}

// take gives room to page i of n and tells whether there was any.
func (d *Disk) take(n *node, i int) bool {
	for len(n.taken) <= i {
		n.taken = append(n.taken, false)
	}
	if n.taken[i] {
		return true
	}
	if d.capacity > 0 && d.used+pageBytes > d.capacity {
		return false
	}
	n.taken[i] = true
	d.used += pageBytes
	return true
}

// takeSpan gives room to the pages of [off, end) in order and returns where room ended.
func (d *Disk) takeSpan(n *node, off, end int64) int64 {
	for i := int(off / pageBytes); i < pagesOf(end); i++ {
		if !d.take(n, i) {
			return max(off, int64(i)*pageBytes)
		}
	}
	return end
}

// missing counts the pages of [off, end) that have no room yet.
func (n *node) missing(off, end int64) int64 {
	count := int64(0)
	for i := int(off / pageBytes); i < pagesOf(end); i++ {
		if i >= len(n.taken) || !n.taken[i] {
			count++
		}
	}
	return count
}

// giveBack frees the pages from first on.
func (d *Disk) giveBack(n *node, first int) {
	if first >= len(n.taken) {
		return
	}
	d.used -= n.takenBytes(first)
	n.taken = n.taken[:first]
}

func (n *node) takenBytes(first int) int64 {
	bytes := int64(0)
	for _, t := range n.taken[first:] {
		if t {
			bytes += pageBytes
		}
	}
	return bytes
}

// drop frees a file that has neither a name nor a user.
func (d *Disk) drop(n *node) {
	if n.links == 0 && n.handles == 0 && !n.dir {
		d.giveBack(n, 0)
	}
}
