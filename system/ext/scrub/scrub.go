package scrub

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
)

// Config says how fast a scrub is. The zero value of a field is its default.
type Config struct {
	BytesPerSecond int64         // default 1 MiB
	Pause          time.Duration // between the end of a pass and the next; default 24 h
	OnDamage       func(Damage)  // when set, is told of each damaged message, in each pass; it must not block
	Logger         zerolog.Logger
}

// Damage is a message that can't be read as it was written.
type Damage struct {
	Queue  messages.QueueKey
	Offset messages.QueueOffset
	Err    error
}

// Status is what a scrub has done. Counters are since the start of the store.
type Status struct {
	Passes   int64     // that are over
	Messages int64     // that were compared
	Bytes    int64     // of their records
	Damaged  int64     // messages found damaged in the last whole pass, or in the running one if that are more
	LastPass time.Time // when the last pass was over
}

// Scrub is the extension. Plug it into the options of one store.
type Scrub struct {
	cfg Config

	passes, messages, bytes, damaged, found atomic.Int64
	lastPass                                atomic.Int64 // ns
}

// New returns the extension.
func New(cfg Config) *Scrub {
	if cfg.BytesPerSecond <= 0 {
		cfg.BytesPerSecond = 1 << 20
	}
	if cfg.Pause <= 0 {
		cfg.Pause = 24 * time.Hour
	}
	return &Scrub{cfg: cfg}
}

// Plug adds it to a store's options.
func (s *Scrub) Plug(opt *system.Options) {
	opt.Services = append(opt.Services, system.Service{Name: "scrub", Run: s.run})
}

// Status tells what has been done. Safe for any goroutine.
func (s *Scrub) Status() Status {
	st := Status{
		Passes: s.passes.Load(), Messages: s.messages.Load(), Bytes: s.bytes.Load(), Damaged: max(s.damaged.Load(), s.found.Load()),
	}
	if ns := s.lastPass.Load(); ns > 0 {
		st.LastPass = time.Unix(0, ns)
	}
	return st
}

func (s *Scrub) run(ctx context.Context, store *system.Store) error {
	if store.AwaitConfirmed(ctx) != nil {
		return nil // the store is closing; until then a replica's may not be read
	}
	for {
		s.found.Store(0)
		var queues []messages.QueueKey
		store.EachQueue(func(key messages.QueueKey, _, _ messages.QueueOffset) { queues = append(queues, key) })
		for _, key := range queues {
			if !s.queue(ctx, store, key) {
				return nil
			}
		}
		s.damaged.Store(s.found.Load())
		s.lastPass.Store(time.Now().UnixNano())
		s.passes.Add(1)
		if !wait(ctx, s.cfg.Pause) {
			return nil
		}
	}
}

// What a read costs beside its bytes, after how much of that the scrub rests, and for how long when the store may not be read.
const (
	leastCost   = 30 * time.Microsecond
	longestTurn = 10 * time.Millisecond
	refusedRest = time.Minute
)

// queue compares what a queue has at the moment; false when the store is closing. Messages are read one by one: what a get leaves out,
// places of which it is known that their message is lost, would shift those behind.
func (s *Scrub) queue(ctx context.Context, store *system.Store, key messages.QueueKey) bool {
	at, end := store.MinOffset(key), store.MaxOffset(key)
	var owed time.Duration
	for at < end {
		read := 0
		next := at + 1 // when nothing stands there: what lacks is another check's business
		got, err := store.Get(ctx, messages.GetMessage{Queue: key, Offset: at, MaxMessages: 1, WillRead: true})
		if err == nil {
			read = got.Bytes
			next = max(next, got.NextOffset)
			err = vfs.Guard("scrub", func() error { return s.compare(got.Records) })
			got.Release()
		}
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, system.ErrFlagged): // about the store, not about the message
			if !wait(ctx, refusedRest) {
				return false
			}
			continue
		case err != nil:
			s.report(Damage{Queue: key, Offset: next - 1, Err: err})
		}
		at = next
		owed += max(time.Duration(read)*time.Second/time.Duration(s.cfg.BytesPerSecond), leastCost)
		if owed >= longestTurn || at >= end {
			if !wait(ctx, owed) {
				return false
			}
			owed = 0
		}
	}
	return true
}

// compare looks at the record of one get.
func (s *Scrub) compare(records [][]byte) error {
	for _, raw := range records {
		s.messages.Add(1)
		s.bytes.Add(int64(len(raw)))
		if _, _, err := record.Parse(raw, true); err != nil {
			return err
		}
	}
	return nil
}

// maxLines is how many damaged messages of a pass are lines in the log; Status and OnDamage know all.
const maxLines = 100

func (s *Scrub) report(d Damage) {
	switch n := s.found.Add(1); {
	case n <= maxLines:
		s.cfg.Logger.Error().Str("topic", d.Queue.Topic).Int32("queue", d.Queue.QueueID).Int64("offset", int64(d.Offset)).Err(d.Err).
			Msg("the scrub has found a damaged message")
	case n == maxLines+1:
		s.cfg.Logger.Error().Msg("the scrub has found more damaged messages: its status counts them")
	}
	if s.cfg.OnDamage != nil {
		s.cfg.OnDamage(d)
	}
}

// wait lets time pass; false when the store is closing.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
