package admin

import (
	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// updateGroup answers 200. Members that the tool does not send have the values of a new group.
func (t *Tools) updateGroup(r *gateway.Request) {
	body := remoting.SubscriptionGroupConfig{
		ConsumeBroadcastEnable: true, ConsumeEnable: true, ConsumeFromMinEnable: true, NotifyConsumerIdsChangedEnable: true,
		RetryMaxTimes: 16, RetryQueueNums: 1, WhichBrokerWhenConsumeSlowly: 1,
	}
	if !broker.Body(r, &body) {
		return
	}
	ctx, cancel := t.b.Context()
	defer cancel()
	err := t.b.Groups.Update(ctx, metadata.SubscriptionGroupConfig{
		GroupName: body.GroupName, BrokerID: body.BrokerID, ConsumeBroadcastEnable: body.ConsumeBroadcastEnable,
		ConsumeEnable: body.ConsumeEnable, ConsumeFromMinEnable: body.ConsumeFromMinEnable,
		NotifyConsumerIDsChangedEnable: body.NotifyConsumerIdsChangedEnable, RetryMaxTimes: int(body.RetryMaxTimes),
		RetryQueueNums: int(body.RetryQueueNums), WhichBrokerWhenConsumeSlowly: body.WhichBrokerWhenConsumeSlowly,
	})
	if err != nil {
		broker.Fail(r, err)
		return
	}
	r.OK(nil)
}

// deleteGroup answers 207; a group that is not there is no error, and consumers stay connected.
func (t *Tools) deleteGroup(r *gateway.Request) {
	var h remoting.DeleteGroupHeader
	if !broker.Header(r, &h) {
		return
	}
	if err := messages.CheckGroupName(h.GroupName); err != nil {
		broker.Fail(r, err)
		return
	}
	ctx, cancel := t.b.Context()
	defer cancel()
	err := t.b.Groups.Delete(ctx, h.GroupName)
	if err == nil && h.RemoveOffset {
		_, err = t.b.Offsets.Remove(ctx, h.GroupName, "")
	}
	if err != nil {
		broker.Fail(r, err)
		return
	}
	r.OK(nil)
}

// allGroups answers 201.
func (t *Tools) allGroups(r *gateway.Request) { t.raw(r, t.b.Groups.JSON, nil) }

// allOffsets answers 43.
func (t *Tools) allOffsets(r *gateway.Request) { t.raw(r, t.b.Offsets.JSON, nil) }

// delayOffsets answers 45.
func (t *Tools) delayOffsets(r *gateway.Request) {
	if t.node.DelayOffsets == nil {
		r.Fail(remoting.ResponseSystemError, "No delay offset in this broker")
		return
	}
	r.OKBody(&remoting.DelayOffsetTable{OffsetTable: t.node.DelayOffsets()})
}

// cloneOffsets answers 314.
func (t *Tools) cloneOffsets(r *gateway.Request) {
	var h remoting.CloneOffsetHeader
	if !broker.Header(r, &h) {
		return
	}
	ctx, cancel := t.b.Context()
	defer cancel()
	if _, err := t.b.Offsets.Clone(ctx, h.SrcGroup, h.DestGroup, h.Topic); err != nil {
		broker.Fail(r, err)
		return
	}
	r.OK(nil)
}
