package probe

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
)

// Queue reads one queue of a store from its beginning on. It belongs to one goroutine.
type Queue struct {
	t     testing.TB
	store *system.Store
	key   messages.QueueKey
	next  messages.QueueOffset
}

// Follow begins at the first message of a queue, which need not be there yet.
func Follow(t testing.TB, s *system.Store, topic string, queueID int32) *Queue {
	return &Queue{t: t, store: s, key: messages.QueueKey{Topic: topic, QueueID: queueID}}
}

// Next waits for the next message; its bytes are the caller's.
func (q *Queue) Next(ctx context.Context) messages.StoredMessage {
	q.t.Helper()
	r, err := q.store.GetWait(ctx, messages.GetMessage{Queue: q.key, Offset: q.next, MaxMessages: 1})
	require.NoError(q.t, err)
	defer r.Release()
	require.Len(q.t, r.Records, 1, "%v of %v from %d", r.Status, q.key, q.next)
	rec, _, err := record.Parse(r.Records[0], true)
	require.NoError(q.t, err)
	q.next = r.NextOffset
	return rec.Stored()
}

// Expect waits for messages with these bodies, in this order.
func (q *Queue) Expect(ctx context.Context, bodies ...string) {
	q.t.Helper()
	for _, want := range bodies {
		require.Equal(q.t, want, string(q.Next(ctx).Body), "at %d of %v", q.next-1, q.key)
	}
}

// All returns the bodies of everything that is in the queue now and was not returned before.
func (q *Queue) All(ctx context.Context) []string {
	q.t.Helper()
	require.NoError(q.t, q.store.AwaitDispatched(ctx))
	var bodies []string
	for q.next = max(q.next, q.store.MinOffset(q.key)); q.next < q.store.MaxOffset(q.key); {
		bodies = append(bodies, string(q.Next(ctx).Body))
	}
	return bodies
}
