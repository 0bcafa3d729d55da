package reput

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// TestAQueueThatWasLookedUpAheadMayBeAnotherOneByThen: of records of many queues the queues are looked up together; one that begins anew
// among them is another one for those behind.
func TestAQueueThatWasLookedUpAheadMayBeAnotherOneByThen(t *testing.T) {
	r := newRig(t, 1<<20)
	topic := func(i int) string { return fmt.Sprintf("T%d", i) }
	const topics, again = 100, 7
	for range 2 {
		for i := range topics {
			r.w.put(messages.Message{Topic: topic(i)})
		}
	}
	r.start().all()
	r.destroyTopic(topic(again), -1)
	want := slices.DeleteFunc(r.w.want, func(w messages.DispatchRequest) bool { return w.Queue.Topic == topic(again) })
	r.w.next[messages.QueueKey{Topic: topic(again)}] = 0
	for i := range topics { // dispatched as one batch
		want = append(want, r.w.put(messages.Message{Topic: topic(i)}))
		if i%(fetchAhead/2) == 0 {
			want = append(want, r.w.put(messages.Message{Topic: topic(again)}))
		}
	}
	r.all()
	r.verify(r.table, want)
	require.Empty(t, r.problems)
}
