package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// entry is one acknowledged message.
type entry struct {
	Topic       string `json:"topic"`
	QueueID     int32  `json:"queueId"`
	QueueOffset int64  `json:"queueOffset"`
	PhyOffset   int64  `json:"phyOffset"`
	BodyLen     int    `json:"bodyLen"`
}

type options struct {
	dir, params, ledger, topics string
	count, queues               int
	crash                       bool
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "the store")
	flag.StringVar(&o.params, "params", "", "its sizes, a params.json")
	flag.StringVar(&o.ledger, "ledger", "", "file for what was acknowledged; it grows")
	flag.StringVar(&o.topics, "topics", "Appended,AppendedB", "topics, separated by commas")
	flag.IntVar(&o.count, "count", 50, "messages")
	flag.IntVar(&o.queues, "queues", 2, "queues of each topic")
	flag.BoolVar(&o.crash, "crash", false, "end without closing the store")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "append:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	var sizes struct {
		CommitLogSize, ConsumeQueueSize int64
		HashSlots, IndexNum             int32
		DelayLevels                     string
		LMQ, ConsumeQueueExt            bool
	}
	text, err := os.ReadFile(o.params)
	if err == nil {
		err = json.Unmarshal(text, &sizes)
	}
	if err != nil {
		return err
	}
	s, err := system.Open(system.Options{
		Dir: o.dir, SegmentBytes: sizes.CommitLogSize, ConsumeQueueFileBytes: sizes.ConsumeQueueSize, IndexSlots: sizes.HashSlots,
		IndexEntries: sizes.IndexNum, DelayLevels: sizes.DelayLevels,
		ConsumeQueueExt: sizes.ConsumeQueueExt, ConsumeQueueExtBytes: 64 << 10, // as the golden store's
		LightQueues: system.LightQueues{MultiDispatch: sizes.LMQ, LightTopics: sizes.LMQ},
	})
	if err != nil {
		return err
	}
	out, err := os.OpenFile(o.ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for i := range o.count {
		e, err := put(s, o, i)
		if err == nil {
			err = json.NewEncoder(out).Encode(e)
		}
		if err != nil {
			return err
		}
	}
	if o.crash {
		os.Exit(0) // nothing is closed: the store's files are what a killed process leaves
	}
	return s.Close(context.Background())
}

func put(s *system.Store, o options, i int) (entry, error) {
	topics := strings.Split(o.topics, ",")
	m := messages.Message{
		Topic: topics[i%len(topics)], QueueID: int32(i / len(topics) % o.queues), Body: []byte(strings.Repeat("b", 40+i%120)),
		BornTimestampMs: time.Now().UnixMilli(),
		Properties: messages.PropertiesOf(map[string]string{
			messages.PropertyTags: fmt.Sprintf("Tag%d", i%3), messages.PropertyKeys: fmt.Sprintf("appended%d", i),
		}),
	}
	if s.Options().MultiDispatch && i%3 > 0 {
		m.Properties = m.Properties.With(messages.PropertyMultiDispatch, fmt.Sprintf("%%LMQ%%appended%d,%%LMQ%%all,Further", i%2))
	}
	r, err := s.Put(context.Background(), &m)
	if err != nil || r.Status != messages.PutOK {
		return entry{}, fmt.Errorf("put %d: %v: %w", i, r.Status, err)
	}
	return entry{
		Topic: m.Topic, QueueID: m.QueueID, QueueOffset: int64(r.QueueOffset), PhyOffset: int64(r.PhysicalOffset), BodyLen: len(m.Body),
	}, nil
}
