package keeper

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/segments/metadata"
)

// State is what is published: it never changes.
type State[V any] struct {
	Table   *actors.Table[string, V]
	Version metadata.DataVersion
	Deleted map[string]metadata.DataVersion // when an entry was last removed by request, for files that keep that
	Unknown metadata.Unknown                // members of the file that this version does not know
}

// Entries returns a copy of the table, as a file has it.
func (s *State[V]) Entries() map[string]V { return maps.Collect(s.Table.All()) }

// Draft is a change in the making. It belongs to the actor.
type Draft[V any] struct {
	Version metadata.DataVersion
	Deleted map[string]metadata.DataVersion // replaced, never changed

	edit             *actors.TableEdit[string, V]
	unknown          metadata.Unknown
	changed, removed map[string]struct{}
	dirty            bool
}

func newDraft[V any](s *State[V]) *Draft[V] {
	return &Draft[V]{
		Version: s.Version, Deleted: s.Deleted, edit: s.Table.Edit(), unknown: s.Unknown,
		changed: map[string]struct{}{}, removed: map[string]struct{}{},
	}
}

// Get looks an entry up.
func (d *Draft[V]) Get(name string) (V, bool) { return d.edit.Get(name) }

// All goes through the entries, in no order; none may be changed meanwhile.
func (d *Draft[V]) All() iter.Seq2[string, V] { return d.edit.All() }

// Set puts an entry in. One that is there already, with the same value, is no change.
func (d *Draft[V]) Set(name string, v V) {
	if have, there := d.edit.Get(name); there && reflect.DeepEqual(have, v) {
		return
	}
	d.edit.Set(name, v)
	d.changed[name] = struct{}{}
	d.advance()
}

// Remove takes an entry out.
func (d *Draft[V]) Remove(name string) {
	if !d.edit.Delete(name) {
		return
	}
	delete(d.changed, name)
	d.removed[name] = struct{}{}
	d.advance()
}

func (d *Draft[V]) advance() {
	d.Version.Advance(time.Now().UnixMilli())
	d.dirty = true
}

// Replace makes the draft the table of another broker and takes over its version.
func (d *Draft[V]) Replace(s *State[V]) {
	var gone []string
	for name := range d.edit.All() {
		if _, stays := s.Table.Get(name); !stays {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		d.Remove(name)
	}
	for name, v := range s.Table.All() {
		d.Set(name, v)
	}
	d.Version, d.Deleted, d.unknown, d.dirty = s.Version, s.Deleted, s.Unknown, true
}

// News returns the names of the entries that have been set and of those that have been removed, sorted. One that is removed and
// set again is in both.
func (d *Draft[V]) News() (changed, removed []string) {
	return slices.Sorted(maps.Keys(d.changed)), slices.Sorted(maps.Keys(d.removed))
}

func (d *Draft[V]) state() *State[V] {
	return &State[V]{Table: d.edit.Table(), Version: d.Version, Deleted: d.Deleted, Unknown: d.unknown}
}
