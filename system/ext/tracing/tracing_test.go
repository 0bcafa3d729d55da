package tracing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a store with a tracer, whose spans stay here.
type rig struct {
	*Tracer
	t     *testing.T
	store *system.Store
	spans *tracetest.InMemoryExporter
}

func newRig(t *testing.T, fraction float64, flush system.FlushDiskType) *rig {
	spans := tracetest.NewInMemoryExporter()
	r := &rig{
		t: t, spans: spans,
		Tracer: start(Config{Fraction: fraction, Broker: "broker-a", Logger: zerolog.Nop()}, sdk.NewSimpleSpanProcessor(spans)),
	}
	opt := system.Options{
		Dir: "store", Disk: memfs.New(), SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200, WindowBytes: 8 << 10,
		FlushDiskType: flush, FlushInterval: time.Second,
	}
	r.Plug(&opt)
	var err error
	r.store, err = system.Open(opt)
	require.NoError(t, err)
	synctest.Wait()
	return r
}

func (r *rig) end() {
	require.NoError(r.t, r.store.Close(r.t.Context()))
	require.NoError(r.t, r.Close(r.t.Context()))
}

// put stores a message as a handler of sends does.
func (r *rig) put(properties map[string]string) messages.PutResult {
	r.t.Helper()
	came := time.Now()
	result, err := r.store.Put(r.t.Context(), &messages.Message{
		Topic: "orders", QueueID: 1, Body: []byte("a body"), Properties: messages.PropertiesOf(properties), StoreHost: r.store.Options().StoreHost,
	})
	require.NoError(r.t, err)
	r.Stored(result, nil, came)
	return result
}

func (r *rig) pull(group string, at messages.QueueOffset) {
	r.t.Helper()
	found, err := r.store.Get(r.t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "orders", QueueID: 1}, Offset: at, MaxMessages: 1})
	require.NoError(r.t, err)
	require.Len(r.t, found.Records, 1)
	r.Pulled(group, found.Records, time.Now())
	found.Release()
	synctest.Wait()
}

// named are the spans so far by name.
func (r *rig) named() map[string]tracetest.SpanStub {
	synctest.Wait()
	all := map[string]tracetest.SpanStub{}
	for _, s := range r.spans.GetSpans() {
		all[s.Name] = s
	}
	return all
}

func TestTheWayOfAMessage(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		r := newRig(t, 1, system.AsyncFlush)
		defer r.end()
		begin := time.Now()
		result := r.put(map[string]string{messages.PropertyUniqKey: "U1"})
		all := r.named()
		require.Len(t, all, 2, "it is in its queue, and not durable yet")
		put := all["put orders"]
		require.True(t, put.SpanContext.IsSampled())
		require.False(t, put.Parent.IsValid(), "it begins a trace")
		require.Equal(t, put.SpanContext.SpanID(), all["dispatch"].Parent.SpanID())
		for r.store.FlushedTo() == 0 {
			<-time.After(100 * time.Millisecond)
		}
		<-time.After(time.Minute)
		flush := r.named()["flush"]
		require.Equal(t, put.SpanContext.TraceID(), flush.SpanContext.TraceID())
		require.Equal(t, begin.UnixMilli(), flush.StartTime.UnixMilli())
		require.Less(t, flush.EndTime.Sub(begin), 11*time.Second, "the interval, not when somebody looked")
		require.Greater(t, flush.EndTime.Sub(begin), 100*time.Millisecond)

		other := start(Config{Fraction: 1, Broker: "broker-a"}, sdk.NewSimpleSpanProcessor(r.spans)) // as after a restart
		defer func() { require.NoError(t, other.Close(t.Context())) }()
		m, err := r.store.MessageAt(result.PhysicalOffset)
		require.NoError(t, err)
		_, below, ok := other.contexts(&m)
		require.True(t, ok)
		(&course{Tracer: other}).span(below, "a pull after a restart", 0, begin, begin)
		r.pull("billing", 0)
		all = r.named()
		for _, name := range []string{"pull orders", "a pull after a restart"} {
			require.Equal(t, put.SpanContext.TraceID(), all[name].SpanContext.TraceID(), name)
			require.Equal(t, put.SpanContext.SpanID(), all[name].Parent.SpanID(), name)
		}
		values := map[string]string{}
		for _, a := range all["pull orders"].Attributes {
			values[string(a.Key)] = a.Value.String()
		}
		require.Equal(t, "billing", values["messaging.consumer.group.name"])
		require.Equal(t, "U1", values["messaging.message.id"])
		require.Equal(t, "orders", values["messaging.destination.name"])
	})
}

func TestASendersTraceGoesOn(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		r := newRig(t, 1, system.SyncFlush)
		defer r.end()
		r.put(map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "x=1"})
		all := r.named()
		require.Len(t, all, 3, "what is answered is durable")
		for name, s := range all {
			require.Equal(t, "0af7651916cd43dd8448eb211c80319c", s.SpanContext.TraceID().String(), name)
		}
		require.Equal(t, "b7ad6b7169203331", all["put orders"].Parent.SpanID().String())
		require.Equal(t, "x=1", all["put orders"].SpanContext.TraceState().String())
		r.spans.Reset()

		r.put(map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"})
		r.pull("billing", 1)
		require.Empty(t, r.named(), "its sender does not want it traced")
		for _, nonsense := range []string{"", "00-zz-zz-01", "00-00000000000000000000000000000000-0000000000000000-01"} {
			r.spans.Reset()
			r.put(map[string]string{"traceparent": nonsense})
			require.False(t, r.named()["put orders"].Parent.IsValid(), nonsense)
		}
	})
}

func TestMessagesOfABatchAreSampledOneByOne(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		r := newRig(t, 0.5, system.SyncFlush)
		defer r.end()
		var sizes []int32
		var first messages.PutResult
		want := 0
		for i := range 100 {
			got, err := r.store.Put(t.Context(), &messages.Message{Topic: "orders", QueueID: 1, Body: []byte("a body")})
			require.NoError(t, err)
			if i == 0 {
				first = got
			}
			sizes = append(sizes, got.Bytes)
			if r.sampled(got.PhysicalOffset) {
				want++
			}
		}
		require.Greater(t, want, 20)
		require.Less(t, want, 80)
		r.Stored(first, sizes, time.Now())
		synctest.Wait()
		require.Len(t, r.spans.GetSpans(), 3*want)
	})
}

func TestTheFractionIsKeptAndWhatIsNotSampledAllocatesNothing(t *testing.T) {
	r := start(Config{Fraction: 0.01, Broker: "broker-a"}, sdk.NewSimpleSpanProcessor(tracetest.NewInMemoryExporter()))
	defer func() { require.NoError(t, r.Close(t.Context())) }()
	hits, miss := 0, messages.PhysicalOffset(-1)
	for at := messages.PhysicalOffset(0); at < 100_000*200; at += 200 {
		if r.sampled(at) {
			hits++
		} else {
			miss = at
		}
	}
	require.InDelta(t, 1000, hits, 150)
	b, err := record.Append(nil, &messages.Message{Topic: "orders", Body: []byte("a body")})
	require.NoError(t, err)
	record.SetPlace(b, 0, miss, 1)
	require.Equal(t, miss, record.PlaceOf(b))
	records, now := [][]byte{b, b, {}}, time.Now()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Stored(messages.PutResult{PhysicalOffset: miss}, nil, now)
		r.Pulled("billing", records, now)
	}))
	require.Empty(t, r.events)
}

func TestNobodyWaitsForTraces(t *testing.T) {
	r := start(Config{Fraction: 1, Broker: "broker-a"}, sdk.NewSimpleSpanProcessor(tracetest.NewInMemoryExporter()))
	defer func() { require.NoError(t, r.Close(t.Context())) }()
	for at := range messages.PhysicalOffset(mostEvents + 10) { // there is no service
		r.Stored(messages.PutResult{PhysicalOffset: at}, nil, time.Now())
	}
	require.EqualValues(t, 10, r.Dropped())
}

func TestWhatCameBeforeTheStopIsTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, system.SyncFlush)
		defer r.end()
		at := r.put(nil).PhysicalOffset
		spans := tracetest.NewInMemoryExporter()
		late := start(Config{Fraction: 1, Broker: "broker-a"}, sdk.NewSimpleSpanProcessor(spans))
		const pulls = 20
		for range pulls {
			late.offer(event{kind: pulled, began: time.Now(), at: time.Now(), place: at, group: "billing"})
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		require.NoError(t, late.run(stopped, r.store))
		require.Len(t, spans.GetSpans(), pulls)
		require.NoError(t, late.Close(t.Context()))
	})
}

func TestAConfigurationThatMakesNoSenseIsRefused(t *testing.T) {
	for _, c := range []Config{{}, {Fraction: -1}, {Fraction: 1.1}} {
		_, err := New(c)
		require.ErrorIs(t, err, ErrConfig)
	}
}
