package crash

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

// Steps that mix faults: a disk that is full while the store works, stops and starts, and one that stalls while it stops.

// fillUp leaves hardly any room, goes on as far as that allows, and makes room again. The crash may come at any time.
func (r *run) fillUp() error {
	if err := r.limit(r.disk); err != nil {
		return err
	}
	for range 1 + r.rnd.IntN(20) {
		err := error(nil)
		switch r.rnd.IntN(8) {
		case 0:
			err = r.pause()
		case 1:
			if !r.opt.Pooled() { // else there may be no room to commit what is to be read
				err = r.get()
			}
		case 2:
			err = r.putBatch()
		case 3:
			// It may be refused, or wait in vain for an index that has no room: what it has done is seen after the crash.
			if err = r.deleteTopic(); (errors.Is(err, vfs.ErrNoSpace) || errors.Is(err, context.DeadlineExceeded)) && !r.done() {
				r.trip.now()
			}
		case 4:
			err = r.putDelayed()
		default:
			err = r.putOne()
		}
		r.Settle()
		if r.done() {
			return nil
		}
		if err != nil && !errors.Is(err, messages.ErrDiskFull) {
			return err
		}
	}
	if r.rnd.IntN(3) == 0 {
		if err := r.restartFull(r.model.settled); err != nil || r.done() {
			return err
		}
	}
	r.disk.SetCapacity(0)
	r.Pause(5*time.Second + 300*time.Microsecond)
	r.Settle()
	if r.done() {
		return nil
	}
	return r.putOne() // by itself
}

// limit leaves some pages of room on a disk, or none.
func (r *run) limit(disk *memfs.Disk) error {
	u, err := disk.Usage("/")
	if err != nil {
		return err
	}
	disk.SetCapacity(u.UsedBytes + int64(r.rnd.IntN(5))*4096 + 1)
	r.Trace.add("full: %d bytes", u.UsedBytes)
	return nil
}

// restartFull stops the store on a full disk and starts it again. The stop may find no room: then it is as a kill. The start may find
// none for one small file: then it says so, and works once there is.
func (r *run) restartFull(stopped func()) error {
	err := r.store.Close(context.Background())
	if r.done() {
		return nil
	}
	switch {
	case err == nil:
		stopped()
	case !errors.Is(err, vfs.ErrNoSpace):
		return fmt.Errorf("stop on a full disk: %w", err)
	}
	r.is(nil)
	r.Settle()
	if err = r.open(); errors.Is(err, vfs.ErrNoSpace) {
		r.disk.SetCapacity(0)
		err = r.open()
	}
	return err
}

// recoverFull recovers on a disk that has hardly any room, and then on one that has: nothing may be lost by that.
func (r *run) recoverFull() error {
	if err := r.limit(r.disk); err != nil {
		return err
	}
	r.setTrip(1 << 60)
	err := r.open()
	r.Settle()
	if err == nil && r.rnd.IntN(2) == 0 {
		err = r.restartFull(func() {}) // what the crash has taken is not known yet
	}
	r.shut()
	r.disk.Inject(nil)
	r.disk.SetCapacity(0)
	if err != nil && !errors.Is(err, vfs.ErrNoSpace) {
		return err
	}
	_, _, err = r.recovered() // damage is closed only once there is room for a copy of it, and a clean start does not look for any
	return err
}

// stopStalled stops the store while the disk stalls: it waits, or gives up when its time is over. Then comes the crash.
func (r *run) stopStalled() error {
	stall := int64(time.Duration(1+r.rnd.IntN(8))*time.Second + 700*time.Microsecond)
	r.trip.slow.Store(stall)
	r.trip.stall.Store(stall)
	patience := []time.Duration{time.Minute, 1500 * time.Millisecond}[r.rnd.IntN(2)]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range r.rnd.IntN(4) { // in flight while it stops
		n, m := r.next(r.topic(), r.size())
		r.store.PutAsync(&m, true, time.Time{}, func(result messages.PutResult, err error) {
			_ = r.answered([]*message{n}, result, err)
		})
	}
	err := r.store.Close(ctx)
	if !r.done() && err == nil {
		r.model.settled()
		r.is(nil)
	}
	r.trip.now() // the crash ends it: what was in flight has been promised or not
	r.trip.stall.Store(0)
	r.Pause(time.Minute + 500*time.Microsecond) // what hangs comes to its end
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errPower) {
		r.late = errors.Join(r.late, fmt.Errorf("stop while the disk stalls: %w", err))
	}
	return nil
}
