package tracing

import (
	"context"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// event is what the service is told.
type event struct {
	kind      kind
	began, at time.Time
	place     messages.PhysicalOffset // of the message; flushed: everything below is durable
	group     string
	ends      map[messages.QueueKey]messages.QueueOffset // dispatched; read only
}

type kind uint8

const (
	stored kind = iota
	dispatched
	flushed
	pulled
)

// course is what the service knows of the messages that are on their way.
type course struct {
	*Tracer
	store   *system.Store
	waiting []*traced // oldest first
}

// traced is a message whose flush or dispatch is waited for.
type traced struct {
	below               context.Context
	queue               messages.QueueKey
	offset              messages.QueueOffset
	end                 messages.PhysicalOffset
	since               time.Time
	flushed, dispatched bool
}

// run is the service: it makes all spans, one event after the other.
func (t *Tracer) run(ctx context.Context, s *system.Store) error {
	c := &course{Tracer: t, store: s}
	defer t.open.Store(0)
	for {
		select {
		case <-ctx.Done():
			for range len(t.events) { // what had come before the stop: the log can still be read
				c.take(<-t.events)
			}
			return nil
		case e := <-t.events:
			c.take(e)
		}
	}
}

func (c *course) take(e event) {
	switch e.kind {
	case stored:
		c.put(e)
	case pulled:
		c.pull(e)
	case flushed:
		for _, w := range c.waiting {
			if w.end <= e.place {
				c.flush(w, e.at)
			}
		}
		c.tidy()
	case dispatched:
		for _, w := range c.waiting {
			if e.ends[w.queue] > w.offset {
				c.dispatch(w, e.at)
			}
		}
		c.tidy()
	}
}

// put makes the span of a put, and waits for what comes next. What has happened before the message waits is looked for behind that, so
// nothing is missed.
func (c *course) put(e event) {
	m, err := c.store.MessageAt(e.place)
	if err != nil {
		return // it is of a log that was cut, or deleted already
	}
	above, below, ok := c.contexts(&m)
	if !ok {
		return
	}
	c.span(above, "put "+m.Topic, trace.SpanKindServer, e.began, e.at, append(about(&m),
		attribute.Int("messaging.message.body.size", len(m.Body)))...)
	if len(c.waiting) >= mostOpen {
		c.waiting = slices.Delete(c.waiting, 0, 1)
		c.drop()
	}
	w := &traced{
		below: below, queue: messages.QueueKey{Topic: m.Topic, QueueID: m.QueueID}, offset: m.QueueOffset,
		end: m.PhysicalOffset + messages.PhysicalOffset(m.StoreSize), since: time.UnixMilli(m.StoreTimestampMs),
	}
	if w.since.Before(e.began) || w.since.After(e.at) {
		w.since = e.began // the store counts in ms
	}
	c.waiting = append(c.waiting, w)
	c.open.Store(int64(len(c.waiting)))
	if c.store.FlushedTo() >= w.end {
		c.flush(w, e.at)
	}
	if c.store.MaxOffset(w.queue) > w.offset {
		c.dispatch(w, e.at)
	}
	c.tidy()
}

func (c *course) flush(w *traced, at time.Time) {
	if !w.flushed {
		w.flushed = true
		c.span(w.below, "flush", trace.SpanKindInternal, w.since, at)
	}
}

func (c *course) dispatch(w *traced, at time.Time) {
	if !w.dispatched {
		w.dispatched = true
		c.span(w.below, "dispatch", trace.SpanKindInternal, w.since, at)
	}
}

// tidy forgets the messages that nothing is waited for of.
func (c *course) tidy() {
	c.waiting = slices.DeleteFunc(c.waiting, func(w *traced) bool { return w.flushed && w.dispatched })
	c.open.Store(int64(len(c.waiting)))
}

// pull makes the span of a pull, which begins with the message when it was waited for.
func (c *course) pull(e event) {
	m, err := c.store.MessageAt(e.place)
	if err != nil {
		return
	}
	_, below, ok := c.contexts(&m)
	if !ok {
		return
	}
	began := e.began
	if since := time.UnixMilli(m.StoreTimestampMs); since.After(began) && since.Before(e.at) {
		began = since
	}
	c.span(below, "pull "+m.Topic, trace.SpanKindServer, began, e.at, append(about(&m),
		attribute.String("messaging.consumer.group.name", e.group))...)
}

func (c *course) span(ctx context.Context, name string, kind trace.SpanKind, from, to time.Time, about ...attribute.KeyValue) {
	_, span := c.spans.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(from), trace.WithAttributes(about...))
	span.End(trace.WithTimestamp(to))
}

// about names a message, by OpenTelemetry's conventions where there are any.
func about(m *messages.StoredMessage) []attribute.KeyValue {
	id, there := m.Properties.Get(messages.PropertyUniqKey)
	if !there {
		id = m.OffsetMessageID()
	}
	return []attribute.KeyValue{
		attribute.String("messaging.system", "rocketmq"), attribute.String("messaging.destination.name", m.Topic),
		attribute.String("messaging.destination.partition.id", strconv.Itoa(int(m.QueueID))), attribute.String("messaging.message.id", id),
		attribute.Int64("actormq.queue.offset", int64(m.QueueOffset)), attribute.Int64("actormq.physical_offset", int64(m.PhysicalOffset)),
	}
}
