package allocator

import (
	"errors"
	"fmt"
	"math"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/segments/vfs/offheap"
)

// ErrNoBuffer: every write buffer of the transient store pool is in use, and segments may not do without
// (fastFailIfNoBufferInStorePool).
var ErrNoBuffer = errors.New("no free buffer in the transient store pool")

// pool is the write buffers of segments (spec/store.md §3.8). They are made when they are needed first, and stay.
type pool struct {
	free   []*offheap.Memory
	made   int
	warned bool // that they can't be locked in memory
}

// borrow takes a write buffer for a new segment. Without a free one it does without, nil, unless that is refused.
func (a *Actor) borrow() (*offheap.Memory, error) {
	p := &a.pool
	if n := len(p.free); n > 0 {
		m := p.free[n-1]
		p.free = p.free[:n-1]
		return m, nil
	}
	if p.made < a.cfg.PoolBuffers {
		m, err := offheap.New(a.cfg.SegmentBytes)
		if err != nil {
			return nil, err
		}
		p.made++
		p.lock(m, a.cfg.Log)
		return m, nil
	}
	if a.cfg.PoolBuffers > 0 && a.cfg.PoolFailFast {
		return nil, fmt.Errorf("%d buffers of %d bytes are in use: %w", p.made, a.cfg.SegmentBytes, ErrNoBuffer)
	}
	return nil, nil
}

// lock keeps a buffer in memory. That this is not allowed costs speed at worst: it is told once.
func (p *pool) lock(m *offheap.Memory, log zerolog.Logger) {
	if err := m.Lock(); err != nil && !p.warned {
		p.warned = true
		log.Warn().Err(err).Msg("write buffers can't be locked in memory (see ulimit -l, RLIMIT_MEMLOCK): they may be paged out")
	}
}

// takeBack undoes borrow: nobody has used the buffer, if there is one.
func (a *Actor) takeBack(m *offheap.Memory) {
	if m != nil {
		a.pool.free = append(a.pool.free, m)
	}
}

// returned takes a buffer back, zeroed: the end of a segment behind its last record is not written by anybody.
func (a *Actor) returned(m actors.BufferFree) {
	clear(m.Buffer.Bytes())
	a.pool.free = append(a.pool.free, m.Buffer)
	a.retry(math.MaxInt64)
}

// close frees what is not in use; what is, its segment frees.
func (p *pool) close(log zerolog.Logger) {
	for _, m := range p.free {
		if err := m.Free(); err != nil {
			log.Warn().Err(err).Msg("a write buffer could not be freed")
		}
	}
	p.free = nil
}
