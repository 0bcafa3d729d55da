package store

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/index"
)

// ErrParams: the parameters of a store make no sense.
var ErrParams = errors.New("invalid store parameters")

// Smallest sizes that can work at all.
const (
	minSegmentBytes = 256
	maxSegmentBytes = 1<<31 - 1 // lengths in the format are 31 bits
)

// Params say where a store is and which sizes its files have. A zero number or string stands for its default.
type Params struct {
	Dir                   string // the store's root
	CommitLogDir          string // default: commitlog under Dir
	SegmentBytes          int64  // default 1 GiB (mappedFileSizeCommitLog)
	ConsumeQueueFileBytes int64  // default 6,000,000 (mappedFileSizeConsumeQueue); rounded up to a multiple of 20
	IndexSlots            int32  // default 5,000,000 (maxHashSlotNum)
	IndexEntries          int32  // default 20,000,000 (maxIndexNum)
	MaxOpenFiles          int    // descriptors for consume queues, default 512
	CheckCRC              bool   // compare bodies with their checksums while recovering (checkCRCOnRecover)
	MessageIndex          bool   // keep the index (messageIndexEnable)
	ExtFileBytes          int64  // bytes of an extension file of a consume queue, 0: none are written or read (mappedFileSizeConsumeQueueExt)
	MultiDispatch         bool   // rebuild the queues of INNER_MULTI_DISPATCH too (enableMultiDispatch and enableLmq); see FurtherPath
	Follower              bool   // the log of a slave: it is cut at the first damage, as the master has what follows (brokerRole=SLAVE)
	// CutAt, above 0, is where a longer log is cut: what stands behind it, the start of a record, is not the group's (a replica of a
	// group that has gone on without it).
	CutAt           messages.PhysicalOffset
	DelayLevels     string // default: RocketMQ's 18 levels (messageDelayLevel)
	QuarantineBytes int64  // most that quarantine/ may hold, default 1 GiB
}

// Defaults are RocketMQ's parameters for a store in dir.
func Defaults(dir string) Params {
	return Params{Dir: dir, CheckCRC: true, MessageIndex: true}.WithDefaults()
}

// WithDefaults fills in what is not set.
func (p Params) WithDefaults() Params {
	number := func(n *int64, byDefault int64) {
		if *n == 0 {
			*n = byDefault
		}
	}
	if p.CommitLogDir == "" {
		p.CommitLogDir = path.Join(p.Dir, "commitlog")
	}
	p.CommitLogDir = path.Clean(p.CommitLogDir) // what lies beside it is found by its name: no slash at the end
	number(&p.SegmentBytes, 1<<30)
	number(&p.ConsumeQueueFileBytes, 300_000*consumequeue.UnitBytes)
	number(&p.QuarantineBytes, 1<<30)
	if rest := p.ConsumeQueueFileBytes % consumequeue.UnitBytes; rest > 0 {
		p.ConsumeQueueFileBytes += consumequeue.UnitBytes - rest
	}
	if p.IndexSlots == 0 {
		p.IndexSlots = 5_000_000
	}
	if p.IndexEntries == 0 {
		p.IndexEntries = 20_000_000
	}
	if p.MaxOpenFiles == 0 {
		p.MaxOpenFiles = 512
	}
	if p.DelayLevels == "" {
		p.DelayLevels = messages.DefaultDelayLevels
	}
	return p
}

// Validate reports all problems; the error wraps ErrParams.
func (p Params) Validate() error {
	p = p.WithDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrParams}, args...)...))
	}
	if p.Dir == "" {
		bad("no directory")
	}
	if strings.Contains(p.CommitLogDir, ",") {
		bad("CommitLogDir is %q: a log in several directories is not supported", p.CommitLogDir)
	}
	if p.SegmentBytes < minSegmentBytes || p.SegmentBytes > maxSegmentBytes {
		bad("SegmentBytes is %d, must be in %d..%d", p.SegmentBytes, minSegmentBytes, maxSegmentBytes)
	}
	if p.QuarantineBytes < 0 {
		bad("QuarantineBytes is %d, must not be negative", p.QuarantineBytes)
	}
	if _, err := messages.ParseDelayLevels(p.DelayLevels); err != nil {
		bad("DelayLevels: %w", err)
	}
	for _, err := range []error{p.QueueOptions().Validate(), p.IndexParams(nil).Validate()} {
		if err != nil {
			bad("%w", err)
		}
	}
	return errors.Join(errs...)
}

// QueueOptions are the parameters of the consume queues.
func (p Params) QueueOptions() consumequeue.Options {
	o := consumequeue.Options{FileBytes: p.ConsumeQueueFileBytes, MaxOpenFiles: p.MaxOpenFiles}
	if p.ExtFileBytes > 0 {
		o.ExtDir, o.ExtFileBytes = path.Join(p.Dir, "consumequeue_ext"), p.ExtFileBytes
	}
	return o
}

// IndexParams are the parameters of the index.
func (p Params) IndexParams(now func() time.Time) index.Params {
	return index.Params{Slots: p.IndexSlots, Entries: p.IndexEntries, Now: now}
}

// The files of a store beside the commit log (spec/store.md §1.1).

// LockPath is the file whose lock says that the store is open.
func (p Params) LockPath() string { return path.Join(p.Dir, "lock") }

// AbortPath is the file that exists while the store is open.
func (p Params) AbortPath() string { return path.Join(p.Dir, "abort") }

// CheckpointPath is the checkpoint.
func (p Params) CheckpointPath() string { return path.Join(p.Dir, "checkpoint") }

// CleanStopPath is the manifest of the last clean stop. RocketMQ ignores it.
func (p Params) CleanStopPath() string { return path.Join(p.Dir, "cleanstop.json") }

// FloorsPath notes deleted topics, and where queues without a unit go on. RocketMQ ignores it.
func (p Params) FloorsPath() string { return path.Join(p.Dir, "queuefloors.json") }

// ConsumeQueueDir is the folder of the consume queues.
func (p Params) ConsumeQueueDir() string { return path.Join(p.Dir, "consumequeue") }

// IndexDir is the folder of the index.
func (p Params) IndexDir() string { return path.Join(p.Dir, "index") }

// ConfigDir is the folder of the JSON files.
func (p Params) ConfigDir() string { return path.Join(p.Dir, "config") }

// QuarantineDir is where recovery keeps what it cuts off. RocketMQ ignores it.
func (p Params) QuarantineDir() string { return path.Join(p.Dir, "quarantine") }

// Options say how a store is opened.
type Options struct {
	// ReadOnly works on an overlay in memory: the directory is read and never changed, not even its lock file.
	ReadOnly bool
	// InMemory recovers on an overlay in memory too, but keeps the store locked: nothing is written, and nobody else opens it.
	InMemory bool
	// FullScan reads all of the log, from its beginning, however the store was left.
	FullScan bool
	// LogIsGone opens a store that has consume queues and no commit log: the queues are dropped. Otherwise that is ErrNoLog.
	LogIsGone bool
	// RebuildIndex builds all of the index from the log again.
	RebuildIndex bool
	// IndexUnbuilt cuts the index as recovery does, and leaves out building it, which takes 420 MB of memory a file where nothing is written: Report
	// tells what it would have. For who only looks.
	IndexUnbuilt bool
	// Ballast is a file that only takes room. It is deleted before recovery when hardly any room is left; empty: there is none.
	Ballast string
	// Progress, if not nil, hears from time to time how far a long step is. Called by Open's goroutine.
	Progress func(Progress)
	// Events, if not nil, hears each finding at once; all are in Store.Report too. Called by Open's goroutine.
	Events func(Event)
	// Changing, if not nil, is asked before recovery changes a part of the log: what is ClosedHole or ClosedGap for damage that is written over, CutTail
	// or RemovedSegment for what goes behind the end. An error ends Open, and leaves that part as it is. Called by Open's goroutine.
	Changing func(what Finding, part Span) error
	// OnUnmarked, if not nil, is told that a sync of a consume queue or of the index has failed, and that this could not be noted for the next start: it
	// must be one of the machine, not of the process alone. Called by whoever syncs.
	OnUnmarked func(error)
	// Now names new index files and quarantine folders; nil: time.Now.
	Now func() time.Time

	ahead aheadLimits // tests set them
}

// Progress tells how far Open is.
type Progress struct {
	Step        string // "scan" or "dispatch"
	Done, Total int64  // bytes of the commit log
}
