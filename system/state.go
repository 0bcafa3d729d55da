package system

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
)

// Why a store refuses puts or gets for the time being.
var (
	// ErrSlave: the store is a slave; puts go to its master.
	ErrSlave = errors.New("the store is a slave")
	// ErrFlagged: a running flag forbids it; the message names the flag and its cause.
	ErrFlagged = errors.New("refused by a running flag")
)

// Status is what a store does and how far it is. Positions are physical offsets; each is at or behind the one before it.
type Status struct {
	Role  messages.BrokerRole
	Flags messages.RunningFlags
	Cause error // why puts are refused; nil while they are taken
	// IndexCause is why the index is not built any further: new messages are not found by key until the next start builds it again. For
	// want of room it lasts until there is room, and is nil again then. The original sets WRITE_INDEX_FILE_ERROR and refuses puts; here
	// it costs nobody a message (weakness W16 of the original).
	IndexCause error

	WrittenTo    messages.PhysicalOffset // appended
	CommittedTo  messages.PhysicalOffset // in the file, and readable; behind WrittenTo only with the transient store pool
	FlushedTo    messages.PhysicalOffset // durable
	DispatchedTo messages.PhysicalOffset // in queues and index; may be ahead of FlushedTo
}

// Status tells what the store does at this moment. It takes no lock and is cheap enough to ask for with every request.
func (s *Store) Status() Status {
	st := Status{
		Role: s.opt.Role, Flags: s.state.get(), Cause: s.Writable(),
		// In this order, so that none is ahead of the one that it follows.
		DispatchedTo: messages.PhysicalOffset(s.dispatched.Load()), FlushedTo: s.FlushedTo(),
	}
	if err := s.state.index.Load(); err != nil {
		st.IndexCause = *err
	}
	st.CommittedTo = s.log.End()
	st.WrittenTo = s.log.Written()
	return st
}

// state keeps the running flags with their causes. What refuses puts is handed to admission, so that a put looks at one place.
type state struct {
	bits  atomic.Uint32
	index atomic.Pointer[error] // why the index is broken

	mu     sync.Mutex
	causes map[messages.RunningFlags]error
	final  error // of a failed or closed store: nothing takes it back
}

func (s *state) get() messages.RunningFlags { return messages.RunningFlags(s.bits.Load()) }

// SetFlag raises a running flag: puts, or gets, are refused with the cause until ClearFlag. Raising it again changes
// the cause.
func (s *Store) SetFlag(flag messages.RunningFlags, cause error) {
	s.raise(flag, cause, zerolog.ErrorLevel)
}

// EndPuts is SetFlag of NOT_WRITEABLE for a cause that is meant to be, and nobody has to look into.
func (s *Store) EndPuts(cause error) { s.raise(messages.FlagNotWriteable, cause, zerolog.InfoLevel) }

func (s *Store) raise(flag messages.RunningFlags, cause error, level zerolog.Level) {
	fresh := false
	s.changeFlag(func(causes map[messages.RunningFlags]error) {
		_, old := causes[flag]
		causes[flag], fresh = cause, !old
	})
	if fresh {
		s.opt.Logger.WithLevel(level).Str("flag", flag.String()).AnErr("cause", cause).Msg("a running flag is set")
	}
}

// ClearFlag takes a running flag back.
func (s *Store) ClearFlag(flag messages.RunningFlags) {
	was := false
	s.changeFlag(func(causes map[messages.RunningFlags]error) {
		_, was = causes[flag]
		delete(causes, flag)
	})
	if was {
		s.opt.Logger.Warn().Str("flag", flag.String()).Msg("a running flag is cleared")
	}
}

// indexBroken notes that the index is not built any further, or, with nil, that it is complete again; it must not block.
func (s *Store) indexBroken(cause error) {
	if cause == nil {
		s.state.index.Store(nil)
		return
	}
	s.state.index.Store(&cause)
	s.opt.Logger.Error().Err(cause).Msg("the index is not built any further: the next start builds it again at the latest")
}

func (s *Store) changeFlag(change func(causes map[messages.RunningFlags]error)) {
	st := &s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.causes == nil {
		st.causes = map[messages.RunningFlags]error{}
	}
	change(st.causes)
	s.publishState()
}

// refuseForGood ends the taking of puts; the first cause counts.
func (s *Store) refuseForGood(cause error) {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	if s.state.final == nil {
		s.state.final = cause
	}
	s.publishState()
}

// publishState derives bits and refusal; state.mu is held.
func (s *Store) publishState() {
	st := &s.state
	bits := messages.RunningFlags(0)
	var refusal error
	if s.opt.Role == messages.Slave {
		refusal = ErrSlave
	}
	for flag, cause := range st.causes {
		bits |= flag
		if flag&messages.RefusingPuts != 0 {
			refusal = fmt.Errorf("%w: %v: %w", ErrFlagged, flag, cause)
		}
	}
	if st.final != nil {
		refusal = st.final
	}
	st.bits.Store(uint32(bits))
	if refusal == nil {
		s.admission.refusal.Store(nil)
		return
	}
	s.admission.refusal.Store(&refusal)
}

// Writable says why puts are refused, nil while they are taken.
func (s *Store) Writable() error {
	if c := s.admission.refusal.Load(); c != nil {
		return *c
	}
	return nil
}

// readable says why reads are refused.
func (s *Store) readable() error {
	select {
	case <-s.closed:
		return ErrStopped
	default:
	}
	if s.state.get()&messages.FlagNotReadable == 0 {
		return nil
	}
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return fmt.Errorf("%w: %v: %w", ErrFlagged, messages.FlagNotReadable, s.state.causes[messages.FlagNotReadable])
}

// markUnproven notes on the disk that the log behind the last good flush is in doubt.
func (s *Store) markUnproven() {
	flushed := s.FlushedTo()
	if err := store.MarkUnproven(s.opt.Disk, s.files.Params, flushed, s.failure.get()); err != nil {
		s.opt.Logger.Error().Err(err).Msg("restart the machine, not the process alone, before going on with this store")
		return
	}
	s.opt.Logger.Warn().Int64("flushed", int64(flushed)).Msg("what lies behind the last good flush is copied to new files at the next start")
}

// failure keeps the first failure of a storage actor.
type failure struct {
	mu    sync.Mutex
	cause error
}

// set notes a failure; it tells whether it was the first.
func (f *failure) set(cause error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause != nil {
		return false
	}
	f.cause = cause
	return true
}

func (f *failure) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cause
}
