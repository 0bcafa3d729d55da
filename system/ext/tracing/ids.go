package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/actormq/actormq/messages"
)

// mix is a step of splitmix64: neighbours become numbers that have nothing to do with each other.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sampled decides on the message at a place.
func (t *Tracer) sampled(at messages.PhysicalOffset) bool {
	return mix(t.seed^uint64(at)) < t.bound || t.cfg.Fraction >= 1
}

// contexts are the one in which the span of a message's put is made, and the one of the spans below it; false: who has sent it does not
// want it traced.
func (t *Tracer) contexts(m *messages.StoredMessage) (above, below context.Context, ok bool) {
	x := mix(t.seed ^ uint64(m.PhysicalOffset) ^ mix(uint64(m.StoreTimestampMs)))
	var own trace.SpanContextConfig
	binary.BigEndian.PutUint64(own.TraceID[:8], mix(x))
	binary.BigEndian.PutUint64(own.TraceID[8:], mix(x+1))
	binary.BigEndian.PutUint64(own.SpanID[:], mix(x+2)|1)
	own.TraceFlags = trace.FlagsSampled
	above = propagation.TraceContext{}.Extract(context.Background(), carrier(m.Properties))
	if sender := trace.SpanContextFromContext(above); sender.IsValid() {
		if !sender.IsSampled() {
			return nil, nil, false
		}
		own.TraceID, own.TraceState = sender.TraceID(), sender.TraceState()
	}
	span := trace.NewSpanContext(own)
	return context.WithValue(above, ownID{}, span), trace.ContextWithSpanContext(context.Background(), span), true
}

// carrier reads what a sender has put into a message's properties.
type carrier messages.Properties

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(name string) string {
	value, _ := messages.Properties(c).Get(name)
	return value
}

// Set implements propagation.TextMapCarrier; nothing is ever written.
func (carrier) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (carrier) Keys() []string { return nil }

// ownID is where a context says which id its next span has.
type ownID struct{}

// ids gives the span of a put the ids that everybody finds, and others random ones.
type ids struct{}

// NewIDs implements trace.IDGenerator.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if own, ok := ctx.Value(ownID{}).(trace.SpanContext); ok {
		return own.TraceID(), own.SpanID()
	}
	var id trace.TraceID
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1)
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements trace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	if own, ok := ctx.Value(ownID{}).(trace.SpanContext); ok {
		return own.SpanID()
	}
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}
