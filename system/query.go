package system

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
)

// offsetPool recycles what queries find in the index.
var offsetPool = sync.Pool{New: func() any { return new([]messages.PhysicalOffset) }}

// QueryRecords is Query whose records lie in the log itself, uncopied, as those of a get: the caller releases the result, when
// the error is nil, once. What is checked is what Query checks. The status is FOUND or NO_MATCHED_MESSAGE, the offsets of the result have no meaning.
func (s *Store) QueryRecords(ctx context.Context, q messages.QueryMessage) (*messages.GetResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.readable(); err != nil {
		return nil, err
	}
	buf := offsetPool.Get().(*[]messages.PhysicalOffset)
	defer offsetPool.Put(buf)
	var err error
	if *buf, err = s.indexed(ctx, (*buf)[:0], q); err != nil {
		return nil, err
	}
	g := get{store: s, r: getPool.Get().(*messages.GetResult)}
	g.r.OnRelease, g.r.Status = recycleResult, messages.NoMatchedMessage
	if err := g.collect(*buf, &q); err != nil {
		g.r.Release()
		return nil, fmt.Errorf("query %s for key %s: %w", q.Topic, q.Key, err)
	}
	return g.r, nil
}

// collect takes the records at these places that a query asks for. A fault in the map is its error.
func (g *get) collect(offsets []messages.PhysicalOffset, q *messages.QueryMessage) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = vfs.FaultError("read the commit log", r)
		}
	}()
	for _, off := range offsets {
		if err := g.store.committed(off); err != nil {
			return err
		}
		b := g.from(off)
		g.touch(b[:min(len(b), touchBytes)])
		r, kind, err := record.Parse(b, true)
		switch {
		case errors.Is(err, record.ErrBadCRC) || errors.Is(err, record.ErrTorn):
			g.store.unread(off, &segments.CorruptionError{File: g.held.Path(), Offset: g.held.Offset() + int64(off-g.heldAt), Err: err})
			continue
		case err != nil || kind != record.KindMessage || r.PhysicalOffset != off || r.Lost():
			continue // cleaned meanwhile, or a place whose message is lost: recovery has reported it
		}
		if string(r.Topic) == q.Topic && hasKey(messages.ViewProperties(r.Properties), q.Key) &&
			r.StoreTimestampMs >= q.BeginMs && r.StoreTimestampMs <= q.EndMs {
			g.r.Records = append(g.r.Records, b[:r.Size:r.Size])
			g.r.Bytes += int(r.Size)
			g.r.Status = messages.Found
		}
	}
	return nil
}

// touchBytes is how much of a record is fetched at once, before its size is known: most are smaller.
const touchBytes = 1536

// from returns what is readable from a place in the log to the end of its segment, which the result holds; nil when it is not there.
func (g *get) from(off messages.PhysicalOffset) []byte {
	if at := off - g.heldAt; at >= 0 && at < messages.PhysicalOffset(len(g.held.Bytes)) {
		return g.held.Bytes[at:]
	}
	if !g.hold(off) {
		return nil
	}
	return g.held.Bytes
}
