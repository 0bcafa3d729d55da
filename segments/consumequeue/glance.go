package consumequeue

import (
	"github.com/actormq/actormq/segments/vfs"
)

// lookAround maps a file for those who look at single units here and there, a search for example: a look then takes no
// system call. Where it can't be mapped, they go on reading pages. Whoever holds the lock of the file's page calls it.
func (f *openFile) lookAround() {
	if f.mapped.Load() != nil {
		return
	}
	size, err := f.Size()
	if err != nil {
		return
	}
	if m, err := f.Map(size, vfs.MapRead); err == nil {
		f.mapped.Store(&m)
	}
}

func (f *openFile) unmap() error {
	if m := f.mapped.Load(); m != nil {
		return (*m).Unmap()
	}
	return nil
}

// glance reads one unit of a mapped file; ok is false when it is not mapped as far as that.
func (q *Queue) glance(t *tail, f *openFile, at int64, dst *Unit) (ok bool, err error) {
	m, off := f.mapped.Load(), (at-f.key.start)*UnitBytes
	if m == nil || off+UnitBytes > int64(len((*m).Bytes())) {
		return false, nil
	}
	err = vfs.Guard("read a consume queue's file", func() error {
		*dst = DecodeUnit((*m).Bytes()[off:])
		return nil
	})
	switch {
	case q.tail.Load() != t:
		return true, q.fail("read", ErrChanged)
	case err != nil:
		return true, q.fail("read "+f.Name(), err)
	case !dst.Valid():
		return true, q.corrupt(f.key.start, at, ErrUnit)
	}
	return true, nil
}
