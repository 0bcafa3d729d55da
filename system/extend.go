package system

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"regexp"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actormq/actormq/actors/extension"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
)

// Extensions are the doors for code of the user's own; docs/EXTENDING.md explains them. Names are unique in a store, of
// letters, digits, '-', '_' and '.'.
type Extensions struct {
	PutHooks    []PutHook // called in this order
	Dispatchers []Dispatcher
	Listeners   []Listener
	Services    []Service
	// Replacements are actors in the place of parts of the store; a part has one at most.
	Replacements []Replacement
}

// What extensions share.
type (
	// ExtensionPolicy says how failures of an extension are borne.
	ExtensionPolicy = extension.Policy
	// ExtensionStatus is what an extension does and how far it is.
	ExtensionStatus = extension.Status
	// Position is how far a dispatcher has come, with what it takes to find out whether the log is still the same.
	Position = extension.Position
)

// ErrPosition: a position that was kept is of another log; see Store.CheckPosition.
var ErrPosition = extension.ErrPosition

// PutHook looks at every message before it is encoded, while the put's caller waits. The messages that the store puts
// itself (due delayed ones, ops and commits of transactions) do not pass: they were taken when they came. A batch passes as
// its envelope, a half message under its half topic.
type PutHook struct {
	Name string
	// Func may change the message, which is a copy for it until it returns. An error refuses the put with MESSAGE_ILLEGAL. Calls run
	// side by side, each on a goroutine of its own. It should not block, and must not call Put.
	Func func(*messages.Message) error
	// Inline: Func runs on the goroutine of the put's caller, which is quicker by some microseconds. Nobody is rescued from a call
	// that does not come back, and the bytes of Body are the caller's: replace them, do not change them.
	Inline bool
	// Budget is how long a put waits for a call; default 100 ms. Then it goes on without the function, as after a panic, and nothing
	// is sent to the function until that call has come back.
	Budget time.Duration
	// Average is how long many calls may take; default 100 µs. When they take more, and more than a twentieth of the time, the
	// function is left out for Policy.MaxBackoff. Not with Refuse: there puts are as slow as the function.
	Average time.Duration
	// Refuse: when the function panics, or is left out because it fails again and again or does not come back, puts are
	// refused with SERVICE_NOT_AVAILABLE; else they pass by it, as their callers have given them.
	Refuse bool
	Policy ExtensionPolicy
}

// Dispatcher sees every message of the log, in log order and at least once, after it has become readable in its queue. It
// reads the log itself, from its own position, which is kept in the store's folder extensions: however slow it is, or
// stopped for however long, it holds up nobody, and goes on where it was. What retention deletes before it comes there is
// counted as skipped.
type Dispatcher struct {
	Name string
	// Handle handles a batch of up to 512 messages; what it answers nil for is not dispatched again but after a crash. It
	// runs on a goroutine of its own, one call at a time, and may block until its context ends.
	Handle func(context.Context, *Batch) error
	// Actor, instead of Handle, is an actor of the user's own, spawned in the store's actor system: it gets Dispatch
	// messages. One that panics is started again.
	Actor *actor.Props

	FromEnd bool // without a position it begins at the log's end, else at its beginning
	Durable bool // it sees only what is durable
	// Load, when set, says where to go on: the user keeps Batch.Position with data of the dispatcher's own, in one
	// transaction, and then sees everything exactly once (with Durable also across a power cut). The store saves none. It is
	// called in Open, and asks Store.CheckPosition. When that says ErrPosition, the data are of another log: empty them, then return
	// false. Return any other error: Open fails with it, and the data stay.
	Load         func(*Store) (Position, bool, error)
	SaveInterval time.Duration // of the position; default 5 s
	Policy       ExtensionPolicy
}

// Listener is told which queues have grown, soon after the messages are readable. What arrives during a call is put together
// for the next; nothing is told of messages that were there before the store was opened.
type Listener struct {
	Name   string
	Topics []string // empty: all
	// Handle gets the offset behind the last message of each queue that has grown. It runs on a goroutine of its own, one
	// call at a time. It must not change the map.
	Handle func(context.Context, map[messages.QueueKey]messages.QueueOffset) error
	Policy ExtensionPolicy
}

// Service runs beside the store from Open to Close, and is started again after a failure.
type Service struct {
	Name string
	// Run returns nil when it is done for good, or when its context ends.
	Run func(context.Context, *Store) error
	// Actor, instead of Run, is an actor of the user's own, spawned in the store's actor system as store/service/<Name>.
	// One that panics is started again, with an empty mailbox. StoreOf finds the store.
	Actor *actor.Props
	// Leader: it runs where messages are put, so on one node of a replica group at a time, as an actor of a cluster kind does: the one
	// that leads, and after a failover the next. On a slave it is Stopped from the start.
	Leader bool
	Policy ExtensionPolicy
}

// Batch is a part of the log. It and what it holds are valid until the handler returns, or answers.
type Batch struct {
	Requests []messages.DispatchRequest // in log order; read only
	UpTo     messages.PhysicalOffset    // everything below is in this batch or was in an earlier one
	store    *Store
	damaged  func(*messages.DispatchRequest, error)
}

// Dispatch brings a batch to a dispatcher that is an actor. It calls Done once.
type Dispatch struct {
	*Batch
	Answer *messages.Answer[struct{}]
}

// Done answers: the batch is handled, or why not; then it is sent again.
func (d *Dispatch) Done(err error) { d.Answer.Complete(struct{}{}, err) }

// Refuse answers with an error.
func (d *Dispatch) Refuse(cause error) { d.Done(cause) }

// Store is the store that the batch is of; a handler may run before Open has returned.
func (b *Batch) Store() *Store { return b.store }

// Message reads the message that a request is about; its bytes are the caller's. ErrNoMessage: it has been deleted meanwhile,
// stands in the place of one that was lost to damage, or is damaged itself; then that is logged, and counted as Skipped.
func (b *Batch) Message(r *messages.DispatchRequest) (messages.StoredMessage, error) {
	m, err := b.store.MessageAt(r.PhysicalOffset)
	if bad := new(segments.CorruptionError); errors.As(err, &bad) {
		b.damaged(r, err)
		err = fmt.Errorf("%w: %w", ErrNoMessage, err)
	}
	return m, err
}

// Messages goes through the messages of the batch, without those that are no longer there; an error is that of reading one.
func (b *Batch) Messages() iter.Seq2[messages.StoredMessage, error] {
	return func(yield func(messages.StoredMessage, error) bool) {
		for i := range b.Requests {
			m, err := b.Message(&b.Requests[i])
			if errors.Is(err, ErrNoMessage) {
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// Position is the place behind the batch, to be kept by a dispatcher that has Load.
func (b *Batch) Position() (Position, error) { return extension.PositionAt(b.store.log, b.UpTo) }

// validExtension are the names: they are parts of file names and of actors' addresses.
var validExtension = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// validate returns all problems of the extensions.
func (e Extensions) validate() error {
	var bad []error
	seen := map[string]bool{}
	look := func(kind, name string, ok bool) {
		if !validExtension.MatchString(name) {
			bad = append(bad, fmt.Errorf("a %s is named %q: letters, digits, '-', '_' and '.'", kind, name))
		}
		if seen[name] {
			bad = append(bad, fmt.Errorf("two extensions are named %q", name))
		}
		if !ok {
			bad = append(bad, fmt.Errorf("the %s %q needs exactly one function or actor", kind, name))
		}
		seen[name] = true
	}
	for _, h := range e.PutHooks {
		look("put hook", h.Name, h.Func != nil)
	}
	for _, d := range e.Dispatchers {
		look("dispatcher", d.Name, (d.Handle != nil) != (d.Actor != nil))
	}
	for _, l := range e.Listeners {
		look("listener", l.Name, l.Handle != nil)
	}
	for _, s := range e.Services {
		look("service", s.Name, (s.Run != nil) != (s.Actor != nil))
	}
	for _, r := range e.Replacements {
		look("replacement", string(r.Part), r.Actor != nil)
		bad = append(bad, r.validate())
	}
	return errors.Join(bad...)
}

// positionPath is the file of a dispatcher's position. RocketMQ ignores it.
func (s *Store) positionPath(name string) string {
	return path.Join(s.opt.Dir, "extensions", name+".json")
}
