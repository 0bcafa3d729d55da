package system

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/actormq/actormq/messages"
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
	var r record.Record
	for _, off := range offsets {
		if err := g.store.committed(off); err != nil {
			return err
		}
		if !g.hold(off) {
			continue // cleaned meanwhile
		}
		b := g.held.Bytes
		if err := recordAt(&r, g.held, off, true); err != nil {
			g.store.unread(off, err)
			continue
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
