package storedump

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// maxAnswers is how many hits of a key are shown.
const maxAnswers = 64

// question is a key that the index is asked for.
type question struct{ topic, key string }

// questions are the keys that occur in a store.
type questions map[question]struct{}

// add takes the keys of a message.
func (q questions) add(topic, uniqKey, keys string) {
	if uniqKey != "" {
		q[question{topic, uniqKey}] = struct{}{}
	}
	for key := range strings.SplitSeq(keys, " ") {
		if key != "" {
			q[question{topic, key}] = struct{}{}
		}
	}
}

func (q questions) addRecord(r *record.Record) {
	p := messages.ViewProperties(r.Properties)
	uniqKey, _ := p.Get(messages.PropertyUniqKey)
	keys, _ := p.Get(messages.PropertyKeys)
	q.add(string(r.Topic), strings.Clone(uniqKey), strings.Clone(keys))
}

// addManifest takes the keys of all messages that were ever put.
func (q questions) addManifest(name string) error {
	var m struct {
		Puts []struct {
			Topic      string            `json:"topic"`
			Offset     *int64            `json:"phyOffset"`
			Properties map[string]string `json:"properties"`
		} `json:"puts"`
	}
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return fmt.Errorf("manifest %s: %w", name, err)
	}
	for _, p := range m.Puts {
		if p.Offset != nil {
			q.add(p.Topic, p.Properties[messages.PropertyUniqKey], p.Properties[messages.PropertyKeys])
		}
	}
	return nil
}

// answers asks the index for every key.
func answers(s *store.Store, q questions, read *reading) stream {
	all := make([]question, 0, len(q))
	for k := range q {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b question) int { return compareUTF16(a.topic+"\x00"+a.key, b.topic+"\x00"+b.key) })
	return stream{none: len(all) == 0, each: func(yield func(any) error) error {
		for _, k := range all {
			read.add(0) // it goes on
			hits := list{}
			found, err := s.Index.Query(k.topic, k.key, maxAnswers, 0, math.MaxInt64)
			if err != nil {
				return err
			}
			slices.Sort(found)
			for _, at := range found {
				if isRecord(s, at) {
					hits = append(hits, int64(at))
				}
			}
			if err := yield(object{{"topic", k.topic}, {"key", k.key}, {"phyOffsets", hits}}); err != nil {
				return err
			}
		}
		return nil
	}}
}

// isRecord tells whether a record is there: the index also names those that were deleted with their segment.
func isRecord(s *store.Store, at messages.PhysicalOffset) bool {
	b, err := s.Log.ReadFrom(at)
	if err != nil {
		return false
	}
	defer b.Release()
	err = vfs.Guard(b.Path(), func() error {
		_, kind, err := record.Parse(b.Bytes, false)
		if err == nil && kind != record.KindMessage {
			err = record.ErrBadMagic
		}
		return err
	})
	return err == nil
}

// walkRecords calls yield with a description of everything in the log, in order.
func walkRecords(s *store.Store, read *reading, yield func(any) error) error {
	w := store.Walk{Log: s.Log, Queues: s.Queues}
	segment := messages.PhysicalOffset(s.Params.SegmentBytes)
	_, _, err := w.Run(max(0, s.Log.Min()), func(it *store.Item) error {
		r, at := &it.Record, it.From
		read.add(int64(it.To - at))
		switch {
		case it.Kind == store.ItemBlank:
			return yield(object{{"phyOffset", int64(at)}, {"kind", "blank"}, {"size", r.Size}})
		case it.Kind == store.ItemHole && errors.Is(it.Err, store.ErrMissing):
			for ; at < it.To; at += segment {
				if err := yield(object{{"phyOffset", int64(at)}, {"kind", "unreadable"}}); err != nil {
					return err
				}
			}
			return nil
		case it.Kind == store.ItemHole:
			return yield(object{{"phyOffset", int64(at)}, {"kind", "bad"}, {"size", int64(it.To - at)}})
		}
		raw, err := s.Log.Read(at, int(r.Size))
		if err != nil {
			return err
		}
		defer raw.Release()
		return yield(describe(r, raw.Bytes))
	})
	return err
}

// describe tells of a record; one that is in no queue is shown as a whole.
func describe(r *record.Record, raw []byte) object {
	o := object{
		{"phyOffset", int64(r.PhysicalOffset)}, {"kind", "msg"}, {"size", r.Size}, {"topic", string(r.Topic)},
		{"queueId", r.QueueID}, {"queueOffset", int64(r.QueueOffset)}, {"rawSha256", shortSHA(raw)},
	}
	if !messages.TakesQueueOffset(r.SysFlag) {
		o = append(o, field{"msg", message(r, raw)})
	}
	return o
}
