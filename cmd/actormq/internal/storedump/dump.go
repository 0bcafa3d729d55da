package storedump

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrNotLoaded: the store could not be opened; the dump says so and why.
var ErrNotLoaded = errors.New("the store cannot be loaded")

// Options say what is dumped.
type Options struct {
	Dir      string
	Params   Params
	Manifest string // file with the messages that were put, whose keys are asked for too; empty: none
	NoIndex  bool   // leave the answers of the index out: their keys are the only thing that is kept in memory
	Events   func(store.Event)

	// Progress, if not nil, hears of every record how many bytes have been read, and of how many; Recovering how far the recovery is, before that.
	Progress   func(done, total int64)
	Recovering func(store.Progress)
}

// Dump writes the dump of a store to w. The directory is not changed.
func Dump(w io.Writer, disk vfs.Disk, o Options) (err error) {
	overlay := vfs.Overlay(disk)
	defer func() { err = errors.Join(err, overlay.Close()) }()
	d := dumper{Options: o, disk: overlay, w: newWriter(w), params: o.Params.StoreParams(o.Dir), keys: questions{}}
	return d.run()
}

type dumper struct {
	Options
	disk   vfs.Disk
	params store.Params
	w      *writer
	keys   questions
	store  *store.Store
	read   reading
}

// reading counts bytes: those of the log are read for their keys, by their queues, and record by record.
type reading struct {
	tell        func(done, total int64)
	done, total int64
}

func (r *reading) add(bytes int64) {
	if r.tell != nil {
		r.done = min(r.done+bytes, r.total)
		r.tell(r.done, r.total)
	}
}

func (d *dumper) run() error {
	if e, err := d.disk.Stat(d.Dir); err != nil {
		return err
	} else if !e.Dir {
		return fmt.Errorf("%s is no folder", d.Dir)
	}
	before, err := state(d.disk, d.params, false)
	if err != nil {
		return err
	}
	texts, err := config(d.disk, d.params)
	if err != nil {
		return err
	}
	head := object{{"format", 1}, {"params", d.Params.object()}, {"before", before}, {"config", texts}}
	d.store, err = store.Open(d.disk, d.params, store.Options{Events: d.Events, Progress: d.Recovering})
	if err != nil {
		return d.notLoaded(head, err)
	}
	times := int64(3)
	if d.NoIndex {
		times--
	}
	d.read = reading{tell: d.Progress, total: times * int64(d.store.Log.End()-max(0, d.store.Log.Min()))}
	if err := d.loaded(head); err != nil {
		return errors.Join(err, d.store.Close())
	}
	return nil
}

func (d *dumper) notLoaded(head object, cause error) error {
	names, err := files(d.disk, d.params, true)
	if err != nil {
		return errors.Join(cause, err)
	}
	text := strings.ReplaceAll(cause.Error(), d.Dir, "<dir>")
	d.w.object(append(head, object{
		{"loaded", false}, {"loadError", text}, {"after", object{{"files", names}}},
	}...), 0)
	return errors.Join(fmt.Errorf("%w: %w", ErrNotLoaded, cause), d.w.flush())
}

// loaded writes the members one by one: later ones need what is seen, or done, while the earlier ones are written.
func (d *dumper) loaded(head object) error {
	if err := d.collectKeys(); err != nil {
		return err
	}
	d.w.text("{")
	members := append(head, object{
		{"loaded", true}, {"loadError", nil},
		{"commitLog", object{{"minOffset", int64(d.store.Log.Min())}, {"maxOffset", int64(d.store.Log.End())}}},
		{"queues", queues(d.store, &d.read)},
	}...)
	if !d.NoIndex {
		members = append(members, field{"index", answers(d.store, d.keys, &d.read)})
	}
	for i, f := range append(members, field{"records", d.records()}) {
		d.member(f, i == 0)
	}
	if d.w.err != nil {
		return d.w.err
	}
	if err := d.store.CloseClean(); err != nil {
		return err
	}
	headers, err := indexHeaders(d.disk, d.params)
	if err != nil {
		return err
	}
	after, err := state(d.disk, d.params, true)
	if err != nil {
		return err
	}
	d.member(field{"indexFiles", headers}, false)
	d.member(field{"after", after}, false)
	d.w.text("\n}\n")
	return d.w.flush()
}

// collectKeys reads the log once for its keys: the answers stand before the records.
func (d *dumper) collectKeys() error {
	if d.NoIndex {
		return nil
	}
	w := store.Walk{Log: d.store.Log, Queues: d.store.Queues}
	_, _, err := w.Run(max(0, d.store.Log.Min()), func(it *store.Item) error {
		d.read.add(int64(it.To - it.From))
		if it.Kind == store.ItemRecord {
			d.keys.addRecord(&it.Record)
		}
		return nil
	})
	if err == nil && d.Manifest != "" {
		err = d.keys.addManifest(d.Manifest)
	}
	return err
}

func (d *dumper) records() stream {
	return stream{none: d.store.Log.Min() < 0, each: func(yield func(any) error) error {
		return walkRecords(d.store, &d.read, yield)
	}}
}

// member writes one member of the outermost object.
func (d *dumper) member(f field, first bool) {
	if !first {
		d.w.text(",")
	}
	d.w.line(1)
	d.w.quoted(f.name)
	d.w.text(":")
	d.w.value(f.value, 1)
}
