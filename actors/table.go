package actors

import (
	"hash/maphash"
	"iter"
	"maps"
)

// tableShards is a power of two: a change copies one shard, so a table of n entries costs n/tableShards a change.
const tableShards = 256

// Table is an immutable map: what an actor that owns configuration-like state publishes to its readers, behind an
// atomic.Pointer. A changed copy shares with the table it comes from all that has not changed, so that tables of 10,000
// entries stay cheap to change. Safe for any goroutine.
type Table[K comparable, V any] struct {
	seed   maphash.Seed
	shards [tableShards]map[K]V
	n      int
}

// NewTable returns an empty table.
func NewTable[K comparable, V any]() *Table[K, V] {
	return &Table[K, V]{seed: maphash.MakeSeed()}
}

// Get looks an entry up, without a lock.
func (t *Table[K, V]) Get(key K) (V, bool) {
	v, ok := t.shards[t.shard(key)][key]
	return v, ok
}

// Len is the number of entries.
func (t *Table[K, V]) Len() int { return t.n }

// All goes through the entries in no order.
func (t *Table[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, shard := range t.shards {
			for k, v := range shard {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

func (t *Table[K, V]) shard(key K) int {
	return int(maphash.Comparable(t.seed, key) % tableShards)
}

// Edit begins a changed copy.
func (t *Table[K, V]) Edit() *TableEdit[K, V] { return &TableEdit[K, V]{base: t} }

// TableEdit is a changed copy of a table in the making. It belongs to one goroutine.
type TableEdit[K comparable, V any] struct {
	base *Table[K, V]
	next *Table[K, V] // nil: nothing has changed yet
	own  [tableShards]bool
}

// Get looks an entry up in the copy.
func (e *TableEdit[K, V]) Get(key K) (V, bool) { return e.now().Get(key) }

// Len is the number of entries of the copy.
func (e *TableEdit[K, V]) Len() int { return e.now().n }

// All goes through the entries of the copy, in no order; it must not be changed meanwhile.
func (e *TableEdit[K, V]) All() iter.Seq2[K, V] { return e.now().All() }

func (e *TableEdit[K, V]) now() *Table[K, V] {
	if e.next != nil {
		return e.next
	}
	return e.base
}

// Set puts an entry in, in place of the one under its key.
func (e *TableEdit[K, V]) Set(key K, v V) {
	shard := e.writable(key)
	before := len(shard)
	shard[key] = v
	e.next.n += len(shard) - before
}

// Delete takes an entry out and tells whether it was there.
func (e *TableEdit[K, V]) Delete(key K) bool {
	if _, there := e.Get(key); !there {
		return false
	}
	delete(e.writable(key), key)
	e.next.n--
	return true
}

func (e *TableEdit[K, V]) writable(key K) map[K]V {
	if e.next == nil {
		copied := *e.base
		e.next = &copied
	}
	i := e.next.shard(key)
	if !e.own[i] {
		e.own[i] = true
		shard := make(map[K]V, len(e.next.shards[i])+1)
		maps.Copy(shard, e.next.shards[i])
		e.next.shards[i] = shard
	}
	return e.next.shards[i]
}

// Table returns the copy, or the table that the edit began from when nothing has been changed. The edit must not be used
// afterwards.
func (e *TableEdit[K, V]) Table() *Table[K, V] { return e.now() }
