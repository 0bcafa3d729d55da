package pullhold

import (
	"container/heap"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
)

// Config is what a pull hold is made of.
type Config struct {
	// Max tells the offset behind the last readable message of a queue, 0 for one that is not there; any goroutine.
	Max    func(messages.QueueKey) messages.QueueOffset
	Limit  int    // parked pulls at most; 0: 100,000
	Urge   func() // called when a pull is held: what is not readable yet may be what it waits for; nil: nobody
	Logger zerolog.Logger
}

const (
	defaultLimit = 100_000
	warnEvery    = time.Minute
)

// Actor is the pull hold.
type Actor struct {
	cfg  Config
	self actors.Peer

	queues map[messages.QueueKey][]*parked
	pulls  map[*messages.ParkPull]*parked
	due    byDeadline
	timer  *time.Timer
	timed  time.Time // when timer fires
	warned time.Time // of the last warning that the hold is full

	held atomic.Int64 // len(pulls); counted before a parking pull looks at its queue
	seen watched
}

// parked is a pull that is held.
type parked struct {
	pull  *messages.ParkPull
	place int // in the heap of deadlines, -1 without a deadline
}

// expired is the actor's own timer.
type expired struct{}

// New returns the actor; it never blocks.
func New(cfg Config) *Actor {
	if cfg.Limit <= 0 {
		cfg.Limit = defaultLimit
	}
	return &Actor{cfg: cfg, queues: map[messages.QueueKey][]*parked{}, pulls: map[*messages.ParkPull]*parked{}}
}

// Held is the number of parked pulls. A builder that has made a message readable and then reads 0 need not tell the hold
// of it. Safe for any goroutine.
func (a *Actor) Held() int64 { return a.held.Load() }

// Receive implements actor.Actor.
func (a *Actor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.MessagesArrived:
		a.arrived(m)
	case *messages.ParkPull:
		a.park(m)
	case messages.UnparkPull:
		if p := a.pulls[m.Pull]; p != nil {
			a.wake(p, messages.WakeClosed)
		}
	case expired:
		a.expire()
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
	case *actor.Stopping:
		a.stopping()
	}
}

func (a *Actor) park(m *messages.ParkPull) {
	if a.pulls[m] != nil {
		return // parked already: it is woken once
	}
	if len(a.pulls) >= a.cfg.Limit {
		a.warnFull()
		m.Wake(messages.WakeClosed)
		return
	}
	a.count(m.Queue, 1)
	// What has become readable before the count was raised is seen here; what comes later is told by MessagesArrived.
	if a.cfg.Max(m.Queue) > m.Offset {
		a.count(m.Queue, -1)
		m.Wake(messages.WakeArrived)
		return
	}
	p := &parked{pull: m, place: -1}
	a.pulls[m] = p
	a.queues[m.Queue] = append(a.queues[m.Queue], p)
	if !m.Deadline.IsZero() {
		heap.Push(&a.due, p)
		a.arm()
	}
	if a.cfg.Urge != nil {
		a.cfg.Urge()
	}
}

// count counts a pull of the queue in or out.
func (a *Actor) count(queue messages.QueueKey, by int) {
	a.held.Add(int64(by))
	a.seen.add(queue, int32(by))
}

func (a *Actor) warnFull() {
	if now := time.Now(); now.Sub(a.warned) >= warnEvery {
		a.warned = now
		a.cfg.Logger.Warn().Int("limit", a.cfg.Limit).Msg("too many parked pulls: further ones are answered at once")
	}
}

// arrived wakes the pulls that a message is for.
func (a *Actor) arrived(m messages.MessagesArrived) {
	for i := range m.Arrivals {
		x := &m.Arrivals[i]
		list := a.queues[x.Queue]
		for j := len(list) - 1; j >= 0; j-- {
			p := list[j]
			if x.QueueOffset < p.pull.Offset {
				continue
			}
			if why, yes := a.decide(p, x.TagsCode); yes {
				a.wake(p, why)
			}
		}
	}
}

// decide asks a pull's filter. A filter that panics costs its own pull only.
func (a *Actor) decide(p *parked, tagsCode int64) (why messages.WakeReason, yes bool) {
	defer func() {
		if r := recover(); r != nil {
			a.cfg.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("the filter of a parked pull panicked")
			why, yes = messages.WakeClosed, true
		}
	}()
	return messages.WakeArrived, p.pull.Tags == nil || p.pull.Tags(tagsCode)
}

// wake takes a pull out and tells it.
func (a *Actor) wake(p *parked, why messages.WakeReason) {
	key := p.pull.Queue
	list := a.queues[key]
	for i, other := range list {
		if other == p {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(a.queues, key)
	} else {
		a.queues[key] = list
	}
	delete(a.pulls, p.pull)
	a.count(key, -1)
	if p.place >= 0 {
		heap.Remove(&a.due, p.place)
	}
	a.tell(p.pull, why)
}

// tell wakes a pull. One that panics costs nobody else their wake-up.
func (a *Actor) tell(p *messages.ParkPull, why messages.WakeReason) {
	defer func() {
		if r := recover(); r != nil {
			a.cfg.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("waking a parked pull panicked")
		}
	}()
	p.Wake(why)
}

// arm sets the timer to the earliest deadline. A timer that fires too early is set again.
func (a *Actor) arm() {
	if len(a.due) == 0 {
		return
	}
	next := a.due[0].pull.Deadline
	if a.timer != nil && !next.Before(a.timed) {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	a.timed = next
	a.timer = a.self.After(max(time.Until(next), 0), expired{})
}

func (a *Actor) expire() {
	a.timer = nil
	now := time.Now()
	for len(a.due) > 0 && !a.due[0].pull.Deadline.After(now) {
		a.wake(a.due[0], messages.WakeExpired)
	}
	a.arm()
}

func (a *Actor) stopping() {
	if a.timer != nil {
		a.timer.Stop()
	}
	for _, p := range a.pulls {
		a.wake(p, messages.WakeClosed)
	}
}

// byDeadline is a heap of parked pulls, the earliest deadline first.
type byDeadline []*parked

func (h byDeadline) Len() int           { return len(h) }
func (h byDeadline) Less(i, j int) bool { return h[i].pull.Deadline.Before(h[j].pull.Deadline) }
func (h byDeadline) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *byDeadline) Push(x any) {
	p := x.(*parked)
	p.place = len(*h)
	*h = append(*h, p)
}

// Pop implements heap.Interface.
func (h *byDeadline) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	p.place = -1
	return p
}
