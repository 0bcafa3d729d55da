package store

import (
	"errors"
	"fmt"
	"maps"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// floors is what the log does not say of the queues: which topics were deleted, which have lost what the log still has because it
// expired, and where queues go on that have no unit. RocketMQ does not know it, so each entry is believed only while what it vouches for is unchanged.
type floors struct {
	Topics map[string]topicFloor                     `json:"topics"`
	Queues map[string]map[int32]messages.QueueOffset `json:"queues"` // offset of the next message

	Expired map[string]topicFloor `json:"expired,omitempty"` // topics with a retention of their own
}

// topicFloor says that a topic was deleted, or its messages have expired: its records in front of Below belong to no queue, or are in
// front of where the queues begin.
type topicFloor struct {
	Below     int64  `json:"below"`     // physical offset
	LastBytes int64  `json:"lastBytes"` // in front of Below, and their CRC-32C: the log is still the same
	LastCRC   uint32 `json:"lastCrc"`
}

// errDeleted is why a queue goes whose topic was deleted.
var errDeleted = errors.New("its topic was deleted")

// readFloors reads the file and leaves out the deletions that were noted for another log.
func readFloors(disk vfs.Disk, p Params, log *commitlog.Log) (floors, error) {
	var found floors
	if _, err := metadata.Load(disk, p.FloorsPath(), &found); err != nil {
		return floors{}, err
	}
	for _, noted := range []map[string]topicFloor{found.Topics, found.Expired} {
		for topic, f := range noted {
			now, err := floorOf(log, messages.PhysicalOffset(f.Below))
			if err != nil {
				return floors{}, err
			}
			if now != f || now.LastBytes == 0 {
				delete(noted, topic)
			}
		}
	}
	return found, nil
}

// Floors is what is noted of topics whose queues do not have all that the log has of them.
type Floors struct{ noted floors }

// ReadFloors reads what is noted in a store's directory.
func ReadFloors(disk vfs.Disk, p Params, log *commitlog.Log) (Floors, error) {
	f, err := readFloors(disk, p, log)
	return Floors{f}, err
}

// Gone tells whether a record of a topic, at a place in the log, is of the topic's life before a deletion, or has expired: it need
// not be in its queue.
func (f Floors) Gone(topic []byte, at messages.PhysicalOffset) bool {
	return f.noted.isDeleted(topic, at) || at < f.noted.begin(string(topic))
}

// Begin is the physical offset in front of which the messages of a topic have expired, 0 when none have for all that is noted.
func (f Floors) Begin(topic string) messages.PhysicalOffset { return f.noted.begin(topic) }

// loadFloors reads the file, and makes the queues that have no unit.
func (s *Store) loadFloors() error {
	s.floors = floors{
		Topics: map[string]topicFloor{}, Queues: map[string]map[int32]messages.QueueOffset{}, Expired: map[string]topicFloor{},
	}
	found, err := readFloors(s.Disk, s.Params, s.Log)
	if errors.Is(err, metadata.ErrDamaged) {
		s.tell(Event{What: DamagedFloors, Path: s.Params.FloorsPath(), Err: err})
		return nil
	}
	if err != nil {
		return err
	}
	maps.Copy(s.floors.Topics, found.Topics)
	maps.Copy(s.floors.Expired, found.Expired)
	for topic, queues := range found.Queues {
		for id, next := range queues {
			if err := s.begin(messages.QueueKey{Topic: topic, QueueID: id}, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin makes a queue without a unit that goes on at an offset, unless it has units: then what is noted stays when they end in front of that.
func (s *Store) begin(key messages.QueueKey, next messages.QueueOffset) error {
	if next <= 0 {
		return nil
	}
	if q := s.Queues.Lookup(key); q != nil {
		if next > q.Max() {
			s.setFloor(key, next)
		}
		return nil
	}
	q, err := s.Queues.Create(key)
	if err != nil {
		return nil //nolint:nilerr // no queue can have that name: the file was tampered with
	}
	s.setFloor(key, next)
	return q.Begin(next)
}

// next is where a queue was noted to go on; 0: it was not.
func (f *floors) next(key messages.QueueKey) messages.QueueOffset {
	return f.Queues[key.Topic][key.QueueID]
}

// setFloor tells whether the queue was to go on somewhere else before.
func (s *Store) setFloor(key messages.QueueKey, next messages.QueueOffset) bool {
	if was, there := s.floors.Queues[key.Topic][key.QueueID]; there && was == next {
		return false
	}
	if s.floors.Queues[key.Topic] == nil {
		s.floors.Queues[key.Topic] = map[int32]messages.QueueOffset{}
	}
	s.floors.Queues[key.Topic][key.QueueID] = next
	return true
}

// floorOf describes the log in front of a place; without LastBytes that part of it is not there.
func floorOf(log *commitlog.Log, below messages.PhysicalOffset) (topicFloor, error) {
	m, err := log.MarkAt(below)
	return topicFloor{Below: m.Offset, LastBytes: m.LastBytes, LastCRC: m.LastCRC}, err
}

// isDeleted tells whether a record belongs to a topic's life before its deletion.
func (f *floors) isDeleted(topic []byte, at messages.PhysicalOffset) bool {
	return len(f.Topics) > 0 && int64(at) < f.Topics[string(topic)].Below
}

// begin is the place in front of which the messages of a topic have expired.
func (f *floors) begin(topic string) messages.PhysicalOffset {
	if len(f.Expired) == 0 {
		return 0
	}
	return messages.PhysicalOffset(f.Expired[topic].Below)
}

// TopicsExpired notes, durably, in front of which places the messages of topics have expired, so that their queues do not begin further
// in front again, whatever a later start finds. The log is durable up to there. See TopicDeleted.
func (s *Store) TopicsExpired(below map[string]messages.PhysicalOffset) error {
	s.floorsMu.Lock()
	defer s.floorsMu.Unlock()
	for topic, at := range below {
		f, err := floorOf(s.Log, at)
		if err != nil {
			return fmt.Errorf("note what has expired of topic %s: %w", topic, err)
		}
		if f.LastBytes > 0 {
			s.floors.Expired[topic] = f
		}
	}
	return s.saveFloors()
}

// TopicDeleted notes, durably, that a topic was deleted when the log ended at a place: its records in front of that belong to
// no queue, whatever a later start finds. The log is durable up to there. One goroutine at a time calls it, TopicsExpired or
// OffsetsKept, beside a running store.
func (s *Store) TopicDeleted(topic string, below messages.PhysicalOffset) error {
	s.floorsMu.Lock()
	defer s.floorsMu.Unlock()
	f, err := floorOf(s.Log, below)
	if err != nil {
		return fmt.Errorf("note the deletion of topic %s: %w", topic, err)
	}
	delete(s.floors.Queues, topic)
	delete(s.floors.Expired, topic)
	if f.LastBytes > 0 {
		s.floors.Topics[topic] = f
	}
	return s.saveFloors()
}

// OffsetsKept notes, durably, where queues go on whose files are about to be deleted, or whose last records are while their units are not durable.
// One whose topic was deleted since its last record does not go on. See TopicDeleted.
func (s *Store) OffsetsKept(next map[messages.QueueKey]messages.QueueOffset) error {
	s.floorsMu.Lock()
	defer s.floorsMu.Unlock()
	for key, at := range next {
		if !s.isOver(key) {
			s.setFloor(key, at)
		}
	}
	return s.saveFloors()
}

// isOver tells whether all that a queue has is of its topic's life before a deletion, which has not come to its end.
func (s *Store) isOver(key messages.QueueKey) bool {
	q := s.Queues.Lookup(key)
	if q == nil {
		return false
	}
	_, end := q.GoesOn()
	return end >= 0 && int64(end) <= s.floors.Topics[key.Topic].Below
}

// KeptAt is where a queue was noted to go on; 0: it was not. Safe for concurrent use. A slave's queue that has begun anew, as its topic was deleted and
// made again at the master, has less: its note is of the life before.
func (s *Store) KeptAt(key messages.QueueKey) messages.QueueOffset {
	s.floorsMu.Lock()
	defer s.floorsMu.Unlock()
	return s.floors.next(key)
}

// saveFloors writes the file, without what is not needed any more.
func (s *Store) saveFloors() error {
	least := int64(s.Log.Min())
	gone := func(_ string, f topicFloor) bool { return f.Below <= least }
	maps.DeleteFunc(s.floors.Topics, gone)
	maps.DeleteFunc(s.floors.Expired, gone)
	return metadata.Save(s.Disk, s.Params.FloorsPath(), &s.floors)
}
