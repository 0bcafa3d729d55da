package consume

import (
	"context"
	"fmt"
	"strings"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// maxGroups bounds the groups of one client: each that is new is written to a file.
const maxGroups = 1000

// heartbeat answers 34 (spec/remoting.md §7.1): what a client's groups need is made, then the client is registered; the pulls
// that it has sent behind see it.
func (c *Consumers) heartbeat(r *gateway.Request) {
	var body remoting.HeartbeatData
	if !broker.Body(r, &body) {
		return
	}
	if n := len(body.ProducerDataSet) + len(body.ConsumerDataSet); n > maxGroups {
		r.Fail(remoting.ResponseSystemError, fmt.Sprintf("a heartbeat of %d groups, at most %d", n, maxGroups))
		return
	}
	ctx, cancel := c.b.Context()
	defer cancel()
	m := &messages.Heartbeat{
		Channel: r.Conn, ClientID: strings.Clone(body.ClientID), Language: r.Language.String(), Version: r.Version,
		Registered: func() { r.OK(nil) },
	}
	for _, p := range body.ProducerDataSet {
		m.Producers = append(m.Producers, strings.Clone(p.GroupName))
	}
	for i := range body.ConsumerDataSet {
		d := &body.ConsumerDataSet[i]
		c.prepare(ctx, d)
		m.Consumers = append(m.Consumers, registrationOf(d))
	}
	if err := c.b.Clients.Heartbeat(ctx, m); err != nil {
		broker.Fail(r, err)
	}
}

// prepare makes the group and its retry topic, by which tools find the group. A group that may not be made is registered all
// the same, as in the original: its pulls are refused.
func (c *Consumers) prepare(ctx context.Context, d *remoting.ConsumerData) {
	config, ok := c.b.Groups.Lookup(d.GroupName)
	if !ok {
		var err error
		if config, err = c.b.Groups.Ensure(ctx, strings.Clone(d.GroupName)); err != nil {
			c.b.Noise.Warn().Err(err).Str("group", d.GroupName).Msg("a consumer's group can't be made")
			return
		}
	}
	if _, err := c.b.Topics.EnsureRetry(ctx, d.GroupName, config.RetryQueueNums, d.UnitMode); err != nil {
		c.b.Noise.Warn().Err(err).Str("group", d.GroupName).Msg("a group's retry topic can't be made")
	}
}

// registrationOf is what the client keeper keeps of a consumer: copies, so that they do not hold the whole body.
func registrationOf(d *remoting.ConsumerData) messages.ConsumerRegistration {
	reg := messages.ConsumerRegistration{
		Group: strings.Clone(d.GroupName), ConsumeType: strings.Clone(d.ConsumeType), MessageModel: strings.Clone(d.MessageModel),
		ConsumeFromWhere: strings.Clone(d.ConsumeFromWhere), Subscriptions: make([]messages.Subscription, len(d.SubscriptionDataSet)),
	}
	for i, s := range d.SubscriptionDataSet {
		s.Topic, s.SubString, s.ExpressionType = strings.Clone(s.Topic), strings.Clone(s.SubString), strings.Clone(s.ExpressionType)
		for k, tag := range s.TagsSet {
			s.TagsSet[k] = strings.Clone(tag)
		}
		reg.Subscriptions[i] = messages.Subscription(s)
	}
	return reg
}

// unregister answers 35: the connection leaves a group; the client id is not looked at (spec/remoting.md §7.3).
func (c *Consumers) unregister(r *gateway.Request) {
	var h remoting.UnregisterClientHeader
	if !broker.Header(r, &h) {
		return
	}
	ctx, cancel := c.b.Context()
	defer cancel()
	m := &messages.UnregisterClient{Channel: r.Conn, ProducerGroup: h.ProducerGroup, ConsumerGroup: h.ConsumerGroup}
	if err := c.b.Clients.Unregister(ctx, m); err != nil {
		broker.Fail(r, err)
		return
	}
	broker.Bare(r, remoting.ResponseSuccess, "")
}

// list answers 38. Never an error while the group has a member: the Go client would give up its queues.
func (c *Consumers) list(r *gateway.Request) {
	var h remoting.ConsumerGroupHeader
	if !broker.Header(r, &h) {
		return
	}
	group := c.b.Clients.Consumers(h.ConsumerGroup)
	if group == nil {
		broker.Bare(r, remoting.ResponseSystemError, "no consumer for this group, "+h.ConsumerGroup)
		return
	}
	a := r.Command.Answer(remoting.ResponseSuccess, "")
	a.ExtFields = remoting.Ext{}
	if err := a.EncodeBody(&remoting.ConsumerList{ConsumerIDList: idsOf(group)}); err != nil {
		broker.Fail(r, err)
		return
	}
	r.Answer(a)
}

// idsOf has one id for each connection, as the original; a client that another node relays for may have one to this node as well, and
// counts once.
func idsOf(group *messages.ConsumerGroup) (ids []string) {
	seen := map[string]bool{}
	for _, c := range group.Clients {
		if conn, ok := c.Channel.(*gateway.Conn); !ok || !conn.Relayed() {
			ids, seen[c.ID] = append(ids, c.ID), true
		}
	}
	for _, id := range group.ClientIDs() {
		if !seen[id] {
			ids, seen[id] = append(ids, id), true
		}
	}
	return ids
}

// checkConfig answers 46: whether the broker can filter as a consumer wants.
func (c *Consumers) checkConfig(r *gateway.Request) {
	var body remoting.CheckClientConfig
	if !broker.Body(r, &body) {
		return
	}
	sub := messages.Subscription(body.SubscriptionData)
	switch {
	case sub.ByTag():
		r.OK(nil)
	case !c.b.Policy().FilterByProperty:
		r.Fail(remoting.ResponseSystemError, remarkNoSQL)
	default:
		if _, err := broker.CompileFilter(sub.ExpressionType, sub.SubString); err != nil {
			r.Fail(remoting.ResponseSubscriptionParseFailed, err.Error())
			return
		}
		r.OK(nil)
	}
}
