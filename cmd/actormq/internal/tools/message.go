package tools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

const (
	// toolGroup is the group in whose name messages are read; brokers always have it.
	toolGroup = "TOOLS_CONSUMER"
	// pullMessages is how many messages a pull asks for.
	pullMessages = 32
)

type stored = messages.StoredMessage

func messageCommand() *cobra.Command {
	return parent("message", "Find messages", messageShow(), messageFind(), messageTrace())
}

func messageShow() *cobra.Command {
	var f flags
	return f.command(&cobra.Command{
		Use: "show ID", Short: "Show the message with an offset message id",
		Long: `Shows the message with an offset message id, as produce and consume print it. The id names the broker; --broker asks another one, which must
have the same log. What RocketMQ's clients show as msgId is the unique key of a message: "actormq message find --unique-key" takes that.`,
		Example: "  actormq message show 7F00000100002A9F0000000000000000 --json", Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		b, m, err := cl.byID(ctx, args[0], f.broker != "")
		if err != nil {
			return err
		}
		return cl.print(LineOf(b.Name, m))
	})
}

// byID asks the broker that an offset message id names, or the one that was chosen, for the message.
func (cl *cluster) byID(ctx context.Context, id string, chosen bool) (client.Broker, *stored, error) {
	host, at, err := messages.ParseOffsetMessageID(id)
	if err != nil {
		return client.Broker{}, nil, err
	}
	b := client.Broker{Name: host.String(), Address: host.String()}
	if chosen {
		b = cl.brokers[0]
	}
	for _, known := range cl.brokers {
		if known.Address == b.Address {
			b = known
		}
	}
	m, err := cl.MessageAt(ctx, b.Address, at)
	if client.HasCode(err, remoting.ResponseSystemError) {
		return b, nil, fmt.Errorf("message %s: %w: %w", id, ErrNotFound, err)
	}
	return b, m, err
}

// wanted is what message find looks for.
type wanted struct {
	topic, key, unique, from, to string
	max                          int64

	sinceMs, untilMs int64 // both included
}

func messageFind() *cobra.Command {
	var f flags
	var w wanted
	c := f.command(&cobra.Command{
		Use: "find --topic TOPIC [--key KEY | --unique-key KEY] [--from TIME] [--to TIME]", Short: "Find messages by key, unique key or time",
		Long: `Finds messages of a topic: by a key of the application, or by the unique key that the client gave the message, in the index of each
broker; or, without a key, those that were stored between two times, queue by queue.`,
		Example: `  actormq message find --topic orders --key 4711
  actormq message find --topic orders --unique-key 7F0000010A2C18B4AAC27B3D2E5C0000
  actormq message find --topic orders --from 2026-01-31T13:00:00Z --to 2026-01-31T13:05:00Z --json`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, cl *cluster, _ []string) error {
		if err := w.check(); err != nil {
			return err
		}
		if err := cl.wantTopic(ctx, w.topic); err != nil {
			return err
		}
		if w.key+w.unique != "" {
			return cl.findByKey(ctx, &w)
		}
		return cl.findByTime(ctx, &w)
	})
	c.Flags().StringVar(&w.topic, "topic", "", "topic")
	c.Flags().StringVar(&w.key, "key", "", "key of the application")
	c.Flags().StringVar(&w.unique, "unique-key", "", "unique key of the client (UNIQ_KEY)")
	c.Flags().StringVar(&w.from, "from", "", "stored at this time (RFC 3339) or later")
	c.Flags().StringVar(&w.to, "to", "", "stored at this time or before")
	c.Flags().Int64Var(&w.max, "max", 64, "end after so many messages, of each broker")
	mustRequire(c, "topic")
	return c
}

func (w *wanted) check() error {
	w.sinceMs, w.untilMs = 0, math.MaxInt64
	if w.key != "" && w.unique != "" || w.key+w.unique+w.from+w.to == "" {
		return errors.New("want --key, --unique-key, or --from and --to")
	}
	for _, t := range []struct {
		flag, text string
		ms         *int64
	}{{"from", w.from, &w.sinceMs}, {"to", w.to, &w.untilMs}} {
		if t.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, t.text)
		if err != nil {
			return fmt.Errorf("--%s %s: want a time like 2026-01-31T13:00:00Z", t.flag, t.text)
		}
		*t.ms = at.UnixMilli()
	}
	if w.max <= 0 || w.max > math.MaxInt32 {
		return fmt.Errorf("--max %d: want 1 to %d", w.max, math.MaxInt32)
	}
	return nil
}

func (cl *cluster) findByKey(ctx context.Context, w *wanted) error {
	found := 0
	err := cl.each(func(b client.Broker) error {
		all, err := cl.Query(ctx, b.Address, remoting.QueryMessageHeader{
			Topic: w.topic, Key: w.key + w.unique, MaxNum: int32(w.max), BeginTimestampMs: w.sinceMs, EndTimestampMs: w.untilMs,
			UniqueKey: w.unique != "",
		})
		for i := range all[:min(len(all), int(w.max))] {
			if id, _ := all[i].Properties.Get(messages.PropertyUniqKey); w.unique != "" && id != w.unique {
				continue
			}
			found++
			err = errors.Join(err, cl.print(LineOf(b.Name, &all[i])))
		}
		return err
	})
	if err == nil && found == 0 {
		return fmt.Errorf("key %s in topic %s: %w", w.key+w.unique, w.topic, ErrNotFound)
	}
	return err
}

func (cl *cluster) findByTime(ctx context.Context, w *wanted) error {
	found := 0
	err := cl.each(func(b client.Broker) error {
		queues, err := cl.ranges(ctx, b, w.topic)
		if err != nil {
			return err
		}
		left := w.max
		for _, r := range queues {
			q := client.Queue{Broker: b.Name, Address: b.Address, Topic: w.topic, ID: r.Queue}
			at := r.First
			if w.sinceMs > 0 {
				if at, err = cl.OffsetFrom(ctx, q, w.sinceMs); err != nil {
					return err
				}
			}
			var failed error
			err = cl.read(ctx, q, max(at, r.First), r.Next, func(m *stored) bool {
				if m.StoreTimestampMs < w.sinceMs {
					return true
				}
				if m.StoreTimestampMs > w.untilMs || left == 0 {
					return false
				}
				left--
				found++
				failed = cl.print(LineOf(b.Name, m))
				return failed == nil
			})
			if err = errors.Join(err, failed); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && found == 0 {
		return fmt.Errorf("messages of topic %s in that time: %w", w.topic, ErrNotFound)
	}
	return err
}

// read gives the messages of a queue in a range of offsets to fn, until that returns false. What is not there is passed over.
func (cl *cluster) read(ctx context.Context, q client.Queue, from, to int64, fn func(*stored) bool) error {
	for from < to {
		p, err := cl.Pull(ctx, q.Address, remoting.PullMessageHeader{
			ConsumerGroup: toolGroup, Topic: q.Topic, QueueID: q.ID, QueueOffset: from, MaxMsgNums: pullMessages,
			SysFlag: remoting.PullFlagSubscription, Subscription: "*", ExpressionType: "TAG",
		})
		if err != nil {
			return fmt.Errorf("queue %d, offset %d: %w", q.ID, from, err)
		}
		if p.Damaged != nil {
			fmt.Fprintf(cl.notes, "actormq: %s queue %d: left out: %v\n", q.Broker, q.ID, p.Damaged)
		}
		for i := range p.Messages {
			if int64(p.Messages[i].QueueOffset) >= to || !fn(&p.Messages[i]) {
				return nil
			}
		}
		if p.NextBeginOffset <= from {
			return nil
		}
		from = p.NextBeginOffset
	}
	return nil
}
