package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// checkpointMarginMs is how far a checkpoint may lie in front of the log's first record (spec/store.md §5.6).
const checkpointMarginMs = 63_000

// verifier is one look at a store.
type verifier struct {
	Report
	params   store.Params
	progress func(done, total int64)
	disk     vfs.Disk
	delays   messages.DelayLevels

	log    *commitlog.Log
	queues *consumequeue.Table
	index  *index.Set

	states          map[messages.QueueKey]*queueState
	floors          store.Floors
	lost            []store.Span // holes, and records that stand for lost ones
	keys            *keys        // nil: the index is not looked at
	firstMs, lastMs int64        // store timestamps

	from     messages.PhysicalOffset // the start of a segment: what is about records in front of it is not looked at
	built    messages.PhysicalOffset // from here on the index is not looked at: a start has it complete
	doubt    messages.PhysicalOffset // records in front of it have all that belongs to them
	ended    bool                    // the log was read to its end
	places   []place                 // of each finding
	where    map[place]int64         // findings
	lostTail map[place]bool          // places that have something of records that the log has no more, or had: how much is not known
}

// newVerifier looks at a disk that may be changed: opening a table may mend small things.
func newVerifier(overlay vfs.Disk, p store.Params, progress func(done, total int64)) *verifier {
	v := &verifier{
		Report: Report{Dir: p.Dir, Findings: []Finding{}, NextStart: []Finding{}, Marks: []store.Mark{}}, params: p, progress: progress,
		disk: overlay, states: map[messages.QueueKey]*queueState{}, built: math.MaxInt64, doubt: math.MaxInt64,
		where: map[place]int64{}, lostTail: map[place]bool{},
	}
	v.delays, _ = messages.ParseDelayLevels(p.DelayLevels) // Validate has looked at them
	return v
}

// Run looks at a store. The error says that it could not look; damage is in the report. Progress, if not nil, hears of bytes
// of the log.
func Run(disk vfs.Disk, p store.Params, progress func(done, total int64)) (r Report, err error) {
	if err := p.Validate(); err != nil {
		return Report{}, fmt.Errorf("verify: %w", err)
	}
	p = p.WithDefaults()
	overlay := vfs.Overlay(disk)
	v := newVerifier(overlay, p, progress)
	if err = v.look(); err == nil {
		v.askNextStart(progress)
	}
	v.Whole = err == nil && len(v.Findings) == 0
	if err = errors.Join(err, overlay.Close()); err != nil {
		err = fmt.Errorf("verify %s: %w", p.Dir, err)
	}
	return v.Report, err
}

func (v *verifier) look() (err error) {
	defer func() { err = errors.Join(err, v.close()) }()
	for _, step := range []func() error{v.open, v.readLog, v.finishQueues, v.finishIndex, v.readCheckpoint} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) close() error {
	var errs []error
	if v.log != nil {
		errs = append(errs, v.log.Close())
	}
	if v.queues != nil {
		errs = append(errs, v.queues.Close())
	}
	if v.keys != nil {
		v.keys.stop()
	}
	if v.index != nil {
		errs = append(errs, v.index.Close())
	}
	return errors.Join(errs...)
}

// open opens the parts and reports files that do not belong there.
func (v *verifier) open() (err error) {
	if e, err := v.disk.Stat(v.params.Dir); err != nil {
		return err
	} else if !e.Dir {
		return fmt.Errorf("%s is no folder", v.params.Dir)
	}
	abort, err := checkpoint.HasAbort(v.disk, v.params.AbortPath())
	if err != nil {
		return err
	}
	v.Clean = !abort
	if err := v.readMarks(); err != nil {
		return err
	}
	if err := v.openLog(); err != nil {
		return err
	}
	if err := v.lookAtQueueFiles(); err != nil {
		return err
	}
	if v.queues, err = consumequeue.OpenTable(v.disk, v.params.ConsumeQueueDir(), v.params.QueueOptions()); err != nil {
		return err
	}
	v.Queues = int64(v.queues.Len())
	if v.floors, err = store.ReadFloors(v.disk, v.params, v.log); err != nil {
		v.foundError(PartQueues, v.params.FloorsPath(), 0, err)
	}
	if err := v.raiseMins(); err != nil {
		return err
	}
	if v.params.MessageIndex {
		return v.openIndex()
	}
	return nil
}

// readMarks reads what the next start is told of.
func (v *verifier) readMarks() error {
	marks, err := store.Marks(v.disk, v.params)
	for _, m := range marks {
		m.File = v.below(m.File)
		v.Marks = append(v.Marks, m)
	}
	return err
}

func (v *verifier) openLog() error {
	log, foreign, err := commitlog.Open(v.disk, v.params.CommitLogDir, v.params.SegmentBytes)
	if err != nil {
		return err
	}
	v.log, v.LogMin = log, int64(log.Min())
	wrong := 0
	for _, f := range foreign {
		v.found(PartLog, path.Join(v.params.CommitLogDir, f.Name), 0, "%v", f.Reason)
		if errors.Is(f.Reason, segments.ErrSize) && f.Size > 0 {
			wrong++
		}
	}
	if wrong > 1 && log.View().Len() == 0 {
		return fmt.Errorf("%s: %w", v.params.CommitLogDir, foreign[0].Reason)
	}
	return nil
}

// begin is where the log is read from.
func (v *verifier) begin() messages.PhysicalOffset { return max(v.log.Min(), v.from) }

// readLog walks over the whole log.
func (v *verifier) readLog() error {
	w := store.Walk{Log: v.log, Queues: v.queues, CheckCRC: true}
	if v.progress != nil {
		total := int64(v.log.End() - v.log.Min())
		w.Progress = func(at messages.PhysicalOffset) { v.progress(int64(at-v.log.Min()), total) }
	}
	defer func() { v.ended = true }()
	end, stop, err := w.Run(max(0, v.begin()), v.item)
	if err != nil {
		return err
	}
	if v.log.Min() < 0 {
		return nil
	}
	v.LogEnd = int64(end)
	if stop != nil && !errors.Is(stop, record.ErrUnallocated) {
		v.foundError(PartLog, v.params.CommitLogDir, int64(end), stop)
		return nil
	}
	return v.lookBehind(end)
}

func (v *verifier) item(it *store.Item) error {
	switch it.Kind {
	case store.ItemHole:
		v.foundError(PartLog, v.params.CommitLogDir, int64(it.From), it.Err)
		v.lost = append(v.lost, store.Span{From: it.From, To: it.To})
	case store.ItemRecord:
		r := &it.Record
		v.Records++
		if v.firstMs == 0 {
			v.firstMs = r.StoreTimestampMs
		}
		v.lastMs = r.StoreTimestampMs
		if r.Lost() {
			v.LostRecords++
			v.lost = append(v.lost, store.Span{From: it.From, To: it.To})
		}
		if v.keys != nil && it.From < v.built {
			v.keys.record(r)
		}
		return v.record(r)
	}
	return nil
}

// inLost tells whether a place is known to be lost.
func (v *verifier) inLost(at messages.PhysicalOffset) bool {
	for _, s := range v.lost {
		if at >= s.From && at < s.To {
			return true
		}
	}
	return false
}

// lookBehind looks for what is not zero behind the end.
func (v *verifier) lookBehind(end messages.PhysicalOffset) error {
	view := v.log.View()
	for i := range view.Len() {
		seg := view.At(i)
		if seg.Start()+seg.Size() <= int64(end) {
			continue
		}
		from := max(0, int64(end)-seg.Start())
		err := vfs.Guard(seg.Path(), func() error {
			for at, b := range seg.Data()[from:] {
				if b != 0 {
					v.found(PartLog, seg.Path(), from+int64(at), "something stands behind the end of the log, which is at %d", end)
					break
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readCheckpoint compares the checkpoint with the times of the log.
func (v *verifier) readCheckpoint() error {
	if v.Records == 0 {
		return nil
	}
	name := v.params.CheckpointPath()
	if _, err := v.disk.Stat(name); errors.Is(err, fs.ErrNotExist) {
		at := place("") // a clean stop has written it: it has gone since
		if !v.Clean {
			at = noCheckpoint
		}
		v.foundAt(at, PartCheckpoint, name, 0, "is missing")
		return nil
	}
	c, err := checkpoint.Load(v.disk, name)
	var damage *segments.CorruptionError
	if errors.As(err, &damage) {
		v.foundError(PartCheckpoint, name, 0, err)
		return nil
	}
	if err != nil {
		return err
	}
	for i, ms := range []int64{c.PhysicMs, c.LogicsMs} {
		switch {
		case ms > v.lastMs:
			v.found(PartCheckpoint, name, int64(8*i), "its time %d is later than that of the last record, %d", ms, v.lastMs)
		case ms > 0 && ms < v.firstMs-checkpointMarginMs:
			v.found(PartCheckpoint, name, int64(8*i), "its time %d is earlier than that of the first record, %d", ms, v.firstMs)
		}
	}
	return nil
}
