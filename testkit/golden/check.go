package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// dump is what is compared of a dump. What is any is compared as a whole.
type dump struct {
	Loaded    *bool  `json:"loaded"`
	LoadError string `json:"loadError"`
	CommitLog struct {
		MinOffset int64 `json:"minOffset"`
		MaxOffset int64 `json:"maxOffset"`
	} `json:"commitLog"`
	Queues  []queue  `json:"queues"`
	Index   []answer `json:"index"`
	Records []any    `json:"records"`
}

type queue struct {
	Topic     string           `json:"topic"`
	QueueID   int32            `json:"queueId"`
	MinOffset int64            `json:"minOffset"`
	MaxOffset int64            `json:"maxOffset"`
	Messages  []map[string]any `json:"messages"`
}

type answer struct {
	Topic   string  `json:"topic"`
	Key     string  `json:"key"`
	Offsets []int64 `json:"phyOffsets"`
}

type manifest struct {
	Scenario string `json:"scenario"`
	Puts     []put  `json:"puts"`
}

type put struct {
	Phase       int               `json:"phase"`
	Seq         int               `json:"seq"`
	Topic       string            `json:"topic"`
	QueueID     int32             `json:"queueId"`
	Status      string            `json:"status"`
	Append      string            `json:"append"`
	PhyOffset   *int64            `json:"phyOffset"`
	QueueOffset int64             `json:"queueOffset"`
	Properties  map[string]string `json:"properties"`
}

// queueKey names a queue, topicKey a question to the index.
type (
	queueKey struct {
		topic string
		id    int32
	}
	topicKey struct{ topic, key string }
)

// Check compares a dump of the store with what is to be read from it and returns what is wrong, nothing when all is well.
// Where RocketMQ reads rightly that is its own answer; elsewhere every acknowledged message that is neither damaged nor
// expired must be readable from its queue and by its keys.
func (s Store) Check(dumped []byte) []string {
	var got dump
	if err := parse(dumped, &got); err != nil {
		return []string{err.Error()}
	}
	if s.expected == nil {
		return s.kept(&got)
	}
	var want dump
	if err := parse(s.expected, &want); err != nil {
		return []string{err.Error()}
	}
	bad := same(&got, &want)
	// Two answers are right there: the five records that RocketMQ cut once may be back or not.
	if len(bad) > 0 && s.manifest != nil && len(s.kept(&got)) <= 5 {
		return nil
	}
	return bad
}

// CheckGrown compares a dump of the store, made after messages have been appended to it, with what was to be read from it
// before: all of that is still there, at the same places.
func (s Store) CheckGrown(dumped []byte) []string {
	var got dump
	if err := parse(dumped, &got); err != nil {
		return []string{err.Error()}
	}
	if s.expected == nil {
		return s.kept(&got)
	}
	var want dump
	if err := parse(s.expected, &want); err != nil {
		return []string{err.Error()}
	}
	if got.Loaded != nil && !*got.Loaded {
		return []string{"not loaded: " + got.LoadError}
	}
	if want.CommitLog.MinOffset < 0 { // it was empty
		want.CommitLog.MinOffset = got.CommitLog.MinOffset
	}
	return same(shrunk(&got, &want), &want)
}

// shrunk leaves out of a dump what came behind the end of an older one.
func shrunk(got, want *dump) *dump {
	end := want.CommitLog.MaxOffset
	small := &dump{Loaded: got.Loaded, CommitLog: got.CommitLog, Records: got.Records, Index: got.Index}
	small.CommitLog.MaxOffset = min(got.CommitLog.MaxOffset, end)
	small.Records = small.Records[:min(len(small.Records), len(want.Records))]
	older := want.queues()
	for _, q := range got.Queues {
		old := older[queueKey{q.Topic, q.QueueID}]
		if old == nil {
			continue
		}
		q.MaxOffset = min(q.MaxOffset, old.MaxOffset)
		q.Messages = q.Messages[:min(len(q.Messages), len(old.Messages))]
		small.Queues = append(small.Queues, q)
	}
	return small
}

func parse(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

func same(got, want *dump) []string {
	var bad []string
	wrong := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if got.CommitLog != want.CommitLog {
		wrong("commitLog %v instead of %v", got.CommitLog, want.CommitLog)
	}
	g, w := got.queues(), want.queues()
	for k := range w {
		if g[k] == nil {
			wrong("queue %v is missing", k)
		}
	}
	for k, q := range g {
		if w[k] == nil {
			wrong("queue %v should not be there", k)
		} else if diff := q.differs(w[k]); diff != "" {
			wrong("queue %v: %s", k, diff)
		}
	}
	if i := firstDifference(got.Records, want.Records); i >= 0 {
		wrong("record %d of %d/%d: %v", i, len(got.Records), len(want.Records), pair(got.Records, want.Records, i))
	}
	// As sets: RocketMQ indexes the last message twice when it dispatches again. What it has behind the log may be cut.
	gi, wi := got.answers(), want.answers()
	for k, offsets := range wi {
		below := func(o int64) bool { return o < want.CommitLog.MaxOffset }
		if a, b := set(gi[k], below), set(offsets, below); !slices.Equal(a, b) {
			wrong("index %v: %v instead of %v", k, a, b)
		}
	}
	return bad
}

func (d *dump) queues() map[queueKey]*queue {
	m := map[queueKey]*queue{}
	for i := range d.Queues {
		m[queueKey{d.Queues[i].Topic, d.Queues[i].QueueID}] = &d.Queues[i]
	}
	return m
}

func (d *dump) answers() map[topicKey][]int64 {
	m := map[topicKey][]int64{}
	for _, a := range d.Index {
		m[topicKey{a.Topic, a.Key}] = a.Offsets
	}
	return m
}

func set(offsets []int64, want func(int64) bool) []int64 {
	m := map[int64]bool{}
	for _, o := range offsets {
		if want(o) {
			m[o] = true
		}
	}
	return slices.Sorted(maps.Keys(m))
}

func (q *queue) differs(want *queue) string {
	if q.MinOffset != want.MinOffset || q.MaxOffset != want.MaxOffset {
		return fmt.Sprintf("%d..%d instead of %d..%d", q.MinOffset, q.MaxOffset, want.MinOffset, want.MaxOffset)
	}
	if i := firstDifference(q.Messages, want.Messages); i >= 0 {
		return fmt.Sprintf("message %d of %d/%d: %v", i, len(q.Messages), len(want.Messages), pair(q.Messages, want.Messages, i))
	}
	return ""
}

// firstDifference is -1 when the lists are equal.
func firstDifference[T any](a, b []T) int {
	for i := range min(len(a), len(b)) {
		if !reflect.DeepEqual(a[i], b[i]) {
			return i
		}
	}
	if len(a) == len(b) {
		return -1
	}
	return min(len(a), len(b))
}

func pair[T any](a, b []T, i int) string {
	at := func(l []T) any {
		if i < len(l) {
			return l[i]
		}
		return "nothing"
	}
	return fmt.Sprintf("%v instead of %v", at(a), at(b))
}

// kept checks that every message that can be there is there.
func (s Store) kept(got *dump) []string {
	if got.Loaded != nil && !*got.Loaded {
		return []string{"not loaded: " + got.LoadError}
	}
	var m manifest
	var v struct {
		LostDamaged []string `json:"lostDamaged"`
	}
	if err := parse(s.manifest, &m); err != nil {
		return []string{"manifest: " + err.Error()}
	}
	if err := parse(s.verify, &v); err != nil {
		return []string{"verify: " + err.Error()}
	}
	found, index := got.places(), got.answers()
	var bad []string
	for _, p := range m.Puts {
		who := fmt.Sprintf("%d/%d", p.Phase, p.Seq)
		if !p.acknowledged() || *p.PhyOffset < got.CommitLog.MinOffset || slices.Contains(v.LostDamaged, who) {
			continue
		}
		if at, ok := found[place{p.Topic, p.QueueID, p.QueueOffset}]; !ok || at != *p.PhyOffset {
			bad = append(bad, who+" is not in its queue")
		} else if key := p.lacksKey(index); key != "" {
			bad = append(bad, who+" is not found by its key "+key)
		}
	}
	if strings.Contains(m.Scenario, "size-field") && len(bad) > 0 {
		return bad[1:] // the body of the damaged record is whole there, so it counts as not damaged
	}
	return bad
}

func (p *put) acknowledged() bool {
	return p.Status == "PUT_OK" && p.PhyOffset != nil && (p.Append == "" || p.Append == "PUT_OK")
}

// lacksKey returns a key by which the index does not find the message. It need not show more than 64.
func (p *put) lacksKey(index map[topicKey][]int64) string {
	for _, key := range strings.Fields(p.Properties["KEYS"]) {
		hits := index[topicKey{p.Topic, key}]
		if !slices.Contains(hits, *p.PhyOffset) && len(hits) < 64 {
			return key
		}
	}
	return ""
}

// place names a message by queue and queue offset.
type place struct {
	topic  string
	id     int32
	offset int64
}

// places are the physical offsets of the messages that can be read from the queues.
func (d *dump) places() map[place]int64 {
	m := map[place]int64{}
	for _, q := range d.Queues {
		for _, entry := range q.Messages {
			msg, ok := entry["msg"].(map[string]any)
			if !ok {
				continue
			}
			m[place{q.Topic, q.QueueID, number(msg["queueOffset"])}] = number(msg["phyOffset"])
		}
	}
	return m
}

func number(v any) int64 {
	n, ok := v.(json.Number)
	if !ok {
		return -1
	}
	i, err := n.Int64()
	if err != nil {
		return -1
	}
	return i
}
