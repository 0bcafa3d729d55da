package store

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/record"
)

// maxKeys bounds what is kept for the index while the log is scanned, 12 bytes each; records behind are read again.
const maxKeys = 8 << 20

// maxOwn is how many of them the walk has before it packs them.
const maxOwn = 1 << 16

// keptKeys are the keys of scanned records, for an index that is going to lack them: without them the log would be read twice.
type keptKeys struct {
	from, to messages.PhysicalOffset // of all records in [from, to); from is negative: none are kept
	all      []*index.Packed         // in the order of the log
	records  int64                   // that have keys
	own      index.Keys              // those that the walk has met and that are not among all yet
	count    int
	limit    int
	full     atomic.Bool
}

// newKeptKeys keeps the keys of records from where the index may lack them, when the log is scanned from a place on.
func (p *planner) newKeptKeys(scan messages.PhysicalOffset) *keptKeys {
	k := &keptKeys{from: -1, limit: p.limits.keys}
	if p.index != nil && !p.unbuilt && p.log.View().Len() > 0 {
		if cut := p.indexCut(); cut != proven {
			k.from = max(scan, cut, 0)
		}
	}
	k.to = k.from
	return k
}

// wants tells whether the keys of a record are kept. Readers of stretches ask too.
func (k *keptKeys) wants(r *record.Record) bool {
	return k.from >= 0 && r.PhysicalOffset >= k.from && !k.full.Load() &&
		messages.TransactionOf(r.SysFlag) != messages.SysFlagTransactionRollback
}

// walked notes what the walk has met.
func (k *keptKeys) walked(it *Item) {
	if k.from < 0 || it.From < k.from || k.full.Load() {
		return
	}
	if it.Kind == ItemRecord && k.wants(&it.Record) {
		r := &it.Record
		before := k.own.Len()
		keys, uniqKey, _ := messages.ViewProperties(r.Properties).Dispatched()
		if k.own.Add(r.Topic, uniqKey, keys, r.PhysicalOffset, r.StoreTimestampMs) {
			k.records++
		}
		k.count += k.own.Len() - before
		if k.own.Len() >= maxOwn {
			k.packOwn()
		}
	}
	k.to = it.To
	k.full.Store(k.count >= k.limit)
}

// packOwn packs what the walk has met.
func (k *keptKeys) packOwn() {
	if k.own.Len() > 0 {
		own := k.own.Take()
		k.all = append(k.all, &own)
	}
}

// take notes what a stretch has met.
func (k *keptKeys) take(s *stretch) {
	k.packOwn()
	if k.from < 0 || s.to <= k.from || k.full.Load() {
		return
	}
	if k.count += s.keys.Len(); k.count > k.limit {
		k.full.Store(true)
		return
	}
	k.all = append(k.all, &s.keys)
	k.records += s.indexed
	k.to = s.to
}

// putKept builds the index as far as the scan has kept keys. Where nothing is damaged the log is as it was scanned.
func (d *dispatcher) putKept(p *Plan) error {
	k := d.kept
	if k == nil || d.Index == nil || len(p.Holes) > 0 || k.from < 0 || k.to <= k.from || k.from < d.indexFrom || k.from <= d.indexEnd {
		return nil
	}
	if d.indexFrom < k.from {
		// A marker may be of another log, which was cut since: where no record begins, the one around it is in neither part.
		if d.align(p, k.from) != k.from {
			return nil
		}
		if err := d.walk(p, d.indexFrom, k.from, d.indexItem); err != nil {
			return err
		}
	}
	if k.records > 0 {
		d.firstIndexed = min(d.firstIndexed, k.from)
	}
	k.packOwn()
	for i, keys := range k.all {
		if d.Index == nil {
			break
		}
		if err := d.indexOrNone(d.Index.BuildKeys(keys)); err != nil {
			return fmt.Errorf("dispatch: %w", err)
		}
		k.all[i] = nil
	}
	d.Report.Dispatched += k.records
	d.indexFrom = k.to
	return nil
}

// indexItem is item for the index alone.
func (d *dispatcher) indexItem(it *Item) error {
	if it.Kind != ItemRecord {
		return nil
	}
	before := d.Report.Dispatched
	err := d.toIndex(&it.Record)
	if d.Report.Dispatched > before {
		d.firstIndexed = min(d.firstIndexed, it.From)
	}
	return err
}

// counted tells whether a record was counted when it was indexed.
func (d *dispatcher) counted(r *record.Record) bool {
	return r.PhysicalOffset >= d.firstIndexed && r.PhysicalOffset < d.indexFrom && Indexed(r)
}

// noneIndexed is the place of the first record that was indexed while none was.
const noneIndexed = messages.PhysicalOffset(math.MaxInt64)
