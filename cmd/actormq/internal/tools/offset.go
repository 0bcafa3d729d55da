package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

func offsetCommand() *cobra.Command {
	return parent("offset", "Show, reset and clone the offsets of consumer groups", offsetShow(), offsetReset(), offsetClone())
}

// offsetRow is a group's offset in a queue, and what becomes of it.
type offsetRow struct {
	Group  string `json:"group"`
	Broker string `json:"broker"`
	Topic  string `json:"topic"`
	Queue  int32  `json:"queue"`
	First  int64  `json:"first"`
	Next   int64  `json:"next"`
	At     *int64 `json:"offset,omitempty"`    // none: the group has none in this queue
	To     *int64 `json:"newOffset,omitempty"` // after a reset
	DryRun bool   `json:"dryRun,omitempty"`
}

func (r offsetRow) String() string {
	at := "none"
	if r.At != nil {
		at = fmt.Sprint(*r.At)
	}
	text := fmt.Sprintf("%s broker=%s topic=%s queue=%d first=%d next=%d offset=%s", Shown(r.Group), Shown(r.Broker), Shown(r.Topic), r.Queue, r.First, r.Next, at)
	if r.To != nil {
		text += fmt.Sprintf(" new=%d", *r.To)
	}
	if r.DryRun {
		text += " dry-run"
	}
	return text
}

// offsets are a group's in each queue of a topic at a broker; none when the broker does not have the topic.
func (cl *cluster) offsets(ctx context.Context, b client.Broker, group, topic string) ([]offsetRow, error) {
	queues, err := cl.ranges(ctx, b, topic)
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var table remoting.ConsumerOffsetTable
	if err := cl.Ask(ctx, b.Address, remoting.RequestGetAllConsumerOffset, nil, &table); err != nil {
		return nil, err
	}
	var rows []offsetRow
	for _, q := range queues {
		r := offsetRow{Group: group, Broker: b.Name, Topic: topic, Queue: q.Queue, First: q.First, Next: q.Next}
		if at, ok := table.OffsetTable[topic+"@"+group][q.Queue]; ok {
			r.At = &at
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func offsetShow() *cobra.Command {
	var f flags
	var topic string
	c := f.command(&cobra.Command{
		Use: "show GROUP --topic TOPIC", Short: "Show a group's offset in each queue of a topic",
		Example: "  actormq offset show billing --topic orders", Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		if err := cl.wantTopic(ctx, topic); err != nil {
			return err
		}
		return cl.each(func(b client.Broker) error {
			rows, err := cl.offsets(ctx, b, args[0], topic)
			for _, r := range rows {
				err = errors.Join(err, cl.print(r))
			}
			return err
		})
	})
	c.Flags().StringVar(&topic, "topic", "", "topic")
	mustRequire(c, "topic")
	return c
}

func mustRequire(c *cobra.Command, flag string) {
	if err := c.MarkFlagRequired(flag); err != nil {
		panic("BUG: " + err.Error())
	}
}

// target is where a reset goes.
type target struct {
	earliest, latest bool
	sinceMs          int64
}

func parseTarget(text string) (target, error) {
	switch text {
	case "earliest":
		return target{earliest: true}, nil
	case "latest":
		return target{latest: true}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.UnixMilli() <= 0 {
		return target{}, fmt.Errorf("--to %s: want earliest, latest, or a time like 2026-01-31T13:00:00Z", text)
	}
	return target{sinceMs: t.UnixMilli()}, nil
}

func offsetReset() *cobra.Command {
	var f flags
	var topic, to string
	var dry bool
	c := f.command(&cobra.Command{
		Use: "reset GROUP --topic TOPIC --to earliest|latest|TIME", Short: "Set a group's offsets in a topic",
		Long: `Sets the offsets of a group in all queues of a topic: to the first message that there is, to the end, or to the first message that was
stored at a time or later, exactly. --dry-run shows what it would do.

The consumers of the group must be stopped, as they would store their own offsets over these: while one is connected the
command refuses.`,
		Example: `  actormq offset reset billing --topic orders --to earliest --dry-run
  actormq offset reset billing --topic orders --to 2026-01-31T13:00:00Z`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		where, err := parseTarget(to)
		if err != nil {
			return err
		}
		if err := cl.wantTopic(ctx, topic); err != nil {
			return err
		}
		return cl.each(func(b client.Broker) error { return cl.reset(ctx, b, args[0], topic, where, dry) })
	})
	c.Flags().StringVar(&topic, "topic", "", "topic")
	c.Flags().StringVar(&to, "to", "", "earliest, latest, or a time (RFC 3339)")
	c.Flags().BoolVar(&dry, "dry-run", false, "change nothing, show what would be")
	mustRequire(c, "topic")
	mustRequire(c, "to")
	return c
}

// wantOffline is an error while a group has members, whose own offsets would be stored over new ones.
func (cl *cluster) wantOffline(ctx context.Context, b client.Broker, group string, dry bool) error {
	online, err := cl.members(ctx, b, group)
	if err == nil && len(online) > 0 && !dry {
		err = fmt.Errorf("group %s is online (%d clients): stop its consumers first", group, len(online))
	}
	return err
}

func (cl *cluster) reset(ctx context.Context, b client.Broker, group, topic string, where target, dry bool) error {
	if err := cl.wantOffline(ctx, b, group, dry); err != nil {
		return err
	}
	rows, err := cl.offsets(ctx, b, group, topic)
	if err != nil {
		return err
	}
	for _, r := range rows {
		q := client.Queue{Broker: b.Name, Address: b.Address, Topic: topic, ID: r.Queue}
		at, err := cl.locate(ctx, q, r, where)
		if err != nil {
			return err
		}
		r.To, r.DryRun = &at, dry
		if !dry {
			err = cl.commit(ctx, q, group, at)
		}
		if err = errors.Join(err, cl.print(r)); err != nil {
			return err
		}
	}
	return nil
}

// commit stores an offset, and looks whether that was taken.
func (cl *cluster) commit(ctx context.Context, q client.Queue, group string, at int64) error {
	if err := cl.Commit(ctx, q, group, at); err != nil {
		return err
	}
	now, err := cl.GroupOffset(ctx, q, group)
	if err == nil && now != at {
		err = fmt.Errorf("queue %d: the broker has not taken offset %d, it has %d", q.ID, at, now)
	}
	return err
}

// locate is the offset in a queue to which a target leads.
func (cl *cluster) locate(ctx context.Context, q client.Queue, r offsetRow, where target) (int64, error) {
	switch {
	case where.earliest:
		return r.First, nil
	case where.latest:
		return r.Next, nil
	}
	at, err := cl.OffsetFrom(ctx, q, where.sinceMs)
	if err != nil {
		return 0, err
	}
	found := r.Next
	err = cl.read(ctx, q, max(at, r.First), r.Next, func(m *stored) bool {
		if m.StoreTimestampMs < where.sinceMs {
			return true
		}
		found = int64(m.QueueOffset)
		return false
	})
	return found, err
}

func offsetClone() *cobra.Command {
	var f flags
	var topic string
	var dry bool
	c := f.command(&cobra.Command{
		Use: "clone FROM TO --topic TOPIC", Short: "Give a group the offsets of another",
		Long:    "Copies the offsets of the group FROM in a topic to the group TO, so that it goes on there. TO's consumers must be stopped.",
		Example: "  actormq offset clone billing billing-2 --topic orders", Args: cobra.ExactArgs(2),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		if err := cl.wantTopic(ctx, topic); err != nil {
			return err
		}
		return cl.each(func(b client.Broker) error { return cl.clone(ctx, b, args[0], args[1], topic, dry) })
	})
	c.Flags().StringVar(&topic, "topic", "", "topic")
	c.Flags().BoolVar(&dry, "dry-run", false, "change nothing, show what would be")
	mustRequire(c, "topic")
	return c
}

func (cl *cluster) clone(ctx context.Context, b client.Broker, from, to, topic string, dry bool) error {
	if err := cl.wantOffline(ctx, b, to, dry); err != nil {
		return err
	}
	source, err := cl.offsets(ctx, b, from, topic)
	if err != nil {
		return err
	}
	before, err := cl.offsets(ctx, b, to, topic)
	if err != nil {
		return err
	}
	if !dry {
		h := &remoting.CloneOffsetHeader{SrcGroup: from, DestGroup: to, Topic: topic, Offline: true}
		if err := cl.Ask(ctx, b.Address, remoting.RequestCloneGroupOffset, h, nil); err != nil {
			return err
		}
	}
	for i, r := range before {
		if i < len(source) && source[i].At != nil {
			r.To, r.DryRun = source[i].At, dry
			err = errors.Join(err, cl.print(r))
		}
	}
	return err
}
