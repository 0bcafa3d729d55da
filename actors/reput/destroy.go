package reput

import (
	"errors"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
)

// destroy deletes a queue, unless it has grown since.
func (a *QueueBuilder) destroy(m messages.DestroyQueue) {
	if a.failed != nil {
		m.Refuse(a.failed)
		return
	}
	q := a.cfg.Table.Lookup(m.Queue)
	if q == nil {
		m.Answer.Complete(struct{}{}, nil)
		return
	}
	next, end := q.GoesOn()
	if m.Below > 0 && end > m.Below {
		m.Answer.Complete(struct{}{}, nil)
		return
	}
	if st := a.queues[m.Queue]; st != nil {
		a.forget(st)
	}
	err := q.Destroy()
	if err == nil && m.KeepRange {
		if q, err = a.cfg.Table.Create(m.Queue); err == nil {
			err = q.Begin(next)
		}
	}
	m.Answer.Complete(struct{}{}, err)
}

// destroyTopic deletes the queues of a topic.
func (a *QueueBuilder) destroyTopic(m messages.DestroyTopic) {
	if a.failed != nil {
		m.Refuse(a.failed)
		return
	}
	if m.Below < 0 {
		a.reborn[m.Topic] = true
		m.Answer.Complete(struct{}{}, nil)
		return
	}
	delete(a.reborn, m.Topic)
	old := a.cfg.Table.InOrder(func(q *consumequeue.Queue) bool {
		return q.Key().Topic == m.Topic && ShardOf(q.Key(), a.cfg.Shards) == a.cfg.Shard && q.PhysicalEnd() <= m.Below
	})
	var errs []error
	for _, q := range old {
		st := a.queues[q.Key()]
		if st != nil {
			a.forget(st)
		}
		err := q.Destroy()
		if errs = append(errs, err); err == nil && st != nil && st.repair != nil {
			errs = append(errs, a.readFrom(st, m.Below))
		}
	}
	a.scanNext()
	m.Answer.Complete(struct{}{}, errors.Join(errs...))
}

// readFrom reads what a deleted queue has become from the log: while it was under repair nothing was put into it, so its topic's new
// life may have begun unnoticed.
func (a *QueueBuilder) readFrom(old *queueState, from messages.PhysicalOffset) error {
	st, err := a.state(old.key)
	if err != nil {
		return err
	}
	st.repair = &repair{}
	if old.repair.end > from {
		st.lacks(old.repair.next, old.repair.end)
	}
	if a.queueRepair(st); a.cfg.Log != nil {
		st.repair.from = max(st.repair.from, from)
	}
	return nil
}

// beginAnew replaces a queue of a topic that is being deleted by one that begins with the record, whose offset is 0.
func (a *QueueBuilder) beginAnew(st *queueState, r *messages.DispatchRequest) error {
	if err := st.queue.Destroy(); err != nil {
		return err
	}
	a.forget(st)
	next, err := a.state(r.Queue)
	if err != nil {
		return err
	}
	return a.appendUnit(next, r)
}

// forget drops what is known of a queue that is being deleted.
func (a *QueueBuilder) forget(st *queueState) {
	delete(a.queues, st.key)
	delete(a.stuck, st.key)
	a.forgetMet()
	a.flush.forget(st)
	if st.repair != nil {
		st.repair.refuse(consumequeue.ErrDestroyed)
		a.unqueue(st)
	}
}
