package ha

import (
	"net"
	"time"

	"github.com/rs/zerolog"
)

const (
	// refusalInterval is between two log lines about the same host.
	refusalInterval = time.Minute
	// refusalLines are the most in that time about all hosts: whoever has many addresses fills no log.
	refusalLines = 10
)

// refusals tell the log of who was refused on the replication port. They belong to one goroutine.
type refusals struct {
	noise zerolog.Logger
	told  map[string]time.Time // hosts, and when the log was told of them
}

func newRefusals(log zerolog.Logger) *refusals {
	return &refusals{
		noise: log.Sample(&zerolog.BurstSampler{Burst: refusalLines, Period: refusalInterval}),
		told:  map[string]time.Time{},
	}
}

func (r *refusals) tell(addr net.Addr, err error) {
	host, now := addr.String(), time.Now()
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if now.Sub(r.told[host]) < refusalInterval {
		return
	}
	if len(r.told) >= maxReplicas {
		clear(r.told)
	}
	r.told[host] = now
	r.noise.Warn().Err(err).Str("from", addr.String()).Msg("refused on the replication port")
}
