package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

func deadCommand() *cobra.Command {
	return parent("dlq", "List dead letters, and send them again", deadList(), deadResend())
}

// deadRow is a group's dead letters at one broker.
type deadRow struct {
	Broker string `json:"broker"`
	Group  string `json:"group"`
	Count  int64  `json:"messages"`
	Resent int64  `json:"resent"` // of them, by dlq resend
	Last   string `json:"lastStored,omitempty"`
}

func (r deadRow) String() string {
	return fmt.Sprintf("%s broker=%s messages=%d resent=%d last=%s", Shown(r.Group), Shown(r.Broker), r.Count, r.Resent, r.Last)
}

func deadList() *cobra.Command {
	var f flags
	return f.command(&cobra.Command{
		Use: "list [GROUP]", Short: "List the groups that have dead letters, or show those of one",
		Long: `Without GROUP: for each group and broker, how many messages its consumers have given up, how many of them were sent again, and when the last one
came. With GROUP: the messages themselves, as consume prints them.`,
		Example: "  actormq dlq list\n  actormq dlq list billing --json", Args: cobra.MaximumNArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		if len(args) == 1 {
			return cl.eachDead(ctx, args[0], func(b client.Broker, r offsetRow) error {
				return cl.read(ctx, queueOf(b, r), r.First, r.Next, func(m *stored) bool { return cl.print(LineOf(b.Name, m)) == nil })
			})
		}
		return cl.each(func(b client.Broker) error {
			topics, err := cl.topics(ctx, b)
			for _, name := range slices.Sorted(maps.Keys(topics)) {
				if group, ok := strings.CutPrefix(name, messages.DLQTopicPrefix); ok && err == nil {
					err = cl.countDead(ctx, b, group)
				}
			}
			return err
		})
	})
}

func queueOf(b client.Broker, r offsetRow) client.Queue {
	return client.Queue{Broker: b.Name, Address: b.Address, Topic: r.Topic, ID: r.Queue}
}

func (cl *cluster) countDead(ctx context.Context, b client.Broker, group string) error {
	rows, err := cl.offsets(ctx, b, toolGroup, messages.DLQTopicPrefix+group)
	if err != nil {
		return err
	}
	queues, err := cl.ranges(ctx, b, messages.DLQTopicPrefix+group)
	if err != nil {
		return err
	}
	d := deadRow{Broker: b.Name, Group: group}
	for i, r := range rows {
		d.Count += r.Next - r.First
		if r.At != nil {
			d.Resent += max(min(*r.At, r.Next)-r.First, 0)
		}
		if i < len(queues) {
			d.Last = max(d.Last, queues[i].Last)
		}
	}
	return cl.print(d)
}

// eachDead runs fn for every queue of dead letters of a group; the offset is how far they were sent again.
func (cl *cluster) eachDead(ctx context.Context, group string, fn func(client.Broker, offsetRow) error) error {
	found := false
	err := cl.each(func(b client.Broker) error {
		rows, err := cl.offsets(ctx, b, toolGroup, messages.DLQTopicPrefix+group)
		for _, r := range rows {
			found = true
			err = errors.Join(err, fn(b, r))
		}
		return err
	})
	if err == nil && !found {
		return fmt.Errorf("dead letters of group %s: %w", group, ErrNotFound)
	}
	return err
}

// resend is how dead letters are sent again.
type resend struct {
	rate float64
	max  int64
	all  bool
	dry  bool

	sent int64
	tick *time.Ticker
}

func deadResend() *cobra.Command {
	var f flags
	var r resend
	c := f.command(&cobra.Command{
		Use: "resend GROUP", Short: "Give a group its dead letters again",
		Long: `Sends the dead letters of a group to its retry topic, so that this group alone gets them once more, with all its attempts. How far it has come is
stored with the broker after each message: the next time it goes on from there, and what was sent is not sent again, but for one message at most if
it is killed. --all begins with the first.`,
		Example: "  actormq dlq resend billing --rate 50\n  actormq dlq resend billing --all --max 10 --dry-run", Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		const least, most = 0.01, 100_000
		if r.rate < least || r.rate > most {
			return fmt.Errorf("--rate %v: want %v to %v messages a second", r.rate, least, most)
		}
		r.tick = time.NewTicker(time.Duration(float64(time.Second) / r.rate))
		defer r.tick.Stop()
		err := cl.eachDead(ctx, args[0], func(b client.Broker, at offsetRow) error { return cl.resend(ctx, &r, b, args[0], at) })
		if err == nil && !cl.json {
			_, err = fmt.Fprintf(cl.out, "%d messages sent to group %s\n", r.sent, args[0])
		}
		return err
	})
	c.Flags().Float64Var(&r.rate, "rate", 100, "messages a second")
	c.Flags().Int64Var(&r.max, "max", 0, "end after so many messages; 0: no limit")
	c.Flags().BoolVar(&r.all, "all", false, "those that were sent again before, too")
	c.Flags().BoolVar(&r.dry, "dry-run", false, "send nothing, show what would be sent")
	return c
}

func (cl *cluster) resend(ctx context.Context, r *resend, b client.Broker, group string, at offsetRow) error {
	from, q := at.First, queueOf(b, at)
	if at.At != nil && !r.all {
		from = max(from, *at.At)
	}
	var failed error
	err := cl.read(ctx, q, from, at.Next, func(m *stored) bool {
		if r.max > 0 && r.sent >= r.max {
			return false
		}
		if !r.dry {
			failed = cl.resendOne(ctx, r, q, group, m)
		}
		if failed == nil {
			r.sent++
			failed = cl.print(LineOf(b.Name, m))
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}

// resendOne sends a dead letter to the group's retry topic, from where its consumers show it under its own topic again.
func (cl *cluster) resendOne(ctx context.Context, r *resend, q client.Queue, group string, m *stored) error {
	select {
	case <-r.tick.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, err := cl.Send(ctx, q.Address, remoting.SendMessageHeader{
		ProducerGroup: "TOOLS_PRODUCER", Topic: messages.RetryTopicPrefix + group, DefaultTopic: messages.TopicAutoCreateKey,
		DefaultTopicQueueNums: 1, BornTimestampMs: m.BornTimestampMs, SysFlag: m.SysFlag & (messages.SysFlagCompressed | messages.SysFlagCompressionMask), Flag: m.Flag,
		Properties: string(m.Properties.WithoutDelivery()), MaxReconsumeTimes: remoting.AbsentTimes,
	}, m.Body)
	if err != nil {
		return fmt.Errorf("dead letter %s: %w", m.OffsetMessageID(), err)
	}
	if err := cl.Commit(ctx, q, toolGroup, int64(m.QueueOffset)+1); err != nil {
		return fmt.Errorf("dead letter %s is sent, but how far this has come could not be stored: %w", m.OffsetMessageID(), err)
	}
	return nil
}
