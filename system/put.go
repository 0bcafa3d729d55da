package system

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
)

// Why a put is refused; the status says the same in RocketMQ's words.
var (
	// ErrBodyTooLarge: the body, or the batch, is larger than MaxMessageBytes.
	ErrBodyTooLarge = errors.New("body is too large")
	// ErrTooManyPuts: MaxPendingPuts or MaxPendingBytes are in flight.
	ErrTooManyPuts = errors.New("too many puts in flight")
	// ErrRefused: a put hook has refused the message.
	ErrRefused = errors.New("refused by a put hook")
	// ErrQueue: the message names a queue that can't be, so that nobody could read it.
	ErrQueue = errors.New("no such queue can be: they are numbered from 0, and a topic is the name of a folder")
	// ErrWriterBusy: puts have been waiting for their turn for longer than BusyTimeout.
	ErrWriterBusy = errors.New("the commit-log writer is busy")
)

// maxPooledBytes bounds the buffer of a pooled envelope, so that one large message does not stay for ever.
const maxPooledBytes = 1 << 20

// Put stores one message and returns when the promise of the flush mode is met. The message and its bytes are the
// caller's again when Put returns.
//
// An error says why the status is not PUT_OK. When the status is SERVICE_NOT_AVAILABLE, MESSAGE_ILLEGAL,
// PROPERTIES_SIZE_EXCEEDED, OS_PAGECACHE_BUSY or CREATE_MAPEDFILE_FAILED nothing was stored; FLUSH_DISK_TIMEOUT means
// stored, not confirmed; UNKNOWN_ERROR means that the message may be stored. The context's deadline bounds the waiting:
// once the message has been handed to the writer, a context that is merely cancelled has no effect.
func (s *Store) Put(ctx context.Context, m *messages.Message) (messages.PutResult, error) {
	return s.putAndWait(ctx, m, s.encodeOne)
}

// PutBatch stores the messages of one batch: envelope.Body is the producer's batch encoding (spec/store.md §2.10). Either
// all are stored, with consecutive queue offsets, or none. Everything else is as with Put.
func (s *Store) PutBatch(ctx context.Context, envelope *messages.Message) (messages.PutResult, error) {
	return s.putAndWait(ctx, envelope, s.encodeBatch)
}

// PutMessages stores messages of one queue as one batch; topic, queue, hosts and times are the first one's.
func (s *Store) PutMessages(ctx context.Context, list []messages.Message) (messages.PutResult, error) {
	if len(list) == 0 {
		return refused(messages.MessageIllegal, fmt.Errorf("an empty batch: %w", record.ErrBadBatch))
	}
	body, err := record.EncodeBatchBody(nil, list)
	if err != nil {
		return refused(messages.MessageIllegal, err)
	}
	envelope := list[0]
	envelope.Body, envelope.Properties, envelope.Flag = body, "", 0
	return s.PutBatch(ctx, &envelope)
}

// PutAsync stores one message and calls done once, when the promise is met or refused. waitStored false answers as soon as
// the message is in the page cache, whatever the flush mode. done runs on an actor's goroutine, or on the caller's before
// PutAsync returns: it must not block, and must not call Put of this store; a panic in it there is logged and concerns nobody else. The message is the caller's again when
// PutAsync returns.
func (s *Store) PutAsync(m *messages.Message, waitStored bool, deadline time.Time, done func(messages.PutResult, error)) {
	s.putAsync(m, s.encodeOne, waitStored, deadline, done)
}

// PutBatchAsync is PutAsync for a batch; see PutBatch.
func (s *Store) PutBatchAsync(
	envelope *messages.Message, waitStored bool, deadline time.Time, done func(messages.PutResult, error),
) {
	s.putAsync(envelope, s.encodeBatch, waitStored, deadline, done)
}

// encoder turns a message into the records of a put, or says why it can't be stored.
type encoder func(p *messages.PutMessage, m *messages.Message) (messages.PutStatus, error)

func (s *Store) putAndWait(ctx context.Context, m *messages.Message, encode encoder) (messages.PutResult, error) {
	if err := ctx.Err(); err != nil {
		return refused(messages.ServiceNotAvailable, context.Cause(ctx))
	}
	p := s.puts.Get().(*messages.PutMessage)
	defer s.recycle(p)
	if status, err := encode(p, m); err != nil {
		return refused(status, err)
	}
	p.WaitStored = m.Properties.Waits()
	p.Deadline, _ = ctx.Deadline()
	n := int64(len(p.Records))
	if err := s.admission.enter(n); err != nil {
		return refused(s.admissionStatus(err), err)
	}
	if err := s.writer.PostWaiting(p); err != nil {
		s.admission.leave(n)
		return refused(messages.OSPageCacheBusy, err)
	}
	p.Wait()
	s.admission.leave(n)
	return p.Result, p.Err
}

func (s *Store) putAsync(
	m *messages.Message, encode encoder, waitStored bool, deadline time.Time, done func(messages.PutResult, error),
) {
	p := s.puts.Get().(*messages.PutMessage)
	if status, err := encode(p, m); err != nil {
		s.recycle(p)
		done(refused(status, err))
		return
	}
	p.WaitStored, p.Deadline = waitStored, deadline
	n := int64(len(p.Records))
	if err := s.admission.enter(n); err != nil {
		s.recycle(p)
		done(refused(s.admissionStatus(err), err))
		return
	}
	p.OnDone, p.Tell, p.Charged = s.onPlaced, done, n
	if err := s.writer.Post(p.MailboxLink()); err != nil {
		s.recycle(p)
		s.admission.leave(n)
		done(refused(messages.OSPageCacheBusy, err))
	}
}

// placed takes the answer of a put that nobody waits for to its caller.
func (s *Store) placed(p *messages.PutMessage) {
	result, err, done, n := p.Result, p.Err, p.Tell, p.Charged
	s.recycle(p)
	s.admission.leave(n)
	s.tell(done, result, err)
}

// tell gives an answer to a caller on an actor's goroutine: a panic there is the caller's own.
func (s *Store) tell(done func(messages.PutResult, error), result messages.PutResult, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.opt.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("taking the answer of a put panicked")
		}
	}()
	done(result, err)
}

func refused(status messages.PutStatus, err error) (messages.PutResult, error) {
	return messages.PutResult{Status: status}, err
}

func (s *Store) recycle(p *messages.PutMessage) {
	p.Reset()
	if cap(p.Records) <= maxPooledBytes {
		s.puts.Put(p)
	}
}

// encodeOne checks a message in the order of spec/store.md §3.2 and encodes it.
func (s *Store) encodeOne(p *messages.PutMessage, m *messages.Message) (messages.PutStatus, error) {
	if len(s.plugged.hooks) > 0 {
		var status messages.PutStatus
		var err error
		if m, status, err = s.callHooks(p, m); err != nil {
			return status, err
		}
	}
	if err := checkQueue(m); err != nil {
		return messages.MessageIllegal, err
	}
	if n := len(m.Body); n > s.opt.MaxMessageBytes {
		return messages.MessageIllegal, fmt.Errorf("body of %d bytes, limit %d: %w", n, s.opt.MaxMessageBytes, ErrBodyTooLarge)
	}
	later, err := s.delays.Postponed(m)
	if err != nil {
		return messages.MessageIllegal, err
	}
	grows := 0
	if later != m { // it comes back under its own topic: it must fit then too
		grows = max(0, len(m.Topic)-len(later.Topic))
	}
	return s.encode(p, later, grows)
}

// checkQueue refuses a message for a queue that can't be made: it would be acknowledged, and be in the log alone. The length of a topic is checked
// with the record's.
func checkQueue(m *messages.Message) error {
	if m.QueueID >= 0 && (consumequeue.FolderName(m.Topic) || m.Topic == "" || len(m.Topic) > messages.MaxTopicBytes) {
		return nil
	}
	return fmt.Errorf("queue %d of topic %q: %w", m.QueueID, m.Topic, ErrQueue)
}

// encodeAsItIs encodes a message whose delay has passed: it was accepted when it came, whatever it and the limits say now.
func (s *Store) encodeAsItIs(p *messages.PutMessage, m *messages.Message) (messages.PutStatus, error) {
	return s.encode(p, m, 0)
}

// encode encodes a message that may grow by so many bytes when it is delivered.
func (s *Store) encode(p *messages.PutMessage, m *messages.Message, grows int) (messages.PutStatus, error) {
	var err error
	switch {
	case s.opt.MultiDispatch:
		if m, err = furtherQueues(p, m); err != nil {
			return messages.MessageIllegal, err
		}
	case strings.Contains(string(m.Properties), messages.PropertyMultiQueueOffset):
		m = withoutFurther(p, m)
	}
	m = s.withHost(p, m)
	if p.Records, err = record.Append(p.Records, m); err != nil {
		return statusOf(err, m), err
	}
	if p.Multi {
		grows += furtherBytes(p)
	}
	return s.describe(p, m, 1, grows)
}

func (s *Store) encodeBatch(p *messages.PutMessage, m *messages.Message) (messages.PutStatus, error) {
	if len(s.plugged.hooks) > 0 {
		var status messages.PutStatus
		var err error
		if m, status, err = s.callHooks(p, m); err != nil {
			return status, err
		}
	}
	if err := checkQueue(m); err != nil {
		return messages.MessageIllegal, err
	}
	m = record.BatchWithout(m, &p.Scratch, messages.PropertyMultiQueueOffset) // members of a batch go to no further queue
	m = s.withHost(p, m)
	// What a batch grows to is known before it is encoded: small members under a large envelope can expand a lot.
	size, count, err := record.BatchSize(m, s.opt.MaxMessageBytes)
	if err != nil {
		return statusOf(err, m), err
	}
	if int64(size)+record.BlankBytes > s.opt.SegmentBytes {
		return messages.MessageIllegal, fmt.Errorf("a batch of %d bytes, segments have %d: %w", size, s.opt.SegmentBytes, ErrBodyTooLarge)
	}
	p.Records = record.AppendBatch(p.Records, m, size)
	return s.describe(p, m, int32(count), 0)
}

// describe fills in what the writer must know of encoded records.
func (s *Store) describe(p *messages.PutMessage, m *messages.Message, count int32, grows int) (messages.PutStatus, error) {
	if n := int64(len(p.Records) + grows); n+record.BlankBytes > s.opt.SegmentBytes {
		return messages.MessageIllegal, fmt.Errorf("%d bytes, segments have %d: %w", n, s.opt.SegmentBytes, ErrBodyTooLarge)
	}
	p.Count, p.Queue, p.SysFlag = count, m.Queue(), m.SysFlag
	return messages.PutOK, nil
}

// withHost returns the message with the store's host filled in, in the scratch message of the envelope.
func (s *Store) withHost(p *messages.PutMessage, m *messages.Message) *messages.Message {
	if m.StoreHost.IsValid() && m.BornHost.IsValid() {
		return m
	}
	p.Scratch = *m
	if !m.StoreHost.IsValid() {
		p.Scratch.StoreHost = s.opt.StoreHost
	}
	if !m.BornHost.IsValid() {
		p.Scratch.BornHost = netip.AddrPortFrom(s.opt.StoreHost.Addr(), 0)
	}
	return &p.Scratch
}

// statusOf says an encoding error in RocketMQ's words.
func statusOf(err error, m *messages.Message) messages.PutStatus {
	if errors.Is(err, record.ErrPropertiesTooLong) && utf16Units(string(m.Properties)) <= math.MaxInt16 {
		return messages.PropertiesSizeExceeded
	}
	return messages.MessageIllegal
}

// utf16Units is the length that Java counts.
func utf16Units(text string) int {
	n := 0
	for _, r := range text {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

func (s *Store) admissionStatus(err error) messages.PutStatus {
	if errors.Is(err, ErrTooManyPuts) || errors.Is(err, ErrWriterBusy) {
		return messages.OSPageCacheBusy
	}
	return messages.ServiceNotAvailable
}
