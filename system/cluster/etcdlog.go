package cluster

import (
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
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

// etcdLog is where etcd, this node's or a client of one, has to say what it says: by themselves they write to standard error. It goes to the
// node's log, once a minute of each kind. Of a server these are its refusals and what ends the process; of a client what fails. Safe for
// any goroutine.
type etcdLog struct {
	log    zerolog.Logger
	client bool

	mu    sync.Mutex
	told  map[string]time.Time
	cause string // the last one of a failure: the error of a request whose time is over does not name it
}

func newEtcdLog(log zerolog.Logger) *etcdLog { return &etcdLog{log: log, told: map[string]time.Time{}} }

func newClientLog(log zerolog.Logger) *etcdLog {
	l := newEtcdLog(log)
	l.client = true
	return l
}

// last is the last cause of a failure, empty when there was none.
func (l *etcdLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Enabled implements zapcore.Core.
func (l *etcdLog) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With implements zapcore.Core; the fields of a line come with it.
func (l *etcdLog) With([]zapcore.Field) zapcore.Core { return l }

// Check implements zapcore.Core.
func (l *etcdLog) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if e.Level >= zapcore.DPanicLevel || refusals[e.Message] || l.client && l.Enabled(e.Level) {
		return to.AddCore(e, l)
	}
	return to
}

// Write implements zapcore.Core.
func (l *etcdLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	failed := failure(fields)
	if l.client && clientv3.IsConnCanceled(failed) {
		return nil // this node has no more use for the answer: nothing has failed
	}
	if !l.due(e, failed) {
		return nil
	}
	all := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(all)
	}
	delete(all.Fields, "target") // the first of the addresses, whichever is meant, with all that was written into it
	switch {
	case e.Level >= zapcore.DPanicLevel:
		l.log.Error().Str("why", e.Message).Fields(all.Fields).Msg("etcd can't go on")
	case l.client:
		l.log.Warn().Str("why", e.Message).Fields(all.Fields).Msg("etcd does not answer as it should")
	default:
		l.log.Warn().Str("why", e.Message).Fields(all.Fields).Msg("refused by etcd")
	}
	return nil
}

// due keeps the cause of a failure, and tells whether it is time for a line of this kind.
func (l *etcdLog) due(e zapcore.Entry, failed error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed != nil {
		l.cause = failed.Error()
		if _, text, found := strings.Cut(l.cause, " desc = "); found { // without the code of gRPC
			l.cause = text
		}
	}
	due := e.Time.Sub(l.told[e.Message]) >= refusalPause
	if due {
		l.told[e.Message] = e.Time
	}
	return due
}

// failure is the error among the fields of a line, nil without one.
func failure(fields []zapcore.Field) error {
	for _, f := range fields {
		if err, is := f.Interface.(error); is && f.Type == zapcore.ErrorType {
			return err
		}
	}
	return nil
}

// Sync implements zapcore.Core.
func (l *etcdLog) Sync() error { return nil }
