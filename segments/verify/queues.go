package verify

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/consumequeue/ext"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// partUnits is how many units of a queue are read at once.
const partUnits = 32

// queueState is what is known of a queue while the log is read.
type queueState struct {
	key  messages.QueueKey
	q    *consumequeue.Queue // nil: there is none
	next messages.QueueOffset

	units   []consumequeue.Unit
	unitsAt messages.QueueOffset

	missing   int64 // records without a unit
	missingAt messages.PhysicalOffset
	wrong     int64 // units that name something else
	wrongAt   messages.QueueOffset
	why       string
}

// lookAtQueueFiles reports files of a wrong name or size, which keep RocketMQ from starting (spec/store.md §1.1).
func (v *verifier) lookAtQueueFiles() error {
	topics, err := vfs.ListIfThere(v.disk, v.params.ConsumeQueueDir())
	if err != nil {
		return err
	}
	for _, topic := range topics {
		dir := path.Join(v.params.ConsumeQueueDir(), topic.Name)
		if !topic.Dir {
			v.found(PartQueues, dir, 0, "is no folder of a topic")
			continue
		}
		queues, err := vfs.ListIfThere(v.disk, dir)
		if err != nil {
			return err
		}
		for _, q := range queues {
			if err := v.lookAtQueue(path.Join(dir, q.Name), q); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) lookAtQueue(dir string, q vfs.Entry) error {
	if !q.Dir {
		v.found(PartQueues, dir, 0, "is no folder of a queue")
		return nil
	}
	files, err := vfs.ListIfThere(v.disk, dir)
	for _, f := range files {
		want := v.params.ConsumeQueueFileBytes
		start, nameErr := segments.ParseName(f.Name)
		switch {
		case nameErr != nil || f.Dir || start%want != 0:
			v.doubtFrom(0)
			v.found(PartQueues, path.Join(dir, f.Name), 0, "is no file of a queue")
		case f.Size != want:
			v.doubtFrom(0)
			v.found(PartQueues, path.Join(dir, f.Name), min(f.Size, want), "%d bytes instead of %d", f.Size, want)
		}
	}
	return err
}

// raiseMins leaves out what has expired of topics with a retention of their own: it need not be there, and may be.
func (v *verifier) raiseMins() (err error) {
	v.queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		if begin := v.floors.Begin(key.Topic); begin > 0 && err == nil {
			err = q.SetMin(begin)
		}
	})
	return err
}

// record looks for a record in its queues.
func (v *verifier) record(r *record.Record) error {
	if !messages.TakesQueueOffset(r.SysFlag) || r.QueueOffset < 0 {
		return nil
	}
	tags := r.TagsCode(v.delays.Millis)
	if !v.floors.Gone(r.Topic, r.PhysicalOffset) {
		if err := v.unit(messages.QueueKey{Topic: string(r.Topic), QueueID: r.QueueID}, r, r.QueueOffset, tags); err != nil {
			return err
		}
	}
	if !v.params.MultiDispatch {
		return nil
	}
	for key, at := range record.MultiQueues(r) {
		if v.floors.Gone([]byte(key.Topic), r.PhysicalOffset) {
			continue
		}
		if err := v.unit(key, r, at, tags); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) state(key messages.QueueKey) (*queueState, error) {
	s := v.states[key]
	if s == nil {
		s = &queueState{key: key, q: v.queues.Lookup(key)}
		v.states[key] = s
		if s.q != nil {
			at, err := s.q.Search(v.begin())
			if err != nil {
				return nil, err
			}
			s.next = max(s.q.Min(), at)
		}
	}
	return s, nil
}

// unit compares the unit at a record's queue offset with it.
func (v *verifier) unit(key messages.QueueKey, r *record.Record, at messages.QueueOffset, tags int64) error {
	s, err := v.state(key)
	if err != nil {
		return err
	}
	if s.q == nil || at < s.q.Min() || at >= s.q.Max() {
		// The topic may have been deleted and made again since: then the queue has later records at lower offsets.
		if s.q == nil || at < s.q.Min() || r.PhysicalOffset >= s.q.PhysicalEnd() {
			v.miss(s, r.PhysicalOffset)
		}
		return nil
	}
	u, err := s.unitAt(at)
	var damage *segments.CorruptionError
	switch {
	case errors.As(err, &damage):
		v.miss(s, r.PhysicalOffset)
		return nil
	case err != nil:
		return err
	case u.PhysicalOffset == r.PhysicalOffset && u.Size == r.Size:
		if u.TagsCode != tags && !ext.IsAddress(u.TagsCode) && !r.Lost() {
			v.doubtFrom(r.PhysicalOffset)
			s.mistake(at, "a unit has another tag than its record")
		}
	case u.PhysicalOffset > r.PhysicalOffset && store.Names(v.log, u, key, at) == nil:
		return nil // made again
	default:
		v.doubtFrom(r.PhysicalOffset)
		s.mistake(at, "a unit names something else than its record")
	}
	if err := v.unnamed(s, at); err != nil {
		return err
	}
	s.next = max(s.next, at+1)
	return nil
}

// unnamed looks at the units in front of a queue offset that no record of the log has met.
func (v *verifier) unnamed(s *queueState, to messages.QueueOffset) error {
	for ; s.next < to; s.next++ {
		u, err := s.unitAt(s.next)
		var damage *segments.CorruptionError
		if err != nil && !errors.As(err, &damage) {
			return err
		}
		if err != nil || !store.StandsForLost(u) && !v.inLost(u.PhysicalOffset) {
			v.doubtFrom(u.PhysicalOffset)
			if err == nil && v.ended && int64(u.PhysicalOffset) >= v.LogEnd { // its record is gone
				v.lostTail[v.placeOf(PartQueues, v.queueDir(s.key))] = true
			}
			s.mistake(s.next, "a unit names no record")
		}
	}
	return nil
}

func (v *verifier) miss(s *queueState, at messages.PhysicalOffset) {
	v.doubtFrom(at)
	if s.missing == 0 {
		s.missingAt = at
	}
	s.missing++
}

func (s *queueState) mistake(at messages.QueueOffset, why string) {
	if s.wrong == 0 {
		s.wrongAt, s.why = at, why
	}
	s.wrong++
}

// unitAt reads a unit, and some behind it for the next calls.
func (s *queueState) unitAt(at messages.QueueOffset) (consumequeue.Unit, error) {
	if i := at - s.unitsAt; i >= 0 && i < messages.QueueOffset(len(s.units)) {
		return s.units[i], nil
	}
	if s.units == nil {
		s.units = make([]consumequeue.Unit, partUnits)
	}
	n, err := s.q.Read(at, s.units[:partUnits])
	s.units, s.unitsAt = s.units[:n], at
	if err == nil && n == 0 {
		err = consumequeue.ErrAboveMax
	}
	if err != nil {
		return consumequeue.Unit{}, err
	}
	return s.units[0], nil
}

// finishQueues looks at the units that are left, and reports.
func (v *verifier) finishQueues() error {
	var err error
	v.queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		if err != nil {
			return
		}
		v.Units += int64(q.Max() - q.Min())
		var s *queueState
		if s, err = v.state(key); err == nil {
			err = v.unnamed(s, q.Max())
		}
	})
	keys := slices.SortedFunc(maps.Keys(v.states), func(a, b messages.QueueKey) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.QueueID, b.QueueID))
	})
	for _, key := range keys {
		v.reportQueue(v.states[key])
	}
	return err
}

func (v *verifier) queueDir(key messages.QueueKey) string {
	return path.Join(v.params.ConsumeQueueDir(), key.Topic, strconv.Itoa(int(key.QueueID)))
}

func (v *verifier) reportQueue(s *queueState) {
	dir := v.queueDir(s.key)
	if s.q != nil {
		if err := s.q.Damaged(); err != nil && !errors.Is(err, segments.ErrSize) && !errors.Is(err, segments.ErrName) {
			v.doubtFrom(0)
			v.foundError(PartQueues, dir, 0, err)
		} else if err := s.q.Verify(); err != nil {
			v.doubtFrom(0)
			v.foundError(PartQueues, dir, 0, err)
		}
	}
	inFile := func(at messages.QueueOffset) (string, int64) {
		bytes, size := int64(at)*consumequeue.UnitBytes, v.params.ConsumeQueueFileBytes
		return path.Join(dir, segments.Name(bytes-bytes%size)), bytes % size
	}
	if s.wrong > 0 {
		file, offset := inFile(s.wrongAt)
		v.found(PartQueues, file, offset, "%s: queue offset %d, %d units in all", s.why, s.wrongAt, s.wrong)
	}
	if s.missing > 0 {
		file, offset := dir, int64(0)
		if s.q != nil {
			file, offset = inFile(s.q.Max())
		}
		v.found(PartQueues, file, offset, "%d records have no unit, the first is at %d in the log", s.missing, s.missingAt)
	}
}
