package broker

import (
	"errors"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// Admit refuses sends that the policy does not allow at a time: checks 2 and 3 of spec/remoting.md §8.2. A broker without write permission
// refuses those whose sender does not go by the route, and with CheckWrites all.
func (b *Broker) Admit(at time.Time, unrouted bool) error {
	policy := b.Policy()
	if at.UnixMilli() < policy.AcceptFromMs {
		until := time.UnixMilli(policy.AcceptFromMs).Format("2006-01-02 15:04:05")
		return Refuse(remoting.ResponseSystemError, "broker unable to service, until %s", until)
	}
	if !policy.Writeable() && (unrouted || policy.CheckWrites) {
		return Refuse(remoting.ResponseNoPermission, "the broker[%s] sending message is forbidden", b.IP())
	}
	return nil
}

// Limit counts a send of a client, of so many messages and bytes, and refuses it with ErrLimited when that is more than the topic's limit
// allows, with a code on which clients try again, at another broker if there is one. Sends that are under way at the same time may
// exceed the quota of messages kept by as many as they are.
func (b *Broker) Limit(topic string, count, bytes int, at time.Time, client string) error {
	own := b.Topics.IsSystem(topic) || messages.IsGroupTopic(topic)
	err := b.Policy().Limits.Take(topic, own, count, bytes, at, b.kept)
	if err != nil {
		switch {
		case errors.Is(err, errLimitedBytes):
			b.Limited.Bytes.Add(1)
		case errors.Is(err, errLimitedKept):
			b.Limited.Kept.Add(1)
		default:
			b.Limited.Messages.Add(1)
		}
		b.Noise.Warn().Err(err).Str("client", client).Msg("a send is refused")
	}
	return err
}

// kept is how many messages the queues of a topic hold.
func (b *Broker) kept(topic string) (n int64) {
	cfg, _ := b.Topics.Lookup(topic)
	for id := range int32(max(cfg.ReadQueueNums, cfg.WriteQueueNums)) {
		key := messages.QueueKey{Topic: topic, QueueID: id}
		lowest := b.Store.MinOffset(key) // first: both only rise
		n += int64(b.Store.MaxOffset(key) - lowest)
	}
	return n
}
