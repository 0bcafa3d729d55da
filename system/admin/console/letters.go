package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
)

// levelRow is a delay level.
type levelRow struct {
	Level        int
	Delay        time.Duration
	Done         int64 // offset of its queue
	Waiting      int64
	DueMs        int64 // of the first one that waits; 0: none does
	LateMs       int64 // how long that has been over
	First        []delayedRow
	PastExpected bool // late by more than a level may be
}

type delayedRow struct {
	messageRow
	To    string // its own topic
	DueMs int64
}

// shownDelayed is how many of a level's messages the page lists.
const shownDelayed = 5

func (c *Console) delayed(r *http.Request) (page, error) {
	var rows []levelRow
	done := c.store.DelayOffsets()
	for i, delay := range c.b.Delays {
		key := messages.QueueKey{Topic: messages.TopicSchedule, QueueID: int32(i)}
		row := levelRow{Level: i + 1, Delay: delay, Done: int64(max(done[i+1], c.store.MinOffset(key)))}
		row.Waiting = max(int64(c.store.MaxOffset(key))-row.Done, 0)
		if row.Waiting > 0 {
			err := c.read(r.Context(), key, messages.QueueOffset(row.Done), shownDelayed, func(m *messages.StoredMessage) {
				row.First = append(row.First, delayedOf(m, delay))
			})
			if err != nil {
				return page{Nav: "delayed"}, err
			}
		}
		if len(row.First) > 0 {
			row.DueMs = row.First[0].DueMs
			row.LateMs = max(time.Now().UnixMilli()-row.DueMs, 0)
		}
		const late = 5000
		row.PastExpected = row.LateMs > late
		rows = append(rows, row)
	}
	return page{Template: "delayed", Title: "Delayed messages", Nav: "delayed", Data: rows}, nil
}

// delayedOf is a message that waits: it is due its level's delay after it was stored (spec/store.md §8.2).
func delayedOf(m *messages.StoredMessage, delay time.Duration) delayedRow {
	to, _ := m.Properties.Get(messages.PropertyRealTopic)
	return delayedRow{messageRow: rowOf(m), To: to, DueMs: m.StoreTimestampMs + delay.Milliseconds()}
}

// toolGroup keeps how far dead letters were sent again, as `actormq dlq resend` does.
const toolGroup = "TOOLS_CONSUMER"

// deadView is the groups with dead letters, or the letters of one.
type deadView struct {
	Groups  []deadRow
	Group   string
	Letters []letterRow
	New     int64 // not sent again yet
	Older   string
	Done    string // what an action has done
	Most    int
}

type deadRow struct {
	Group        string
	Count, Again int64
	LastMs       int64
}

type letterRow struct {
	messageRow
	From  string // its own topic
	Times int32
	Again bool // it has been sent again
}

// maxResent is how many dead letters one request sends again.
const maxResent = 1000

func (c *Console) dead(r *http.Request) (page, error) {
	v := deadView{Group: r.URL.Query().Get("group"), Done: r.URL.Query().Get("done"), Most: maxResent}
	if v.Group != "" {
		return c.letters(r, v)
	}
	for t := range c.b.Topics.All() {
		group, ok := strings.CutPrefix(t.TopicName, messages.DLQTopicPrefix)
		if !ok {
			continue
		}
		row := deadRow{Group: group}
		for _, q := range c.queues(t) {
			row.Count += q.Stored
			row.LastMs = max(row.LastMs, q.LastMs)
			row.Again += max(min(c.resent(group, q.ID), q.End)-q.First, 0)
		}
		v.Groups = append(v.Groups, row)
	}
	slices.SortFunc(v.Groups, func(a, b deadRow) int { return strings.Compare(a.Group, b.Group) })
	return page{Template: "dead", Title: "Dead letters", Nav: "dead", Data: v}, nil
}

// resent is up to which offset dead letters of a group were sent again.
func (c *Console) resent(group string, queue int32) int64 {
	return int64(c.b.Offsets.Lookup(toolGroup, messages.QueueKey{Topic: messages.DLQTopicPrefix + group, QueueID: queue}))
}

// letters shows the newest dead letters of a group, or those before an offset.
func (c *Console) letters(r *http.Request, v deadView) (page, error) {
	key := messages.QueueKey{Topic: messages.DLQTopicPrefix + v.Group} // it has one queue
	if _, ok := c.b.Topics.Lookup(key.Topic); !ok {
		return page{Nav: "dead"}, missing("Group " + strconv.Quote(v.Group) + " has no dead letters.")
	}
	first, end := c.store.MinOffset(key), c.store.MaxOffset(key)
	again := c.resent(v.Group, 0)
	v.New = int64(end) - max(again, int64(first))
	before := end
	if n, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64); err == nil {
		before = min(max(messages.QueueOffset(n), first), end)
	}
	from := max(before-maxFound, first)
	err := c.read(r.Context(), key, from, int(before-from), func(m *messages.StoredMessage) {
		origin, _ := m.Properties.Get(messages.PropertyRetryTopic)
		v.Letters = append(v.Letters, letterRow{messageRow: rowOf(m), From: origin, Times: m.ReconsumeTimes, Again: int64(m.QueueOffset) < again})
	})
	if err != nil {
		return page{Nav: "dead"}, err
	}
	slices.Reverse(v.Letters)
	if from > first {
		v.Older = "?" + url.Values{"group": {v.Group}, "before": {strconv.FormatInt(int64(from), 10)}}.Encode()
	}
	return page{Template: "dead", Title: "Dead letters of " + v.Group, Nav: "dead", Data: v}, nil
}

// resend sends dead letters again: one (at), or those of a group that have not been sent again yet, the oldest first.
func (c *Console) resend(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
	group := r.PostFormValue("group")
	key := messages.QueueKey{Topic: messages.DLQTopicPrefix + group}
	if _, ok := c.b.Topics.Lookup(key.Topic); !ok {
		c.show(w, r, page{Nav: "dead"}, missing("Group "+strconv.Quote(group)+" has no dead letters."))
		return
	}
	sent, err := c.resendAll(r.Context(), group, key, r.PostFormValue("at"))
	c.cfg.Logger.Info().Str("from", r.RemoteAddr).Str("group", group).Int("messages", sent).Err(err).Msg("dead letters are sent again by the console")
	done := fmt.Sprintf("%d sent again.", sent)
	if err != nil {
		done = fmt.Sprintf("%d sent again, then: %v", sent, err)
	}
	http.Redirect(w, r, Home+"dead?"+url.Values{"group": {group}, "done": {done}}.Encode(), http.StatusSeeOther)
}

func (c *Console) resendAll(ctx context.Context, group string, key messages.QueueKey, at string) (sent int, err error) {
	if at != "" {
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return 0, wrong("at is an offset: a number")
		}
		letter, err := c.first(ctx, key, messages.QueueOffset(n))
		if err != nil || letter == nil || int64(letter.QueueOffset) != n {
			return 0, missing("it is not there any more")
		}
		return 1, c.again(ctx, group, letter)
	}
	from := max(messages.QueueOffset(c.resent(group, 0)), c.store.MinOffset(key))
	for sent < maxResent {
		letter, err := c.first(ctx, key, from)
		if err != nil || letter == nil {
			return sent, err
		}
		if err := c.again(ctx, group, letter); err != nil {
			return sent, err
		}
		sent++
		from = letter.QueueOffset + 1
		if err := c.b.Offsets.CommitWait(ctx, toolGroup, key, from); err != nil {
			return sent, fmt.Errorf("how far this has come could not be stored: %w", err)
		}
	}
	return sent, nil
}

// again gives a dead letter to its group once more, by the group's retry topic, with all its attempts.
func (c *Console) again(ctx context.Context, group string, letter *messages.StoredMessage) error {
	config, _ := c.b.Groups.Lookup(group)
	t, err := c.b.Topics.EnsureRetry(ctx, group, max(config.RetryQueueNums, 1), false)
	if err != nil {
		return err
	}
	m := letter.Message
	m.Topic, m.QueueID, m.ReconsumeTimes = t.TopicName, 0, 0
	m.SysFlag &= messages.SysFlagCompressed | messages.SysFlagCompressionMask
	m.Properties = m.Properties.WithoutDelivery()
	_, err = c.store.Put(ctx, &m)
	return err
}
