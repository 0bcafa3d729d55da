package consume

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
)

// pulling is one pull on its way.
type pulling struct {
	c      *Consumers
	r      *gateway.Request
	h      remoting.PullMessageHeader
	group  metadata.SubscriptionGroupConfig
	filter filter
	found  remoting.PullMessageAnswer
	held   bool // it is, or has been, held back
	owned  bool // it has strings of its own, and a goroutine of its own
}

// pull answers 11.
func (c *Consumers) pull(r *gateway.Request) {
	p := &pulling{c: c, r: r}
	if err := remoting.FromExt(r.ExtFields, &p.h); err != nil {
		p.fail(broker.Refuse(remoting.ResponseSystemError, "%v", err))
		return
	}
	p.begin(r)
}

// begin handles a pull for the first time, and once more on a goroutine of its own when its group has to be made.
func (p *pulling) begin(r *gateway.Request) {
	err := p.check()
	if errors.Is(err, errNewGroup) {
		// To make it takes a write to the disk. The client goes on meanwhile: one that seeks, say, asks for the queue's ends on
		// the same connection, and must have them before this pull is answered with what it does not want any more.
		p.own()
		p.h.Topic = strings.Clone(p.h.Topic)
		r.Go(p.begin)
		return
	}
	if err != nil {
		p.fail(err)
		return
	}
	if p.h.SysFlag&remoting.PullFlagCommitOffset != 0 && p.c.b.BrokerID == 0 {
		// Not at a slave, which has its master's offsets. Whatever comes of the pull (spec/remoting.md §9.6); what is refused is made up for by the next commit.
		_ = p.c.b.Offsets.Commit(p.group.GroupName, p.queue(), messages.QueueOffset(p.h.CommitOffset))
	}
	p.read(p.h.SysFlag&remoting.PullFlagSuspend != 0)
}

func (p *pulling) queue() messages.QueueKey {
	return messages.QueueKey{Topic: p.h.Topic, QueueID: p.h.QueueID}
}

// fail answers with an error; errors before the read have empty ext fields (spec/remoting.md §9.4).
func (p *pulling) fail(err error) {
	code, remark := broker.Code(err)
	broker.Bare(p.r, code, remark)
}

// check goes through spec/remoting.md §9.2 in order. It makes p.h.Topic a string that may be kept.
func (p *pulling) check() error {
	b := p.c.b
	if !b.Policy().Readable() {
		return broker.Refuse(remoting.ResponseNoPermission, "the broker[%s] pulling message is forbidden", b.IP())
	}
	if err := p.checkGroup(); err != nil {
		return err
	}
	topic, ok := b.TopicForPull(p.h.Topic)
	switch {
	case !ok:
		return broker.Refuse(remoting.ResponseTopicNotExist, "topic[%s] not exist, apply first please! %s", p.h.Topic, broker.SeeFAQ)
	case topic.Perm&metadata.PermRead == 0:
		return broker.Refuse(remoting.ResponseNoPermission, "the topic[%s] pulling message is forbidden", p.h.Topic)
	case p.h.QueueID < 0 || int(p.h.QueueID) >= topic.ReadQueueNums:
		return broker.Refuse(remoting.ResponseSystemError,
			"queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[%s]",
			p.h.QueueID, p.h.Topic, topic.ReadQueueNums, p.r.Conn.RemoteAddr())
	}
	p.h.Topic = topic.TopicName
	var err error
	p.filter, err = p.filterOf()
	return err
}

// errNewGroup: the group is to be made, which is nothing for the goroutine that reads the connection.
var errNewGroup = errors.New("the group is not known yet")

// checkGroup finds the group's configuration, made if that is allowed and the pull has a goroutine of its own.
func (p *pulling) checkGroup() error {
	config, ok := p.c.b.Groups.Lookup(p.h.ConsumerGroup)
	if !ok {
		if !p.owned {
			return errNewGroup
		}
		ctx, cancel := p.c.b.Context()
		defer cancel()
		var err error
		if config, err = p.c.b.Groups.Ensure(ctx, p.h.ConsumerGroup); err != nil {
			code, remark := broker.GroupCode(err)
			return broker.Refuse(code, "subscription group [%s] does not exist, %s", p.h.ConsumerGroup, remark)
		}
	}
	if !config.ConsumeEnable {
		return broker.Refuse(remoting.ResponseNoPermission, "subscription group no permission, %s", p.h.ConsumerGroup)
	}
	p.group = config
	return nil
}

// read looks for messages and answers, or holds the pull back when there is none and it may wait.
func (p *pulling) read(mayWait bool) {
	found, err := p.get()
	if err != nil {
		p.fail(err)
		return
	}
	code := codeOfGet(found.Status, p.h.QueueOffset)
	if p.held && mayWait && code == remoting.ResponsePullRetryImmediately {
		// What has come is not wanted: the pull goes on waiting, behind it.
		p.h.QueueOffset, code = int64(found.NextOffset), remoting.ResponsePullNotFound
	}
	if code == remoting.ResponsePullNotFound && mayWait {
		found.Release()
		p.hold()
		return
	}
	if code == remoting.ResponsePullOffsetMoved {
		if found.NextOffset == messages.QueueOffset(p.h.QueueOffset) {
			// A slave that lags lets the reader's offset be. OFFSET_MOVED would have the client drop what it has pulled and not
			// consumed yet, and commit the offset behind it.
			code = remoting.ResponsePullRetryImmediately
		} else {
			p.c.offsetMoved(p, found.NextOffset)
		}
	}
	p.answer(code, found)
}

// mostFiltered bounds the messages of one pull that a property filter looks at without taking any.
const mostFiltered = 800

// get reads messages that the filter wants.
func (p *pulling) get() (*messages.GetResult, error) {
	first := messages.QueueOffset(p.h.QueueOffset)
	for at := first; ; {
		began := time.Now()
		found, err := p.c.b.Store.Get(context.Background(), messages.GetMessage{
			Queue: p.queue(), Offset: at, MaxMessages: int(p.h.MaxMsgNums), Tags: p.filter.tags,
		})
		p.c.b.Stats.GetTook(time.Since(began))
		switch {
		case err != nil:
			return nil, err
		case found.Status == messages.Found:
			if err := p.filter.sift(found); err != nil {
				return nil, err
			}
		case at > first: // cleaned meanwhile
			found.Status = messages.NoMatchedMessage
		}
		at = found.NextOffset
		if found.Status != messages.NoMatchedMessage || p.filter.properties == nil || at >= found.MaxOffset || at-first >= mostFiltered {
			return found, nil
		}
		found.Release()
	}
}

// codeOfGet says a get's status in the protocol's codes (spec/remoting.md §9.3).
func codeOfGet(status messages.GetStatus, asked int64) int {
	switch status {
	case messages.Found:
		return remoting.ResponseSuccess
	case messages.NoMatchedMessage, messages.MessageWasRemoving:
		return remoting.ResponsePullRetryImmediately
	case messages.OffsetFoundNull, messages.OffsetOverflowOne:
		return remoting.ResponsePullNotFound
	case messages.NoMessageInQueue, messages.NoMatchedLogicQueue:
		if asked == 0 {
			return remoting.ResponsePullNotFound
		}
	}
	return remoting.ResponsePullOffsetMoved
}

// answer sends what was found; found is released by that.
func (p *pulling) answer(code int, found *messages.GetResult) {
	p.found = remoting.PullMessageAnswer{
		SuggestWhichBrokerID: p.suggest(found), NextBeginOffset: int64(found.NextOffset),
		MinOffset: int64(found.MinOffset), MaxOffset: int64(found.MaxOffset),
	}
	remark := found.Status.String()
	if code != remoting.ResponseSuccess {
		p.c.b.Stats.Missed()
		found.Release()
		p.r.Reply(code, remark, &p.found)
		return
	}
	if t := p.c.b.Tracer; t != nil {
		t.Pulled(p.group.GroupName, found.Records, p.r.At)
	}
	p.c.b.Stats.Got(p.group.GroupName, p.h.Topic, len(found.Records), found.Bytes)
	p.r.ReplyRecords(code, remark, &p.found, found)
}

// suggest is the broker that the next pull should go to.
func (p *pulling) suggest(found *messages.GetResult) int64 {
	b := p.c.b
	if !b.Policy().SlaveReads {
		return 0
	}
	last := found.NextOffset - 1
	if len(found.Records) > 0 && !b.Store.HoldsInMemory(p.queue(), last) {
		return p.group.WhichBrokerWhenConsumeSlowly
	}
	return p.group.BrokerID
}
