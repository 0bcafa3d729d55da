package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/admin/console/plot"
	"github.com/actormq/actormq/system/admin/history"
)

// groupRow is a group in the list.
type groupRow struct {
	Name    string
	Members int
	Model   string
	Topics  int
	Lag     int64
	Dead    int64 // dead letters
	Enabled bool
}

func (c *Console) groups(r *http.Request) (page, error) {
	rows := map[string]*groupRow{}
	row := func(name string) *groupRow {
		if rows[name] == nil {
			rows[name] = &groupRow{Name: name, Enabled: true}
		}
		return rows[name]
	}
	for g := range c.b.Groups.All() {
		row(g.GroupName).Enabled = g.ConsumeEnable
	}
	for _, l := range history.Lags(c.b, "") {
		g := row(l.Group)
		g.Lag += l.Messages
		g.Topics++
	}
	for _, name := range c.b.Clients.Groups() {
		row(name)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(rows)), func(name string) bool {
		return !wanted(r, name) || c.b.Groups.IsBuiltIn(name) && !r.URL.Query().Has("all")
	})
	l := part(r, names)
	list := listing[groupRow]{Total: l.Total, Find: l.Find, All: l.All, Prev: l.Prev, Next: l.Next, First: l.First, Until: l.Until}
	for _, name := range l.Rows {
		g := rows[name]
		if online := c.b.Clients.Consumers(name); online != nil {
			g.Members, g.Model = len(online.Clients), model(online)
		}
		g.Dead = c.stored(messages.DLQTopicPrefix + name)
		list.Rows = append(list.Rows, *g)
	}
	return page{Template: "groups", Title: "Groups", Nav: "groups", Data: list}, nil
}

func model(g *messages.ConsumerGroup) string {
	how := "push"
	if strings.Contains(g.ConsumeType, "ACTIVELY") {
		how = "pull"
	}
	return how + ", " + strings.ToLower(g.MessageModel)
}

// stored counts the messages of a topic that are still there.
func (c *Console) stored(topic string) (n int64) {
	if t, ok := c.b.Topics.Lookup(topic); ok {
		for _, q := range c.queues(t) {
			n += q.Stored
		}
	}
	return n
}

// groupView is one group.
type groupView struct {
	groupRow
	Retries int
	Clients []clientRow
	Topics  []groupTopic
	Online  bool
}

type clientRow struct {
	ID, Address, Language string
	Version               int
	SeenMs                int64
}

// groupTopic is how far a group is in a topic.
type groupTopic struct {
	Topic, Filter string
	Lag           int64
	Out, Back     float64 // messages a second, over the last minute: taken, sent back
	OldestMs      int64   // store time of the first message that is not committed; 0: there is none
	Queues        []groupQueue
	Plot          plot.Plot
}

type groupQueue struct {
	ID      int32
	At, End int64
	Lag     int64
	None    bool // nothing is committed
}

func (c *Console) group(r *http.Request) (page, error) {
	name := r.URL.Query().Get("name")
	config, ok := c.b.Groups.Lookup(name)
	online := c.b.Clients.Consumers(name)
	topics := c.b.Offsets.Topics(name)
	if !ok && online == nil && len(topics) == 0 {
		return page{Nav: "groups"}, missing("There is no group " + strconv.Quote(name) + ".")
	}
	v := groupView{groupRow: groupRow{Name: name, Enabled: !ok || config.ConsumeEnable}, Retries: config.RetryMaxTimes, Online: online != nil}
	v.Dead = c.stored(messages.DLQTopicPrefix + name)
	if online != nil {
		v.Members, v.Model = len(online.Clients), model(online)
		for _, client := range online.Clients {
			v.Clients = append(v.Clients, clientRow{client.ID, client.Channel.RemoteAddr(), client.Language, client.Version, client.LastUpdateMs()})
		}
		topics = append(topics, slices.Collect(maps.Keys(online.Subscriptions))...)
	}
	slices.Sort(topics)
	for _, topic := range slices.Compact(topics) {
		t := c.groupTopic(name, topic)
		if online != nil && online.Subscriptions[topic] != nil {
			t.Filter = online.Subscriptions[topic].SubString
		}
		v.Lag += t.Lag
		v.Topics = append(v.Topics, t)
	}
	slices.SortStableFunc(v.Topics, func(a, b groupTopic) int { return cmp.Compare(b.Lag, a.Lag) })
	for i := range v.Topics {
		v.Topics[i].Plot.ID = fmt.Sprintf("lag-%d", i)
	}
	return page{Template: "group", Title: name, Nav: "groups", Data: v}, nil
}

func (c *Console) groupTopic(group, topic string) groupTopic {
	v := groupTopic{Topic: topic, Plot: c.lagPlot(group, topic)}
	t, _ := c.b.Topics.Lookup(topic)
	for id := range int32(t.ReadQueueNums) {
		key := messages.QueueKey{Topic: topic, QueueID: id}
		at, end := c.b.Offsets.Lookup(group, key), c.store.MaxOffset(key)
		q := groupQueue{ID: id, At: int64(max(at, 0)), End: int64(end), None: at < 0, Lag: int64(max(end-max(at, 0), 0))}
		if next := max(at, c.store.MinOffset(key), 0); next < end {
			if ms, err := c.store.StoreTime(key, next); err == nil && (v.OldestMs == 0 || ms < v.OldestMs) {
				v.OldestMs = ms
			}
		}
		v.Lag += q.Lag
		v.Queues = append(v.Queues, q)
	}
	out, _ := c.b.Stats.View("GROUP_GET_NUMS", topic+"@"+group, known)
	back, _ := c.b.Stats.View("SNDBCK_PUT_NUMS", topic+"@"+group, known)
	v.Out, v.Back = out.StatsMinute.TPS, back.StatsMinute.TPS
	return v
}

func (c *Console) lagPlot(group, topic string) plot.Plot {
	points, now := c.history.Lag(group, topic), time.Now()
	times, values := make([]time.Time, len(points)), make([]float64, len(points))
	for i, p := range points {
		times[i], values[i] = p.At, float64(p.Messages)
	}
	return plot.Plot{
		Title: "Lag", Unit: plot.Count, Span: history.LagKept, End: now,
		Lines: []plot.Line{{Name: "messages", Values: spread(slots, now, history.LagKept, times, values)}},
	}
}
