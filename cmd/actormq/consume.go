package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/client"
	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

const (
	// consumerGroup is the group in whose name messages are read that are read for no group: brokers always have it.
	consumerGroup = "TOOLS_CONSUMER"
	// pullMessages is how many messages a pull asks for; brokers answer with fewer when they are large.
	pullMessages = 32
	// holdTime is how long a broker may hold a pull that finds nothing: as RocketMQ's clients ask for.
	holdTime = 15 * time.Second
	// followPause is the time between two attempts to reach a broker that is gone.
	followPause = time.Second
)

// errInterrupted: a signal came before all was read.
var errInterrupted = errors.New("interrupted")

type consumeFlags struct {
	tools.ConnectFlags

	topic, from, tag, group string
	queue                   int32
	max                     int64
	follow, json            bool
}

func newConsumeCommand() *cobra.Command {
	var f consumeFlags
	c := &cobra.Command{
		Use:   "consume --topic TOPIC [flags]",
		Short: "Print the messages of a topic",
		Long: `Prints the messages of all queues of a topic, a line each: broker, queue, offset, store time (UTC), tag, keys and body.
It reads what was there when it began, in the order of the store times, and ends; with --follow it then waits for more until
a signal comes.

Bodies compressed with zlib are printed as they were before; of those compressed with LZ4 or zstd only that they are. A
body or a field that has characters which cannot be printed is quoted like a string in Go. --json prints bodies that are no
UTF-8 as bodyBase64.

--from says where to begin: first, last (the end: only what comes from now on), an offset (the nearest that exists), or a
time like 2026-01-31T13:00:00Z (the first messages stored at that time or later).

Without --group nothing is changed at the broker. With --group the offsets are committed there, as those of a consumer
group, after the messages were printed, and the next time it goes on from there; --from then says where a queue begins that
has no offset yet. It does not share queues with other consumers of the group.`,
		Example: `  actormq consume --topic orders
  actormq consume --topic orders --follow --from last --tag "new || paid"
  actormq consume --topic orders --from 2026-01-31T13:00:00Z --max 100 --json
  actormq consume --topic orders --group billing --follow`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runConsume(cmd, f) },
	}
	f.Bind(c, 5*time.Second)
	c.Flags().StringVar(&f.topic, "topic", "", "topic to read")
	c.Flags().Int32Var(&f.queue, "queue", -1, "read the queue with this number only")
	c.Flags().StringVar(&f.from, "from", "first", "first, last, an offset, or a time (RFC 3339)")
	c.Flags().Int64Var(&f.max, "max", 0, "end after this many messages; 0: no limit")
	c.Flags().BoolVar(&f.follow, "follow", false, "wait for more at the end")
	c.Flags().StringVar(&f.tag, "tag", "*", "only messages with these tags, with || between them")
	c.Flags().StringVar(&f.group, "group", "", "consumer group whose offsets are used and committed")
	c.Flags().BoolVar(&f.json, "json", false, "print each message as a JSON object")
	mustRequire(c, "topic")
	return c
}

func runConsume(cmd *cobra.Command, f consumeFlags) error {
	from, err := f.check()
	if err != nil {
		return err
	}
	opt, err := f.Options()
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	c := client.New(opt)
	defer c.Close()
	r := &reader{client: c, flags: f, from: from, tags: tagSet(f.tag), out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr()}
	if err = r.open(ctx); err == nil {
		err = r.read(ctx)
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = errInterrupted
		if f.follow {
			err = nil // that is how it ends
		}
	}
	cancel() // a second signal ends the program at once
	return errors.Join(err, r.commitAll(context.WithoutCancel(ctx)))
}

func (f consumeFlags) check() (start, error) {
	from, err := parseStart(f.from)
	if f.max < 0 {
		err = errors.Join(err, fmt.Errorf("--max %d: want 0 or more", f.max))
	}
	return from, err
}

// start is where to begin in each queue: what is set counts, the beginning when nothing is.
type start struct {
	last   bool
	offset int64 // 0: not set
	timeMs int64 // 0: not set
}

func parseStart(s string) (start, error) {
	switch s {
	case "first":
		return start{}, nil
	case "last":
		return start{last: true}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		return start{offset: n}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.UnixMilli() <= 0 {
		return start{}, fmt.Errorf("--from %s: want first, last, an offset, or a time like 2026-01-31T13:00:00Z", s)
	}
	return start{timeMs: t.UnixMilli()}, nil
}

// tagSet takes a tag expression apart (spec/remoting.md §9.7); nil: every message.
func tagSet(expression string) []string {
	var tags []string
	for tag := range strings.SplitSeq(expression, "||") {
		switch tag = strings.TrimSpace(tag); tag {
		case "":
		case "*":
			return nil
		default:
			tags = append(tags, tag)
		}
	}
	return tags
}

// reader reads a topic. It belongs to one goroutine, which also does all the printing.
type reader struct {
	client     *client.Client
	flags      consumeFlags
	from       start
	tags       []string
	out, notes io.Writer

	cursors []*cursor
	printed int64
}

// source is a queue and what is wanted of it; it does not change once it has been placed.
type source struct {
	client.Queue
	sinceMs int64 // messages that were stored before are left out
}

// cursor is how far a queue has been read.
type cursor struct {
	source
	next      int64 // where the next pull begins
	end       int64 // where the queue ended when reading began
	ready     []messages.StoredMessage
	committed int64 // -1: nothing
}

// done is the offset before which all is printed.
func (c *cursor) done() int64 {
	if len(c.ready) > 0 {
		return int64(c.ready[0].QueueOffset)
	}
	return c.next
}

// open finds the queues and where to begin in each.
func (r *reader) open(ctx context.Context) error {
	route, err := r.client.Route(ctx, r.flags.topic)
	if client.HasCode(err, remoting.ResponseTopicNotExist) {
		return fmt.Errorf("topic %s does not exist", r.flags.topic)
	}
	if err != nil {
		return err
	}
	queues, err := client.ReadQueues(route, r.flags.topic)
	if err == nil && len(queues) == 0 {
		err = fmt.Errorf("topic %s has no queue that can be read", r.flags.topic)
	}
	if err == nil {
		queues, err = onlyQueue(queues, r.flags.queue)
	}
	if err != nil {
		return err
	}
	cursors := make([]*cursor, 0, len(queues))
	for _, q := range queues {
		c := &cursor{source: source{Queue: q}, committed: -1}
		if err := r.place(ctx, c); err != nil {
			return err
		}
		cursors = append(cursors, c)
	}
	r.cursors = cursors // not before: what has not been placed must not be committed
	return nil
}

// place sets where a queue begins and ends.
func (r *reader) place(ctx context.Context, c *cursor) error {
	first, err := r.client.MinOffset(ctx, c.Queue)
	if err != nil {
		return err
	}
	if c.end, err = r.client.MaxOffset(ctx, c.Queue); err != nil {
		return err
	}
	c.end = max(c.end, first)
	at, known, err := r.groupOffset(ctx, c)
	if err == nil && !known {
		at, err = r.begin(ctx, c)
	}
	if err != nil {
		return err
	}
	c.next = min(max(at, first), c.end)
	if known {
		c.committed = at
	}
	if known && c.next != at {
		r.note(c.Queue, "the group's offset %d is not there, going on from %d", at, c.next)
	}
	return nil
}

// begin is where --from says that a queue begins.
func (r *reader) begin(ctx context.Context, c *cursor) (int64, error) {
	switch {
	case r.from.last:
		return c.end, nil
	case r.from.timeMs > 0:
		c.sinceMs = r.from.timeMs
		return r.client.OffsetFrom(ctx, c.Queue, r.from.timeMs)
	}
	return r.from.offset, nil
}

// groupOffset is where the group goes on; false when it has not begun yet. Brokers say 0 also of a group that they do not know
// (spec/remoting.md §11.1): that matters only when --from says something else.
func (r *reader) groupOffset(ctx context.Context, c *cursor) (int64, bool, error) {
	if r.flags.group == "" {
		return 0, false, nil
	}
	at, err := r.client.GroupOffset(ctx, c.Queue, r.flags.group)
	switch {
	case client.HasCode(err, remoting.ResponseQueryNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case at > 0 || r.from == start{}:
		return at, at > 0, nil
	}
	known, err := r.client.HasGroupOffset(ctx, c.Queue, r.flags.group)
	return 0, known, err
}

// read prints what is there, then what comes.
func (r *reader) read(ctx context.Context) error {
	if err := r.commitAll(ctx); err != nil { // a group that begins at the end must find that end again
		return err
	}
	if err := r.drain(ctx); err != nil || r.full() || !r.flags.follow {
		return err
	}
	return r.follow(ctx)
}

func (r *reader) full() bool { return r.flags.max > 0 && r.printed >= r.flags.max }

// drain prints what was there at the beginning, the oldest of all queues first.
func (r *reader) drain(ctx context.Context) error {
	for !r.full() {
		var oldest *cursor
		for _, c := range r.cursors {
			if err := r.fill(ctx, c); err != nil {
				return err
			}
			if len(c.ready) > 0 && (oldest == nil || older(&c.ready[0], &oldest.ready[0])) {
				oldest = c
			}
		}
		if oldest == nil {
			return nil
		}
		if err := r.printFirst(oldest); err != nil {
			return err
		}
	}
	return nil
}

// older tells which message was stored first: of those of one broker exactly, of others by their clocks.
func older(a, b *messages.StoredMessage) bool {
	return cmp.Or(cmp.Compare(a.StoreTimestampMs, b.StoreTimestampMs), cmp.Compare(a.PhysicalOffset, b.PhysicalOffset)) < 0
}

// fill pulls until a message is ready or the queue's end is reached; what was ready before is then committed.
func (r *reader) fill(ctx context.Context, c *cursor) error {
	for len(c.ready) == 0 && c.next < c.end {
		if err := r.commit(ctx, c); err != nil {
			return err
		}
		b, err := r.pull(ctx, c.source, c.next, 0)
		if err != nil {
			return err
		}
		if b.next == c.next {
			c.end = c.next // nothing is there, whatever was said before
		}
		r.take(c, b)
	}
	return nil
}

// batch is what comes of a pull.
type batch struct {
	wanted []messages.StoredMessage // those that pass the filter
	next   int64                    // where the next pull begins
	note   string                   // something that the user should know
}

// take gives a cursor what was pulled.
func (r *reader) take(c *cursor, b batch) {
	c.ready, c.next = b.wanted, b.next
	if b.note != "" {
		r.note(c.Queue, "%s", b.note)
	}
}

// printFirst prints the first message that is ready in a queue.
func (r *reader) printFirst(c *cursor) error {
	m := &c.ready[0]
	var err error
	if r.flags.json {
		err = tools.WriteJSON(r.out, tools.LineOf(c.Broker, m))
	} else {
		_, err = fmt.Fprintln(r.out, tools.LineOf(c.Broker, m))
	}
	if err != nil {
		return err
	}
	c.ready = c.ready[1:]
	r.printed++
	return nil
}

func (r *reader) note(q client.Queue, format string, args ...any) {
	fmt.Fprintf(r.notes, "actormq: %s queue %d: %s\n", q.Broker, q.ID, fmt.Sprintf(format, args...))
}

// pull asks for messages from an offset on; with a hold time it waits for them. Safe for concurrent use.
func (r *reader) pull(ctx context.Context, q source, at int64, hold time.Duration) (batch, error) {
	h := remoting.PullMessageHeader{
		ConsumerGroup: r.group(), Topic: q.Topic, QueueID: q.ID, QueueOffset: at, MaxMsgNums: pullMessages,
		SysFlag: remoting.PullFlagSubscription, Subscription: subscription(r.tags), ExpressionType: "TAG",
	}
	if hold > 0 {
		h.SysFlag |= remoting.PullFlagSuspend
		h.SuspendTimeoutMs = hold.Milliseconds()
	}
	p, err := r.client.Pull(ctx, q.Address, h)
	if err != nil {
		return batch{}, fmt.Errorf("%s queue %d, offset %d: %w", q.Broker, q.ID, at, err)
	}
	b := batch{wanted: r.wanted(p.Messages, q.sinceMs), next: p.NextBeginOffset}
	switch {
	case p.Code == remoting.ResponsePullOffsetMoved:
		b.note = fmt.Sprintf("offset %d is not there, going on from %d", at, b.next)
	case b.next > at || p.Code == remoting.ResponsePullNotFound && b.next == at:
	default:
		return batch{}, fmt.Errorf("%s queue %d: the broker sends the reader from offset %d to %d", q.Broker, q.ID, at, b.next)
	}
	return b, nil
}

func (r *reader) group() string {
	if r.flags.group != "" {
		return r.flags.group
	}
	return consumerGroup
}

// subscription is the expression for a set of tags.
func subscription(tags []string) string {
	if len(tags) == 0 {
		return "*"
	}
	return strings.Join(tags, " || ")
}

// wanted sorts out what the broker can't: it knows the hashes of tags only, and times not exactly.
func (r *reader) wanted(all []messages.StoredMessage, sinceMs int64) []messages.StoredMessage {
	return slices.DeleteFunc(all, func(m messages.StoredMessage) bool {
		tag, _ := m.Properties.Get(messages.PropertyTags)
		return m.StoreTimestampMs < sinceMs || len(r.tags) > 0 && !slices.Contains(r.tags, tag)
	})
}

// arrival is what a goroutine that follows a queue hands over.
type arrival struct {
	cursor *cursor
	batch  batch
}

// follow waits for messages in all queues at once.
func (r *reader) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	arrivals := make(chan arrival)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer cancel(nil)
	for _, c := range r.cursors {
		q, at := c.source, c.next
		followers.Go(func() {
			cancel(r.followQueue(ctx, q, at, func(b batch) {
				select {
				case arrivals <- arrival{c, b}:
				case <-ctx.Done():
				}
			}))
		})
	}
	for {
		select {
		case a := <-arrivals:
			if err := r.arrived(ctx, a); err != nil || r.full() {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// arrived prints what has come in a queue.
func (r *reader) arrived(ctx context.Context, a arrival) error {
	r.take(a.cursor, a.batch)
	for len(a.cursor.ready) > 0 && !r.full() {
		if err := r.printFirst(a.cursor); err != nil {
			return err
		}
	}
	err := r.commit(ctx, a.cursor)
	if followRetryable(err) {
		r.note(a.cursor.Queue, "commit: %v", err) // the next one says it again
		return nil
	}
	return err
}

// followQueue pulls until the context ends, or something is wrong that time does not mend.
func (r *reader) followQueue(ctx context.Context, q source, at int64, emit func(batch)) error {
	for trouble := false; ctx.Err() == nil; {
		b, err := r.pull(ctx, q, at, holdTime)
		switch {
		case err == nil:
			trouble = false
			at = b.next
			emit(b)
		case !followRetryable(err):
			return err
		default:
			if !trouble { // once is enough
				emit(batch{next: at, note: fmt.Sprintf("%v; trying again", err)})
			}
			trouble = true
			pause(ctx, followPause)
		}
	}
	return context.Cause(ctx)
}

// followRetryable tells what may be over soon: a broker that is being restarted, or has too much to do.
func followRetryable(err error) bool {
	return client.Unreached(err) ||
		client.HasCode(err, remoting.ResponseSystemBusy, remoting.ResponseServiceNotAvailable, remoting.ResponseFlowControl)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// commit stores how far a queue has been printed, if that is wanted and not known yet.
func (r *reader) commit(ctx context.Context, c *cursor) error {
	at := c.done()
	if r.flags.group == "" || at == c.committed {
		return nil
	}
	if err := r.client.Commit(ctx, c.Queue, r.flags.group, at); err != nil {
		return err
	}
	c.committed = at
	return nil
}

func (r *reader) commitAll(ctx context.Context) error {
	for _, c := range r.cursors {
		if err := r.commit(ctx, c); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	return nil
}
