package nodeconf

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/actormq/actormq/system/ext/tracing"
)

// traceKeys are the keys of OpenTelemetry's traces.
var traceKeys = []keyDef{
	{"traceFraction", "0", "part of the messages, 0 to 1, of whose way spans are sent to traceEndpoint", traceFraction},
	{"traceEndpoint", tracing.DefaultEndpoint, "URL of the collector that takes them, OTLP over HTTP", traceEndpoint},
}

func traceFraction(c *Config, value string) error {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return errors.New("allowed is 0 to 1")
	}
	c.TraceFraction = f
	return nil
}

func traceEndpoint(c *Config, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("want http://HOST:PORT/v1/traces")
	}
	c.TraceEndpoint = value
	return nil
}
