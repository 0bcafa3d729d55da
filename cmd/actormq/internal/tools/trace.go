package tools

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// traceRow is a step of a message's way.
type traceRow struct {
	Step  string `json:"step"` // put, flushed, dispatched, consumed
	Group string `json:"group,omitempty"`
	Done  bool   `json:"done"`
	Note  string `json:"note"`
}

func (r traceRow) String() string {
	done := "no"
	if r.Done {
		done = "yes"
	}
	text := fmt.Sprintf("%s=%s", r.Step, done)
	if r.Group != "" {
		text += " group=" + Shown(r.Group)
	}
	return text + " " + r.Note
}

func messageTrace() *cobra.Command {
	var f flags
	return f.command(&cobra.Command{
		Use: "trace ID", Short: "Show how far a message has come",
		Long: `Shows how far the message with an offset message id has come at its broker: put, flushed, dispatched (readers find it), and for each group that
reads its topic whether it has committed it. A group in broadcast mode commits nothing.`,
		Example: "  actormq message trace 7F00000100002A9F0000000000000000", Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		b, m, err := cl.byID(ctx, args[0], f.broker != "")
		if err != nil {
			return err
		}
		var runtime remoting.KVTable
		if err := cl.Ask(ctx, b.Address, remoting.RequestGetBrokerRuntimeInfo, nil, &runtime); err != nil {
			return err
		}
		number := func(key string) int64 {
			n, _ := strconv.ParseInt(strings.TrimSuffix(runtime.Table[key], " B"), 10, 64) // missing is nothing
			return n
		}
		end, written := int64(m.PhysicalOffset)+int64(m.StoreSize), number("commitLogMaxOffset")
		flushed, dispatched := written-number("remainHowManyDataToFlush"), written-number("dispatchBehindBytes")
		rows := []traceRow{
			{Step: "put", Done: true, Note: fmt.Sprintf("time=%s broker=%s topic=%s queue=%d offset=%d", time.UnixMilli(m.StoreTimestampMs).UTC().Format(time.RFC3339Nano),
				Shown(b.Name), Shown(m.Topic), m.QueueID, m.QueueOffset)},
			{Step: "flushed", Done: flushed >= end, Note: fmt.Sprintf("to=%d", flushed)}, {Step: "dispatched", Done: dispatched >= end, Note: fmt.Sprintf("to=%d", dispatched)},
		}
		var groups remoting.GroupList
		if err := cl.Ask(ctx, b.Address, remoting.RequestQueryTopicConsumeByWho, &remoting.TopicHeader{Topic: m.Topic}, &groups); err != nil {
			return err
		}
		q := client.Queue{Broker: b.Name, Address: b.Address, Topic: m.Topic, ID: m.QueueID}
		for _, group := range groups.GroupList {
			row := traceRow{Step: "consumed", Group: group, Note: "nothing of the queue is committed"}
			at, err := cl.GroupOffset(ctx, q, group)
			if err != nil && !client.HasCode(err, remoting.ResponseQueryNotFound) {
				return err
			}
			if at > 0 { // brokers say 0 of a group that has committed nothing, too
				row.Done, row.Note = at > int64(m.QueueOffset), fmt.Sprintf("committed=%d", at)
			}
			rows = append(rows, row)
		}
		for _, row := range rows {
			if err := cl.print(row); err != nil {
				return err
			}
		}
		return nil
	})
}
