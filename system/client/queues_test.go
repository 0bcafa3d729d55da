package client

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
)

func TestQueuesOfARoute(t *testing.T) {
	route := &remoting.TopicRouteData{
		BrokerDatas: []remoting.BrokerData{
			{BrokerName: "b", BrokerAddrs: map[int64]string{0: "b:1", 1: "b:2"}},
			{BrokerName: "a", BrokerAddrs: map[int64]string{2: "a:3", 1: "a:2"}},
			{BrokerName: "read", BrokerAddrs: map[int64]string{0: "r:1"}},
			{BrokerName: "write", BrokerAddrs: map[int64]string{0: "w:1"}},
			{BrokerName: "nowhere"},
		},
		QueueDatas: []remoting.QueueData{
			{BrokerName: "b", Perm: 6, ReadQueueNums: 2, WriteQueueNums: 1},
			{BrokerName: "b", Perm: 6, ReadQueueNums: 2, WriteQueueNums: 1}, // said twice
			{BrokerName: "a", Perm: 6, ReadQueueNums: 1, WriteQueueNums: 9},
			{BrokerName: "read", Perm: 4, ReadQueueNums: 1, WriteQueueNums: 1},
			{BrokerName: "write", Perm: 3, ReadQueueNums: 1, WriteQueueNums: 1},
			{BrokerName: "nowhere", Perm: 6, ReadQueueNums: 1, WriteQueueNums: 1},
			{BrokerName: "unknown", Perm: 6, ReadQueueNums: 1, WriteQueueNums: 1},
		},
	}
	read, err := ReadQueues(route, "T")
	require.NoError(t, err)
	require.Equal(t, []Queue{{"a", "a:2", "T", 0}, {"b", "b:1", "T", 0}, {"b", "b:1", "T", 1}, {"read", "r:1", "T", 0}}, read)
	write, err := WriteQueues(route, "T")
	require.NoError(t, err)
	require.Equal(t, []Queue{{"b", "b:1", "T", 0}, {"write", "w:1", "T", 0}}, write)
}

func TestQueuesOfAHostileRoute(t *testing.T) {
	route := func(counts ...int32) *remoting.TopicRouteData {
		r := &remoting.TopicRouteData{BrokerDatas: []remoting.BrokerData{{BrokerName: "b", BrokerAddrs: map[int64]string{0: "b:1"}}}}
		for _, n := range counts {
			r.QueueDatas = append(r.QueueDatas, remoting.QueueData{BrokerName: "b", Perm: 6, ReadQueueNums: n, WriteQueueNums: n})
		}
		return r
	}
	for _, counts := range [][]int32{{math.MaxInt32}, {MaxQueues + 1}, {MaxQueues, 1}} {
		_, err := ReadQueues(route(counts...), "T")
		require.ErrorIs(t, err, ErrLimit)
	}
	most, err := ReadQueues(route(math.MinInt32, MaxQueues), "T")
	require.NoError(t, err)
	require.Len(t, most, MaxQueues)
	none, err := WriteQueues(route(-1), "T")
	require.NoError(t, err)
	require.Empty(t, none)
}
