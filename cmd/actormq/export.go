package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
)

// exportLine is a message as it is exported.
type exportLine struct {
	Topic       string            `json:"topic"`
	Queue       int32             `json:"queue"`
	QueueOffset int64             `json:"queueOffset"`
	Offset      int64             `json:"offset"` // physical
	StoreTimeMs int64             `json:"storeTimeMs"`
	BornTimeMs  int64             `json:"bornTimeMs"`
	BornHost    string            `json:"bornHost,omitempty"`
	Flag        int32             `json:"flag,omitempty"`
	SysFlag     int32             `json:"sysFlag,omitempty"`
	Retries     int32             `json:"reconsumeTimes,omitempty"`
	Properties  map[string]string `json:"properties,omitempty"`
	Body        *string           `json:"body,omitempty"`       // when it is UTF-8
	BodyBytes   []byte            `json:"bodyBase64,omitempty"` // else
}

func lineOfRecord(r *record.Record) exportLine {
	m := r.Stored()
	l := exportLine{
		Topic: m.Topic, Queue: m.QueueID, QueueOffset: int64(m.QueueOffset), Offset: int64(m.PhysicalOffset), StoreTimeMs: m.StoreTimestampMs,
		BornTimeMs: m.BornTimestampMs, Flag: m.Flag, SysFlag: m.SysFlag, Retries: m.ReconsumeTimes, Properties: m.Properties.Map(), BodyBytes: m.Body,
	}
	if m.BornHost.IsValid() {
		l.BornHost = m.BornHost.String()
	}
	if text := string(m.Body); utf8.ValidString(text) {
		l.Body, l.BodyBytes = &text, nil
	}
	return l
}

func newStoreExportCommand() *cobra.Command {
	var sizes sizeFlags
	var topics []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the messages of a store as JSON, one a line",
		Long: `Writes every message in the log of a store as a JSON object on a line of its own, in the order of the log. The directory is not changed and
not locked: it may be that of a running node. Bodies that are no UTF-8 are in bodyBase64; compressed ones stay compressed, as sysFlag says.
Progress goes to standard error.`,
		Example: "  actormq store export /var/lib/actormq --topic orders > orders.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := findStore(vfs.New(), args[0], sizes)
			if err != nil {
				return err
			}
			return export(p, topics, cmd.OutOrStdout(), tellProgress(cmd.ErrOrStderr(), "exported"))
		},
	}
	sizes.add(c)
	c.Flags().StringSliceVar(&topics, "topic", nil, "only this topic; several with commas between them")
	c.Flags().BoolVar(&asJSON, "json", true, "the only form there is")
	return c
}

func export(p store.Params, topics []string, w io.Writer, tell func(done, total int64)) (err error) {
	p.MessageIndex = false
	s, err := store.Open(vfs.New(), p, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	wanted := map[string]bool{}
	for _, t := range topics {
		wanted[t] = true
	}
	out := bufio.NewWriter(w)
	walk := store.Walk{Log: s.Log, Queues: s.Queues}
	first := max(0, s.Log.Min())
	_, _, err = walk.Run(first, func(it *store.Item) error {
		tell(int64(it.From-first), int64(s.Log.End()-first))
		if it.Kind != store.ItemRecord || len(wanted) > 0 && !wanted[string(it.Record.Topic)] {
			return nil
		}
		return tools.WriteJSON(out, lineOfRecord(&it.Record))
	})
	return errors.Join(err, out.Flush())
}

// importDone is what an import has taken.
type importDone struct {
	Messages int64 `json:"messages"`
	LeftOut  int64 `json:"leftOut"` // of the system's topics
}

func newStoreImportCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "import DIR < MESSAGES",
		Short: "Append exported messages to a store",
		Long: `Reads lines as store export writes them from standard input and appends the messages to a store, which is made when it is not there and must not
be open. They keep topic, queue, body, properties and the time of their birth; offsets and store times are new. Messages of the system's own
topics (delayed ones that wait, transactions) are left out. The node makes the topics when it is told to: actormq topic create.`,
		Example: "  actormq store import /var/lib/actormq-2 < orders.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer cancel()
			done, err := importAll(ctx, args[0], cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return fmt.Errorf("after %d messages: %w", done.Messages, err)
			}
			if asJSON {
				return tools.WriteJSON(cmd.OutOrStdout(), done)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d messages, %d left out\n", done.Messages, done.LeftOut)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func importAll(ctx context.Context, dir string, in io.Reader, notes io.Writer) (done importDone, err error) {
	opt := system.Options{Dir: dir}
	if p, err := findStore(vfs.New(), dir, sizeFlags{}); err == nil {
		opt.SegmentBytes, opt.ConsumeQueueFileBytes, opt.IndexSlots, opt.IndexEntries = p.SegmentBytes, p.ConsumeQueueFileBytes, p.IndexSlots, p.IndexEntries
		opt.MultiDispatch = p.MultiDispatch
	}
	s, err := system.Open(opt)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	d := json.NewDecoder(bufio.NewReader(in))
	for next := time.Now().Add(time.Second); ctx.Err() == nil; {
		if now := time.Now(); now.After(next) {
			next = now.Add(time.Second)
			fmt.Fprintf(notes, "imported %d messages\n", done.Messages)
		}
		var l exportLine
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return done, nil
		} else if err != nil {
			return done, err
		}
		if systemTopic(l.Topic) || l.Properties[messages.PropertyLost] != "" {
			done.LeftOut++
			continue
		}
		if _, err := s.Put(ctx, l.message()); err != nil {
			return done, fmt.Errorf("message at offset %d: %w", l.Offset, err)
		}
		done.Messages++
	}
	return done, context.Cause(ctx)
}

func systemTopic(topic string) bool {
	switch topic {
	case messages.TopicSchedule, messages.TopicTransactionHalf, messages.TopicTransactionOp:
		return true
	}
	return strings.HasPrefix(topic, messages.LMQTopicPrefix)
}

// message is the line as a message to put.
func (l *exportLine) message() *messages.Message {
	const kept = messages.SysFlagCompressed | messages.SysFlagCompressionMask | messages.SysFlagMultiTags
	m := &messages.Message{
		Topic: l.Topic, QueueID: l.Queue, Flag: l.Flag, SysFlag: l.SysFlag & kept, ReconsumeTimes: l.Retries, BornTimestampMs: l.BornTimeMs,
		Body: l.BodyBytes, Properties: messages.PropertiesOf(l.Properties),
	}
	if l.Body != nil {
		m.Body = []byte(*l.Body)
	}
	if m.BornTimestampMs == 0 {
		m.BornTimestampMs = time.Now().UnixMilli()
	}
	m.BornHost, _ = netip.ParseAddrPort(l.BornHost)
	m.Properties = m.Properties.Without(messages.PropertyDelay)
	return m
}
