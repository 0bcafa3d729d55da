package index

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

const (
	// freshSuffix marks a file that is being made, beside the folder: RocketMQ would try to map it inside.
	freshSuffix = ".new"
	nameDigits  = 17
	nameLayout  = "20060102150405.000"
)

// Set is all index files of a store. See the package for who may call what.
type Set struct {
	disk   vfs.Disk
	dir    string
	params Params

	files atomic.Pointer[[]*file] // oldest first; the list never changes once it is stored

	end       atomic.Int64 // physical offset of the last record that has an entry, -1: none
	flushedMs atomic.Int64

	keys    Keys // of the records that are being built
	names   bool // names in the folder have changed since the last Flush
	failed  error
	closed  bool
	damaged []Damage
	ignored []string
}

// Damage is a file that cannot be used, and why (a *segments.CorruptionError).
type Damage struct {
	Path string
	Err  error
}

// Open loads the index files under dir. A missing folder is an empty set. A file of a wrong size or with a header that
// makes no sense is left out and reported by Damaged; it is never grown or changed.
func Open(disk vfs.Disk, dir string, p Params) (*Set, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	s := &Set{disk: disk, dir: dir, params: p}
	s.end.Store(-1)
	s.files.Store(&[]*file{})
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open index: %w", err), s.releaseAll())
	}
	return s, nil
}

func (s *Set) load() error {
	if err := vfs.RemoveIfThere(s.disk, s.freshPath()); err != nil {
		return err
	}
	entries, err := s.disk.List(s.dir)
	s.names = err == nil // after a kill, names may still be on their way to the disk
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var files []*file
	for _, e := range entries {
		name := path.Join(s.dir, e.Name)
		if _, err := strconv.ParseUint(e.Name, 10, 63); err != nil || e.Dir {
			s.ignored = append(s.ignored, name)
			continue
		}
		f, err := open(s.disk, name, e.Name, s.params)
		var damage *segments.CorruptionError
		switch {
		case errors.As(err, &damage) || errors.Is(err, vfs.ErrFault): // what can't be read is made again, too
			s.damaged = append(s.damaged, Damage{Path: name, Err: err})
		case errors.Is(err, fs.ErrNotExist): // deleted by a running node since it was listed
		case err != nil:
			s.files.Store(&files)
			return err
		default:
			files = append(files, f)
		}
	}
	if len(files) > 0 { // and so may the pages of the newest file
		files[len(files)-1].dirty.Store(true)
	}
	s.setFiles(files)
	return nil
}

// Damaged returns the files that Open could not use. Their keys are not found before they are indexed again: see
// DropDamaged.
func (s *Set) Damaged() []Damage { return slices.Clone(s.damaged) }

// Ignored returns the paths in the folder that are no index files.
func (s *Set) Ignored() []string { return slices.Clone(s.ignored) }

// Len is the number of files in use. Safe for any goroutine.
func (s *Set) Len() int { return len(s.list()) }

// EndPhysical is the physical offset of the last record that was indexed, -1 when there is none. The index is complete
// up to it, that record itself perhaps excepted. Safe for any goroutine.
func (s *Set) EndPhysical() messages.PhysicalOffset { return messages.PhysicalOffset(s.end.Load()) }

// FlushedTimestampMs is the store timestamp up to which the index was durable at the last Flush; 0 before the first one,
// and when there is nothing. For the checkpoint (spec/store.md §5.6). Safe for any goroutine.
func (s *Set) FlushedTimestampMs() int64 { return s.flushedMs.Load() }

func (s *Set) list() []*file { return *s.files.Load() }

// setFiles publishes a new list.
func (s *Set) setFiles(files []*file) {
	end := int64(-1)
	for _, f := range slices.Backward(files) {
		if !f.empty() {
			end = f.head.endPhy
			break
		}
	}
	s.end.Store(end)
	s.files.Store(&files)
}

// BuildFrom indexes a dispatched record: its unique key, and each of its keys (spec/store.md §6.6). Rollback records,
// and records in front of the last one that is indexed, are skipped; the last one itself is taken again, since a crash
// may have lost some of its keys. It does not allocate but for a new file.
func (s *Set) BuildFrom(r *messages.DispatchRequest) error {
	_, err := s.Build([]messages.DispatchRequest{*r})
	return err
}

// together is how many keys or records are looked at before the first of them is put.
const together = 32

// Build is BuildFrom for records in the order of the log. Their slots, which lie anywhere in the file, are fetched together. It returns how
// many are in the index: after an error the rest can be tried again.
func (s *Set) Build(records []messages.DispatchRequest) (done int, err error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	for done < len(records) {
		part := records[done:min(done+together, len(records))]
		s.keys.clear()
		for i := range part {
			s.hash(&part[i], int32(i))
		}
		if at, err := s.putAll(s.keys.all); err != nil {
			return done + at, err
		}
		done += len(part)
	}
	return done, nil
}

// BuildKeys indexes records by their keys, which come in the order of the log and behind everything that is indexed.
func (s *Set) BuildKeys(p *Packed) error {
	if err := s.usable(); err != nil {
		return err
	}
	for i := range p.parts {
		part := &p.parts[i]
		for rest := part.keys; len(rest) > 0; {
			n := min(together, len(rest))
			s.keys.all = part.unpack(s.keys.all[:0], rest[:n])
			if _, err := s.putAll(s.keys.all); err != nil {
				return err
			}
			rest = rest[n:]
		}
	}
	return nil
}

// hash adds the keys of a record to those that are to be put.
func (s *Set) hash(r *messages.DispatchRequest, of int32) {
	if int64(r.PhysicalOffset) < s.end.Load() || messages.TransactionOf(r.SysFlag) == messages.SysFlagTransactionRollback {
		return
	}
	s.keys.of = of
	addKeys(&s.keys, r.Queue.Topic, r.UniqKey, r.Keys, r.PhysicalOffset, r.StoreTimestampMs)
}

// putAll puts some keys. After an error it tells the number of the record that is not in the index.
func (s *Set) putAll(keys []hashedKey) (of int, err error) {
	for len(keys) > 0 {
		f, err := s.current()
		if err != nil {
			return int(keys[0].of), fmt.Errorf("index: %w", err)
		}
		n := min(len(keys), f.room())
		done, err := f.putAll(keys[:n])
		if done > 0 {
			s.end.Store(keys[done-1].at)
		}
		if err != nil {
			return int(keys[done].of), fmt.Errorf("index: %w", err)
		}
		keys = keys[n:]
	}
	return 0, nil
}

// Put indexes one key of a record. Records come in the order of the log. A full file is synced and a new one made;
// when that fails nothing is left behind and the same Put can be tried again.
func (s *Set) Put(topic string, key []byte, at messages.PhysicalOffset, storeTimestampMs int64) error {
	return s.put(&hashedKey{hash: hashOfKey(&s.keys.text, topic, key), at: int64(at), ms: storeTimestampMs})
}

func (s *Set) put(k *hashedKey) error {
	if err := s.usable(); err != nil {
		return err
	}
	f, err := s.current()
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if err := f.put(k); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	s.end.Store(k.at)
	return nil
}

func (s *Set) usable() error {
	if s.closed {
		return fmt.Errorf("index: %w", ErrClosed)
	}
	return s.failed
}

// current returns the file that takes the next entry.
func (s *Set) current() (*file, error) {
	files := s.list()
	if n := len(files); n > 0 && !files[n-1].full() {
		return files[n-1], nil
	}
	if err := s.Flush(); err != nil {
		return nil, err
	}
	f, err := s.newFile(s.newName())
	if err != nil {
		return nil, fmt.Errorf("new file: %w", err)
	}
	list := append(slices.Clone(files), f)
	s.files.Store(&list)
	return f, nil
}

// newFile makes an empty file under a name.
func (s *Set) newFile(name string) (*file, error) {
	if err := s.disk.MkdirAll(s.dir); err != nil {
		return nil, err
	}
	f, err := s.fresh(name)
	if err != nil {
		return nil, err
	}
	return f, s.moveIn(f)
}

// fresh makes an empty file beside the folder.
func (s *Set) fresh(name string) (*file, error) {
	if err := vfs.RemoveIfThere(s.disk, s.freshPath()); err != nil {
		return nil, err
	}
	return create(s.disk, s.freshPath(), path.Join(s.dir, name), name, s.params)
}

// moveIn gives a fresh file its name; when that fails it is given up.
func (s *Set) moveIn(f *file) error {
	if err := s.disk.Rename(s.freshPath(), f.path); err != nil {
		return errors.Join(err, f.release(), s.disk.Remove(s.freshPath()))
	}
	s.names = true
	return nil
}

func (s *Set) freshPath() string { return s.dir + freshSuffix }

// newName is the wall clock to the millisecond, or the next number when that is not behind every name in the folder.
func (s *Set) newName() string {
	text := s.params.Now().Format(nameLayout)
	name := text[:nameDigits-3] + text[nameDigits-2:]
	last := ""
	if files := s.list(); len(files) > 0 {
		last = files[len(files)-1].name
	}
	for _, d := range s.damaged {
		last = max(last, path.Base(d.Path))
	}
	if name > last {
		return name
	}
	n, err := strconv.ParseUint(last, 10, 63)
	if err != nil {
		panic("BUG: index file with the name " + last)
	}
	return fmt.Sprintf("%0*d", len(last), n+1)
}

// Flush makes every entry and name durable that was put before. A failed sync is final: what is lost is unknown, so Put
// and Flush refuse from then on (ErrFailed).
func (s *Set) Flush() error {
	if err := s.usable(); err != nil {
		return err
	}
	flushed := int64(0)
	for _, f := range s.list() {
		if err := f.sync(); err != nil {
			return s.fail(err)
		}
		if !f.empty() {
			flushed = f.head.endMs
		}
	}
	if s.names {
		if err := s.disk.SyncDir(s.dir); err != nil {
			return s.fail(err)
		}
		s.names = false
	}
	s.flushedMs.Store(flushed)
	return nil
}

func (s *Set) fail(cause error) error {
	s.failed = fmt.Errorf("%w: %w", ErrFailed, cause)
	return s.failed
}

// Close flushes, and unmaps every file that no query is reading. The set answers nothing any more.
func (s *Set) Close() error {
	if s.closed {
		return nil
	}
	err := s.Flush()
	s.closed = true
	return errors.Join(err, s.releaseAll())
}

func (s *Set) releaseAll() error {
	files := s.list()
	s.files.Store(&[]*file{})
	var errs []error
	for _, f := range files {
		errs = append(errs, f.release())
	}
	return errors.Join(errs...)
}
