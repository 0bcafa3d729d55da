package crash

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// Acked is a message that a node has acknowledged over the wire.
type Acked struct {
	Queue messages.QueueKey
	At    messages.QueueOffset
	From  messages.PhysicalOffset
	Body  string
	Key   string
}

// Directory is the store of a node that has been killed.
type Directory struct {
	Params store.Params
	// keysFrom is the place up to which the index has been looked at already.
	keysFrom messages.PhysicalOffset
}

// Check recovers the directory in memory, without changing it, and requires that log, queues and index agree, and that every
// acknowledged message is there at its place. Keys are looked up from the place on that the last Check had reached; all asks
// for all of them again. It returns how many messages there are.
func (d *Directory) Check(acked []Acked, all bool) (count int, err error) {
	s, err := store.Open(vfs.New(), d.Params, store.Options{ReadOnly: true})
	if err != nil {
		return 0, fmt.Errorf("recovery: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c := newContent(s)
	list, err := c.readLog(s)
	if err != nil {
		return 0, err
	}
	if len(c.lost) > 0 {
		return 0, fmt.Errorf("%d messages are damaged: nothing can be after a kill", len(c.lost))
	}
	if err := c.readQueues(s); err != nil {
		return 0, err
	}
	if all {
		d.keysFrom = 0
	}
	c.keysFrom = d.keysFrom
	if err := c.agree(s, list); err != nil {
		return 0, err
	}
	d.keysFrom = c.end
	return len(list), missing(list, acked)
}

// missing compares what is there with what was acknowledged.
func missing(list []found, acked []Acked) error {
	var errs []error
	for _, a := range acked {
		i, there := slices.BinarySearchFunc(list, a.From, func(f found, at messages.PhysicalOffset) int { return int(f.from - at) })
		switch {
		case !there:
			errs = append(errs, fmt.Errorf("LOST: %v %d at %d", a.Queue, a.At, a.From))
		case !list[i].queued:
			errs = append(errs, fmt.Errorf("%v %d at %d is not in its queue", a.Queue, a.At, a.From))
		case list[i].queue != a.Queue || list[i].at != a.At || string(list[i].body) != a.Body:
			errs = append(errs, fmt.Errorf("%v %d at %d is another message: %v %d", a.Queue, a.At, a.From, list[i].queue, list[i].at))
		case !slices.Contains(strings.Fields(list[i].keys), a.Key):
			errs = append(errs, fmt.Errorf("%v %d at %d has the keys %q", a.Queue, a.At, a.From, list[i].keys))
		}
	}
	return errors.Join(errs[:min(len(errs), 20)]...)
}
