package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// Start says where a subscription begins.
type Start int

// Where a subscription begins.
const (
	FromCommitted Start = iota // at the group's committed offset; without one at the first message
	FromFirst
	FromEnd
	FromTime // at the first message that was stored at Subscription.Time or later
)

// Subscription says what is to be delivered, and to whom.
type Subscription struct {
	Topic  string
	Queues []int32 // empty: all that the topic has now
	Group  string  // whose offsets are committed as messages are acknowledged; empty: nobody's
	From   Start
	Time   time.Time
	Tags   []string // empty: all messages

	// Window is how many messages, and WindowBytes how many bytes, of each queue may be delivered and not acknowledged; default 256, and
	// 1 MiB. One message comes whatever its size.
	Window      int
	WindowBytes int
	// Handle gets the messages, on a goroutine of the subscription, one at a time; those of a queue in order. It may block: nothing more
	// than the window comes meanwhile. One that panics gets the same message again a second later. The context ends with the
	// subscription.
	Handle func(context.Context, *Delivery)
}

// Delivery is a message of a subscription.
type Delivery struct {
	Message messages.StoredMessage
	c       *Client
	reader  *reader
	epoch   int
	once    atomic.Bool
}

// Ack says that the message has been handled: it will not be delivered again to this subscription, nor, once all before it in its queue
// are acknowledged too, to one that begins at the group's committed offset. It does not block, and may be called by anyone, at any time.
func (d *Delivery) Ack() {
	if !d.once.Swap(true) {
		d.c.root.Send(d.c.pid, acked{d.reader, d.epoch, d.Message.QueueOffset})
	}
}

// Subscribed is a running subscription.
type Subscribed struct {
	Subscription
	c       *Client
	inbox   inbox
	readers []*reader
	alive   context.Context //nolint:containedctx // ends with Close
	end     context.CancelFunc
	over    chan struct{} // closed when the handler has returned for the last time
	closing sync.Once
}

// panicPause is how long a handler that has panicked is left alone.
const panicPause = time.Second

// Subscribe begins to deliver messages. It returns when the first offsets are known.
func (c *Client) Subscribe(ctx context.Context, s Subscription) (*Subscribed, error) {
	if s.Handle == nil || s.Window < 0 || s.WindowBytes < 0 {
		return nil, fmt.Errorf("%w: Handle is missing, or a window is below 0", ErrOptions)
	}
	s.Window = cmp.Or(s.Window, 256)
	s.WindowBytes = cmp.Or(s.WindowBytes, 1<<20)
	ask := Ask{Topic: s.Topic, Queues: s.Queues, Group: s.Group}
	if s.From == FromTime {
		ask.At = s.Time
	}
	offsets, err := c.Offsets(ctx, ask)
	if err != nil {
		return nil, err
	}
	if len(offsets) == 0 {
		return nil, fmt.Errorf("%w: topic %s", ErrNoQueues, s.Topic)
	}
	d := &Subscribed{Subscription: s, c: c, over: make(chan struct{})}
	d.inbox.news = make(chan struct{}, 1)
	d.alive, d.end = context.WithCancel(c.alive)
	for _, q := range offsets {
		d.readers = append(d.readers, newReader(d, q.QueueID, d.startOf(q)))
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		d.end()
		return nil, ErrClosed
	}
	c.handlers.Go(d.run)
	for _, r := range d.readers {
		c.root.Send(c.pid, r)
	}
	return d, nil
}

func (d *Subscribed) startOf(q QueueOffsets) messages.QueueOffset {
	switch {
	case d.From == FromEnd:
		return q.Max
	case d.From == FromTime:
		return q.ByTime
	case d.From == FromCommitted && q.Committed != messages.NoOffset:
		return q.Committed
	}
	return q.Min
}

// Close ends the subscription, once the handler has returned; what it has acknowledged is told to the node. It must not be called by the
// handler.
func (d *Subscribed) Close() {
	d.closing.Do(func() {
		d.end()
		<-d.over
		gone := messages.NewAnswer[struct{}]()
		d.c.root.Send(d.c.pid, leave{d, gone})
		select {
		case <-gone.Done():
		case <-d.c.alive.Done(): // the client ends everything itself
		}
	})
}

// run calls the handler.
func (d *Subscribed) run() {
	defer close(d.over)
	for {
		select {
		case <-d.alive.Done():
			return
		case <-d.inbox.news:
		}
		for _, m := range d.inbox.take() {
			for !d.handle(m) {
				select {
				case <-time.After(panicPause):
				case <-d.alive.Done():
					return
				}
			}
			if d.alive.Err() != nil {
				return
			}
		}
	}
}

func (d *Subscribed) handle(m *Delivery) bool {
	err := actors.Protect("handle a message", func() error { d.Handle(d.alive, m); return nil })
	if errors.Is(err, messages.ErrPanicked) {
		d.c.opt.Logger.Error().Err(err).Str("topic", d.Topic).Int64("offset", int64(m.Message.QueueOffset)).Msg("a handler panicked; it gets the message again")
		return false
	}
	return true
}

// inbox is what the core has put down for a handler: no more than the windows.
type inbox struct {
	mu   sync.Mutex
	list []*Delivery
	news chan struct{} // one token when there is something
}

func (b *inbox) put(all []*Delivery) {
	b.mu.Lock()
	b.list = append(b.list, all...)
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
}

func (b *inbox) take() []*Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.list
	b.list = nil
	return all
}
