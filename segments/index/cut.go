package index

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// Truncate takes out every entry that names a record at or behind a physical offset, and makes sure that the newest file is
// whole: after an unclean stop its slots, entries and header may be of different moments, and only entries of records
// in front of what the checkpoint vouches for are known to be there. A file that must change is written anew and put in
// place of the old one, synced; one that keeps nothing, or for whose successor there is no room, is deleted. EndPhysical then tells
// where indexing goes on. Queries that are running see the old file.
func (s *Set) Truncate(end messages.PhysicalOffset) error {
	if err := s.usable(); err != nil {
		return err
	}
	before := s.list()
	for i, f := range slices.Backward(before) {
		if newest := i == len(before)-1; !newest && f.full() && f.head.endPhy < int64(end) {
			break
		}
		kept, err := s.cut(f, int64(end))
		if err != nil {
			return fmt.Errorf("truncate index at %d: %w", end, err)
		}
		if err := s.replace(i, kept); err != nil {
			return fmt.Errorf("truncate index at %d: %w", end, err)
		}
	}
	return nil
}

// replace publishes the list with another file, or none, in place of the i-th; what it replaces is given up.
func (s *Set) replace(i int, by *file) error {
	old := s.list()[i]
	if old == by {
		return nil
	}
	files := slices.Clone(s.list())
	if files[i] = by; by == nil {
		files = slices.Delete(files, i, i+1)
	}
	s.setFiles(files)
	return old.release()
}

// cut returns the file itself when it is whole and holds nothing at or behind end, a new file in its place when it was
// not, and nil when nothing of it was kept.
func (s *Set) cut(f *file, end int64) (*file, error) {
	plan, err := f.plan(end)
	if err != nil {
		return nil, err
	}
	switch {
	case plan.kept == 0:
		s.names = true
		return nil, vfs.RemoveIfThere(s.disk, f.path)
	case plan.same:
		return f, nil
	}
	made, err := s.remake(f, plan)
	if errors.Is(err, vfs.ErrNoSpace) { // its entries come back from the log, which is still there
		s.names = true
		return nil, vfs.RemoveIfThere(s.disk, f.path)
	}
	return made, err
}

// remake puts a new file with what a plan keeps in place of another one.
func (s *Set) remake(f *file, plan cutPlan) (*file, error) {
	made, err := s.fresh(f.name)
	if err != nil {
		return nil, err
	}
	err = made.copyFrom(f, plan)
	if err == nil {
		err = made.sync() // the old file was durable, so the one in its place must be
	}
	if err != nil {
		return nil, errors.Join(err, made.release(), s.disk.Remove(s.freshPath()))
	}
	if err := s.moveIn(made); err != nil {
		return nil, err
	}
	return made, nil
}

// cutPlan says what remains of a file: its first entries, linked anew.
type cutPlan struct {
	kept  int32   // entries
	slots []int32 // newest entry of each slot
	head  header
	same  bool // the file is like that already
}

// plan reads the entries as far as they make sense and name records in front of end.
func (f *file) plan(end int64) (cutPlan, error) {
	p := cutPlan{head: header{count: 1}, same: true}
	err := vfs.Guard(f.path, func() error {
		if f.empty() || !f.first().follows(p.head, end) {
			return nil // nothing is kept: what else there is does not matter
		}
		p.slots = make([]int32, f.params.Slots)
		for n := int32(1); n < f.params.Entries; n++ {
			e := decodeEntry(f.data[f.params.entryOffset(n):])
			if n >= f.head.count || !e.follows(p.head, end) || n == 1 && e.physical != f.head.beginPhy {
				break
			}
			p.add(n, e, f)
		}
		p.compare(f)
		return nil
	})
	return p, err
}

// first is the first entry.
func (f *file) first() entry { return decodeEntry(f.data[f.params.entryOffset(1):]) }

// follows tells whether the entry can stand behind the ones that a header describes. A zero entry has been lost (one that
// was meant, of a key with the hash 0 at the start of the log, costs indexing anew).
func (e entry) follows(h header, end int64) bool {
	e.before = 0 // is set anew
	return e != (entry{}) && e.hash >= 0 && e.seconds >= 0 && e.physical >= h.endPhy && e.physical < end
}

func (p *cutPlan) add(n int32, e entry, f *file) {
	slot := f.params.slotOf(e.hash)
	if e.before != p.slots[slot] {
		p.same = false
	}
	if p.slots[slot] == 0 {
		p.head.slotsUsed++
	}
	p.slots[slot] = n
	p.kept = n
	if n == 1 {
		p.head.beginMs, p.head.beginPhy = f.head.beginMs, e.physical
	}
	p.head.endMs = e.timeMs(n, p.head.beginMs)
	p.head.endPhy = e.physical
	p.head.count = n + 1
}

// compare finishes the plan: it tells whether header and slots of the file are what they should be.
func (p *cutPlan) compare(f *file) {
	if p.head.count == f.head.count && p.head.endMs <= f.head.endMs && f.head.endMs < p.head.endMs+secondMs {
		p.head.endMs = f.head.endMs // the header has the milliseconds
	}
	if p.head != f.head {
		p.same = false
	}
	for slot, n := range p.slots {
		if loadSlot(f.data, f.params.slotOffset(int32(slot))) != n {
			p.same = false
		}
	}
}

// copyFrom fills an empty file with what a plan keeps of an old one.
func (f *file) copyFrom(old *file, plan cutPlan) error {
	return vfs.Guard(f.path, func() error {
		newest := make([]int32, len(plan.slots))
		for n := int32(1); n <= plan.kept; n++ {
			e := decodeEntry(old.data[old.params.entryOffset(n):])
			slot := f.params.slotOf(e.hash)
			e.before, newest[slot] = newest[slot], n
			e.encode(f.data[f.params.entryOffset(n):])
		}
		for slot, n := range plan.slots {
			storeSlot(f.data, f.params.slotOffset(int32(slot)), n)
		}
		plan.head.encode(f.data)
		f.take(plan.head)
		return nil
	})
}

// DeleteBelow deletes the oldest files while all their records lie in front of a physical offset, but never the newest
// file (spec/store.md §9.4), and returns how many. Durable with the next Flush.
func (s *Set) DeleteBelow(least messages.PhysicalOffset) (int, error) {
	files := s.list()
	n := 0
	var err error
	for n < len(files)-1 && files[n].head.endPhy < int64(least) {
		if err = vfs.RemoveIfThere(s.disk, files[n].path); err != nil {
			err = fmt.Errorf("delete index file: %w", err)
			break
		}
		n++
	}
	if n == 0 {
		return 0, err
	}
	s.names = true
	rest := slices.Clone(files[n:])
	s.files.Store(&rest)
	return n, errors.Join(err, releaseFiles(files[:n]))
}

// sound is how many files are older than the first damaged one.
func (s *Set) sound() int {
	files := s.list()
	if len(s.damaged) == 0 {
		return len(files)
	}
	oldest := path.Base(s.damaged[0].Path)
	i, _ := slices.BinarySearchFunc(files, oldest, func(f *file, name string) int { return cmp.Compare(f.name, name) })
	return i
}

// Sound tells of the last entry in front of the first damaged file: its record's physical offset, -1 without any, and the store timestamp.
func (s *Set) Sound() (end messages.PhysicalOffset, storeTimestampMs int64) {
	for _, f := range slices.Backward(s.list()[:s.sound()]) {
		if !f.empty() {
			return messages.PhysicalOffset(f.head.endPhy), f.head.endMs
		}
	}
	return -1, 0
}

// DropDamaged deletes the damaged files and all newer ones, so that EndPhysical tells from where the log must be indexed
// again. Durable with the next Flush.
func (s *Set) DropDamaged() error {
	if len(s.damaged) == 0 {
		return nil
	}
	files, at := s.list(), s.sound()
	var names []string
	for _, f := range files[at:] {
		names = append(names, f.path)
	}
	for _, d := range s.damaged[1:] {
		names = append(names, d.Path)
	}
	for _, name := range names {
		if err := vfs.RemoveIfThere(s.disk, name); err != nil {
			return fmt.Errorf("drop index file: %w", err)
		}
	}
	// The oldest goes once the others have gone for good: what a power cut leaves is damaged, or a beginning.
	if len(names) > 0 {
		if err := s.disk.SyncDir(s.dir); err != nil {
			return fmt.Errorf("drop index files: %w", err)
		}
	}
	if err := vfs.RemoveIfThere(s.disk, s.damaged[0].Path); err != nil {
		return fmt.Errorf("drop damaged index file: %w", err)
	}
	s.names, s.damaged = true, nil
	s.setFiles(slices.Clone(files[:at]))
	return releaseFiles(files[at:])
}

func releaseFiles(files []*file) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.release())
	}
	return errors.Join(errs...)
}
