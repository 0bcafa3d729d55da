package console

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
)

// maxFound is how many messages a search shows.
const maxFound = 64

// searchView is the form and what it has found.
type searchView struct {
	ID, Topic, Key, From, Queue string
	Found                       []messageRow
	Asked, More                 bool
	Problem                     string
	Topics                      []string // names to choose from
}

// messageRow is a message in a list.
type messageRow struct {
	At                int64 // physical offset
	Topic, Tags, Keys string
	Queue             int32
	Offset            int64
	StoredMs          int64
	Size              int
	Preview           string
}

func rowOf(m *messages.StoredMessage) messageRow {
	tags, _ := m.Properties.Get(messages.PropertyTags)
	keys, _ := m.Properties.Get(messages.PropertyKeys)
	return messageRow{
		At: int64(m.PhysicalOffset), Topic: m.Topic, Tags: tags, Keys: keys, Queue: m.QueueID, Offset: int64(m.QueueOffset),
		StoredMs: m.StoreTimestampMs, Size: len(m.Body), Preview: preview(m),
	}
}

func (c *Console) search(r *http.Request) (page, error) {
	q := r.URL.Query()
	v := searchView{
		ID: strings.TrimSpace(q.Get("id")), Topic: strings.TrimSpace(q.Get("topic")), Key: strings.TrimSpace(q.Get("key")),
		From: q.Get("from"), Queue: strings.TrimSpace(q.Get("queue")),
	}
	for t := range c.b.Topics.All() {
		v.Topics = append(v.Topics, t.TopicName)
	}
	slices.Sort(v.Topics)
	const most = 1000
	v.Topics = v.Topics[:min(len(v.Topics), most)]
	found, err := c.find(r.Context(), &v)
	if err != nil {
		v.Problem = err.Error()
	}
	slices.SortStableFunc(found, older)
	v.More, v.Found = len(found) > maxFound, found[:min(len(found), maxFound)]
	return page{Template: "messages", Title: "Messages", Nav: "messages", Data: v}, nil
}

func older(a, b messageRow) int { return cmp.Compare(a.StoredMs, b.StoredMs) }

// find looks for what the form says.
func (c *Console) find(ctx context.Context, v *searchView) ([]messageRow, error) {
	v.Asked = v.ID != "" || v.Topic != ""
	if v.ID != "" {
		if _, at, err := messages.ParseOffsetMessageID(v.ID); err == nil {
			m, err := c.store.MessageAt(at)
			switch {
			case errors.Is(err, system.ErrNoMessage):
				return nil, nil
			case err != nil:
				return nil, err
			}
			return []messageRow{rowOf(&m)}, nil
		}
		if v.Topic == "" {
			return nil, errors.New("this is no offset message id; for the unique id that a client gave its message the topic is needed, too")
		}
		return c.byKey(ctx, v.Topic, v.ID)
	}
	if v.Topic == "" {
		return nil, nil
	}
	if _, ok := c.b.Topics.Lookup(v.Topic); !ok {
		return nil, errors.New("there is no topic " + strconv.Quote(v.Topic))
	}
	if v.Key != "" {
		return c.byKey(ctx, v.Topic, v.Key)
	}
	return c.byTime(ctx, v)
}

func (c *Console) byKey(ctx context.Context, topic, key string) (found []messageRow, err error) {
	got, err := c.store.QueryRecords(ctx, messages.QueryMessage{Topic: topic, Key: key, MaxMessages: maxFound + 1, EndMs: math.MaxInt64})
	if err != nil {
		return nil, err
	}
	return found, visit(got, func(m *messages.StoredMessage) { found = append(found, rowOf(m)) })
}

// byTime reads on from a time in each queue of a topic, or in one; without a time, its last messages.
func (c *Console) byTime(ctx context.Context, v *searchView) ([]messageRow, error) {
	from := time.Time{}
	if v.From != "" {
		var err error
		if from, err = parseTime(v.From); err != nil {
			return nil, err
		}
	}
	only, err := strconv.Atoi(v.Queue)
	if v.Queue != "" && err != nil {
		return nil, errors.New("the queue is a number")
	}
	t, _ := c.b.Topics.Lookup(v.Topic)
	var found []messageRow
	for id := range int32(max(t.ReadQueueNums, t.WriteQueueNums)) {
		if v.Queue != "" && int(id) != only {
			continue
		}
		key := messages.QueueKey{Topic: v.Topic, QueueID: id}
		at := max(c.store.MaxOffset(key)-maxFound, c.store.MinOffset(key))
		if !from.IsZero() {
			if at, err = c.store.OffsetByTime(ctx, key, from.UnixMilli(), messages.TimeLower); err != nil {
				return found, err
			}
		}
		if err := c.read(ctx, key, at, maxFound+1, func(m *messages.StoredMessage) { found = append(found, rowOf(m)) }); err != nil {
			return found, err
		}
		slices.SortStableFunc(found, older) // no more is kept than is shown, however many queues there are
		if from.IsZero() {
			found = found[max(len(found)-maxFound, 0):]
		} else {
			found = found[:min(len(found), maxFound+1)]
		}
	}
	return found, nil
}

// parseTime reads a time as a form sends it, or as RFC 3339; it is UTC.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.999", time.RFC3339Nano} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("want a time like 2026-01-31T13:00:00")
}

// read gives up to so many messages of a queue from an offset on to fn.
func (c *Console) read(ctx context.Context, key messages.QueueKey, at messages.QueueOffset, most int, fn func(*messages.StoredMessage)) error {
	for left := most; left > 0 && at < c.store.MaxOffset(key); {
		got, err := c.store.Get(ctx, messages.GetMessage{Queue: key, Offset: at, MaxMessages: left})
		if err != nil {
			return err
		}
		next := got.NextOffset
		err = visit(got, func(m *messages.StoredMessage) {
			left--
			fn(m)
		})
		if err != nil || next <= at {
			return err
		}
		at = next
	}
	return nil
}

// first is the first message of a queue from an offset on; nil: there is none.
func (c *Console) first(ctx context.Context, key messages.QueueKey, at messages.QueueOffset) (found *messages.StoredMessage, err error) {
	err = c.read(ctx, key, at, 1, func(m *messages.StoredMessage) { found = m })
	return found, err
}

// visit gives the messages of a result to fn, one by one, and releases it: bodies are large, and a list shows little of each.
func visit(got *messages.GetResult, fn func(*messages.StoredMessage)) error {
	defer got.Release()
	return vfs.Guard("read messages", func() error {
		for _, raw := range got.Records {
			if rec, _, err := record.Parse(raw, false); err == nil && !rec.Lost() {
				m := rec.Stored()
				fn(&m)
			}
		}
		return nil
	})
}

// messageView is one message.
type messageView struct {
	messageRow
	ID, Unique, Born, BornHost, StoreHost string
	Flag, SysFlag, Reconsumed             int32
	StoreSize                             int32
	CRC                                   uint32
	Properties                            [][2]string
	Body                                  body
	As                                    string // how the body is shown
	Steps                                 []step
	Prev, Next                            int64 // physical offsets of the neighbours in the queue, -1: none
}

// step is a part of a message's way.
type step struct {
	Name, Note string
	Done       bool
}

func (c *Console) message(r *http.Request) (page, error) {
	m, err := c.at(r)
	if err != nil {
		return page{Nav: "messages"}, err
	}
	unique, _ := m.Properties.Get(messages.PropertyUniqKey)
	v := messageView{
		messageRow: rowOf(&m), ID: m.OffsetMessageID(), Unique: unique, Born: clock(time.UnixMilli(m.BornTimestampMs)),
		BornHost: m.BornHost.String(), StoreHost: m.StoreHost.String(), Flag: m.Flag, SysFlag: m.SysFlag, Reconsumed: m.ReconsumeTimes,
		StoreSize: m.StoreSize, CRC: m.BodyCRC, Body: c.decode(&m), Steps: c.steps(&m), Prev: -1, Next: -1,
	}
	for name, value := range m.Properties.All() {
		v.Properties = append(v.Properties, [2]string{name, value})
	}
	if v.As = r.URL.Query().Get("as"); !slices.Contains(v.Body.Forms, v.As) {
		v.As = v.Body.Forms[0]
	}
	for _, near := range []struct {
		by messages.QueueOffset
		to *int64
	}{{-1, &v.Prev}, {1, &v.Next}} {
		if one, err := c.first(r.Context(), m.Queue(), m.QueueOffset+near.by); err == nil && one != nil && one.QueueOffset == m.QueueOffset+near.by {
			*near.to = int64(one.PhysicalOffset)
		}
	}
	return page{Template: "message", Title: "Message " + v.ID, Nav: "messages", Data: v}, nil
}

// at is the message that a request names by its physical offset.
func (c *Console) at(r *http.Request) (messages.StoredMessage, error) {
	at, err := strconv.ParseInt(r.URL.Query().Get("at"), 10, 64)
	if err != nil {
		return messages.StoredMessage{}, wrong("at is a physical offset: a number.")
	}
	m, err := c.store.MessageAt(messages.PhysicalOffset(at))
	if errors.Is(err, system.ErrNoMessage) {
		return m, missing("There is no message at offset " + strconv.FormatInt(at, 10) + ": it has expired, or there never was one.")
	}
	return m, err
}

// steps tells how far a message has come: stored, flushed, dispatched, taken by each group that reads its topic.
func (c *Console) steps(m *messages.StoredMessage) []step {
	st, end := c.store.Status(), m.PhysicalOffset+messages.PhysicalOffset(m.StoreSize)
	steps := []step{
		{"Stored", clock(time.UnixMilli(m.StoreTimestampMs)), true}, {"Flushed", "to " + count(st.FlushedTo), st.FlushedTo >= end},
		{"Dispatched", "to " + count(st.DispatchedTo), st.DispatchedTo >= end},
	}
	const most = 50
	groups := append(c.b.Offsets.Groups(m.Topic), c.b.Clients.Subscribers(m.Topic)...)
	slices.Sort(groups)
	groups = slices.Compact(groups)
	for _, group := range groups[:min(len(groups), most)] {
		at := c.b.Offsets.Lookup(group, m.Queue())
		note := "has committed nothing of this queue"
		if at >= 0 {
			note = "has committed to " + count(at)
		}
		steps = append(steps, step{"Consumed by " + group, note, at > m.QueueOffset})
	}
	return steps
}
