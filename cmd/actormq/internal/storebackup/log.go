package storebackup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// logName is the folder of the commit log below a store, or a copy.
const logName = "commitlog"

// copied is what is in the copy of a log.
type copied struct {
	names []string        // its files
	now   map[string]bool // those that were copied in this run
	end   int64           // physical offset behind the last record
	last  string          // checksum of the last file up to there

	lastName string   // the last file, when there are others, and how it begins
	begins   [64]byte // in the store
}

// takeLog copies the commit log, unless it is cut meanwhile.
func (r *run) takeLog(ctx context.Context, c *copied) error {
	if err := r.notCut(c); err != nil { // since the last pass
		return err
	}
	return errors.Join(r.copyLog(ctx, c), r.notCut(c))
}

// notCut fails when the log was cut in front of the last file that it had: what was copied of those in front may be something else in the store now, and
// is copied again by the next run. Whatever a cut leaves of a file in front, the last one begins with another record then.
func (r *run) notCut(c *copied) error {
	if c.lastName == "" {
		return nil
	}
	begins, err := bytesAt(r.Disk, path.Join(r.from.Dir, logName, c.lastName), 0)
	if err == nil && begins == c.begins {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	maps.DeleteFunc(r.list.Segments, func(name, _ string) bool { return c.now[name] })
	err = fmt.Errorf("%w: the log of %s was cut while it was copied: take it again, it goes on from here", ErrUnfinished, r.from.Dir)
	return errors.Join(err, r.list.write(r.Disk, r.to))
}

// copyLog copies the commit log: whole files that the last run has are kept, the last one is copied up to its last whole record. It removes nothing.
func (r *run) copyLog(ctx context.Context, c *copied) error {
	names, end, err := written(r.Disk, r.from)
	if err != nil {
		return err
	}
	if len(names) == 0 && r.had {
		return fmt.Errorf("%w: %s had files, and has none any more: is its disk mounted?", ErrNoStore, path.Join(r.from.Dir, logName))
	}
	if len(names) == 0 {
		return r.keepsNoLog()
	}
	c.names, c.last = names, ""
	last := len(names) - 1
	if last > 0 {
		if c.begins, err = bytesAt(r.Disk, path.Join(r.from.Dir, logName, names[last]), 0); err != nil {
			return err
		}
		c.lastName = names[last]
	}
	for i, name := range names {
		r.tell.files(i, len(names), r.from.SegmentBytes)
		from, to := path.Join(r.from.Dir, logName, name), path.Join(r.to, logName, name)
		if _, err := r.Stat(to); r.list.Segments[name] != "" && err == nil {
			continue
		}
		n := int64(-1)
		if i == last {
			n = end
		}
		sum, err := copyFile(ctx, r.Disk, from, to, n)
		if errors.Is(err, fs.ErrNotExist) && i < last { // it has expired, and so has what was in front of it
			c.names = names[i+1:]
			continue
		}
		if err != nil {
			return err
		}
		c.now[name], c.last = true, sum
		if i < last {
			r.list.Segments[name] = sum
			if err := r.SyncDir(path.Join(r.to, logName)); err != nil { // before: what is named is not copied again, and was perhaps shorter
				return err
			}
			if err := r.list.write(r.Disk, r.to); err != nil {
				return err
			}
		}
	}
	start, err := segments.ParseName(names[last])
	c.end = start + end
	return errors.Join(err, r.SyncDir(path.Join(r.to, logName)))
}

// expire removes what the copy has no more, and nothing else but parts of copies: a file that the store lacks behind its first one is lost there, and
// the copy of it may be the only one.
func (r *run) expire(names []string) error {
	maps.DeleteFunc(r.list.Segments, func(name, _ string) bool { return len(names) == 0 || name < names[0] })
	if err := r.list.write(r.Disk, r.to); err != nil { // before: what it names has to be there
		return err
	}
	dir := path.Join(r.to, logName)
	entries, err := vfs.ListIfThere(r.Disk, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, last := r.list.Last[e.Name]; last || r.list.Segments[e.Name] != "" || slices.Contains(names, e.Name) {
			continue
		}
		if err := removeTree(r.Disk, path.Join(dir, e.Name)); err != nil {
			return err
		}
	}
	return r.SyncDir(dir)
}

// losesNothing refuses to copy a store over a backup that has messages which the store has not: one that was begun anew on an empty disk, or
// whose log has lost its end. What a node has stored that was started on the backup is lost too.
func (r *run) losesNothing(names []string) error {
	end, err := logEnd(r.Disk, r.from)
	if err != nil {
		return err
	}
	p := r.from
	p.Dir = r.to
	has := r.list.LogEnd
	if r.list.Unfinished { // what recovery has cut is no message, and the store's own cuts it too
		copied, err := logEnd(r.Disk, p)
		if err != nil {
			return err
		}
		has = min(has, copied)
	}
	for name := range r.list.Segments {
		if start, err := segments.ParseName(name); err == nil {
			has = max(has, start+r.from.SegmentBytes)
		}
	}
	if end < has {
		return fmt.Errorf("%w: the log of %s ends at %d, that of %s at %d: name another folder", ErrLoses, r.from.Dir, end, r.to, has)
	}
	other, err := r.isOfAnother(names)
	if err != nil {
		return err
	}
	if other {
		return fmt.Errorf("%w: the log of %s does not begin as that of %s: name another folder", ErrLoses, r.from.Dir, r.to)
	}
	if other, err = r.wasCut(names); err != nil {
		return err
	}
	if other {
		return fmt.Errorf("%w: the log of %s was cut since, and has gone on with other records than that of %s: name another folder", ErrLoses,
			r.from.Dir, r.to)
	}
	if r.list.LogEnd == 0 || r.list.Unfinished {
		return nil
	}
	if end, err = logEnd(r.Disk, p); err == nil && end > r.list.LogEnd {
		err = fmt.Errorf("%w: the log of %s ended at %d, and ends at %d, as when a node runs there: name another folder", ErrLoses, r.to, r.list.LogEnd, end)
	}
	return err
}

// isOfAnother tells whether a backup is of another store: no file of it begins as that of the store does.
func (r *run) isOfAnother(names []string) (other bool, err error) {
	for _, name := range names {
		if !r.list.knows(name) {
			continue
		}
		is, was, err := r.both(name, 0)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && was == [64]byte{}: // there was no record
		case err != nil:
			return false, err
		case is == was:
			return false, nil
		default:
			other = true
		}
	}
	return other, nil
}

// wasCut tells whether the store's log was cut in front of the end of a file that will not be copied again, as that of a node that was the leader and no
// other one had followed so far: the last record of the last such file is another one now. That of a log that has the same record behind that file is the
// same without a look at all of it.
func (r *run) wasCut(names []string) (bool, error) {
	for i, name := range slices.Backward(names) {
		if r.list.Segments[name] == "" {
			continue
		}
		if i+1 < len(names) {
			if is, was, err := r.both(names[i+1], 0); err == nil && is == was && was != [64]byte{} {
				return false, nil
			}
		}
		last, err := lastSound(r.Disk, path.Join(r.from.Dir, logName, name))
		if err != nil || last < 0 {
			return false, err
		}
		is, was, err := r.both(name, last)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return is != was, err
	}
	return false, nil
}

// both are the bytes of the record at a place in a file of the log: those of the store, and those of the copy.
func (r *run) both(name string, at int64) (is, was [64]byte, err error) {
	is, err = bytesAt(r.Disk, path.Join(r.from.Dir, logName, name), at)
	was, copyErr := bytesAt(r.Disk, path.Join(r.to, logName, name), at)
	return is, was, errors.Join(err, copyErr)
}

// bytesAt are those of the record at a place in a file up to its store timestamp, which no two have in common.
func bytesAt(disk vfs.Disk, name string, at int64) (b [64]byte, err error) {
	f, err := disk.Open(name, false)
	if err != nil {
		return b, err
	}
	_, err = f.ReadAt(b[:], at)
	return b, errors.Join(err, f.Close())
}

// logEnd is the physical offset behind the last record of a log, or behind a file that is damaged.
func logEnd(disk vfs.Disk, p store.Params) (int64, error) {
	names, end, err := written(disk, p)
	if err != nil || len(names) == 0 {
		return 0, err
	}
	start, err := segments.ParseName(names[len(names)-1])
	return start + end, err
}

// written are the files of the log that have records, the first one in any case, and where the last record of the last one ends.
func written(disk vfs.Disk, p store.Params) (names []string, end int64, err error) {
	if names, err = segmentNames(disk, p); err != nil || len(names) == 0 {
		return nil, 0, err
	}
	last := len(names) - 1
	for ; last >= 0; last-- { // RocketMQ prepares files behind the end
		if end, err = lastRecord(disk, path.Join(p.Dir, logName, names[last])); err != nil {
			return nil, 0, err
		}
		if end > 0 || last == 0 {
			break
		}
	}
	return names[:last+1], end, nil
}

// keepsNoLog refuses to copy a store without a log over a backup that has one: its disk may not be mounted.
func (r *run) keepsNoLog() error {
	entries, err := vfs.ListIfThere(r.Disk, path.Join(r.to, logName))
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: %s has no file, and the backup has %d: is its disk mounted?", ErrNoStore, path.Join(r.from.Dir, logName), len(entries))
	}
	return nil
}

// segmentNames are the files of the log, in its order. What is no segment by its name is left out; a link to one on another disk is one. Only the
// last one may be short, as it is while it is being made; any other size is damage, or not that of this store: segments.ErrSize.
func segmentNames(disk vfs.Disk, p store.Params) ([]string, error) {
	entries, err := vfs.ListIfThere(disk, path.Join(p.Dir, logName))
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e vfs.Entry) bool {
		_, err := segments.ParseName(e.Name)
		return err != nil || e.Dir
	})
	var names []string
	for i, e := range entries {
		switch {
		case e.Size == p.SegmentBytes:
			names = append(names, e.Name)
		case i < len(entries)-1, e.Size > p.SegmentBytes, i == 0 && e.Size > 0:
			return nil, fmt.Errorf("%s: %w: %d bytes instead of %d", path.Join(p.Dir, logName, e.Name), segments.ErrSize, e.Size, p.SegmentBytes)
		}
	}
	return names, nil
}

// lastRecord finds the end of the last whole record in a file that is being written to, or of the file where it is damaged.
func lastRecord(disk vfs.Disk, name string) (end int64, err error) {
	return eachRecord(disk, name, func(int64, *record.Record, bool) {})
}

// lastSound finds the last record of a file that nothing is wrong with, and that stands for no lost one; -1: there is none.
func lastSound(disk vfs.Disk, name string) (last int64, err error) {
	last = -1
	_, err = eachRecord(disk, name, func(at int64, r *record.Record, sound bool) {
		if sound && !r.Lost() {
			last = at
		}
	})
	return last, err
}

// eachRecord tells of the records of a file that may be being written to, and returns where the last one ends; of a file that is full, or of which
// no record can be found behind damage, its end.
func eachRecord(disk vfs.Disk, name string, tell func(at int64, r *record.Record, sound bool)) (end int64, err error) {
	f, err := disk.Open(name, false)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size == 0 {
		return 0, err
	}
	m, err := f.Map(size, vfs.MapRead)
	if err != nil {
		return 0, err
	}
	at, r := int64(0), record.Record{}
	err = vfs.Guard("read "+name, func() error {
		for at < size {
			kind, err := r.Parse(m.Bytes()[at:], true)
			if errors.Is(err, record.ErrUnallocated) {
				return nil
			}
			if err != nil && r.Size <= 0 || kind == record.KindBlank { // damage: recovery decides about what is behind it
				at = size
				return nil
			}
			tell(at, &r, err == nil)
			at += int64(r.Size)
		}
		return nil
	})
	return at, errors.Join(err, m.Unmap())
}
