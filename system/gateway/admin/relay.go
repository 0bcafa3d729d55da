package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// How long a client may take to answer (spec/remoting.md §1.8).
const (
	relayTimeout  = 10 * time.Second
	statusTimeout = 5 * time.Second
)

// connOf is a client's connection; nil for a client of another kind.
func connOf(c *messages.Client) *gateway.Conn {
	conn, _ := c.Channel.(*gateway.Conn)
	return conn
}

// runningInfo relays 307.
func (t *Tools) runningInfo(r *gateway.Request) {
	var h remoting.RunningInfoHeader
	if !broker.Header(r, &h) {
		return
	}
	t.relay(r, h.ConsumerGroup, h.ClientID, &remoting.Command{Code: r.Code, Version: remoting.Version, ExtFields: r.ExtFields, Body: r.Body})
}

// consumeDirectly relays 309, with the message itself as the body.
func (t *Tools) consumeDirectly(r *gateway.Request) {
	var h remoting.ConsumeDirectlyHeader
	if !broker.Header(r, &h) {
		return
	}
	c := &remoting.Command{Code: r.Code, Version: remoting.Version}
	_, at, err := messages.ParseOffsetMessageID(h.MsgID)
	if err == nil {
		var m messages.StoredMessage
		if m, err = t.b.Store.MessageAt(at); err == nil {
			c.Body, err = rawOf(nil, &m)
		}
	}
	if err != nil {
		broker.Fail(r, err)
		return
	}
	h.BrokerName = t.b.BrokerName
	c.ExtFields = remoting.ToExt(&h)
	t.relay(r, h.ConsumerGroup, h.ClientID, c)
}

// relay hands a request on to a client and its response back, body and all untouched.
func (t *Tools) relay(r *gateway.Request, group, clientID string, c *remoting.Command) {
	conn, err := t.client(group, clientID)
	if err != nil {
		broker.Fail(r, err)
		return
	}
	answer := conn.Call(c, relayTimeout)
	go func() {
		response, err := answer.Wait(context.Background()) // the call has a timeout of its own
		if errors.Is(err, gateway.ErrCallTimeout) {
			r.Fail(remoting.ResponseConsumeMsgTimeout, fmt.Sprintf("consumer <%s> <%s> Timeout: %v", group, clientID, err))
			return
		}
		if err != nil {
			r.Fail(remoting.ResponseSystemError, fmt.Sprintf("invoke consumer <%s> <%s> Exception: %v", group, clientID, err))
			return
		}
		if tooMuch(r) {
			return
		}
		a := r.Command.Answer(response.Code, response.Remark)
		a.ExtFields, a.Body = response.ExtFields, response.Body
		r.Answer(a)
	}()
}

// tooMuch refuses to answer a tool that does not take the answers that it has got.
func tooMuch(r *gateway.Request) bool {
	if !r.Conn.Congested() {
		return false
	}
	r.Fail(remoting.ResponseSystemBusy, "too many answers wait to be taken")
	return true
}

// client finds a group's member that can answer calls.
func (t *Tools) client(group, clientID string) (*gateway.Conn, error) {
	online := t.b.Clients.Consumers(group)
	if online == nil {
		//lint:ignore ST1005 these are the original's words, which tools show
		return nil, fmt.Errorf("The Consumer <%s> <%s> not online", group, clientID)
	}
	c := online.Client(clientID)
	if c == nil || connOf(c) == nil {
		//lint:ignore ST1005 these are the original's words, which tools show
		return nil, fmt.Errorf("The Consumer <%s> <%s> not online", group, clientID)
	}
	if c.Version < remoting.VersionRunningInfo {
		//lint:ignore ST1005 these are the original's words, which tools show
		return nil, fmt.Errorf("The Consumer <%s> Version <%d> too low to finish, please upgrade it",
			clientID, c.Version)
	}
	return connOf(c), nil
}

// consumerStatus answers 223: what each client says of where it is.
func (t *Tools) consumerStatus(r *gateway.Request) {
	var h remoting.ConsumerStatusHeader
	if !broker.Header(r, &h) {
		return
	}
	online := t.b.Clients.Consumers(h.Group)
	if online == nil {
		r.Fail(remoting.ResponseSystemError, fmt.Sprintf("No Any Consumer online in the consumer group: [%s]", h.Group))
		return
	}
	calls := map[string]*messages.Answer[*remoting.Command]{}
	for _, c := range online.Clients {
		conn := connOf(c)
		if conn == nil || h.ClientAddr != "" && h.ClientAddr != c.ID {
			continue
		}
		if c.Version < remoting.VersionResetOffset {
			r.Fail(remoting.ResponseSystemError, tooOld(c))
			return
		}
		ask := remoting.NewRequest(remoting.RequestGetConsumerStatusFromClient,
			&remoting.ConsumerStatusHeader{Topic: h.Topic, Group: h.Group})
		calls[c.ID] = conn.Call(ask, statusTimeout)
	}
	go gatherStatus(r, calls)
}

func gatherStatus(r *gateway.Request, calls map[string]*messages.Answer[*remoting.Command]) {
	answer := remoting.ConsumerStatus{
		ConsumerTable:     map[string]map[remoting.MessageQueue]int64{},
		MessageQueueTable: map[remoting.MessageQueue]int64{},
	}
	for id, call := range calls {
		response, err := call.Wait(context.Background()) // the call has a timeout of its own
		var one remoting.ConsumerStatus
		if err == nil && response.Code == remoting.ResponseSuccess && response.DecodeBody(&one) == nil {
			answer.ConsumerTable[id] = one.MessageQueueTable
		}
	}
	if !tooMuch(r) {
		r.OKBody(&answer)
	}
}

func tooOld(c *messages.Client) string {
	return fmt.Sprintf("the client does not support this feature. version=%d", c.Version)
}

// resetOffset answers 222: the clients of a group are told new offsets, which they store themselves.
func (t *Tools) resetOffset(r *gateway.Request) {
	var h remoting.ResetOffsetHeader
	if !broker.Header(r, &h) {
		return
	}
	targets, err := t.resetTargets(&h)
	if err != nil {
		broker.Fail(r, err)
		return
	}
	online := t.b.Clients.Consumers(h.Group)
	if online == nil {
		r.Fail(remoting.ResponseConsumerNotOnline, fmt.Sprintf(
			"Consumer not online, so can not reset offset, Group: %s Topic: %s Timestamp: %d", h.Group, h.Topic, h.TimestampMs))
		return
	}
	for _, c := range online.Clients {
		if c.Version < remoting.VersionResetOffset {
			r.Fail(remoting.ResponseSystemError, tooOld(c))
			return
		}
	}
	if err := t.tellReset(&h, online, targets); err != nil {
		broker.Fail(r, err)
		return
	}
	a := r.Command.Answer(remoting.ResponseSuccess, unsaid)
	if err := a.EncodeBody(&remoting.ResetOffsets{OffsetTable: targets}); err != nil {
		broker.Fail(r, err)
		return
	}
	r.Answer(a)
}

// resetTargets are the new offsets of a group. Without force they are never higher than the ones it has.
func (t *Tools) resetTargets(h *remoting.ResetOffsetHeader) (map[remoting.MessageQueue]int64, error) {
	topic, ok := t.b.Topics.Lookup(h.Topic)
	if !ok {
		return nil, fmt.Errorf("[reset-offset] reset offset failed, no topic in this broker. topic=%s", h.Topic)
	}
	targets := map[remoting.MessageQueue]int64{}
	for id := range int32(topic.WriteQueueNums) {
		q := messages.QueueKey{Topic: topic.TopicName, QueueID: id}
		now := t.b.Offsets.Lookup(h.Group, q)
		if now == messages.NoOffset {
			return nil, fmt.Errorf("THe consumer group <%s> not exist", h.Group)
		}
		target := t.b.Store.MaxOffset(q)
		if h.TimestampMs != -1 {
			var err error
			if target, err = t.b.Store.OffsetByTime(context.Background(), q, h.TimestampMs, t.b.Policy().SearchBoundary); err != nil {
				return nil, err
			}
		}
		if target = max(target, 0); !h.IsForce {
			target = min(target, now)
		}
		targets[t.queue(q)] = int64(target)
	}
	return targets, nil
}

// resetGrace is how long clients may take to store offsets that they have been told: they wait for 10 s first.
const resetGrace = time.Minute

// tellReset pushes 220 to every client, in the one form that all of them read (spec/remoting.md §2.3).
func (t *Tools) tellReset(h *remoting.ResetOffsetHeader, group *messages.ConsumerGroup, to map[remoting.MessageQueue]int64) error {
	body, err := rawKeys(&remoting.ResetOffsets{OffsetTable: to})
	if err != nil {
		return err
	}
	if err := t.b.Offsets.ExpectReset(strings.Clone(h.Group), strings.Clone(h.Topic), resetGrace); err != nil {
		return err
	}
	for _, c := range group.Clients {
		if conn := connOf(c); conn != nil {
			push := remoting.NewRequest(remoting.RequestResetConsumerClientOffset, &remoting.ResetOffsetHeader{
				Topic: h.Topic, Group: h.Group, TimestampMs: h.TimestampMs,
			})
			push.Body = body
			if err := conn.Push(push); err != nil {
				t.b.Noise.Warn().Err(err).Str("client", c.ID).Msg("a client could not be told its new offsets")
			}
		}
	}
	return nil
}
