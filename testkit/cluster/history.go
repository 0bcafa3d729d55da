package cluster

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// never is when a call returns that nobody has heard of any more.
const never = math.MaxInt64

// call is what a client has asked of a queue, and when, in nanoseconds from the load's begin.
type call struct {
	body             string // of a message that was sent; empty: it is a read
	queue            int32
	from, to         int64 // offsets: of the message, or of what was read
	called, returned int64
}

// history is what all clients have asked of one topic.
type history struct {
	began time.Time
	calls []call
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// Linearizable tells what of the history can't have happened one after the other, each call at some moment between its begin and its
// end: a queue that is appended to, and read. The error names the first such place. all is what the queues have at the end: a send that was not
// acknowledged has happened if it is there.
//
// A queue's messages have offsets, so there is one order only. It is checked in pieces: porcupine remembers each order that it has looked
// at. What came before a piece is one append that can't have happened before the last of it was asked for.
func (h *history) Linearizable(all map[place]string) error {
	sent := map[string]*call{}
	reads := map[int32][]call{}
	for i := range h.calls {
		if c := &h.calls[i]; c.body != "" {
			sent[c.body] = c
		} else {
			reads[c.queue] = append(reads[c.queue], *c)
		}
	}
	queues := map[int32]map[int64]call{}
	for at, body := range all {
		c := call{queue: at.queue, from: at.at, returned: never} // by somebody who keeps no history
		if known := sent[body]; known != nil {
			c.called, c.returned = known.called, known.returned
		}
		c.to = c.from + 1
		if queues[at.queue] == nil {
			queues[at.queue] = map[int64]call{}
		}
		queues[at.queue][at.at] = c
	}
	for id, appends := range queues {
		if err := linearizable(appends, reads[id]); err != nil {
			return fmt.Errorf("queue %d: %w", id, err)
		}
	}
	return nil
}

// piece is how many messages are looked at together.
const piece = 500

func linearizable(appends map[int64]call, reads []call) error {
	ending := map[int64][]call{} // reads, by the piece that they end in
	for _, r := range reads {
		ending[(r.to-1)/piece] = append(ending[(r.to-1)/piece], r)
	}
	last := int64(0) // when the last append before was asked for
	for first := int64(0); first < int64(len(appends)); first += piece {
		before := call{from: 0, to: first, called: last, returned: never}
		ops := []porcupine.Operation{operation(before, false)}
		for at := first; at < min(first+piece, int64(len(appends))); at++ {
			a, there := appends[at]
			if !there {
				return fmt.Errorf("there is nothing at %d", at)
			}
			last = max(last, a.called)
			ops = append(ops, operation(a, false))
		}
		for _, r := range ending[first/piece] {
			ops = append(ops, operation(r, true))
		}
		if !porcupine.CheckOperations(queueModel, ops) {
			return fmt.Errorf("messages from %d on, and what was read of them, are in no order in which they can have been sent and read", first)
		}
	}
	return nil
}

// step is an operation's input.
type step struct {
	read     bool
	from, to int64
}

func operation(c call, read bool) porcupine.Operation {
	return porcupine.Operation{Input: step{read, c.from, c.to}, Call: c.called, Return: c.returned}
}

// queueModel is a queue: its state is where it ends.
var queueModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		end, s := state.(int64), input.(step)
		if s.read {
			return s.to <= end, end
		}
		return s.from == end || s.from == 0 && s.to == 0, max(end, s.to)
	},
}
