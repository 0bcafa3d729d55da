package verify

import (
	"strconv"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/store"
)

// place is what findings are about as a whole: a queue, or the index.
type place string

// noCheckpoint is the place of a checkpoint that is not there yet: a store has its first one after the first flush, some seconds after it was made.
// The start after a crash reads the whole log without one, and writes it.
const noCheckpoint = place(PartCheckpoint)

// placeOf is the place of a finding in a file; empty: no start mends what is there.
func (v *verifier) placeOf(part, file string) place {
	switch part {
	case PartIndex:
		return PartIndex
	case PartQueues:
		if below, ok := strings.CutPrefix(file, v.params.ConsumeQueueDir()+"/"); ok {
			if names := strings.Split(below, "/"); len(names) > 1 {
				return place(names[0] + "/" + names[1])
			}
		}
	}
	return ""
}

// doubtFrom notes that what is derived from the records at and behind a physical offset is not as it should be.
func (v *verifier) doubtFrom(at messages.PhysicalOffset) { v.doubt = min(v.doubt, max(at, 0)) }

// askNextStart finds out which findings the next start mends by itself, by what it would do: it is done in memory, and the parts that it
// has not left whole stay damaged. It is asked of a store that was not closed properly, or has marks: the start after a clean stop reads less,
// and what is missing there has gone since.
func (v *verifier) askNextStart(progress func(done, total int64)) {
	mendable := false
	for p := range v.where {
		mendable = mendable || p != ""
	}
	if !mendable || v.Clean && len(v.Marks) == 0 {
		return
	}
	s, err := store.Open(v.disk, v.params, store.Options{IndexUnbuilt: true})
	after := newVerifier(v.disk, v.params, progress)
	if err == nil {
		v.noteGuessed(s)
		if s.Index != nil {
			after.built = s.Report.IndexFrom
		}
		err = s.Close()
	}
	if err != nil {
		return // a store that can't be opened mends nothing
	}
	after.from = v.log.SegmentStart(v.doubt)
	if err := after.look(); err != nil {
		return
	}
	v.split(after.where)
}

// noteGuessed keeps queues damaged of which the log has nothing: where they go on a start can only guess, by what is left of their files; where nothing
// is left it drops them, as it does with what is left of a topic that was deleted.
func (v *verifier) noteGuessed(s *store.Store) {
	least, stay := max(s.Log.Min(), 0), map[place]bool{}
	s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		p := v.placeOf(PartQueues, v.queueDir(key))
		stay[p] = true
		if q.PhysicalEnd() <= least {
			v.lostTail[p] = true
		}
	})
	for p := range v.where {
		topic, queue, _ := strings.Cut(string(p), "/")
		if _, err := strconv.ParseInt(queue, 10, 32); err != nil {
			continue // no queue: a file that was being made for one, or none of the store's
		}
		if !stay[p] && !v.floors.Gone([]byte(topic), least) {
			v.lostTail[p] = true
		}
	}
}

// split puts what the next start mends apart from what is damaged for good.
func (v *verifier) split(left map[place]int64) {
	mended := func(p place) bool { return p != "" && !v.lostTail[p] && left[p] == 0 }
	var damage []Finding
	for i, f := range v.Findings {
		if mended(v.places[i]) {
			v.NextStart = append(v.NextStart, f)
		} else {
			damage = append(damage, f)
		}
	}
	total, all := int64(0), int64(0)
	for p, n := range v.where {
		all += n
		if mended(p) {
			total += n
		}
	}
	v.Findings = append([]Finding{}, damage...)
	v.MoreNextStart = total - int64(len(v.NextStart))
	v.MoreFindings = all - total - int64(len(damage))
}
