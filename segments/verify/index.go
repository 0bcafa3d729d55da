package verify

import (
	"errors"
	"iter"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
)

// errStopped ends a look at the index that nobody needs any more.
var errStopped = errors.New("stopped")

// keys compares the entries of the index with the records, both in the order of the log.
type keys struct {
	v     *verifier
	next  func() (index.Entry, bool)
	stop  func()
	ahead index.Entry // the first that is not consumed
	more  bool        // ahead is one

	damage []error // of the files
	err    error

	missing   int64 // records that lack a key
	missingAt messages.PhysicalOffset
	wrong     int64 // entries that name no record with such a key
	wrongAt   index.Entry
}

func (v *verifier) openIndex() (err error) {
	if v.index, err = index.Open(v.disk, v.params.IndexDir(), v.params.IndexParams(nil)); err != nil {
		return err
	}
	v.IndexFiles = int64(v.index.Len())
	for _, d := range v.index.Damaged() {
		v.doubtFrom(0)
		v.foundError(PartIndex, d.Path, 0, d.Err)
	}
	for _, name := range v.index.Ignored() {
		v.found(PartIndex, name, 0, "is no index file")
	}
	k := &keys{v: v}
	k.next, k.stop = iter.Pull(func(yield func(index.Entry) bool) {
		k.damage, k.err = v.index.Check(func(e index.Entry) error {
			if !yield(e) {
				return errStopped
			}
			return nil
		})
	})
	k.advance()
	v.keys = k
	return nil
}

func (k *keys) advance() {
	for k.ahead, k.more = k.next(); k.more; k.ahead, k.more = k.next() {
		k.v.IndexEntries++
		if k.ahead.PhysicalOffset < k.v.built {
			break
		}
	}
}

// record compares the keys of a record with the entries that name it.
func (k *keys) record(r *record.Record) {
	k.skipTo(r.PhysicalOffset)
	want := map[int32]bool{}
	if store.Indexed(r) {
		for key := range keysOf(r) {
			want[index.Hash(string(r.Topic), key)] = false
		}
	}
	for ; k.more && k.ahead.PhysicalOffset == r.PhysicalOffset; k.advance() {
		if _, ok := want[k.ahead.Hash]; !ok && !r.Lost() {
			k.mistake()
		}
		want[k.ahead.Hash] = true
	}
	for _, found := range want {
		if !found {
			if k.missing == 0 {
				k.missingAt = r.PhysicalOffset
				k.v.doubtFrom(r.PhysicalOffset)
			}
			k.missing++
			break
		}
	}
}

// skipTo passes over the entries in front of a place. They name what is not in the log any more, or nothing.
func (k *keys) skipTo(at messages.PhysicalOffset) {
	for ; k.more && k.ahead.PhysicalOffset < at; k.advance() {
		named := k.ahead.PhysicalOffset
		expired := named < k.v.begin()
		if !expired && !k.v.inLost(named) {
			k.mistake()
		}
	}
}

func (k *keys) mistake() {
	if k.wrong == 0 {
		k.wrongAt = k.ahead
	}
	k.v.doubtFrom(k.ahead.PhysicalOffset)
	k.wrong++
}

// keysOf yields the keys under which a record is indexed (spec/store.md §6.6).
func keysOf(r *record.Record) iter.Seq[string] {
	return func(yield func(string) bool) {
		p := messages.ViewProperties(r.Properties)
		if unique, ok := p.Get(messages.PropertyUniqKey); ok && !yield(unique) {
			return
		}
		all, _ := p.Get(messages.PropertyKeys)
		for key := range strings.SplitSeq(all, " ") {
			if key != "" && !yield(key) {
				return
			}
		}
	}
}

// finishIndex looks at the entries that are left, and reports.
func (v *verifier) finishIndex() error {
	k := v.keys
	if k == nil {
		return nil
	}
	for ; k.more; k.advance() {
		if !v.inLost(k.ahead.PhysicalOffset) && k.ahead.PhysicalOffset >= v.begin() {
			if int64(k.ahead.PhysicalOffset) >= v.LogEnd { // its record is gone
				v.lostTail[PartIndex] = true
			}
			k.mistake()
		}
	}
	k.stop()
	for _, err := range k.damage {
		v.doubtFrom(0)
		v.foundError(PartIndex, v.params.IndexDir(), 0, err)
	}
	if k.wrong > 0 {
		v.found(PartIndex, k.wrongAt.Path, k.wrongAt.FileOffset, "an entry names %d, where no record with such a key is: %d in all",
			k.wrongAt.PhysicalOffset, k.wrong)
	}
	if k.missing > 0 {
		v.found(PartIndex, v.params.IndexDir(), 0, "%d records lack an entry, the first is at %d in the log", k.missing, k.missingAt)
	}
	return k.err
}
