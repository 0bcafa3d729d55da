package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// Trial is a store that works on a disk with a fault.
type Trial struct {
	Config
	Flush system.FlushDiskType
	// Fault is called before each disk operation from the time on when the store is open and has taken some messages; it may
	// return an error, stall or panic.
	Fault func(memfs.Op) error
	// Lift has the fault end before the store is stopped, and the store go on; otherwise it is stopped under the fault.
	Lift bool
}

// Outcome tells how a store has borne a fault.
type Outcome struct {
	Puts    map[messages.PutStatus]int // answers while there was the fault
	Down    error                      // why the store takes no puts any more
	Healed  error                      // of a put after the fault was lifted, when the store was not down
	Stopped error                      // what Close returned
}

// patience is how long an answer may take: far more than any deadline.
const patience = 10 * time.Minute

// Run works under the fault, and judges. The error is a promise that was broken: a message that was acknowledged and is lost,
// or was refused and is there, an answer that did not come or came twice. What else the fault did is the outcome.
func (t Trial) Run() (Outcome, error) {
	r := &run{Config: t.Config, rnd: rand.New(rand.NewPCG(t.Seed, 78)), disk: memfs.New()}
	r.Trace, r.At = &Trace{}, map[string]int{}
	r.opt = system.Options{
		Dir: dirName, SegmentBytes: 8192, ConsumeQueueFileBytes: 400, IndexSlots: 30, IndexEntries: 60, WindowBytes: 4096,
		FlushDiskType: t.Flush, Logger: t.Logger,
		FlushThorough: 2 * time.Second, QueueFlushThorough: 2 * time.Second, // so that a fault is met soon
	}
	out := Outcome{Puts: map[messages.PutStatus]int{}}
	r.setTrip(1 << 60)
	if err := r.open(); err != nil {
		return out, err
	}
	for range 12 {
		if err := r.putOne(); err != nil {
			return out, fmt.Errorf("before the fault: %w", err)
		}
	}
	for range 3 {
		if err := r.putDelayed(); err != nil { // due under the fault
			return out, fmt.Errorf("before the fault: %w", err)
		}
	}
	r.Settle()
	r.disk.Inject(t.Fault)
	err := r.underFault(out.Puts)
	if t.Lift {
		r.disk.Inject(nil)
		r.Pause(2 * time.Minute) // more than any pause between attempts
	}
	if out.Down = r.store.Writable(); out.Down == nil && t.Lift {
		out.Healed = r.putOne()
	}
	return out, errors.Join(err, r.leave(&out))
}

// underFault puts and reads.
func (r *run) underFault(count map[messages.PutStatus]int) error {
	for range 25 {
		n := 1 + r.rnd.IntN(5)*r.rnd.IntN(4)
		if err := r.putSome(n, count); err != nil {
			return err
		}
		if err := r.peek(); err != nil {
			return err
		}
		r.Pause([]time.Duration{time.Millisecond, time.Second, 3 * time.Second}[r.rnd.IntN(3)])
		r.Settle()
	}
	return nil
}

type answer struct {
	result messages.PutResult
	err    error
}

// putSome has puts in flight at once, and waits for all answers.
func (r *run) putSome(count int, statuses map[messages.PutStatus]int) error {
	answers := make(chan answer, 2*count)
	for range count {
		n, m := r.next(r.topic(), r.size())
		r.store.PutAsync(&m, true, time.Now().Add(3*time.Second), func(result messages.PutResult, err error) {
			_ = r.answered([]*message{n}, result, err)
			answers <- answer{result, err}
		})
	}
	for i := range count {
		select {
		case a := <-answers:
			if a.err != nil && a.result.Status == messages.PutOK {
				return fmt.Errorf("PUT_OK with an error: %w", a.err)
			}
			statuses[a.result.Status]++
		case <-time.After(patience):
			return fmt.Errorf("%d of %d puts have no answer", count-i, count)
		}
	}
	return nil
}

// peek reads: there may be an error, or less than there should be, but nothing wrong.
func (r *run) peek() error {
	key := r.topic()
	list := r.model.queue(key)
	if len(list) == 0 {
		return nil
	}
	n := list[r.rnd.IntN(len(list))]
	_, _ = r.store.Query(context.Background(), messages.QueryMessage{Topic: key.Topic, Key: n.keys[0], MaxMessages: 3, EndMs: 1 << 61})
	_, _ = r.store.OffsetByTime(context.Background(), key, n.storeMs, messages.TimeLower)
	result, err := r.store.Get(context.Background(), messages.GetMessage{Queue: key, Offset: n.at, MaxMessages: 1})
	if err != nil {
		return nil //nolint:nilerr // the disk has a fault
	}
	defer result.Release()
	for _, raw := range result.Records {
		rec, _, err := record.Parse(raw, true)
		if err != nil || rec.QueueOffset == n.at && string(rec.Body) != string(n.body) {
			return fmt.Errorf("get %v %d: not what was put: %w", key, n.at, err)
		}
	}
	return nil
}

// marked tells whether a store that is down has noted which sync has failed.
func (r *run) marked(disk *memfs.Disk, down error) bool {
	marker := r.params().UnprovenPath()
	if strings.HasPrefix(down.Error(), string(actors.RoleQueueBuilder)) {
		marker = r.params().UnprovenQueuesPath()
	}
	_, err := disk.Stat(marker)
	return err == nil
}

// leave stops the store, cuts the power before or after it, and judges what is left. Sometimes only the process ends there, is
// started again, and then the power is cut: pages that a failed sync has given up must not count as written. That needs the
// marker of a failed sync; a disk that did not take even that has to be restarted with the machine.
func (r *run) leave(out *Outcome) error {
	w := window{flushed: r.store.FlushedTo(), committed: 1 << 62, late: 1 << 62}
	left := r.disk
	early, restart := r.rnd.IntN(2) == 0, r.rnd.IntN(2) == 0
	cut := func() {
		_ = r.model.before(false, w)
		left = r.disk.Clone()
		if out.Down != nil && !r.marked(left, out.Down) {
			restart = false
		}
		if !restart {
			left = left.Crash(r.rnd.Uint64())
		}
	}
	if early {
		cut()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out.Stopped = r.store.Close(ctx)
	r.Settle()
	r.is(nil)
	if !early {
		if out.Stopped == nil {
			r.model.settled()
		}
		cut()
	}
	r.disk.Inject(nil)
	r.disk = left
	if restart {
		r.setTrip(1 << 60)
		if err := r.open(); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
		r.shut()
		r.disk.Inject(nil)
		r.disk = r.disk.Crash(r.rnd.Uint64())
	}
	return errors.Join(r.model.once(), r.judge())
}
