package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/admin/history"
)

// topicRow is a topic in the list.
type topicRow struct {
	Name        string
	Kind        string // system, retry, dead letters; empty: an ordinary one
	Read, Write int    // queues
	Perm        string
	Stored      int64   // messages that are still there
	In          float64 // a second, over the last minute
	LastMs      int64   // 0: nothing is there
}

// listing is a part of a long list.
type listing[T any] struct {
	Rows         []T
	Total        int
	Find         string // what the names contain
	All          bool   // the broker's own, too
	Prev, Next   string // links; empty: none
	First, Until int
}

// perPage is how many rows a list shows at once.
const perPage = 100

// part is what a request wants to see of a list.
func part[T any](r *http.Request, rows []T) listing[T] {
	query := r.URL.Query()
	from, _ := strconv.Atoi(query.Get("from"))
	from = min(max(from, 0), max(len(rows)-1, 0)/perPage*perPage)
	until := min(from+perPage, len(rows))
	l := listing[T]{Rows: rows[from:until], Total: len(rows), Find: query.Get("find"), All: query.Has("all"), First: min(from+1, until), Until: until}
	link := func(at int) string {
		query.Set("from", strconv.Itoa(at))
		return "?" + query.Encode()
	}
	if from > 0 {
		l.Prev = link(max(from-perPage, 0))
	}
	if until < len(rows) {
		l.Next = link(until)
	}
	return l
}

// wanted tells whether a name is one that a request looks for.
func wanted(r *http.Request, name string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(r.URL.Query().Get("find")))
}

// kindOf says what a topic is for, unless it is an ordinary one.
func (c *Console) kindOf(topic string) string {
	switch {
	case strings.HasPrefix(topic, messages.RetryTopicPrefix):
		return "retry"
	case strings.HasPrefix(topic, messages.DLQTopicPrefix):
		return "dead letters"
	case c.b.Topics.IsSystem(topic):
		return "system"
	}
	return ""
}

func (c *Console) topics(r *http.Request) (page, error) {
	var configs []metadata.TopicConfig
	for t := range c.b.Topics.All() {
		if wanted(r, t.TopicName) && (r.URL.Query().Has("all") || c.kindOf(t.TopicName) == "") {
			configs = append(configs, t)
		}
	}
	slices.SortFunc(configs, func(a, b metadata.TopicConfig) int { return cmp.Compare(a.TopicName, b.TopicName) })
	l := part(r, configs)
	rows := listing[topicRow]{Total: l.Total, Find: l.Find, All: l.All, Prev: l.Prev, Next: l.Next, First: l.First, Until: l.Until}
	for _, t := range l.Rows {
		rows.Rows = append(rows.Rows, c.topicRow(t, c.queues(t)))
	}
	return page{Template: "topics", Title: "Topics", Nav: "topics", Data: rows}, nil
}

func (c *Console) topicRow(t metadata.TopicConfig, queues []queueRow) topicRow {
	row := topicRow{Name: t.TopicName, Kind: c.kindOf(t.TopicName), Read: t.ReadQueueNums, Write: t.WriteQueueNums, Perm: permission(t.Perm)}
	for _, q := range queues {
		row.Stored += q.Stored
		row.LastMs = max(row.LastMs, q.LastMs)
	}
	in, _ := c.b.Stats.View("TOPIC_PUT_NUMS", t.TopicName, known)
	row.In = in.StatsMinute.TPS
	return row
}

func known(string, string) bool { return true }

func permission(perm int) string {
	switch perm & (metadata.PermRead | metadata.PermWrite) {
	case metadata.PermRead | metadata.PermWrite:
		return "read, write"
	case metadata.PermRead:
		return "read"
	case metadata.PermWrite:
		return "write"
	}
	return "none"
}

// queueRow is a queue of a topic.
type queueRow struct {
	ID         int32
	First, End int64
	Stored     int64
	LastMs     int64
}

// queues are those of a topic that are written to or read.
func (c *Console) queues(t metadata.TopicConfig) []queueRow {
	rows := make([]queueRow, max(t.ReadQueueNums, t.WriteQueueNums))
	for i := range rows {
		key := messages.QueueKey{Topic: t.TopicName, QueueID: int32(i)}
		first, end := c.store.MinOffset(key), c.store.MaxOffset(key)
		rows[i] = queueRow{ID: key.QueueID, First: int64(first), End: int64(end), Stored: int64(end - first)}
		if end > first {
			rows[i].LastMs, _ = c.store.StoreTime(key, end-1) // 0 when it has just been deleted
		}
	}
	return rows
}

// topicView is one topic.
type topicView struct {
	topicRow
	Queues    []queueRow
	Groups    []history.Lag
	InBytes   float64 // a second, over the last minute
	Hour, Day int64   // messages
	Order     bool
}

func (c *Console) topic(r *http.Request) (page, error) {
	name := r.URL.Query().Get("name")
	t, ok := c.b.Topics.Lookup(name)
	if !ok {
		return page{Nav: "topics"}, missing("There is no topic " + strconv.Quote(name) + ".")
	}
	queues := c.queues(t)
	v := topicView{topicRow: c.topicRow(t, queues), Queues: queues, Groups: history.Lags(c.b, name), Order: t.Order}
	size, _ := c.b.Stats.View("TOPIC_PUT_SIZE", name, known)
	in, _ := c.b.Stats.View("TOPIC_PUT_NUMS", name, known)
	v.InBytes, v.Hour, v.Day = size.StatsMinute.TPS, in.StatsHour.Sum, in.StatsDay.Sum
	for _, group := range c.b.Clients.Subscribers(name) { // those that have not committed anything
		if !slices.ContainsFunc(v.Groups, func(l history.Lag) bool { return l.Group == group }) {
			v.Groups = append(v.Groups, history.Lag{Group: group, Topic: name, Messages: v.Stored})
		}
	}
	return page{Template: "topic", Title: name, Nav: "topics", Data: v}, nil
}
