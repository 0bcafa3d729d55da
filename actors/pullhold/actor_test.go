package pullhold

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a running pull hold, with queues that are just their ends.
type rig struct {
	t    testing.TB
	hold *Actor
	peer actors.Peer
	box  *mailbox.Combining
	stop func()

	mu  sync.Mutex
	max map[messages.QueueKey]messages.QueueOffset
}

func newRig(t testing.TB, limit int) *rig {
	t.Helper()
	system := actor.NewActorSystem(fixture.Quiet, actor.WithDeadLetterThrottleInterval(time.Millisecond))
	t.Cleanup(system.Shutdown)
	r := &rig{t: t, max: map[messages.QueueKey]messages.QueueOffset{}, box: mailbox.New(mailbox.Options{})}
	r.hold = New(Config{Max: r.end, Limit: limit})
	props := actor.PropsFromProducer(func() actor.Actor { return r.hold }, actor.WithMailbox(r.box.Producer()))
	pid, err := system.Root.SpawnNamed(props, "hold")
	require.NoError(t, err)
	r.peer = actors.NewPeer(system.Root, pid)
	r.stop = sync.OnceFunc(func() { _ = system.Root.StopFuture(pid).Wait() })
	t.Cleanup(r.stop)
	return r
}

func (r *rig) end(key messages.QueueKey) messages.QueueOffset {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.max[key]
}

// arrive makes a message readable and tells the hold of it, as a builder does.
func (r *rig) arrive(key messages.QueueKey, tag int64) {
	r.mu.Lock()
	at := r.max[key]
	r.max[key] = at + 1
	r.mu.Unlock()
	if r.hold.Held() > 0 {
		r.peer.Send(messages.MessagesArrived{Arrivals: []messages.Arrival{{Queue: key, QueueOffset: at, TagsCode: tag}}})
	}
}

// settle returns when the hold has handled everything that was sent before.
func (r *rig) settle() {
	r.t.Helper()
	done := make(chan messages.WakeReason, 1)
	key := messages.QueueKey{Topic: "settle"}
	p := &messages.ParkPull{Queue: key, Offset: 100, Wake: func(why messages.WakeReason) { done <- why }}
	r.peer.Send(p)
	r.peer.Send(messages.UnparkPull{Pull: p})
	<-done
}

// pull is a parked pull whose wake-ups are counted.
type pull struct {
	messages.ParkPull
	woken chan messages.WakeReason
}

func newPull(key messages.QueueKey, at messages.QueueOffset, deadline time.Time, tags messages.TagFilter) *pull {
	p := &pull{woken: make(chan messages.WakeReason, 10)}
	p.ParkPull = messages.ParkPull{
		Queue: key, Offset: at, Deadline: deadline, Tags: tags, Wake: func(why messages.WakeReason) { p.woken <- why },
	}
	return p
}

func (r *rig) park(key messages.QueueKey, at messages.QueueOffset, tags messages.TagFilter) *pull {
	p := newPull(key, at, time.Now().Add(time.Hour), tags)
	r.peer.Send(&p.ParkPull)
	return p
}

func (r *rig) wantWoken(p *pull, why messages.WakeReason) {
	r.t.Helper()
	select {
	case got := <-p.woken:
		require.Equal(r.t, why, got)
	case <-time.After(20 * time.Second):
		require.FailNow(r.t, "not woken")
	}
}

func only(tag int64) messages.TagFilter { return func(code int64) bool { return code == tag } }

var queue = messages.QueueKey{Topic: "T", QueueID: 1}

func TestArrivalsWakeWhatTheyAreFor(t *testing.T) {
	r := newRig(t, 0)
	r.max[queue] = 5
	all, tagged, later := r.park(queue, 5, nil), r.park(queue, 5, only(7)), r.park(queue, 6, nil)
	elsewhere := r.park(messages.QueueKey{Topic: "T", QueueID: 2}, 0, nil)
	r.settle()
	require.Equal(t, int64(4), r.hold.Held())
	r.arrive(queue, 3)
	r.wantWoken(all, messages.WakeArrived)
	r.settle()
	require.Empty(t, tagged.woken, "the tag does not match")
	require.Empty(t, later.woken, "it waits for a later message")
	r.arrive(queue, 7)
	r.wantWoken(tagged, messages.WakeArrived)
	r.wantWoken(later, messages.WakeArrived)
	r.settle()
	require.Empty(t, elsewhere.woken)
	require.Equal(t, int64(1), r.hold.Held())
	require.Len(t, r.hold.queues, 1, "nothing is kept of queues without pulls")
	for _, p := range []*pull{all, tagged, later} {
		require.Empty(t, p.woken, "woken once")
	}
}

func TestManyPullsOfOneQueue(t *testing.T) {
	r := newRig(t, 0)
	var even, odd []*pull
	for i := range 200 {
		p := r.park(queue, 0, only(int64(i%2)))
		if i%2 == 0 {
			even = append(even, p)
		} else {
			odd = append(odd, p)
		}
	}
	r.settle()
	r.arrive(queue, 0)
	for _, p := range even {
		r.wantWoken(p, messages.WakeArrived)
	}
	r.settle()
	for _, p := range odd {
		require.Empty(t, p.woken)
	}
	require.Equal(t, int64(100), r.hold.Held())
	r.arrive(queue, 1)
	for _, p := range odd {
		r.wantWoken(p, messages.WakeArrived)
	}
}

// Field report L74: a message between the reader's look and its parking.
func TestAPullThatComesTooLateIsWokenAtOnce(t *testing.T) {
	r := newRig(t, 0)
	r.arrive(queue, 1) // nobody is parked: nobody is told
	p := r.park(queue, 0, only(9))
	r.wantWoken(p, messages.WakeArrived) // whatever its filter: reading again decides
	r.settle()
	require.Zero(t, r.hold.Held())
}

func TestNoArrivalIsMissed(t *testing.T) {
	r := newRig(t, 0)
	const rounds, consumers = 2000, 4
	var wg sync.WaitGroup
	ready := make(chan struct{}, consumers)
	for range consumers {
		wg.Go(func() {
			for at := messages.QueueOffset(0); at < rounds; {
				if end := r.end(queue); end > at {
					at = end
					continue
				}
				p := r.park(queue, at, nil) // an arrival may come just before this
				ready <- struct{}{}
				select {
				case why := <-p.woken:
					if why != messages.WakeArrived {
						panic(fmt.Sprintf("woken for %d", why))
					}
				case <-time.After(20 * time.Second):
					panic(fmt.Sprintf("an arrival was missed at %d", at))
				}
			}
		})
	}
	for range rounds {
		select {
		case <-ready:
		default:
		}
		r.arrive(queue, 0)
	}
	go func() {
		wg.Wait()
		close(ready)
	}()
	for range ready {
	}
	wg.Wait()
	r.settle()
	require.Zero(t, r.hold.Held())
}

func TestDeadlines(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Second) })
		r := newRig(t, 0)
		began := time.Now()
		woken := make(chan string, 100)
		next := func() string {
			synctest.Wait()
			select {
			case s := <-woken:
				return s
			default:
				return "nobody"
			}
		}
		park := func(name string, after time.Duration) {
			p := &messages.ParkPull{Queue: messages.QueueKey{Topic: name}, Deadline: began.Add(after)}
			if after == 0 {
				p.Deadline = time.Time{}
			}
			p.Wake = func(why messages.WakeReason) {
				woken <- fmt.Sprintf("%s %v %d", name, time.Since(began), why)
			}
			r.peer.Send(p)
		}
		park("c", 3*time.Second)
		park("a", time.Second) // earlier than the timer
		park("never", 0)
		park("d", 10*time.Second)
		park("b", 2*time.Second)
		park("past", -time.Second)
		park("d2", 10*time.Second)
		<-time.After(5 * time.Second)
		expired := messages.WakeExpired
		for _, want := range []string{"past 0s", "a 1s", "b 2s", "c 3s"} {
			require.Equal(t, fmt.Sprintf("%s %d", want, expired), next())
		}
		require.Equal(t, "nobody", next())
		require.Equal(t, int64(3), r.hold.Held())
		r.arrive(messages.QueueKey{Topic: "d"}, 0)
		require.Equal(t, fmt.Sprintf("d 5s %d", messages.WakeArrived), next())
		<-time.After(time.Minute)
		require.Equal(t, fmt.Sprintf("d2 10s %d", expired), next())
		require.Equal(t, "nobody", next())
		require.Equal(t, int64(1), r.hold.Held())
		r.stop()
		require.Equal(t, fmt.Sprintf("never 1m5s %d", messages.WakeClosed), next())
	})
}

func TestUnpark(t *testing.T) {
	r := newRig(t, 0)
	p, other := r.park(queue, 0, nil), r.park(queue, 0, nil)
	r.peer.Send(messages.UnparkPull{Pull: &p.ParkPull})
	r.wantWoken(p, messages.WakeClosed)
	r.peer.Send(messages.UnparkPull{Pull: &p.ParkPull})
	r.peer.Send(messages.UnparkPull{Pull: &messages.ParkPull{}})
	r.arrive(queue, 0)
	r.wantWoken(other, messages.WakeArrived)
	r.settle()
	require.Empty(t, p.woken)
}

func TestTheHoldIsBounded(t *testing.T) {
	r := newRig(t, 3)
	var held []*pull
	for range 3 {
		held = append(held, r.park(queue, 0, nil))
	}
	r.wantWoken(r.park(queue, 0, nil), messages.WakeClosed)
	r.peer.Send(&held[0].ParkPull) // a second time
	r.arrive(queue, 0)
	for _, p := range held {
		r.wantWoken(p, messages.WakeArrived)
	}
	again := r.park(queue, 1, nil)
	r.stop()
	r.wantWoken(again, messages.WakeClosed)
	for _, p := range held {
		require.Empty(t, p.woken)
	}
}

func TestStopWakesEverybody(t *testing.T) {
	r := newRig(t, 0)
	var pulls []*pull
	for i := range 100 {
		pulls = append(pulls, r.park(messages.QueueKey{Topic: "T", QueueID: int32(i % 7)}, 0, nil))
	}
	r.settle()
	r.stop()
	for _, p := range pulls {
		require.Equal(t, messages.WakeClosed, <-p.woken)
		require.Empty(t, p.woken)
	}
	require.Zero(t, r.hold.Held())
	late := newPull(queue, 0, time.Time{}, nil)
	r.box.PostUserMessage(&late.ParkPull)
	r.wantWoken(late, messages.WakeClosed)
}

func TestAFilterThatPanicsCostsItsOwnPull(t *testing.T) {
	r := newRig(t, 0)
	before := r.park(queue, 0, nil)
	var asked atomic.Int64
	bad := r.park(queue, 0, func(int64) bool {
		asked.Add(1)
		panic("a bug in a filter")
	})
	after := r.park(queue, 0, nil)
	r.settle()
	r.arrive(queue, 0)
	r.wantWoken(before, messages.WakeArrived)
	r.wantWoken(after, messages.WakeArrived)
	r.wantWoken(bad, messages.WakeClosed)
	require.Equal(t, int64(1), asked.Load())
}

func BenchmarkArrivalOfOneOfManyQueues(b *testing.B) {
	r := newRig(b, 0)
	for i := range 10_000 {
		r.park(messages.QueueKey{Topic: "T", QueueID: int32(i)}, 0, nil)
	}
	r.settle()
	m := messages.MessagesArrived{Arrivals: []messages.Arrival{{Queue: messages.QueueKey{Topic: "T", QueueID: 1 << 20}}}}
	b.ReportAllocs()
	for b.Loop() {
		r.hold.arrived(m)
	}
}
