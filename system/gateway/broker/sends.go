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
		return Refuse(remoting.ResponseNoPermission, "the broker[%s] sending message is forbidden", b.Address)
	}
	return nil
}

// Limit counts a send of a client, of so many messages and bytes, and refuses it with ErrLimited when that is more than the topic's limit
// allows, with a code on which clients try again, at another broker if there is one.
func (b *Broker) Limit(topic string, count, bytes int, at time.Time, client string) error {
	own := b.Topics.IsSystem(topic) || messages.IsGroupTopic(topic)
	err := b.Policy().Limits.Take(topic, own, count, bytes, at)
	if err != nil {
		if errors.Is(err, errLimitedBytes) {
			b.Limited.Bytes.Add(1)
		} else {
			b.Limited.Messages.Add(1)
		}
		b.Noise.Warn().Err(err).Str("client", client).Msg("a send is refused")
	}
	return err
}
