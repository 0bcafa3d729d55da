package allocator

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// Config is what an allocator is made of.
type Config struct {
	Disk         vfs.Disk
	Dir          string // of the commit log
	PrepareDir   string // on the same file system; emptied at start
	SegmentBytes int64
	WindowBytes  int64 // pages prepared ahead of the tail; 0: none
	// WriteZeros has the zeros ahead of the tail written to the disk, so that a sync of what is put there meets blocks that were
	// written before (SYNC_FLUSH). Otherwise they stay in memory, and their pages are populated: nobody waits for a sync.
	WriteZeros bool
	// Warm makes all pages of a segment present, and locks them in memory, of two segments at most (warmMapedFileEnable).
	Warm bool
	// WarmSyncPages is how many pages are made present before the disk is given them, 0: it is given none
	// (flushLeastPagesWhenWarmMapedFile, SYNC_FLUSH).
	WarmSyncPages int
	// PoolBuffers is how many write buffers of a segment's size there may be, 0: segments are written through their maps
	// (transientStorePoolSize). PoolFailFast: no segment is made without one (fastFailIfNoBufferInStorePool).
	PoolBuffers  int
	PoolFailFast bool
	RetryPause   time.Duration // between attempts after a failure
	// Reserved is how much room must be left on the disk for others, in bytes; nil: none.
	Reserved func() int64
	Space    actors.Peer // told messages.SpaceProblem
	Log      zerolog.Logger
}

const (
	defaultRetryPause = time.Second
	slowAllocation    = 100 * time.Millisecond
	reminderInterval  = time.Minute // between lines that say that it still fails
	stepBytes         = 256 << 10   // populated in one call
	atOnceBytes       = 2 << 20     // populated before a segment is handed over: a store is open after a moment
)

// Actor is the segment allocator.
type Actor struct {
	cfg      Config
	self     actors.Peer
	retries  map[int64]actors.SegmentWanted // what could not be made, by segment start
	timer    *time.Timer                    // runs while there is such; nil: not set
	warm     warm
	unwarmed []unwarmed // in the order in which they were made, at most as many as are ahead of the tail
	pool     pool
	steps    steps
	said     time.Time      // when the log was told of a failure; zero: the last attempt has succeeded
	left     map[int64]bool // segments that have their name in the log's folder and were not handed over
}

// retryTick is the allocator's own timer.
type retryTick struct{}

// New returns the actor.
func New(cfg Config) *Actor {
	if cfg.RetryPause <= 0 {
		cfg.RetryPause = defaultRetryPause
	}
	return &Actor{cfg: cfg, retries: map[int64]actors.SegmentWanted{}, left: map[int64]bool{}}
}

// Receive implements actor.Actor.
func (a *Actor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		a.removeDrafts()
	case actors.SegmentWanted:
		a.retry(m.Start) // what is behind is of no use without what is before it
		a.segment(m)
	case messages.SpaceFreed:
		a.retry(math.MaxInt64)
	case retryTick:
		a.timer = nil
		a.retry(math.MaxInt64)
	case warmTick:
		a.warmStep()
	case stepTick:
		a.step(true)
	case actors.BufferFree:
		a.returned(m)
	case actors.WindowWanted:
		a.window(m)
	case *actor.Stopping:
		if a.timer != nil {
			a.timer.Stop()
		}
		if a.steps.timer != nil {
			a.steps.timer.Stop()
		}
		a.pool.close(a.cfg.Log)
	}
}

// retry tries again at once what has failed and begins before end, the first one first: there may be room for one only.
func (a *Actor) retry(end int64) {
	for _, start := range slices.Sorted(maps.Keys(a.retries)) {
		if start < end {
			a.segment(a.retries[start])
		}
	}
}

func (a *Actor) segment(m actors.SegmentWanted) {
	delete(a.retries, m.Start)
	began := time.Now()
	var s *segments.Segment
	err := actors.Protect("make segment", func() (err error) {
		if m.Tail != nil {
			s = m.Tail
			return s.Reserve(m.From, s.Size()-m.From)
		}
		s, err = a.make(m.Start)
		return err
	})
	if err != nil {
		a.failed(m, err)
		return
	}
	if !a.said.IsZero() && len(a.retries) == 0 {
		a.said = time.Time{}
		a.cfg.Space.Send(messages.SpaceProblem{Part: part})
		a.cfg.Log.Info().Str("file", s.Path()).Msg("segments can be made again")
	}
	if took := time.Since(began); took > slowAllocation {
		a.cfg.Log.Warn().Str("file", s.Path()).Dur("took", took).Msg("making a segment was slow")
	}
	if a.cfg.Warm && m.Tail == nil {
		a.toWarm(s)
	}
	m.ReplyTo.Send(actors.SegmentReady{Segment: s, Tail: m.Tail != nil})
	if n := a.firstWindow(s); m.Tail == nil && n > a.atOnce(s) {
		_ = a.ahead(s, a.atOnce(s), n-a.atOnce(s)) // the log was told
	}
}

// part is how the allocator is called in messages.SpaceProblem.
const part = "segment allocator"

// failed answers, and has the attempt repeated. The log is told once, and then now and then.
func (a *Actor) failed(m actors.SegmentWanted, err error) {
	if now := time.Now(); now.Sub(a.said) >= reminderInterval {
		a.said = now
		a.cfg.Log.Error().Err(err).Int64("start", m.Start).Dur("retry_in", a.cfg.RetryPause).
			Msg("making a segment failed: it is tried again until it succeeds")
	}
	if errors.Is(err, vfs.ErrNoSpace) {
		a.cfg.Space.Send(messages.SpaceProblem{Part: part, Err: err})
	}
	m.ReplyTo.Send(actors.SegmentFailed{Start: m.Start, Err: err})
	a.retries[m.Start] = m
	if a.timer == nil {
		a.timer = a.self.After(a.cfg.RetryPause, retryTick{})
	}
}

// room refuses a segment that would take what is reserved for others.
func (a *Actor) room() error {
	if a.cfg.Reserved == nil {
		return nil
	}
	reserved := a.cfg.Reserved()
	if reserved == 0 {
		return nil
	}
	u, err := a.cfg.Disk.Usage(a.cfg.PrepareDir)
	if err == nil && u.FreeBytes < a.cfg.SegmentBytes+reserved {
		return fmt.Errorf("make segment: %d bytes are free in %s, %d are needed beside a reserve of %d: %w",
			u.FreeBytes, a.cfg.PrepareDir, a.cfg.SegmentBytes, reserved, vfs.ErrNoSpace)
	}
	return nil // unknown: the allocation itself tells
}

// removeDrafts deletes what a crash left half made: it may be what fills the disk.
func (a *Actor) removeDrafts() {
	entries, err := vfs.ListIfThere(a.cfg.Disk, a.cfg.PrepareDir)
	for _, e := range entries {
		if _, bad := segments.ParseName(e.Name); bad == nil {
			err = errors.Join(err, a.removeDraft(path.Join(a.cfg.PrepareDir, e.Name)))
		}
	}
	if err != nil {
		a.cfg.Log.Warn().Err(err).Str("dir", a.cfg.PrepareDir).Msg("what an earlier run left half made could not be removed")
	}
}

// make creates a segment beside the log, and moves it in once it is whole.
func (a *Actor) make(start int64) (*segments.Segment, error) {
	name := segments.Name(start)
	draft, final := path.Join(a.cfg.PrepareDir, name), path.Join(a.cfg.Dir, name)
	if a.left[start] {
		if err := a.removeDraft(final); err != nil {
			return nil, err
		}
		delete(a.left, start)
	}
	if _, err := a.cfg.Disk.Stat(final); err == nil {
		return nil, fmt.Errorf("make segment %s: %w", final, fs.ErrExist)
	}
	if err := a.prepareDirs(draft); err != nil {
		return nil, err
	}
	if err := a.room(); err != nil {
		return nil, err
	}
	buffer, err := a.borrow()
	if err != nil {
		return nil, fmt.Errorf("make segment %s: %w", final, err)
	}
	s, err := segments.Create(a.cfg.Disk, draft, start, a.cfg.SegmentBytes)
	if err != nil {
		a.takeBack(buffer)
		return nil, err
	}
	switch {
	case buffer != nil:
		s.Attach(buffer)
	case !a.cfg.Warm && a.cfg.WindowBytes > 0:
		s.WriteAhead(0)
	}
	if err := a.moveIn(s, draft, final); err != nil {
		a.takeBack(s.Detach())
		s.Retire(nil)
		return nil, errors.Join(fmt.Errorf("make segment %s: %w", final, err), a.removeDraft(draft))
	}
	return s, nil
}

func (a *Actor) prepareDirs(draft string) error {
	for _, dir := range []string{a.cfg.PrepareDir, a.cfg.Dir} {
		if err := a.cfg.Disk.MkdirAll(dir); err != nil {
			return fmt.Errorf("make segment: %w", err)
		}
	}
	return a.removeDraft(draft) // what a crash left
}

func (a *Actor) removeDraft(draft string) error {
	if err := vfs.RemoveIfThere(a.cfg.Disk, draft); err != nil {
		return fmt.Errorf("remove unfinished segment: %w", err)
	}
	return nil
}

func (a *Actor) moveIn(s *segments.Segment, draft, final string) error {
	if err := a.atOncePages(s, a.cfg.WriteZeros); err != nil {
		return err
	}
	if err := s.DataSync(); err != nil { // the length must be durable before the name is
		return err
	}
	if err := a.atOncePages(s, !a.cfg.WriteZeros); err != nil {
		return err
	}
	if err := a.cfg.Disk.Rename(draft, final); err != nil {
		return err
	}
	s.Renamed(final)
	a.left[s.Start()] = true
	if err := a.cfg.Disk.SyncDir(a.cfg.Dir); err != nil {
		return err
	}
	delete(a.left, s.Start())
	return nil
}

// atOnce is how much of its first window a segment has when it is handed over. The rest follows, ahead of the writer.
func (a *Actor) atOnce(s *segments.Segment) int64 { return min(a.firstWindow(s), atOnceBytes) }

func (a *Actor) atOncePages(s *segments.Segment, now bool) error {
	if n := a.atOnce(s); now && n > 0 {
		return a.prepare(s, 0, n)
	}
	return nil
}

// errGone: nobody writes to the segment any more.
var errGone = errors.New("the segment is gone")

// ahead prepares pages of a segment that the writer has. A failure only costs the writer page faults, or slower syncs: it is told to the log.
func (a *Actor) ahead(s *segments.Segment, from, n int64) error {
	if !s.Hold() {
		return errGone
	}
	defer s.Release()
	err := actors.Protect("prepare pages", func() error { return a.prepare(s, from, n) })
	if err != nil {
		a.cfg.Log.Warn().Err(err).Str("file", s.Path()).Int64("from", from).Msg("preparing pages failed")
	}
	return err
}

// prepare goes in steps: during each of them the system lets nobody change the process's memory, and the writer, when it is there
// already, prepares its pages itself. Zeros that are to be on the disk are not waited for.
func (a *Actor) prepare(s *segments.Segment, from, n int64) error {
	for end := from + n; from < end; {
		to := min(from+stepBytes-from%stepBytes, end)
		if err := s.Prepare(to); err != nil {
			return err
		}
		present := s.Populate
		if a.cfg.WriteZeros && !a.cfg.Warm {
			present = s.StartWriteback
		}
		if err := present(from, to-from); err != nil {
			return err
		}
		from = max(to, s.Wrote())
	}
	return nil
}
