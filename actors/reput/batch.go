package reput

import (
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// Bounds of one batch.
const (
	maxRequests = 512
	maxKeyBytes = 256 << 10 // one record more may go beyond it, by the 32 KiB of its properties
)

// batch is a DispatchBatch with the number of builders that have it.
type batch struct {
	messages.DispatchBatch
	users int
}

func (b *batch) full() bool { return len(b.Requests) >= maxRequests || len(b.Bytes) >= maxKeyBytes }

// add describes one record. What is kept of its properties is copied.
func (b *batch) add(r *record.Record, topic string, delay func(int) (int64, int)) {
	keys, uniqKey, tags := messages.ViewProperties(r.Properties).Dispatched()
	var code int64
	if delay != nil && topic == messages.TopicSchedule {
		code = r.TagsCode(delay)
	} else {
		code = int64(messages.JavaHash(tags))
	}
	b.Requests = append(b.Requests, messages.DispatchRequest{
		Queue:                     messages.QueueKey{Topic: topic, QueueID: r.QueueID},
		QueueOffset:               r.QueueOffset,
		PhysicalOffset:            r.PhysicalOffset,
		PreparedTransactionOffset: r.PreparedTransactionOffset,
		StoreTimestampMs:          r.StoreTimestampMs,
		TagsCode:                  code,
		SizeBytes:                 r.Size,
		SysFlag:                   r.SysFlag,
		Keys:                      b.keep(keys),
		UniqKey:                   b.keep(uniqKey),
	})
}

// addFurther adds what its further queues get of the record that was added last. Its keys are indexed once.
func (b *batch) addFurther(r *record.Record) {
	for key, at := range record.MultiQueues(r) {
		own := b.Requests[len(b.Requests)-1]
		own.Queue, own.QueueOffset, own.Further, own.Keys, own.UniqKey = key, at, true, nil, nil
		b.Requests = append(b.Requests, own)
	}
}

// keep copies into the batch. When the buffer moves, what was kept before stays where it was.
func (b *batch) keep(s string) []byte {
	if s == "" {
		return nil
	}
	from := len(b.Bytes)
	b.Bytes = append(b.Bytes, s...)
	return b.Bytes[from:len(b.Bytes):len(b.Bytes)]
}

// batchPool keeps the dispatcher's batches. There are never more than the largest credit of a builder, and the one that is
// being filled.
type batchPool struct {
	free, sent []*batch
}

func (p *batchPool) take() *batch {
	n := len(p.free)
	if n == 0 {
		return &batch{}
	}
	b := p.free[n-1]
	p.free = p.free[:n-1]
	return b
}

// drop takes a batch back that nobody has.
func (p *batchPool) drop(b *batch) {
	clear(b.Requests) // topics must not be kept alive by an idle dispatcher
	b.Requests, b.Bytes, b.UpTo = b.Requests[:0], b.Bytes[:0], 0
	p.free = append(p.free, b)
}

// lend notes that builders have a batch.
func (p *batchPool) lend(b *batch, users int) {
	b.users = users
	p.sent = append(p.sent, b)
}

// returned notes that one builder is done with a batch. They come back nearly in order, so the search is short.
func (p *batchPool) returned(d *messages.DispatchBatch) {
	for i, b := range p.sent {
		if &b.DispatchBatch != d {
			continue
		}
		if b.users--; b.users == 0 {
			p.sent = append(p.sent[:i], p.sent[i+1:]...)
			p.drop(b)
		}
		return
	}
	panic("BUG: a batch came back that was not sent")
}

// maxTopics bounds how many topic names are kept; beyond, all are forgotten and learned again.
const maxTopics = 1 << 15

// topics keeps one string for each topic.
type topics struct {
	last  string
	known map[string]string
}

func (t *topics) intern(topic []byte) string {
	if t.last == string(topic) {
		return t.last
	}
	s, ok := t.known[string(topic)]
	if !ok {
		if t.known == nil || len(t.known) >= maxTopics {
			t.known = make(map[string]string)
		}
		s = string(topic)
		t.known[s] = s
	}
	t.last = s
	return s
}
