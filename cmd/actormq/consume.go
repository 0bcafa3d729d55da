package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/system/client"
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
