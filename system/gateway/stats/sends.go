package stats

import (
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// sends counts sends since the start, as metrics want it: nothing is ever taken back.
type sends struct {
	status [messages.LMQConsumeQueueNumExceeded + 1]atomic.Int64
	times  *actors.Histogram
}

func newSends() sends { return sends{times: actors.NewHistogram(actors.OperationBounds()...)} }

func (s *sends) add(took time.Duration, status messages.PutStatus) {
	if status < 0 || int(status) >= len(s.status) {
		status = messages.UnknownError
	}
	s.status[status].Add(1)
	s.times.Add(took)
}

// Sends is what became of the sends since the start, and how long they took.
type Sends struct {
	Status map[messages.PutStatus]int64 // those that there have been
	Times  actors.Times
}

// Sends returns the counters of this moment.
func (s *Set) Sends() Sends {
	all := Sends{Status: map[messages.PutStatus]int64{}}
	if s == nil || s.items == nil {
		return all
	}
	for status := range s.sends.status {
		if n := s.sends.status[status].Load(); n > 0 {
			all.Status[messages.PutStatus(status)] = n
		}
	}
	all.Times = s.sends.times.Times()
	return all
}
