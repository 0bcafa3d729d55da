package writer

import (
	"errors"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// panicWindow: a second panic within it fails the writer.
const panicWindow = time.Minute

// fail ends acknowledging for good; reads go on elsewhere.
func (w *Actor) fail(cause error) {
	if w.failed != nil {
		return
	}
	w.failed = errors.Join(messages.ErrFailed, cause)
	w.cfg.Logger.Error().Err(cause).Str("role", string(actors.RoleWriter)).Msg("the commit-log writer has failed: no more puts")
	defer w.refuseParked() // last: who is refused finds the store's state as it is from now on
	if w.cfg.OnFailed != nil {
		w.cfg.OnFailed(messages.Failed{Role: string(actors.RoleWriter), Cause: cause})
	}
}

func (w *Actor) stopping() {
	if w.parkTimer != nil {
		w.parkTimer.Stop()
	}
	if w.failed == nil {
		w.failed = messages.ErrClosed
	}
	w.refuseParked()
	for _, s := range w.ready {
		s.Retire(nil)
	}
	w.ready = nil
}

// Panicked is the OnPanic of the writer's mailbox: it is told of a panic while a message was being appended. What was
// appended before it is answered, what it has appended itself is taken back; a memory fault in the map is an I/O error,
// anything else a bug.
func (w *Actor) Panicked(reason any, stack []byte) {
	w.leave()
	m := w.current
	if w.alone != nil {
		m, w.begun = w.alone, 0
	}
	w.current, w.alone = nil, nil
	if w.cfg.SendAlone != nil {
		w.cfg.SendAlone() // nobody else does, of a put that was just handed on
	}
	if m != nil {
		w.tail.takeBack(max(w.begun, w.tail.published()))
	}
	w.settle()
	if vfs.IsFault(reason) {
		w.fail(vfs.FaultError("append to "+w.tail.segmentPath(), reason))
		failPut(m, messages.ServiceNotAvailable, w.failed)
		return
	}
	w.cfg.Logger.Error().Interface("panic", reason).Bytes("stack", stack).Msg("appending a put panicked")
	failPut(m, messages.UnknownError, messages.ErrPanicked)
	if now := time.Now(); w.lastPanic.IsZero() || now.Sub(w.lastPanic) > panicWindow {
		w.lastPanic = now
		w.startRebuild()
		return
	}
	w.fail(messages.ErrPanicked)
}

// failPut answers a message that is not stored. Of a group of which a part was appended, that part may be in the log, in the segment
// before, say.
func failPut(m any, status messages.PutStatus, cause error) {
	switch m := m.(type) {
	case *messages.PutMessage:
		m.Fail(status, cause)
	case *messages.PutGroup:
		if m.Next > 0 {
			status = messages.UnknownError
		}
		for _, p := range m.Puts {
			p.Result.Status, p.Err = status, cause
		}
		m.Lead.Fail(status, cause) // its result is the last put's
	case *messages.AppendReplica:
		m.Done.Fail(status, cause)
	}
}
