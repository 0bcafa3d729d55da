package system

import (
	"errors"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// Refusal is why a put did not enter the store.
type Refusal string

// Why puts are refused: what is in flight, what has happened to the store, or what an operator has set.
const (
	RefusedTooMany Refusal = "too_many" // MaxPendingPuts or MaxPendingBytes
	RefusedBusy    Refusal = "busy"     // puts wait for their turn for too long
	RefusedFlagged Refusal = "flagged"  // a running flag: the disk is full, for instance
	RefusedSlave   Refusal = "slave"
	RefusedFailed  Refusal = "failed" // a storage actor has failed
	RefusedStopped Refusal = "stopped"
)

var refusals = [...]Refusal{RefusedTooMany, RefusedBusy, RefusedFlagged, RefusedSlave, RefusedFailed, RefusedStopped}

// refusalOf sorts the causes that admission gives.
func refusalOf(err error) Refusal {
	switch {
	case errors.Is(err, ErrTooManyPuts):
		return RefusedTooMany
	case errors.Is(err, ErrWriterBusy):
		return RefusedBusy
	case errors.Is(err, ErrStopped):
		return RefusedStopped
	case errors.Is(err, ErrSlave):
		return RefusedSlave
	case errors.Is(err, messages.ErrFailed):
		return RefusedFailed
	}
	return RefusedFlagged
}

// Stats are counters and levels for whoever watches a store, beside those of Status and Cleaning.
type Stats struct {
	Segments     int                     // of the commit log
	Queues       int                     // consume queues
	ParkedPulls  int64                   // pulls that wait for a message
	PendingPuts  int64                   // puts in flight
	PendingBytes int64                   // of them
	Refused      map[Refusal]int64       // puts that did not enter, since the store was opened
	Flushes      actors.Times            // syncs of the commit log
	Mailboxes    map[actors.Role]int     // messages that wait, by storage actor
	LogMin       messages.PhysicalOffset // where the log begins
}

// Stats returns the counters of this moment. It takes no lock that a put takes; it is meant for once a second or less.
func (s *Store) Stats() Stats {
	st := Stats{
		Segments: s.log.View().Len(), Queues: s.queues.Len(), ParkedPulls: s.parked(), LogMin: max(s.log.Min(), 0),
		Flushes: s.flushed.Syncs.Times(), Refused: map[Refusal]int64{}, Mailboxes: map[actors.Role]int{},
	}
	st.PendingPuts, st.PendingBytes = s.admission.pending()
	for i, why := range refusals {
		st.Refused[why] = s.admission.refused[i].Load()
	}
	for role, port := range s.cast.ports {
		st.Mailboxes[role] = port.UserMessageCount()
	}
	return st
}

// Actors lists the store's actors, by their paths: what waits for them, what they have handled, how often they have panicked.
func (s *Store) Actors() []actors.Standing { return actors.Standings(s.cast.system) }
