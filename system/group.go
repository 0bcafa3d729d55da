package system

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// ErrUnconfirmed: what the store of a replica had when it was opened is not confirmed by its group yet.
var ErrUnconfirmed = errors.New("the group has not confirmed what this replica has")

// ErrNoLeader: the store is not that of a leader of a replica group.
var ErrNoLeader = errors.New("not the leader of a replica group")

// groupState is what a store knows of its replica group.
type groupState struct {
	confirmed atomic.Int64            // what lies below may be seen
	awaited   messages.PhysicalOffset // nothing is read before it is confirmed
	reached   chan struct{}           // awaited is confirmed
}

// Confirmed is the offset of the log below which every replica in sync has everything; only that is read and dispatched. It is the log's
// end in a store that is in no group.
func (s *Store) Confirmed() messages.PhysicalOffset {
	if s.opt.Group == nil {
		return s.log.End()
	}
	return messages.PhysicalOffset(s.group.confirmed.Load())
}

// SetInSync tells the leader of a group which replicas must have a put before it is acknowledged; before the first call nothing is. What
// has been acknowledged before lies below the offset that is returned. It waits, until the context ends or it is called again, for those
// that join to have that too.
func (s *Store) SetInSync(ctx context.Context, set messages.InSync) (messages.PhysicalOffset, error) {
	if s.opt.Group == nil || s.replicas == nil {
		return 0, ErrNoLeader
	}
	answer := messages.NewAnswer[messages.PhysicalOffset]()
	s.cast.send(actors.RoleReplicator, messages.SetInSync{InSync: set, Answer: answer})
	at, err := await(ctx, s, answer)
	if err != nil {
		return 0, fmt.Errorf("set the replicas in sync: %w", err)
	}
	return at, nil
}

// FollowLeader tells a replica where its leader replicates from, as host:port; empty: nobody leads.
func (s *Store) FollowLeader(leader string) {
	if s.follower != nil && s.opt.Group != nil {
		s.cast.send(actors.RoleFollower, messages.FollowMaster{Address: leader})
	}
}

// visible is the dispatcher's limit.
func (s *Store) visible() func() messages.PhysicalOffset {
	if s.opt.Group == nil {
		return nil
	}
	return s.Confirmed
}

// awaitConfirmed keeps readers out until what was there at the start is confirmed: recovery has dispatched it, and another leader may
// not have it.
func (s *Store) awaitConfirmed() {
	if s.opt.Group == nil {
		return
	}
	s.group.awaited, s.group.reached = s.log.End(), make(chan struct{})
	if s.group.awaited == 0 {
		close(s.group.reached) // there is nothing
		return
	}
	s.changeFlag(func(causes map[messages.RunningFlags]error) { causes[messages.FlagNotReadable] = ErrUnconfirmed })
}

// AwaitConfirmed waits until everything that the store had when it was opened is confirmed.
func (s *Store) AwaitConfirmed(ctx context.Context) error {
	if s.opt.Group == nil {
		return nil
	}
	select {
	case <-s.group.reached:
		return nil
	case <-s.closed:
		return ErrStopped
	case <-ctx.Done():
		return fmt.Errorf("wait for the group: %w", context.Cause(ctx))
	}
}

// onConfirmed is told by replicator or follower.
func (s *Store) onConfirmed(at messages.PhysicalOffset) {
	before := s.group.confirmed.Load()
	if int64(at) < before || !s.group.confirmed.CompareAndSwap(before, int64(at)) {
		return // everything is dispatched: the store is being closed
	}
	if at >= s.group.awaited && messages.PhysicalOffset(before) < s.group.awaited {
		s.ClearFlag(messages.FlagNotReadable)
		close(s.group.reached)
	}
	s.grown.Ring()
	if before < s.dispatched.Load() { // by recovery: the dispatcher does not tell of it again
		for _, bell := range s.plugged.bells {
			bell.Ring()
		}
	}
}

// dispatchAll ends the limit: a stop has to come to the log's end. What the group does not confirm is cut from the queues with the log.
func (s *Store) dispatchAll() {
	if s.opt.Group != nil {
		s.group.confirmed.Store(math.MaxInt64)
		s.grown.Ring()
	}
}
