package store_test

import (
	"cmp"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// everyEnd ends a start of a store after each of its operations, by a kill and by power cuts, and has check look at each disk that one of them
// leaves. What check says may depend on nothing but the disk.
func everyEnd(t *testing.T, disk *memfs.Disk, check func(left *memfs.Disk, step int)) {
	t.Helper()
	everyEndOf(t, disk, testOptions(), check)
}

func everyEndOf(t *testing.T, disk *memfs.Disk, o store.Options, check func(left *memfs.Disk, step int)) {
	t.Helper()
	everyEndWith(t, disk, o, func(memfs.Op) error { return nil }, check)
}

// everyEndWith has the disk fail in a way of its own too, until the power is off.
func everyEndWith(
	t *testing.T, disk *memfs.Disk, o store.Options, fault func(memfs.Op) error, check func(left *memfs.Disk, step int),
) {
	t.Helper()
	everyEndIn(t, disk, testParams(), o, fault, check)
}

// everyEndIn opens a store of its own parameters.
func everyEndIn(
	t *testing.T, disk *memfs.Disk, p store.Params, o store.Options, fault func(memfs.Op) error, check func(left *memfs.Disk, step int),
) {
	t.Helper()
	off, met := errors.New("power is off"), newEnds(t)
	for k, done := 0, false; !done; k++ {
		require.Less(t, k, 5000)
		d := disk.Clone()
		power := powerOff(k, off)
		d.Inject(func(op memfs.Op) error { return cmp.Or(power(op), fault(op)) })
		s, err := store.Open(d, p, o)
		if done = err == nil; done {
			_ = s.Close() // fails or not: the power may go off in it
		}
		for _, left := range met.anew(d.Clone(), d.Crash(uint64(k)), d.Crash(uint64(k)+1000), d.Crash(uint64(k)+2000)) {
			check(left, k)
		}
	}
}

// ends are what disks were left as, so that those that are the same in all that a start may see, and in all that another end may leave of them,
// are looked at once: a sync of what is synced changes nothing, and after most operations a power cut leaves what one left before.
type ends struct {
	met map[[32]byte]bool
	of  int // one of so many is looked at
}

// newEnds has each of them looked at; under the race detector, which takes eight times as long and judges how things are done, not what is left,
// one of three, or of ENDS_OF.
func newEnds(t *testing.T) *ends {
	t.Helper()
	e := &ends{met: map[[32]byte]bool{}, of: 1}
	if fixture.Raced {
		e.of = fixture.Number(t, "ENDS_OF", 3)
	}
	return e
}

// anew returns those disks that are like none before them.
func (e *ends) anew(left ...*memfs.Disk) (others []*memfs.Disk) {
	for _, d := range left {
		digest := d.Digest()
		if e.met[digest] {
			continue
		}
		if len(e.met)%e.of == 0 {
			others = append(others, d)
		}
		e.met[digest] = true
	}
	return others
}
