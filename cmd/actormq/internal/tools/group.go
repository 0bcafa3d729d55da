package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

func groupCommand() *cobra.Command {
	return parent("group", "List, show and delete consumer groups, and show how far they are", groupList(), groupShow(), groupLag(), groupDelete())
}

// groupRow is a group at one broker.
type groupRow struct {
	Broker  string   `json:"broker"`
	Group   string   `json:"group"`
	Enabled bool     `json:"consumeEnable"`
	Retries int32    `json:"retryMaxTimes"`
	Members []string `json:"members,omitempty"` // client ids, when they were asked for
}

func (r groupRow) String() string {
	text := fmt.Sprintf("%s broker=%s enabled=%t retries=%d", Shown(r.Group), Shown(r.Broker), r.Enabled, r.Retries)
	if r.Members != nil {
		text += fmt.Sprintf(" members=%d %s", len(r.Members), strings.Join(r.Members, ","))
	}
	return text
}

// lagRow is how far a group is in a queue, or in all queues of a broker.
type lagRow struct {
	Group  string `json:"group"`
	Broker string `json:"broker"`
	Topic  string `json:"topic,omitempty"`
	Queue  *int32 `json:"queue,omitempty"`
	At     *int64 `json:"offset,omitempty"` // the group's
	Next   *int64 `json:"next,omitempty"`   // the queue's
	Lag    int64  `json:"lag"`
	Last   string `json:"lastStored,omitempty"` // of the last message that is done
}

func (r lagRow) String() string {
	if r.Queue == nil {
		return fmt.Sprintf("%s broker=%s lag=%d", Shown(r.Group), Shown(r.Broker), r.Lag)
	}
	return fmt.Sprintf("  broker=%s topic=%s queue=%d offset=%d next=%d lag=%d last=%s", Shown(r.Broker), Shown(r.Topic), *r.Queue, *r.At, *r.Next, r.Lag, r.Last)
}

func (cl *cluster) groups(ctx context.Context, b client.Broker) (map[string]remoting.SubscriptionGroupConfig, error) {
	var table remoting.SubscriptionGroupTable
	err := cl.Ask(ctx, b.Address, remoting.RequestGetAllSubscriptionGroupConfig, nil, &table)
	return table.SubscriptionGroupTable, err
}

// members are the client ids of a group that is online.
func (cl *cluster) members(ctx context.Context, b client.Broker, group string) ([]string, error) {
	ids := []string{}
	var online remoting.ConsumerConnection
	err := cl.Ask(ctx, b.Address, remoting.RequestGetConsumerConnectionList, &remoting.ConsumerGroupHeader{ConsumerGroup: group}, &online)
	if client.HasCode(err, remoting.ResponseConsumerNotOnline) {
		return ids, nil
	}
	for _, c := range online.ConnectionSet {
		ids = append(ids, c.ClientID)
	}
	slices.Sort(ids)
	return ids, err
}

func groupList() *cobra.Command {
	var f flags
	return f.command(&cobra.Command{
		Use: "list", Short: "List the groups, a line for each group and broker", Example: "  actormq group list", Args: cobra.NoArgs,
	}, func(ctx context.Context, cl *cluster, _ []string) error {
		return cl.each(func(b client.Broker) error {
			groups, err := cl.groups(ctx, b)
			for _, name := range slices.Sorted(maps.Keys(groups)) {
				g := groups[name]
				err = errors.Join(err, cl.print(groupRow{Broker: b.Name, Group: name, Enabled: g.ConsumeEnable, Retries: g.RetryMaxTimes}))
			}
			return err
		})
	})
}

// eachGroup runs fn at every broker that has the group; ErrNotFound when none has.
func (cl *cluster) eachGroup(ctx context.Context, name string, fn func(client.Broker, remoting.SubscriptionGroupConfig) error) error {
	found := false
	err := cl.each(func(b client.Broker) error {
		groups, err := cl.groups(ctx, b)
		g, ok := groups[name]
		if err != nil || !ok {
			return err
		}
		found = true
		return fn(b, g)
	})
	if err == nil && !found {
		return fmt.Errorf("group %s: %w", name, ErrNotFound)
	}
	return err
}

func groupShow() *cobra.Command {
	var f flags
	return f.command(&cobra.Command{
		Use: "show GROUP", Short: "Show a group, who is in it, and how far it is", Example: "  actormq group show billing", Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		return cl.eachGroup(ctx, args[0], func(b client.Broker, g remoting.SubscriptionGroupConfig) error {
			members, err := cl.members(ctx, b, args[0])
			if err != nil {
				return err
			}
			err = cl.print(groupRow{Broker: b.Name, Group: args[0], Enabled: g.ConsumeEnable, Retries: g.RetryMaxTimes, Members: members})
			return errors.Join(err, cl.printLag(ctx, b, args[0], ""))
		})
	})
}

// lag is how far a group is in each queue of a topic, of all its topics when that is empty.
func (cl *cluster) lag(ctx context.Context, b client.Broker, group, topic string) ([]lagRow, error) {
	var stats remoting.ConsumeStats
	h := &remoting.ConsumeStatsHeader{ConsumerGroup: group, Topic: topic}
	if err := cl.Ask(ctx, b.Address, remoting.RequestGetConsumeStats, h, &stats); err != nil {
		return nil, err
	}
	var rows []lagRow
	for q, o := range stats.OffsetTable {
		rows = append(rows, lagRow{
			Group: group, Broker: b.Name, Topic: q.Topic, Queue: &q.QueueID, At: &o.ConsumerOffset, Next: &o.BrokerOffset,
			Lag: max(o.BrokerOffset-o.ConsumerOffset, 0), Last: when(o.LastTimestampMs),
		})
	}
	slices.SortFunc(rows, func(a, b lagRow) int { return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(*a.Queue, *b.Queue)) })
	return rows, nil
}

func (cl *cluster) printLag(ctx context.Context, b client.Broker, group, topic string) error {
	rows, err := cl.lag(ctx, b, group, topic)
	for _, r := range rows {
		err = errors.Join(err, cl.print(r))
	}
	return err
}

func groupLag() *cobra.Command {
	var f flags
	var topic string
	c := f.command(&cobra.Command{
		Use: "lag [GROUP]", Short: "Show how many messages groups have not consumed yet",
		Long: `With a GROUP: for each queue of its topics the group's offset, the queue's end and the difference. Without: one line for each group
and broker with the sum.`,
		Example: "  actormq group lag\n  actormq group lag billing --topic orders", Args: cobra.MaximumNArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		if len(args) == 1 {
			return cl.eachGroup(ctx, args[0], func(b client.Broker, _ remoting.SubscriptionGroupConfig) error {
				return cl.printLag(ctx, b, args[0], topic)
			})
		}
		return cl.each(func(b client.Broker) error {
			groups, err := cl.groups(ctx, b)
			for _, name := range slices.Sorted(maps.Keys(groups)) {
				rows, bad := cl.lag(ctx, b, name, topic)
				if bad != nil {
					return errors.Join(err, bad)
				}
				total := lagRow{Group: name, Broker: b.Name}
				for _, r := range rows {
					total.Lag += r.Lag
				}
				err = errors.Join(err, cl.print(total))
			}
			return err
		})
	})
	c.Flags().StringVar(&topic, "topic", "", "of this topic only")
	return c
}

func groupDelete() *cobra.Command {
	var f flags
	var yes, offsets bool
	c := f.command(&cobra.Command{
		Use: "delete GROUP", Short: "Delete a group's configuration, and its offsets if asked to",
		Example: "  actormq group delete billing --offsets --yes", Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		if err := confirmed(yes, "group "+args[0]); err != nil {
			return err
		}
		return cl.eachGroup(ctx, args[0], func(b client.Broker, _ remoting.SubscriptionGroupConfig) error {
			h := &remoting.DeleteGroupHeader{GroupName: args[0], RemoveOffset: offsets}
			if err := cl.Ask(ctx, b.Address, remoting.RequestDeleteSubscriptionGroup, h, nil); err != nil {
				return err
			}
			return cl.print(done{Broker: b.Name, Done: "deleted", Name: args[0]})
		})
	})
	c.Flags().BoolVar(&offsets, "offsets", false, "delete how far it is, too: one of that name then begins anew")
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}
