package system

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// ErrFurtherQueues: INNER_MULTI_DISPATCH names a queue that can't be, or one twice.
var ErrFurtherQueues = errors.New("bad list of further queues")

// LightQueues let a message be in further queues beside its own, those of light topics among them (spec/store.md §6.4).
type LightQueues struct {
	MultiDispatch  bool // enableMultiDispatch: heed INNER_MULTI_DISPATCH, and build such queues
	LightTopics    bool // enableLmq: at most MaxLightQueues of them are of light topics
	MaxLightQueues int  // maxLmqConsumeQueueNum; default 20,000
}

// furtherQueues notes the further queues of a message, and returns the message without what the writer will add. What waits for its
// time or its end, and what goes back to a group, is in its own queue only: it comes again, or has been in the others already.
func furtherQueues(p *messages.PutMessage, m *messages.Message) (*messages.Message, error) {
	names, ok := m.Properties.Get(messages.PropertyMultiDispatch)
	if !ok || strings.TrimSpace(names) == "" {
		return m, nil
	}
	p.Scratch = *m
	p.Scratch.Properties = m.Properties.Without(messages.PropertyMultiQueueOffset)
	if !spreads(m.Topic) {
		return &p.Scratch, nil
	}
	p.Scratch.Properties = p.Scratch.Properties.Without(messages.PropertyWait)
	queues := []messages.QueueKey{m.Queue()}
	for name := range strings.SplitSeq(names, ",") {
		key := record.FurtherQueue(name, m.QueueID)
		if err := messages.CheckTopicName(name); err != nil {
			return m, fmt.Errorf("%w: %w", ErrFurtherQueues, err)
		}
		if slices.Contains(queues, key) {
			return m, fmt.Errorf("%w: %s/%d comes twice", ErrFurtherQueues, key.Topic, key.QueueID)
		}
		queues = append(queues, key)
	}
	p.Multi, p.Further, p.PropertiesBytes = true, queues[1:], len(p.Scratch.Properties)
	return &p.Scratch, nil
}

// withoutFurther returns the message without offsets in further queues, which are another message's that it is a copy of. A store that has had such queues,
// or is given them later, builds them again at a start, and would believe them.
func withoutFurther(p *messages.PutMessage, m *messages.Message) *messages.Message {
	kept := m.Properties.Without(messages.PropertyMultiQueueOffset)
	if len(kept) == len(m.Properties) {
		return m
	}
	p.Scratch = *m
	p.Scratch.Properties = kept
	return &p.Scratch
}

// spreads tells whether messages of a topic go to their further queues.
func spreads(topic string) bool {
	return !messages.IsWaitingTopic(topic) && !messages.IsGroupTopic(topic)
}

// furtherBytes is how long the queue offsets get that the writer adds, at most.
func furtherBytes(p *messages.PutMessage) int {
	const digits = len("9223372036854775807,")
	return len(messages.PropertyMultiQueueOffset) + 2 + digits*len(p.Further)
}
