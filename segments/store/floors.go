package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// floors is what the log does not say of the queues: which topics were deleted, and where queues go on that have no unit. RocketMQ
// does not know it, so each entry is believed only while what it vouches for is unchanged.
type floors struct {
	Topics map[string]topicFloor                     `json:"topics"`
	Queues map[string]map[int32]messages.QueueOffset `json:"queues"` // offset of the next message
}

// topicFloor says that a topic was deleted: its records in front of Below belong to no queue.
type topicFloor struct {
	Below     int64  `json:"below"`     // physical offset
	LastBytes int64  `json:"lastBytes"` // in front of Below, and their CRC-32C: the log is still the same
	LastCRC   uint32 `json:"lastCrc"`
}

// errDeleted is why a queue goes whose topic was deleted.
var errDeleted = errors.New("its topic was deleted")

// loadFloors reads the file, leaves out what is no longer true, and makes the queues that have no unit.
func (s *Store) loadFloors() error {
	s.floors = floors{Topics: map[string]topicFloor{}, Queues: map[string]map[int32]messages.QueueOffset{}}
	var found floors
	if _, err := metadata.Load(s.Disk, s.Params.FloorsPath(), &found); errors.Is(err, metadata.ErrDamaged) {
		s.tell(Event{What: DamagedFloors, Path: s.Params.FloorsPath(), Err: err})
		return nil
	} else if err != nil {
		return err
	}
	for topic, f := range found.Topics {
		now, err := s.topicFloor(messages.PhysicalOffset(f.Below))
		if err != nil {
			return err
		}
		if now == f && now.LastBytes > 0 {
			s.floors.Topics[topic] = f
		}
	}
	for topic, queues := range found.Queues {
		for id, next := range queues {
			if err := s.begin(messages.QueueKey{Topic: topic, QueueID: id}, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin makes a queue without a unit that goes on at an offset, unless it has units.
func (s *Store) begin(key messages.QueueKey, next messages.QueueOffset) error {
	if s.Queues.Lookup(key) != nil || next <= 0 {
		return nil
	}
	q, err := s.Queues.Create(key)
	if err != nil {
		return nil //nolint:nilerr // no queue can have that name: the file was tampered with
	}
	s.setFloor(key, next)
	return q.Begin(next)
}

func (s *Store) setFloor(key messages.QueueKey, next messages.QueueOffset) {
	if s.floors.Queues[key.Topic] == nil {
		s.floors.Queues[key.Topic] = map[int32]messages.QueueOffset{}
	}
	s.floors.Queues[key.Topic][key.QueueID] = next
}

// topicFloor describes the log in front of a place; without LastBytes that part of it is not there.
func (s *Store) topicFloor(below messages.PhysicalOffset) (topicFloor, error) {
	f := topicFloor{Below: int64(below)}
	seg := s.Log.View().Find(f.Below - 1)
	if seg == nil || f.Below > int64(s.Log.End()) {
		return f, nil
	}
	to := f.Below - seg.Start()
	f.LastBytes = min(to, lastBytes)
	return f, vfs.Guard(seg.Path(), func() error {
		f.LastCRC = crc32.Checksum(seg.Data()[to-f.LastBytes:to], castagnoli)
		return nil
	})
}

// isDeleted tells whether a record belongs to a topic's life before its deletion.
func (s *floors) isDeleted(topic []byte, at messages.PhysicalOffset) bool {
	return len(s.Topics) > 0 && int64(at) < s.Topics[string(topic)].Below
}

// TopicDeleted notes, durably, that a topic was deleted when the log ended at a place: its records in front of that belong to
// no queue, whatever a later start finds. The log is durable up to there. One goroutine at a time calls it, or
// OffsetsKept, beside a running store.
func (s *Store) TopicDeleted(topic string, below messages.PhysicalOffset) error {
	f, err := s.topicFloor(below)
	if err != nil {
		return fmt.Errorf("note the deletion of topic %s: %w", topic, err)
	}
	delete(s.floors.Queues, topic)
	if f.LastBytes > 0 {
		s.floors.Topics[topic] = f
	}
	return s.saveFloors()
}

// OffsetsKept notes, durably, where queues go on whose files are about to be deleted. See TopicDeleted.
func (s *Store) OffsetsKept(next map[messages.QueueKey]messages.QueueOffset) error {
	for key, at := range next {
		s.setFloor(key, at)
	}
	return s.saveFloors()
}

// saveFloors writes the file, without what is not needed any more.
func (s *Store) saveFloors() error {
	least := int64(s.Log.Min())
	maps.DeleteFunc(s.floors.Topics, func(_ string, f topicFloor) bool { return f.Below <= least })
	return metadata.Save(s.Disk, s.Params.FloorsPath(), &s.floors)
}
