package gateway

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/topics"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// Mostly a master's topics are as they were: then they are not read once more in each round, but are once either side has changed.
func TestTopicsThatAreAsBeforeAreNotReadAgain(t *testing.T) {
	keeper, err := topics.Start(fixture.System(t).Root, "topics", topics.Config{Disk: memfs.New(), Path: "config/topics.json"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, keeper.Close()) })
	n := &taken{Node: &Node{broker: &broker.Broker{Topics: keeper}}, gone: map[string]struct{}{}}
	answer := func(counter int64) []byte {
		table := metadata.TopicTable{DataVersion: metadata.DataVersion{Counter: counter}, Topics: map[string]metadata.TopicConfig{}}
		for i := range 500 {
			name := fmt.Sprintf("T%d", i)
			table.Topics[name] = metadata.TopicConfig{TopicName: name, ReadQueueNums: int(counter), WriteQueueNums: 1, Perm: 6}
		}
		body, err := json.Marshal(table)
		require.NoError(t, err)
		return body
	}
	queues := func() int {
		cfg, ok := keeper.Lookup("T7")
		require.True(t, ok)
		return cfg.ReadQueueNums
	}
	first, second := answer(5), answer(6)
	take := func(body []byte) func() {
		return func() { require.NoError(t, n.takeTopics(t.Context(), body)) }
	}
	take(first)()
	take(first)()
	require.Less(t, testing.AllocsPerRun(5, take(first)), 50.0)
	require.EqualValues(t, 5, queues())
	take(second)()
	require.EqualValues(t, 6, queues())
	take(first)()
	require.EqualValues(t, 5, queues(), "the same answer, but not what is here")
}
