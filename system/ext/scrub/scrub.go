package scrub

import (
	"context"
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
	Offset messages.QueueOffset // of the first message that the error is about
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

// queue compares what a queue has at the moment; false when the store is closing.
func (s *Scrub) queue(ctx context.Context, store *system.Store, key messages.QueueKey) bool {
	at, end := store.MinOffset(key), store.MaxOffset(key)
	for at < end {
		read := 0
		got, err := store.Get(ctx, messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32, WillRead: true})
		if err == nil {
			read = got.Bytes
			err = vfs.Guard("scrub", func() error { return s.compare(key, at, got.Records) })
			next := got.NextOffset
			got.Release()
			if next > at {
				at = next
			} else {
				at++ // nothing stands there: what lacks is another check's business
			}
		} else {
			at++
		}
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			s.report(Damage{Queue: key, Offset: at - 1, Err: err})
		}
		if !wait(ctx, max(time.Duration(read)*time.Second/time.Duration(s.cfg.BytesPerSecond), time.Millisecond)) {
			return false
		}
	}
	return true
}

// compare looks at the records of one get; an error is about reading them, not about what they say.
func (s *Scrub) compare(key messages.QueueKey, from messages.QueueOffset, records [][]byte) error {
	for i, raw := range records {
		s.messages.Add(1)
		s.bytes.Add(int64(len(raw)))
		if _, _, err := record.Parse(raw, true); err != nil {
			s.report(Damage{Queue: key, Offset: from + messages.QueueOffset(i), Err: err})
		}
	}
	return nil
}

func (s *Scrub) report(d Damage) {
	s.found.Add(1)
	s.cfg.Logger.Error().Str("topic", d.Queue.Topic).Int32("queue", d.Queue.QueueID).Int64("offset", int64(d.Offset)).Err(d.Err).Msg("the scrub has found a damaged message")
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
