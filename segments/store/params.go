package store

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

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
	MultiDispatch         bool   // rebuild the queues of INNER_MULTI_DISPATCH too (enableMultiDispatch and enableLmq)
	DelayLevels           string // default: RocketMQ's 18 levels (messageDelayLevel)
	QuarantineBytes       int64  // most that quarantine/ may hold, default 1 GiB
}

// Defaults are RocketMQ's parameters for a store in dir.
func Defaults(dir string) Params {
	return Params{Dir: dir, CheckCRC: true, MessageIndex: true}.withDefaults()
}

func (p Params) withDefaults() Params {
	number := func(n *int64, byDefault int64) {
		if *n == 0 {
			*n = byDefault
		}
	}
	if p.CommitLogDir == "" {
		p.CommitLogDir = path.Join(p.Dir, "commitlog")
	}
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
		p.DelayLevels = DefaultDelayLevels
	}
	return p
}

// Validate reports all problems; the error wraps ErrParams.
func (p Params) Validate() error {
	p = p.withDefaults()
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
	if _, err := ParseDelayLevels(p.DelayLevels); err != nil {
		bad("DelayLevels: %w", err)
	}
	for _, err := range []error{p.queueOptions().Validate(), p.indexParams(nil).Validate()} {
		if err != nil {
			bad("%w", err)
		}
	}
	return errors.Join(errs...)
}

func (p Params) queueOptions() consumequeue.Options {
	return consumequeue.Options{FileBytes: p.ConsumeQueueFileBytes, MaxOpenFiles: p.MaxOpenFiles}
}

func (p Params) indexParams(now func() time.Time) index.Params {
	return index.Params{Slots: p.IndexSlots, Entries: p.IndexEntries, Now: now}
}

// The files of a store beside the commit log (spec/store.md §1.1).

// LockPath is the file whose lock says that the store is open.
func (p Params) LockPath() string { return path.Join(p.Dir, "lock") }

// AbortPath is the file that exists while the store is open.
func (p Params) AbortPath() string { return path.Join(p.Dir, "abort") }

// CheckpointPath is the checkpoint.
func (p Params) CheckpointPath() string { return path.Join(p.Dir, "checkpoint") }

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
	// Progress, if not nil, hears from time to time how far a long step is. Called by Open's goroutine.
	Progress func(Progress)
	// Events, if not nil, hears each finding at once; all are in Store.Report too. Called by Open's goroutine.
	Events func(Event)
	// Now names new index files and quarantine folders; nil: time.Now.
	Now func() time.Time
}

// Progress tells how far Open is.
type Progress struct {
	Step        string // "scan" or "dispatch"
	Done, Total int64  // bytes of the commit log
}

// DefaultDelayLevels are RocketMQ's (spec/store.md §1.3, messageDelayLevel).
const DefaultDelayLevels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

// ErrDelayLevels: a list of delay levels cannot be read.
var ErrDelayLevels = errors.New("invalid delay levels")

var delayUnitsMs = map[byte]int64{'s': 1000, 'm': 60_000, 'h': 3_600_000, 'd': 86_400_000}

// DelayLevels are the delays of levels 1, 2, … in ms. The value is immutable.
type DelayLevels []int64

// ParseDelayLevels reads a list like "1s 5m 2h 1d", level 1 first (spec/store.md §10.1).
func ParseDelayLevels(text string) (DelayLevels, error) {
	var levels DelayLevels
	for _, word := range strings.Fields(text) {
		unit := delayUnitsMs[word[len(word)-1]]
		n, err := strconv.ParseInt(word[:len(word)-1], 10, 64)
		if unit == 0 || err != nil || n < 0 || n > math.MaxInt64/unit {
			return nil, fmt.Errorf("%w: %q is no number with s, m, h or d", ErrDelayLevels, word)
		}
		levels = append(levels, n*unit)
	}
	return levels, nil
}

// Delay returns the delay of a level in ms, negative when there is no such level, and the highest level. It is what
// record.Record.TagsCode asks for.
func (l DelayLevels) Delay(level int) (ms int64, highest int) {
	if level < 1 || level > len(l) {
		return -1, len(l)
	}
	return l[level-1], len(l)
}
