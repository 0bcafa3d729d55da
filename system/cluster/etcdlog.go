package cluster

import (
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/zap/zapcore"
)

// refusals are what etcd says when somebody speaks to it who should not: the rest of what it says shows in what the node can or can't do.
var refusals = map[string]bool{
	"rejected connection on client endpoint": true, "rejected connection on peer endpoint": true, // no certificate of ours
	"request cluster ID mismatch": true, "failed version compatibility check": true,
	"failed to read Raft message": true, "failed to unmarshal Raft message": true, "failed to decode Raft message": true,
	"unexpected Raft message type": true, "failed to parse path into ID": true, "failed to find remote peer in cluster": true,
	"ignored streaming request; ID mismatch": true, "rejected stream from remote peer because it was removed": true,
}

// refusalPause is between two lines of the same kind.
const refusalPause = time.Minute

// etcdLog is etcd's log: its refusals go to the node's, once a minute of each kind, and what ends the process.
type etcdLog struct {
	log  zerolog.Logger
	mu   sync.Mutex
	told map[string]time.Time
}

func newEtcdLog(log zerolog.Logger) *etcdLog { return &etcdLog{log: log, told: map[string]time.Time{}} }

// Enabled implements zapcore.Core.
func (l *etcdLog) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With implements zapcore.Core; the fields of a refusal come with it.
func (l *etcdLog) With([]zapcore.Field) zapcore.Core { return l }

// Check implements zapcore.Core.
func (l *etcdLog) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if e.Level >= zapcore.DPanicLevel || refusals[e.Message] {
		return to.AddCore(e, l)
	}
	return to
}

// Write implements zapcore.Core.
func (l *etcdLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	l.mu.Lock()
	due := e.Time.Sub(l.told[e.Message]) >= refusalPause
	if due {
		l.told[e.Message] = e.Time
	}
	l.mu.Unlock()
	if !due {
		return nil
	}
	all := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(all)
	}
	if !refusals[e.Message] {
		l.log.Error().Str("why", e.Message).Fields(all.Fields).Msg("etcd can't go on")
		return nil
	}
	l.log.Warn().Str("why", e.Message).Fields(all.Fields).Msg("refused by etcd")
	return nil
}

// Sync implements zapcore.Core.
func (l *etcdLog) Sync() error { return nil }

// causes is the log of a client of etcd. It keeps the last cause of a failure: the error of a request whose time is over does not name it.
type causes struct {
	mu    sync.Mutex
	cause string
}

// last is the last cause, empty when there was none.
func (c *causes) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// Enabled implements zapcore.Core.
func (c *causes) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (c *causes) With([]zapcore.Field) zapcore.Core { return c }

// Check implements zapcore.Core.
func (c *causes) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c *causes) Write(_ zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range fields {
		if err, is := f.Interface.(error); is && f.Type == zapcore.ErrorType {
			cause := err.Error()
			if _, text, found := strings.Cut(cause, " desc = "); found { // without the code of gRPC
				cause = text
			}
			c.mu.Lock()
			c.cause = cause
			c.mu.Unlock()
		}
	}
	return nil
}

// Sync implements zapcore.Core.
func (c *causes) Sync() error { return nil }
