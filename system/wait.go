package system

import (
	"context"

	"github.com/actormq/actormq/messages"
)

// Park holds a read back until a message arrives or its deadline passes; see messages.ParkPull.
func (s *Store) Park(p *messages.ParkPull) {
	if err := s.readable(); err != nil {
		p.Refuse(err)
		return
	}
	s.pullHold.Send(p)
}

// Unpark takes a parked read out again; it is woken with WakeClosed if it was still held.
func (s *Store) Unpark(p *messages.ParkPull) { s.pullHold.Send(messages.UnparkPull{Pull: p}) }

// GetWait is Get that waits for a message when there is none at the offset, until the context ends: then it returns what
// the last look found, with the status OFFSET_OVERFLOW_ONE or NO_MESSAGE_IN_QUEUE, and no error, as when the store is closed
// meanwhile. A context that has ended before is an error, and so is a store that is closed already: a loop ends by that, or asks the context.
func (s *Store) GetWait(ctx context.Context, m messages.GetMessage) (*messages.GetResult, error) {
	for {
		r, err := s.Get(ctx, m)
		if err != nil || !waits(r.Status, m.Offset) {
			return r, err
		}
		woken := make(chan messages.WakeReason, 1)
		p := &messages.ParkPull{
			Queue: m.Queue, Offset: m.Offset, Tags: m.Tags, Wake: func(why messages.WakeReason) { woken <- why },
		}
		p.Deadline, _ = ctx.Deadline()
		s.Park(p)
		select {
		case <-ctx.Done():
			s.Unpark(p)
			return r, nil
		case why := <-woken:
			if why == messages.WakeExpired {
				<-ctx.Done() // it is the same deadline: whoever sees no message can see why
			}
			if why != messages.WakeArrived {
				return r, nil
			}
		}
		r.Release()
	}
}

// waits tells whether a message may still come at the offset that was asked for.
func waits(status messages.GetStatus, at messages.QueueOffset) bool {
	return status == messages.OffsetOverflowOne || status == messages.NoMessageInQueue && at == 0
}
