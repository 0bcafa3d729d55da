package storebackup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// nextName is the folder below a copy in which a run puts what is beside the log, until it has all.
const nextName = "backup.next"

// The names below a store, or a copy, that speak of its log.
const (
	queuesName   = "consumequeue"
	configName   = "config"
	promotedName = "promoted.json" // a slave was promoted; a store that is restored still is its own master
)

var (
	floorsName   = path.Base(store.Params{}.FloorsPath())
	unprovenName = path.Base(store.Params{}.UnprovenQueuesPath())
	furtherName  = path.Base(store.Params{}.FurtherPath()) // or the recovery of the copy builds nothing of further queues, and closes gaps in them

	// beside is what each backup replaces beside the log: the queues first, so that there is no start without the log where some of it is.
	beside = []string{
		queuesName, unprovenName, furtherName, metadata.Backup(floorsName), floorsName, configName, "extensions", promotedName, metadata.Backup(promotedName),
	}
)

// passes bounds how often the files are copied again that are of another moment than the floors.
const passes = 10

// stage copies all that the store has: the log to its place, where it only adds to what is there, all else to a folder of its own.
func (r *run) stage(ctx context.Context, c *copied) error {
	next := path.Join(r.to, nextName)
	if err := removeTree(r.Disk, next); err != nil {
		return err
	}
	if err := r.Mkdir(next); err != nil {
		return err
	}
	// Before the queues and, if it is there then, behind them: that what was copied is not to be believed, and that there are further ones.
	if err := r.take(ctx, copyThere, furtherName, unprovenName, queuesName, unprovenName, furtherName); err != nil {
		return err
	}
	if err := r.takeMoment(ctx, c); err != nil {
		return err
	}
	staged := []string{}
	for _, name := range beside {
		_, err := r.Stat(path.Join(next, name))
		if err == nil {
			staged = append(staged, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := errors.Join(r.SyncDir(next), r.SyncDir(r.to)); err != nil {
		return err
	}
	r.list.Staged = staged
	r.list.LogEnd, r.list.First = c.end, ""
	is := func(name string) bool { return slices.Contains(c.names, name) }
	maps.DeleteFunc(r.list.Last, func(name, _ string) bool { return is(name) || len(c.names) == 0 || name < c.names[0] })
	if len(c.names) > 0 {
		r.list.First = c.names[0]
		if r.list.Last == nil {
			r.list.Last = map[string]string{}
		}
		r.list.Last[c.names[len(c.names)-1]] = c.last
	}
	r.list.Mended = slices.DeleteFunc(r.list.Mended, is)
	return r.list.write(r.Disk, r.to)
}

// takeMoment copies the floors, then the configuration, then the log: none speaks of more than what comes after it. They are of one moment when no
// topic was deleted until the log was copied: what the floors note of a deleted one tells the offsets of its queues from those of its next
// life, and both must be of the same life as the end of the log is. The first time the log may take hours, in which what is noted can be gone again:
// then the floors must not have changed at all.
func (r *run) takeMoment(ctx context.Context, c *copied) error {
	floors := path.Join(r.from.Dir, floorsName)
	for pass := range passes {
		before, err := r.textOf(floors)
		if err != nil {
			return err
		}
		if err := r.take(ctx, copyThere, metadata.Backup(floorsName), floorsName); err != nil {
			return err
		}
		if err := r.take(ctx, copyAnew, configName, "extensions", promotedName, metadata.Backup(promotedName)); err != nil {
			return err
		}
		if err := r.takeLog(ctx, c); err != nil {
			return err
		}
		now, err := r.textOf(floors)
		if err != nil {
			return err
		}
		taken, err := r.textOf(path.Join(r.to, nextName, floorsName))
		if err != nil {
			return err
		}
		if bytes.Equal(before, now) && bytes.Equal(before, taken) {
			return nil
		}
		if pass == 0 {
			continue
		}
		if same, err := r.sameLives(); same || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: topics of %s were deleted while it was copied, %d times: take it again, it goes on from here", ErrUnfinished, r.from.Dir, passes)
}

// lives is what the floors say of deletions: where the log ended when topics were deleted, and which topics have queues that go on without a unit, until
// they are deleted. All else in them may change with each round of cleaning.
type lives struct {
	Topics map[string]struct {
		Below int64 `json:"below"`
	} `json:"topics"`
	Queues map[string]json.RawMessage `json:"queues"`
}

// sameLives tells whether no topic was deleted since the floors were copied.
func (r *run) sameLives() (bool, error) {
	var taken, now lives
	for dir, v := range map[string]*lives{path.Join(r.to, nextName): &taken, r.from.Dir: &now} {
		if _, err := metadata.Load(r.Disk, path.Join(dir, floorsName), v); err != nil && !errors.Is(err, metadata.ErrDamaged) { // nobody would believe it
			return false, err
		}
	}
	for topic, at := range now.Topics {
		if was, there := taken.Topics[topic]; !there || was != at {
			return false, nil
		}
	}
	for topic := range taken.Queues {
		if _, there := now.Queues[topic]; !there {
			return false, nil
		}
	}
	return true, nil
}

// textOf is the content of a file, empty when it is not there.
func (r *run) textOf(name string) ([]byte, error) {
	text, err := readFile(r.Disk, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// copyFunc is copyThere or copyAnew.
type copyFunc func(ctx context.Context, disk vfs.Disk, from, to string) error

// take copies what has these names below the store.
func (r *run) take(ctx context.Context, do copyFunc, names ...string) error {
	for _, name := range names {
		if err := do(ctx, r.Disk, path.Join(r.from.Dir, name), path.Join(r.to, nextName, name)); err != nil {
			return err
		}
	}
	return nil
}

// replace puts what is staged in the place of what is beside the log of the copy. It may have been ended half-way before: a staged name that is not in
// its folder any more is where it belongs.
func (r *run) replace() error {
	next := path.Join(r.to, nextName)
	for _, name := range beside {
		from, to := path.Join(next, name), path.Join(r.to, name)
		staged := slices.Contains(r.list.Staged, name)
		_, err := r.Stat(from)
		switch there := err == nil; {
		case !there && !errors.Is(err, fs.ErrNotExist):
			return err
		case staged && !there:
			continue
		}
		if err := removeTree(r.Disk, to); err != nil {
			return err
		}
		if !staged {
			continue
		}
		if err := r.Rename(from, to); err != nil {
			return err
		}
	}
	if err := r.SyncDir(r.to); err != nil {
		return err
	}
	r.list.Staged, r.list.Whole = nil, true
	for name := range r.list.Last {
		r.list.Last[name] = "" // the recovery comes next, and may cut what is no record behind the last one
	}
	if err := r.list.write(r.Disk, r.to); err != nil {
		return err
	}
	return removeTree(r.Disk, next)
}
