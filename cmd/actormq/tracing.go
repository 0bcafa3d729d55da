package main

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/ext/tracing"
)

// lastTraces is how long a node that stops waits for its collector of traces.
const lastTraces = time.Second

// plugTracer adds the tracer that is configured, nil where there is none.
func plugTracer(conf *nodeconf.Config, opt *system.Options, log zerolog.Logger) (*tracing.Tracer, error) {
	if conf.TraceFraction == 0 {
		return nil, nil
	}
	t, err := tracing.New(tracing.Config{
		Endpoint: conf.TraceEndpoint, Fraction: conf.TraceFraction, Broker: conf.Gateway.Broker.Defaults().BrokerName,
		Version: versionText(), Logger: log.With().Str("part", "tracing").Logger(),
	})
	if err == nil {
		t.Plug(opt)
	}
	return t, err
}

// closeTracer sends the last traces, if that is quick.
func closeTracer(ctx context.Context, t *tracing.Tracer, log zerolog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastTraces)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn().Err(err).Msg("the last traces were not sent")
	}
}
