package crash

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/testkit/memfs"
)

// errPower is what every operation answers once the crash has happened.
var errPower = errors.New("the power is off")

// trip is a crash that is to happen: at the disk operation number at that changes something.
type trip struct {
	disk *memfs.Disk
	at   int
	kill bool // kill -9 instead of a power cut
	seed uint64
	// before is called when it happens, before the picture is taken.
	before func()
	trace  *Trace
	// stall is how long each sync takes, in ns, and some µs, of which stalls has the number, so that no two that begin together end
	// together: which one is first then would be random. slow is how long one took at most. Those of consume queues and their extensions
	// are left out: they hold a lock, and who waits for that keeps the bubble's clock from going on.
	stall, slow, stalls atomic.Int64

	mu   sync.Mutex
	ops  int
	left *memfs.Disk // what is left, once it has happened
	what string      // the operation that did not happen any more
}

// arm puts the trip into the disk.
func (t *trip) arm() *trip {
	t.disk.Inject(t.hook)
	return t
}

func (t *trip) hook(op memfs.Op) error {
	if !op.Kind.Changes() {
		return t.off()
	}
	if d := t.stall.Load(); d > 0 && op.Kind == memfs.KindDataSync && !strings.Contains(op.Name, "/consumequeue") {
		over := make(chan struct{})
		time.AfterFunc(time.Duration(d)+time.Duration(t.stalls.Add(1))*time.Microsecond, func() { close(over) })
		<-over
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left != nil {
		return errPower
	}
	t.trace.add("%s %s %d %d", op.Kind, op.Name, op.Off, op.N)
	if t.ops++; t.ops < t.at {
		return nil
	}
	t.fire(kindOf(op))
	return errPower
}

// kindOf names the sort of operation and of file.
func kindOf(op memfs.Op) string {
	dir := strings.TrimPrefix(op.Name, dirName+"/")
	if i := strings.IndexByte(dir, '/'); i > 0 {
		return op.Kind.String() + " in " + dir[:i]
	}
	return op.Kind.String() + " " + path.Base(dir)
}

func (t *trip) fire(what string) {
	t.before()
	t.what = what
	if t.kill {
		t.left = t.disk.Clone()
	} else {
		t.left = t.disk.Crash(t.seed)
	}
	t.trace.add("crash at operation %d: %s", t.ops, what)
}

// now makes it happen, unless it has happened.
func (t *trip) now() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == nil {
		t.fire("at rest")
	}
}

// happened tells whether the power is off.
func (t *trip) happened() bool { return t.off() != nil }

func (t *trip) off() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left != nil {
		return errPower
	}
	return nil
}

// Trace is what a run has done, in order: steps, disk operations, crashes. Safe for concurrent use.
type Trace struct {
	mu    sync.Mutex
	lines []string
}

func (t *Trace) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

// Lines are the lines so far.
func (t *Trace) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...)
}
