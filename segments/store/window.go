package store

import (
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
)

// windowUnits is how many units of a queue are read at once.
const windowUnits = 32

// unitWindow reads a queue from one unit to the next. It is for one goroutine.
type unitWindow struct {
	key     messages.QueueKey
	q       *consumequeue.Queue // nil: there is none
	units   []consumequeue.Unit
	unitsAt messages.QueueOffset
}

// unitAt reads a unit, and some behind it for the next calls.
func (w *unitWindow) unitAt(at messages.QueueOffset) (consumequeue.Unit, error) {
	if i := at - w.unitsAt; i >= 0 && i < messages.QueueOffset(len(w.units)) {
		return w.units[i], nil
	}
	if w.units == nil {
		w.units = make([]consumequeue.Unit, windowUnits)
	}
	n, err := w.q.Read(at, w.units[:windowUnits])
	w.units, w.unitsAt = w.units[:n], at
	if err != nil {
		return consumequeue.Unit{}, err
	}
	if n == 0 {
		return consumequeue.Unit{}, fmt.Errorf("%s/%d: %w", w.key.Topic, w.key.QueueID, consumequeue.ErrAboveMax)
	}
	return w.units[0], nil
}
