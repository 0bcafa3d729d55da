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

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

func topicCommand() *cobra.Command {
	return parent("topic", "List, show, make, change and delete topics", topicList(), topicShow(), topicSet("create"), topicSet("update"), topicDelete())
}

// topicRow is a topic at one broker.
type topicRow struct {
	Broker string `json:"broker"`
	Topic  string `json:"topic"`
	Read   int32  `json:"readQueues"`
	Write  int32  `json:"writeQueues"`
	Perm   string `json:"perm"`
	Order  bool   `json:"order,omitempty"`
}

func (r topicRow) String() string {
	return fmt.Sprintf("%s broker=%s read=%d write=%d perm=%s", Shown(r.Topic), Shown(r.Broker), r.Read, r.Write, r.Perm)
}

// queueRow is the range of a queue.
type queueRow struct {
	Broker string `json:"broker"`
	Topic  string `json:"topic"`
	Queue  int32  `json:"queue"`
	First  int64  `json:"first"` // offset of the first message
	Next   int64  `json:"next"`  // offset that the next message gets
	Last   string `json:"lastStored,omitempty"`
}

func (r queueRow) String() string {
	return fmt.Sprintf("  broker=%s queue=%d first=%d next=%d last=%s", Shown(r.Broker), r.Queue, r.First, r.Next, r.Last)
}

// permissions are the bits of a topic's perm by their letters.
var permissions = []struct {
	bit  int32
	name string
}{{4, "r"}, {2, "w"}, {1, "i"}}

func permText(perm int32) string {
	text := ""
	for _, p := range permissions {
		if perm&p.bit != 0 {
			text += p.name
		}
	}
	return cmp.Or(text, "-")
}

func parsePerm(text string) (perm int32, err error) {
	rest := text
	for _, p := range permissions {
		if strings.Contains(rest, p.name) {
			perm, rest = perm|p.bit, strings.Replace(rest, p.name, "", 1)
		}
	}
	if rest != "" && text != "-" {
		return 0, fmt.Errorf("--perm %s: want r, w, rw or -", text)
	}
	return perm, nil
}

// topics are the topics of one broker.
func (cl *cluster) topics(ctx context.Context, b client.Broker) (map[string]remoting.TopicConfig, error) {
	var table remoting.TopicConfigTable
	err := cl.Ask(ctx, b.Address, remoting.RequestGetAllTopicConfig, nil, &table)
	return table.TopicConfigTable, err
}

func rowOf(b client.Broker, t remoting.TopicConfig) topicRow {
	return topicRow{Broker: b.Name, Topic: t.TopicName, Read: t.ReadQueueNums, Write: t.WriteQueueNums, Perm: permText(t.Perm), Order: t.Order}
}

// own tells whether a topic is the cluster's own business: a retry or dead-letter topic, or one that the broker calls the system's.
func own(topic string, system []string) bool {
	return messages.IsGroupTopic(topic) || slices.Contains(system, topic)
}

func topicList() *cobra.Command {
	var f flags
	var all bool
	c := f.command(&cobra.Command{
		Use: "list", Short: "List the topics, a line for each topic and broker", Example: "  actormq topic list --json", Args: cobra.NoArgs,
	}, func(ctx context.Context, cl *cluster, _ []string) error {
		return cl.each(func(b client.Broker) error {
			topics, err := cl.topics(ctx, b)
			if err != nil {
				return err
			}
			var system remoting.TopicList
			if err := cl.Ask(ctx, b.Address, remoting.RequestGetSystemTopicListFromBroker, nil, &system); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(topics)) {
				if !all && own(name, system.TopicList) {
					continue
				}
				if err := cl.print(rowOf(b, topics[name])); err != nil {
					return err
				}
			}
			return nil
		})
	})
	c.Flags().BoolVar(&all, "all", false, "those of the system too, retry and dead-letter topics")
	return c
}

func topicShow() *cobra.Command {
	var f flags
	return f.command(&cobra.Command{
		Use: "show TOPIC", Short: "Show a topic and the range of each queue",
		Long:    "Shows what each broker has of a topic, and for each queue the offsets of its first and of its next message.",
		Example: "  actormq topic show orders", Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		found := false
		err := cl.each(func(b client.Broker) error {
			topics, err := cl.topics(ctx, b)
			topic, ok := topics[args[0]]
			if err != nil || !ok {
				return err
			}
			found = true
			return errors.Join(cl.print(rowOf(b, topic)), cl.printQueues(ctx, b, args[0]))
		})
		if err == nil && !found {
			err = fmt.Errorf("topic %s: %w", args[0], ErrNotFound)
		}
		return err
	})
}

// ranges are the queues of a topic at a broker.
func (cl *cluster) ranges(ctx context.Context, b client.Broker, topic string) ([]queueRow, error) {
	var stats remoting.TopicStats
	if err := cl.Ask(ctx, b.Address, remoting.RequestGetTopicStatsInfo, &remoting.TopicHeader{Topic: topic}, &stats); err != nil {
		return nil, err
	}
	var rows []queueRow
	for q, o := range stats.OffsetTable {
		rows = append(rows, queueRow{Broker: b.Name, Topic: topic, Queue: q.QueueID, First: o.MinOffset, Next: o.MaxOffset, Last: when(o.LastUpdateTimestampMs)})
	}
	slices.SortFunc(rows, func(a, b queueRow) int { return cmp.Compare(a.Queue, b.Queue) })
	return rows, nil
}

func (cl *cluster) printQueues(ctx context.Context, b client.Broker, topic string) error {
	rows, err := cl.ranges(ctx, b, topic)
	for _, r := range rows {
		err = errors.Join(err, cl.print(r))
	}
	return err
}

// topicSet is create or update: the first refuses a topic that is there, the second one that is not, and keeps what it is not told.
func topicSet(verb string) *cobra.Command {
	var f flags
	var read, write int32
	var perm string
	c := &cobra.Command{Use: verb + " TOPIC", Args: cobra.ExactArgs(1)}
	if c.Short = "Make a topic"; verb == "update" {
		c.Short = "Change a topic; what is not given stays"
		c.Long = c.Short + `. Queues above a lower --queues are read no more, nor what is in them: lower --write-queues first,
and --queues once "actormq topic show" and "actormq group lag" say that they are consumed.`
	}
	c.Example = "  actormq topic " + verb + " orders --queues 8"
	f.command(c, func(ctx context.Context, cl *cluster, args []string) error {
		if err := messages.CheckTopicName(args[0]); err != nil {
			return err
		}
		bits, err := parsePerm(perm)
		if err != nil {
			return err
		}
		return cl.each(func(b client.Broker) error {
			topics, err := cl.topics(ctx, b)
			if err != nil {
				return err
			}
			t, there := topics[args[0]]
			switch {
			case there && verb == "create":
				return fmt.Errorf("topic %s is there already", args[0])
			case !there && verb == "update":
				return fmt.Errorf("topic %s: %w", args[0], ErrNotFound)
			case !there:
				t = remoting.TopicConfig{TopicName: args[0], TopicFilterType: "SINGLE_TAG", ReadQueueNums: read, WriteQueueNums: read, Perm: bits}
			}
			change(c, "queues", func() { t.ReadQueueNums, t.WriteQueueNums = read, read })
			change(c, "write-queues", func() { t.WriteQueueNums = write })
			change(c, "perm", func() { t.Perm = bits })
			return cl.setTopic(ctx, b, t)
		})
	})
	c.Flags().Int32Var(&read, "queues", 8, "number of queues")
	c.Flags().Int32Var(&write, "write-queues", 0, "number of queues that are written to, when fewer: those above run empty")
	c.Flags().StringVar(&perm, "perm", "rw", "r, w, rw or -")
	if verb == "update" { // its help must not say that what is not given becomes this
		c.Flags().Lookup("queues").DefValue, c.Flags().Lookup("perm").DefValue = "0", ""
	}
	return c
}

func change(c *cobra.Command, flag string, set func()) {
	if c.Flags().Changed(flag) {
		set()
	}
}

func (cl *cluster) setTopic(ctx context.Context, b client.Broker, t remoting.TopicConfig) error {
	err := cl.Ask(ctx, b.Address, remoting.RequestUpdateAndCreateTopic, &remoting.CreateTopicHeader{
		Topic: t.TopicName, DefaultTopic: messages.TopicAutoCreateKey, ReadQueueNums: t.ReadQueueNums, WriteQueueNums: t.WriteQueueNums,
		Perm: t.Perm, TopicFilterType: t.TopicFilterType, TopicSysFlag: t.TopicSysFlag, Order: t.Order,
	}, nil)
	if err != nil {
		return err
	}
	return cl.print(rowOf(b, t))
}

func topicDelete() *cobra.Command {
	var f flags
	var yes bool
	c := f.command(&cobra.Command{
		Use: "delete TOPIC", Short: "Delete a topic, its queues, and how far groups are in it",
		Long: `Deletes a topic at the brokers and takes it out of the routes. Its messages stay in the log until they expire, readable by id; one
that is made again under its name begins at offset 0.`,
		Example: "  actormq topic delete orders --yes", Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		if err := confirmed(yes, "topic "+args[0]); err != nil {
			return err
		}
		if err := cl.wantTopic(ctx, args[0]); err != nil {
			return err
		}
		err := cl.each(func(b client.Broker) error {
			if err := cl.Ask(ctx, b.Address, remoting.RequestDeleteTopicInBroker, &remoting.TopicHeader{Topic: args[0]}, nil); err != nil {
				return err
			}
			return cl.print(done{Broker: b.Name, Done: "deleted", Name: args[0]})
		})
		for _, address := range cl.NameServers() {
			if f.broker == "" && err == nil {
				err = cl.Ask(ctx, address, remoting.RequestDeleteTopicInNamesrv, &remoting.DeleteTopicInNamesrvHeader{Topic: args[0]}, nil)
			}
		}
		return err
	})
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

// wantTopic is ErrNotFound when no broker has the topic.
func (cl *cluster) wantTopic(ctx context.Context, topic string) error {
	found := false
	err := cl.each(func(b client.Broker) error {
		topics, err := cl.topics(ctx, b)
		_, ok := topics[topic]
		found = found || ok
		return err
	})
	if err == nil && !found {
		return fmt.Errorf("topic %s: %w", topic, ErrNotFound)
	}
	return err
}
