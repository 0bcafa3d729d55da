package cluster

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/actors/ha"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/epochs"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/system"
)

// term is the time for which a node has its store open in one role. Methods that open, serve and close take their time, and run on
// goroutines of their own, one after the other.
type term struct {
	cfg    *Config
	leads  bool
	epoch  int64  // of a leader
	record Record // of a leader: with which it was elected
	fenced func() bool
	// diverged is told where a follower's log has to be cut; it must not block.
	diverged func(at messages.PhysicalOffset)

	begun   atomic.Pointer[begun]   // nil until the store is open and, of a leader, its epoch has begun
	carrier atomic.Pointer[carrier] // of a leader, once it serves
	seat    atomic.Pointer[seat]    // of a follower: whom it follows

	mu   sync.Mutex // of the history
	past epochs.History

	over atomic.Bool // nothing is acknowledged any more
	ctx  context.Context
	stop context.CancelFunc

	serving  func(context.Context) error // ends what serves clients; nil: nothing does
	unserved bool                        // of the elector: clients could not be served
}

// begun is a term's open store.
type begun struct {
	store *system.Store
	from  messages.PhysicalOffset
}

// seat is who leads.
type seat struct {
	group  string
	epoch  int64
	leader string
}

func (t *term) disk() string { return path.Join(t.cfg.Store.Dir, "epochs.json") }

// open opens the store, cut at an offset: -1 not at all, 0 it is put aside.
func (t *term) open(cutAt messages.PhysicalOffset) (err error) {
	opt := t.cfg.Store
	if cutAt == 0 {
		params := store.Params{Dir: opt.Dir, CommitLogDir: opt.CommitLogDir}
		if err := store.PutAside(opt.Disk, params, time.Now()); err != nil {
			return fmt.Errorf("begin anew: %w", err)
		}
	}
	if t.past, err = epochs.Load(opt.Disk, t.disk()); err != nil {
		return err
	}
	opt.Role, opt.HAMaster, opt.HAFullCopy = messages.Slave, "", true
	opt.Group = &ha.Group{Fenced: t.fenced, GreetLeader: t.greetLeader, GreetFollower: t.greetFollower, CutAt: max(cutAt, 0), TLS: t.cfg.TLS}
	opt.HAListen = ""
	opt.HAHeartbeat, opt.HAHousekeeping = t.cfg.Lease/4, 2*t.cfg.Lease
	opt.SlaveTimeout = max(opt.SlaveTimeout, 2*t.cfg.Lag)
	if t.leads {
		opt.Role, opt.HAListen = messages.SyncMaster, t.cfg.node(t.cfg.ID).Port(PortReplication)
	}
	s, err := system.Open(opt)
	if err != nil {
		return err
	}
	b := &begun{store: s}
	_, b.from = s.LogRange()
	if t.leads {
		err := t.begin(b)
		if err == nil {
			_, err = s.SetInSync(t.ctx, messages.InSync{Nodes: t.record.others(t.cfg.ID), Min: t.cfg.MinInSync})
		}
		if err != nil {
			return errors.Join(err, t.shut(s))
		}
	}
	t.begun.Store(b) // from here on greetings are answered
	return nil
}

// begin writes down that the leader's epoch begins at the log's end. A log that was in no group becomes the group's.
func (t *term) begin(b *begun) error {
	past := t.past
	if past.Group != t.record.Group {
		past = epochs.History{Group: t.record.Group}
		if first, _ := b.store.LogRange(); first >= 0 && b.from > first && t.epoch > 1 {
			return fmt.Errorf("%w: the log is of group %q, elected was one of %s", ErrDiverged, t.past.Group, t.record.Group)
		} else if first >= 0 {
			history, _ := past.Begin(t.epoch, first) // all that was there is of the first epoch
			return t.adopt(history)
		}
	}
	history, err := past.Begin(t.epoch, b.from)
	if err != nil {
		return err
	}
	return t.adopt(history)
}

// history is what is known of the log.
func (t *term) history() epochs.History {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.past
}

// adopt makes a history the log's, durably.
func (t *term) adopt(h epochs.History) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reflect.DeepEqual(h, t.past) {
		return nil
	}
	if err := epochs.Save(t.cfg.Store.Disk, t.disk(), h); err != nil {
		return err
	}
	t.past = h
	return nil
}

// prepare starts what serves clients, of a leader once the nodes in sync have everything that it began with.
func (t *term) prepare(role Role) (err error) {
	s := t.begun.Load().store
	files := t.cfg.Store.Disk
	if t.leads {
		if err := s.AwaitConfirmed(t.ctx); err != nil {
			return err
		}
		c := newCarrier(files, s, t.fenced)
		if err := c.restore(t.ctx, t.epoch == 1); err != nil {
			return err
		}
		if err := s.DeliverDelayed(t.ctx, true); err != nil {
			return err
		}
		files = c
		t.carrier.Store(c)
	}
	t.serving, err = t.cfg.Serve(s, role, files)
	return err
}

// end closes everything; what hangs is left as by a crash. Clients have so long to take their answers.
func (t *term) end(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	var err error
	if b := t.begun.Load(); b != nil && t.leads {
		// Puts that wait for replicas are told now that nothing comes of it: what serves clients waits for them.
		_, _ = b.store.SetInSync(ctx, messages.InSync{Nodes: t.record.others(t.cfg.ID), Min: t.cfg.MinInSync})
	}
	if t.serving != nil {
		err = t.serving(ctx)
	}
	if b := t.begun.Load(); b != nil {
		if !t.leads {
			err = errors.Join(err, newCarrier(t.cfg.Store.Disk, b.store, t.fenced).keepDelays())
		}
		err = errors.Join(err, t.shut(b.store))
	}
	return err
}

func (t *term) shut(s *system.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return s.Close(ctx)
}
