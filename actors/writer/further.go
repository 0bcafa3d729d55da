package writer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// ErrLightQueues: the put would make one more light queue than there may be (maxLmqConsumeQueueNum).
var ErrLightQueues = errors.New("too many light queues")

// addQueueOffsets is the slow path of a record that is in further queues: what it carries of them depends on the order, so its length
// does too (spec/store.md §6.4). It may be called again for the same put: what it added before is replaced.
func (a *appender) addQueueOffsets(p *messages.PutMessage) error {
	if err := a.lightQueuesLeft(p); err != nil {
		return err
	}
	var offsets strings.Builder
	for i, key := range p.Further {
		if i > 0 {
			offsets.WriteByte(',')
		}
		at := messages.QueueOffset(0)
		if next := a.offsets[key]; next != nil {
			at = *next
		}
		offsets.WriteString(strconv.FormatInt(int64(at), 10))
	}
	if p.EncodedBytes == 0 {
		p.EncodedBytes = len(p.Records)
	}
	records, err := record.AppendProperty(p.Records[:p.EncodedBytes], p.PropertiesBytes, messages.PropertyMultiQueueOffset, offsets.String())
	if err != nil {
		return err
	}
	p.Records = records
	return nil
}

// advance counts a record that is appended in its further queues.
func (a *appender) advance(p *messages.PutMessage) {
	for _, key := range p.Further {
		next := a.offsets[key]
		if next == nil {
			next = new(messages.QueueOffset)
			a.offsets[key] = next
			if isLight(key) {
				a.lights++
			}
		}
		*next++
	}
}

// lightQueuesLeft refuses a put that would make too many light queues (weakness W31 of the original, whose limit has no effect).
func (a *appender) lightQueuesLeft(p *messages.PutMessage) error {
	if a.maxLights <= 0 {
		return nil
	}
	fresh := 0
	for _, key := range p.Further {
		if isLight(key) && a.offsets[key] == nil {
			fresh++
		}
	}
	if fresh > 0 && a.lights+fresh > a.maxLights {
		return fmt.Errorf("%d more than %d of at most %d: %w", fresh, a.lights, a.maxLights, ErrLightQueues)
	}
	return nil
}

func isLight(key messages.QueueKey) bool {
	return strings.HasPrefix(key.Topic, messages.LMQTopicPrefix)
}

func (a *appender) countLights() {
	a.lights = 0
	for key := range a.offsets {
		if isLight(key) {
			a.lights++
		}
	}
}

// statusOf says in RocketMQ's words why a put can't be stored.
func statusOf(err error) messages.PutStatus {
	switch {
	case errors.Is(err, ErrLightQueues):
		return messages.LMQConsumeQueueNumExceeded
	case errors.Is(err, record.ErrPropertiesTooLong):
		return messages.PropertiesSizeExceeded
	}
	return messages.MessageIllegal
}
