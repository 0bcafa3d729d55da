package tracing

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
)

// Config says which messages are traced, and where the traces go.
type Config struct {
	Endpoint string  // URL of a collector that takes OTLP over HTTP; default http://127.0.0.1:4318/v1/traces
	Fraction float64 // of the messages: above 0, at most 1
	Broker   string  // name of the broker: a part of ids, and of what spans say
	Version  string  // of the program
	Logger   zerolog.Logger
}

// DefaultEndpoint is a collector on the same machine.
const DefaultEndpoint = "http://127.0.0.1:4318/v1/traces"

// ErrConfig: a fraction or an endpoint can't be used.
var ErrConfig = errors.New("bad configuration of traces")

const (
	mostEvents   = 4096 // that wait for the service
	mostOpen     = 4096 // messages whose flush or dispatch is waited for
	linesAMinute = 10
)

// Tracer is the extension. Plug it into the options of one store, and give it to the broker of a gateway. Its methods are safe for
// concurrent use.
type Tracer struct {
	cfg      Config
	bound    uint64 // hashes below are sampled
	seed     uint64
	provider *sdk.TracerProvider
	spans    trace.Tracer
	noise    zerolog.Logger

	events  chan event
	open    atomic.Int64 // messages whose flush or dispatch is waited for
	dropped atomic.Int64
}

// New returns a tracer; it connects when there is something to send. Close it behind the store.
func New(cfg Config) (*Tracer, error) {
	if !(cfg.Fraction > 0 && cfg.Fraction <= 1) {
		return nil, fmt.Errorf("%w: fraction %v, want above 0 and at most 1", ErrConfig, cfg.Fraction)
	}
	if cfg.Endpoint == "" {
		cfg.Endpoint = DefaultEndpoint
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(cfg.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, cfg.Endpoint, err)
	}
	return start(cfg, sdk.NewBatchSpanProcessor(exporter)), nil
}

// start returns a tracer whose spans go to p.
func start(cfg Config, p sdk.SpanProcessor) *Tracer {
	t := &Tracer{
		cfg: cfg, bound: bound(cfg.Fraction), events: make(chan event, mostEvents),
		noise: cfg.Logger.Sample(&zerolog.BurstSampler{Burst: linesAMinute, Period: time.Minute}),
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(cfg.Broker)) // it never fails
	t.seed = h.Sum64()
	t.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(p), sdk.WithSampler(sdk.AlwaysSample()), sdk.WithIDGenerator(ids{}),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "actormq"),
			attribute.String("service.version", cfg.Version), attribute.String("service.instance.id", cfg.Broker))))
	t.spans = t.provider.Tracer("github.com/actormq/actormq")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		t.noise.Warn().Err(err).Msg("traces can't be sent")
	}))
	return t
}

// bound is the first hash that is not sampled.
func bound(fraction float64) uint64 {
	if fraction >= 1 {
		return math.MaxUint64
	}
	return uint64(fraction * (1 << 63) * 2)
}

// Plug adds the tracer to a store's options: a service, a listener, and a dispatcher of what is durable.
func (t *Tracer) Plug(opt *system.Options) {
	opt.Services = append(opt.Services, system.Service{Name: "tracing", Run: t.run})
	opt.Listeners = append(opt.Listeners, system.Listener{
		Name: "tracing-dispatched", Handle: func(ctx context.Context, ends map[messages.QueueKey]messages.QueueOffset) error {
			return t.tell(ctx, event{kind: dispatched, at: time.Now(), ends: ends})
		},
	})
	opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{
		Name: "tracing-flushed", Durable: true, FromEnd: true,
		Load: func(*system.Store) (system.Position, bool, error) { return system.Position{}, false, nil }, // from the end, each time
		Handle: func(ctx context.Context, b *system.Batch) error {
			return t.tell(ctx, event{kind: flushed, at: time.Now(), place: b.UpTo})
		},
	})
}

// Close sends what is left, for as long as the context lets it.
func (t *Tracer) Close(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// Dropped counts what was left out because too much was sampled.
func (t *Tracer) Dropped() int64 { return t.dropped.Load() }

// Stored tells that a send, which began at a time, is stored: one record, or those of a batch with their sizes.
func (t *Tracer) Stored(result messages.PutResult, sizes []int32, began time.Time) {
	if len(sizes) == 0 {
		if t.sampled(result.PhysicalOffset) {
			t.offer(event{kind: stored, began: began, at: time.Now(), place: result.PhysicalOffset})
		}
		return
	}
	at := result.PhysicalOffset
	for _, size := range sizes {
		if t.sampled(at) {
			t.offer(event{kind: stored, began: began, at: time.Now(), place: at})
		}
		at += messages.PhysicalOffset(size)
	}
}

// Pulled tells that a group is given records, whose pull began at a time.
func (t *Tracer) Pulled(group string, records [][]byte, began time.Time) {
	err := vfs.Guard("a record", func() error {
		for _, r := range records {
			if at := record.PlaceOf(r); t.sampled(at) {
				t.offer(event{kind: pulled, began: began, at: time.Now(), place: at, group: group})
			}
		}
		return nil
	})
	if err != nil {
		t.noise.Warn().Err(err).Msg("records are not traced")
	}
}

// offer hands an event to the service, or drops it: nobody who serves a client waits.
func (t *Tracer) offer(e event) {
	select {
	case t.events <- e:
	default:
		t.drop()
	}
}

func (t *Tracer) drop() {
	t.dropped.Add(1)
	t.noise.Warn().Int64("dropped", t.dropped.Load()).Msg("too much is sampled: traces are not complete")
}

// tell hands an event to the service while there is somebody to hear it.
func (t *Tracer) tell(ctx context.Context, e event) error {
	if t.open.Load() == 0 {
		return nil
	}
	select {
	case t.events <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
