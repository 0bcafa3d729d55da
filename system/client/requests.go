package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
)

// sweep is what a broker may take beyond the time for which a pull is held: it looks for old ones every 5 s
// (spec/remoting.md §9.5).
const sweep = 5 * time.Second

// ErrNoNameServer: Options.NameServers is empty.
var ErrNoNameServer = errors.New("no name server to ask")

// Route asks for the route of a topic (105, spec/remoting.md §5). A name server that is not reached is passed over; a topic
// that the first one which is reached does not know is refused with ResponseTopicNotExist.
func (c *Client) Route(ctx context.Context, topic string) (*remoting.TopicRouteData, error) {
	err := ErrNoNameServer
	for _, address := range c.opt.NameServers {
		var answer *remoting.Command
		h := remoting.RouteHeader{Topic: topic, AcceptStandardJSONOnly: true}
		answer, err = c.ask(ctx, address, remoting.NewRequest(remoting.RequestGetRouteInfoByTopic, &h), 0)
		if Unreached(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var route remoting.TopicRouteData
		if err := answer.DecodeBody(&route); err != nil {
			return nil, fmt.Errorf("route of %s from %s: %w", topic, address, err)
		}
		return &route, nil
	}
	return nil, err
}

// Sent is a message that is stored.
type Sent struct {
	Code int // ResponseSuccess, or which confirmation is missing: ResponseFlushDiskTimeout, …FlushSlaveTimeout, …SlaveNotAvailable
	remoting.SendMessageAnswer
}

// Send sends one message to the address (310, spec/remoting.md §8).
func (c *Client) Send(ctx context.Context, address string, h remoting.SendMessageHeader, body []byte) (Sent, error) {
	short := remoting.SendMessageV2Header(h)
	request := remoting.NewRequest(remoting.RequestSendMessageV2, &short)
	request.Body = body
	answer, err := c.ask(ctx, address, request, 0,
		remoting.ResponseFlushDiskTimeout, remoting.ResponseFlushSlaveTimeout, remoting.ResponseSlaveNotAvailable)
	if err != nil {
		return Sent{}, err
	}
	sent := Sent{Code: answer.Code}
	if err := remoting.FromExt(answer.ExtFields, &sent.SendMessageAnswer); err != nil {
		return Sent{}, fmt.Errorf("%s at %s: stored, but the answer is bad: %w", remoting.RequestName(request.Code), address, err)
	}
	return sent, nil
}

// Pulled is the answer to a pull.
type Pulled struct {
	Code int // ResponseSuccess, ResponsePullNotFound, ResponsePullRetryImmediately or ResponsePullOffsetMoved
	remoting.PullMessageAnswer
	Messages []messages.StoredMessage
	Damaged  error // names the messages that are left out, as their bytes are not what was stored; nil: none is
}

// Pull asks for messages (11, spec/remoting.md §9). With PullFlagSuspend it waits for as long as the broker may hold the pull.
func (c *Client) Pull(ctx context.Context, address string, h remoting.PullMessageHeader) (*Pulled, error) {
	var wait time.Duration
	if h.SysFlag&remoting.PullFlagSuspend != 0 {
		wait = time.Duration(h.SuspendTimeoutMs)*time.Millisecond + sweep
	}
	answer, err := c.ask(ctx, address, remoting.NewRequest(remoting.RequestPullMessage, &h), wait,
		remoting.ResponsePullNotFound, remoting.ResponsePullRetryImmediately, remoting.ResponsePullOffsetMoved)
	if err != nil {
		return nil, err
	}
	p := &Pulled{Code: answer.Code}
	if err := remoting.FromExt(answer.ExtFields, &p.PullMessageAnswer); err != nil {
		return nil, fmt.Errorf("%s at %s: %w", remoting.RequestName(remoting.RequestPullMessage), address, err)
	}
	if answer.Code != remoting.ResponseSuccess {
		return p, nil
	}
	if p.Messages, p.Damaged, err = record.DecodeWhole(answer.Body); err != nil {
		return nil, fmt.Errorf("%s at %s: record %d of the answer: %w",
			remoting.RequestName(remoting.RequestPullMessage), address, len(p.Messages), err)
	}
	return p, nil
}

// MinOffset is the offset of the queue's first message (31).
func (c *Client) MinOffset(ctx context.Context, q Queue) (int64, error) {
	return c.offset(ctx, q, remoting.RequestGetMinOffset, &remoting.QueueHeader{Topic: q.Topic, QueueID: q.ID})
}

// MaxOffset is the offset that the queue's next message will have (30).
func (c *Client) MaxOffset(ctx context.Context, q Queue) (int64, error) {
	return c.offset(ctx, q, remoting.RequestGetMaxOffset, &remoting.QueueHeader{Topic: q.Topic, QueueID: q.ID})
}

// OffsetFrom is an offset at or before that of the first message stored at or after the time: messages that are older may
// stand between (29). Brokers of RocketMQ 4.x answer with the nearest message, of several with the same time with any: asked
// for the millisecond before, they never answer with one that is too late (spec/store.md §7.6).
func (c *Client) OffsetFrom(ctx context.Context, q Queue, timestampMs int64) (int64, error) {
	return c.offset(ctx, q, remoting.RequestSearchOffsetByTimestamp,
		&remoting.SearchOffsetHeader{Topic: q.Topic, QueueID: q.ID, TimestampMs: timestampMs - 1})
}

// GroupOffset is where a group goes on in a queue (14). A group without an offset is refused with ResponseQueryNotFound; in a
// queue that has lost no message yet it is 0 instead (spec/remoting.md §11.1), see [Client.HasGroupOffset].
func (c *Client) GroupOffset(ctx context.Context, q Queue, group string) (int64, error) {
	return c.offset(ctx, q, remoting.RequestQueryConsumerOffset,
		&remoting.QueryConsumerOffsetHeader{ConsumerGroup: group, Topic: q.Topic, QueueID: q.ID})
}

// HasGroupOffset tells whether the broker has an offset of the group in that queue. It asks for those of all groups (43).
func (c *Client) HasGroupOffset(ctx context.Context, q Queue, group string) (bool, error) {
	answer, err := c.ask(ctx, q.Address, remoting.NewRequest(remoting.RequestGetAllConsumerOffset, nil), 0)
	if err != nil {
		return false, err
	}
	var all remoting.ConsumerOffsetTable
	if err := answer.DecodeBody(&all); err != nil {
		return false, fmt.Errorf("consumer offsets of %s: %w", q.Address, err)
	}
	_, ok := all.OffsetTable[q.Topic+"@"+group][q.ID]
	return ok, nil
}

// Commit stores where a group goes on in a queue (15).
func (c *Client) Commit(ctx context.Context, q Queue, group string, at int64) error {
	h := remoting.UpdateConsumerOffsetHeader{ConsumerGroup: group, Topic: q.Topic, QueueID: q.ID, CommitOffset: at}
	_, err := c.ask(ctx, q.Address, remoting.NewRequest(remoting.RequestUpdateConsumerOffset, &h), 0)
	return err
}

// offset asks what is answered with an offset.
func (c *Client) offset(ctx context.Context, q Queue, code int, h remoting.Header) (int64, error) {
	answer, err := c.ask(ctx, q.Address, remoting.NewRequest(code, h), 0)
	if err != nil {
		return 0, err
	}
	var at remoting.OffsetAnswer
	if err := remoting.FromExt(answer.ExtFields, &at); err != nil {
		return 0, fmt.Errorf("%s at %s: %w", remoting.RequestName(code), q.Address, err)
	}
	return at.Offset, nil
}
