package index

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

const (
	// populateAllBelow: header and slots are made present at once when they are not larger.
	populateAllBelow = 64 << 20
	// populateWindow is how many bytes of entries are made present ahead of the writes.
	populateWindow = 4 << 20
)

// file is one mapped index file. The builder puts, queries read; the last one to release it unmaps it.
type file struct {
	name    string
	path    string
	params  Params
	file    vfs.File
	mapping vfs.Mapping
	data    []byte

	refs  atomic.Int32 // 1 for the set, 1 for each query
	dirty atomic.Bool

	// Published for queries; count after the entry and the others.
	beginMs, endMs atomic.Int64
	count          atomic.Int32

	head      header // the builder's
	populated int64  // bytes from the start that are present, the builder's
	fetched   int32  // what putAll has read ahead: nobody looks at it
}

// mapFile maps an open file of the right size; the caller sets the header.
func mapFile(f vfs.File, path, name string, p Params) (*file, error) {
	m, err := f.Map(p.FileBytes(), vfs.MapShared)
	if err != nil {
		return nil, err
	}
	file := &file{name: name, path: path, params: p, file: f, mapping: m, data: m.Bytes()}
	file.refs.Store(1)
	return file, nil
}

// create makes the file at fresh with real space behind it and an empty header.
func create(disk vfs.Disk, fresh, path, name string, p Params) (*file, error) {
	f, err := disk.Create(fresh)
	if err != nil {
		return nil, err
	}
	made, err := prepare(f, path, name, p)
	if err != nil {
		return nil, errors.Join(err, f.Close(), disk.Remove(fresh))
	}
	return made, nil
}

func prepare(f vfs.File, path, name string, p Params) (*file, error) {
	if err := f.Allocate(0, p.FileBytes()); err != nil {
		return nil, err
	}
	made, err := mapFile(f, path, name, p)
	if err != nil {
		return nil, err
	}
	if err := made.populateFor(1); err != nil {
		return nil, errors.Join(err, made.mapping.Unmap())
	}
	if err := made.setHeader(header{count: 1}); err != nil {
		return nil, errors.Join(err, made.mapping.Unmap())
	}
	made.dirty.Store(true)
	return made, nil
}

// open maps an existing file and checks its size and header; what is wrong with them is a *segments.CorruptionError.
func open(disk vfs.Disk, path, name string, p Params) (*file, error) {
	f, err := disk.Open(path, true)
	if err != nil {
		return nil, err
	}
	opened, err := check(f, path, name, p)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return opened, nil
}

func check(f vfs.File, path, name string, p Params) (*file, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size != p.FileBytes() {
		err := fmt.Errorf("%d bytes instead of %d: %w", size, p.FileBytes(), segments.ErrSize)
		return nil, &segments.CorruptionError{File: path, Err: err}
	}
	opened, err := mapFile(f, path, name, p)
	if err != nil {
		return nil, err
	}
	var h header
	err = vfs.Guard(path, func() error {
		h = decodeHeader(opened.data)
		return nil
	})
	if err == nil {
		if err = h.check(p); err != nil {
			err = &segments.CorruptionError{File: path, Err: err}
		}
	}
	if err != nil {
		return nil, errors.Join(err, opened.mapping.Unmap())
	}
	h.count = max(h.count, 1)
	opened.take(h)
	return opened, nil
}

// take makes a header the file's own without writing it.
func (f *file) take(h header) {
	f.head = h
	if f.beginMs.Load() != h.beginMs { // mostly they stay, and a store waits for all those before it
		f.beginMs.Store(h.beginMs)
	}
	if f.endMs.Load() != h.endMs {
		f.endMs.Store(h.endMs)
	}
	f.count.Store(h.count)
}

func (f *file) setHeader(h header) error {
	return vfs.Guard(f.path, func() error {
		h.encode(f.data)
		f.take(h)
		return nil
	})
}

func (f *file) full() bool { return f.head.count >= f.params.Entries }

func (f *file) empty() bool { return f.head.count <= 1 }

// room is how many entries the file takes.
func (f *file) room() int { return int(f.params.Entries - f.head.count) }

// put adds an entry; the file is not full.
func (f *file) put(k *hashedKey) error {
	if err := f.prepareFor(1); err != nil {
		return err
	}
	return vfs.Guard(f.path, func() error {
		f.add(k)
		return nil
	})
}

// putAll adds entries, for which there is room, and tells how many. Their slots are fetched before: the processor waits for all of them at
// the same time.
func (f *file) putAll(keys []hashedKey) (done int, err error) {
	if err := f.prepareFor(int32(len(keys))); err != nil {
		return 0, err
	}
	err = vfs.Guard(f.path, func() error {
		for i := range keys {
			f.fetched += loadSlot(f.data, f.params.slotOffset(f.params.slotOf(keys[i].hash)))
		}
		for done < len(keys) {
			f.add(&keys[done])
			done++
		}
		return nil
	})
	return done, err
}

// prepareFor makes ready for some entries more.
func (f *file) prepareFor(n int32) error {
	for _, entry := range [2]int32{f.head.count, f.head.count + n - 1} {
		if err := f.populateFor(entry); err != nil {
			return err
		}
	}
	if !f.dirty.Load() {
		f.dirty.Store(true)
	}
	return nil
}

// add writes an entry. The order of the stores serves readers, and a process that is killed between any two of them: the entry, then the
// header that counts it, then the slot that leads to it.
func (f *file) add(k *hashedKey) {
	ms := min(max(k.ms, 0), maxTimeMs) // a record's own word; the header must stay sound
	h, n := f.head, f.head.count
	slot := f.params.slotOffset(f.params.slotOf(k.hash))
	before := loadSlot(f.data, slot)
	if before <= 0 || before >= n {
		before = 0
		h.slotsUsed = min(h.slotsUsed+1, f.params.Slots)
	}
	if n == 1 {
		h.beginMs, h.beginPhy = ms, k.at
	}
	e := entry{hash: k.hash, physical: k.at, seconds: secondsAfter(h.beginMs, ms), before: before}
	e.encode(f.data[f.params.entryOffset(n):])
	h.endMs, h.endPhy, h.count = ms, k.at, n+1
	h.encode(f.data)
	f.take(h)
	storeSlot(f.data, slot, n)
}

// populateFor makes the pages present that entry n and the ones soon behind it will be written to.
func (f *file) populateFor(n int32) error {
	need := f.params.entryOffset(n) + entryBytes
	if need <= f.populated {
		return nil
	}
	if f.populated == 0 {
		if slots := f.params.entryOffset(0); slots <= populateAllBelow {
			if err := f.mapping.Populate(0, slots); err != nil {
				return fmt.Errorf("populate %s: %w", f.path, err)
			}
		}
		f.populated = f.params.entryOffset(n)
	}
	window := min(populateWindow, f.params.FileBytes()-f.populated)
	if err := f.mapping.Populate(f.populated, window); err != nil {
		return fmt.Errorf("populate %s: %w", f.path, err)
	}
	f.populated += window
	return nil
}

// sync makes everything durable that was put before.
func (f *file) sync() error {
	if !f.dirty.Swap(false) {
		return nil
	}
	if err := f.file.DataSync(); err != nil {
		f.dirty.Store(true)
		return fmt.Errorf("sync %s: %w", f.path, err)
	}
	return nil
}

// hold adds a reader; it fails when the file is already unmapped.
func (f *file) hold() bool {
	for {
		n := f.refs.Load()
		if n <= 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release drops a reference; the last one unmaps and closes.
func (f *file) release() error {
	if f.refs.Add(-1) > 0 {
		return nil
	}
	return errors.Join(f.mapping.Unmap(), f.file.Close())
}
