package reput

import (
	"errors"
	"hash/maphash"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
)

// shardSeed makes all shards of a process agree.
var shardSeed = maphash.MakeSeed()

// ShardOf tells which of so many shards builds a queue, in this process: whom to send a RebuildQueue or DestroyQueue.
func ShardOf(key messages.QueueKey, shards int) int {
	if shards < 2 {
		return 0
	}
	return int(maphash.Comparable(shardSeed, key) % uint64(shards))
}

// build builds one batch and answers it.
func (a *QueueBuilder) build(d *messages.Delivery) {
	a.progress = 0
	for a.failed == nil {
		err := a.buildRest(d.Batch)
		if err == nil {
			break
		}
		a.panicked(err)
	}
	if a.failed != nil {
		d.Built(a.failed)
		return
	}
	if n := len(d.Batch.Requests); n > 0 {
		a.builtMs = d.Batch.Requests[n-1].StoreTimestampMs
	}
	a.built = max(a.built, d.Batch.UpTo)
	a.tellListeners()
	a.armTick()
	d.Built(nil)
}

// buildRest builds what is left of a batch; a panic leaves the rest, with the request that panicked in front.
func (a *QueueBuilder) buildRest(b *messages.DispatchBatch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = recovered("build consume queues", r)
		}
	}()
	for a.progress < len(b.Requests) {
		next := b.Requests[a.progress:]
		next = next[:min(len(next), len(a.soon))]
		a.fetch(next)
		a.strangers = 0
		for i := range next {
			a.buildOne(&next[i], a.soon[i])
			a.progress++
		}
		a.scattered = a.strangers > len(next)/2
	}
	return nil
}

// panicked lets a first panic pass, so that the batch is tried again.
func (a *QueueBuilder) panicked(err error) {
	var p *panicError
	if errors.As(err, &p) {
		a.cfg.Logger.Error().Err(err).Bytes("stack", p.stack).Msg("building consume queues panicked")
	}
	now := time.Now()
	if !a.lastPanic.IsZero() && now.Sub(a.lastPanic) <= panicWindow {
		a.fail(err)
		return
	}
	a.lastPanic = now
}

// buildOne puts the unit of one record into its queue, which may have been looked up.
func (a *QueueBuilder) buildOne(r *messages.DispatchRequest, st *queueState) {
	if st == nil && !a.mine(r) {
		return
	}
	last := &a.last[uint32(r.Queue.QueueID)%uint32(len(a.last))]
	was := *last
	if st == nil && was != nil && was.key == r.Queue {
		st = was
	}
	if st == nil || st != was {
		a.strangers++
	}
	if st == nil {
		var err error
		if st, err = a.state(r.Queue); err != nil {
			a.refused++
			a.refuseRecord(r, a.refused, err)
			return
		}
	}
	*last = st
	if st.repair != nil {
		st.lacks(r.QueueOffset+1, r.End())
		return
	}
	if err := a.appendUnit(st, r); err != nil {
		a.misfit(st, r, err)
	}
}

// mine tells whether a record goes into a queue, and that queue is the shard's.
func (a *QueueBuilder) mine(r *messages.DispatchRequest) bool {
	return messages.TakesQueueOffset(r.SysFlag) && ShardOf(r.Queue, a.cfg.Shards) == a.cfg.Shard
}

// state returns what is known of a queue, which is made when it is not there.
func (a *QueueBuilder) state(key messages.QueueKey) (*queueState, error) {
	if st := a.queues[key]; st != nil {
		return st, nil
	}
	q, err := a.cfg.Table.Create(key)
	if err != nil {
		return nil, err
	}
	st := &queueState{key: key, queue: q}
	a.queues[key] = st
	return st, nil
}

// appendUnit appends a record's unit; afterwards it is readable. One that the queue has already is no error.
func (a *QueueBuilder) appendUnit(st *queueState, r *messages.DispatchRequest) error {
	u := consumequeue.Unit{PhysicalOffset: r.PhysicalOffset, Size: r.SizeBytes, TagsCode: r.TagsCode}
	appended, err := a.toQueue(st.queue, u, r)
	if err != nil || !appended {
		return err
	}
	a.flush.pending++
	a.flush.touch(st)
	for i := range a.cfg.Listeners {
		if wants := a.cfg.Listeners[i].Wants; wants == nil || wants(r.Queue) {
			a.arrivals[i] = append(a.arrivals[i], messages.Arrival{
				Queue: r.Queue, QueueOffset: r.QueueOffset, TagsCode: r.TagsCode, StoreTimestampMs: r.StoreTimestampMs,
			})
		}
	}
	return nil
}

// toQueue appends a unit. Those of delayed messages, which carry their time, and those of further queues stand for themselves.
func (a *QueueBuilder) toQueue(q *consumequeue.Queue, u consumequeue.Unit, r *messages.DispatchRequest) (bool, error) {
	if r.Further || r.Queue.Topic == messages.TopicSchedule {
		return q.Append(u, r.QueueOffset)
	}
	return q.AppendExtended(u, r.QueueOffset, r.StoreTimestampMs)
}

// misfit handles a record whose unit was not taken.
func (a *QueueBuilder) misfit(st *queueState, r *messages.DispatchRequest, err error) {
	switch {
	case errors.Is(err, consumequeue.ErrGap):
		a.startRepair(st, r, err)
		return
	case a.isReborn(st, r, err):
		if err = a.beginAnew(st, r); err == nil {
			return
		}
	}
	st.refused++
	a.refuseRecord(r, st.refused, err)
}

// isReborn tells whether a record was refused because it begins a queue anew: the writer counts from 0 again, and what the queue
// has is of the topic's life before.
func (a *QueueBuilder) isReborn(st *queueState, r *messages.DispatchRequest, err error) bool {
	return errors.Is(err, consumequeue.ErrOrder) && r.QueueOffset == 0 && r.PhysicalOffset >= st.queue.PhysicalEnd() &&
		(a.cfg.Follower || a.reborn[r.Queue.Topic])
}

// refuseRecord reports a record that is left out, less and less often.
func (a *QueueBuilder) refuseRecord(r *messages.DispatchRequest, count int64, err error) {
	if count&(count-1) != 0 {
		return
	}
	a.report(messages.QueueProblem{
		Kind: messages.RecordRefused, Queue: r.Queue, QueueOffset: r.QueueOffset, PhysicalOffset: r.PhysicalOffset,
		Count: count, Err: err,
	})
}

func (a *QueueBuilder) report(p messages.QueueProblem) {
	log := a.cfg.Logger.Warn()
	if p.Kind == messages.QueueStuck {
		log = a.cfg.Logger.Error()
	}
	log.Err(p.Err).Stringer("problem", p.Kind).Str("topic", p.Queue.Topic).Int32("queue", p.Queue.QueueID).
		Int64("queue_offset", int64(p.QueueOffset)).Int64("offset", int64(p.PhysicalOffset)).
		Msg("a record does not fit into its consume queue")
	if a.cfg.OnProblem != nil {
		a.cfg.OnProblem(p)
	}
}

// tellListeners sends what has become readable to those whom it concerns. The slices are theirs.
func (a *QueueBuilder) tellListeners() {
	for i, arrivals := range a.arrivals {
		if len(arrivals) > 0 {
			a.arrivals[i] = nil
			a.cfg.Listeners[i].Peer.Send(messages.MessagesArrived{Arrivals: arrivals})
		}
	}
}
