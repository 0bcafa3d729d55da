package topics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// What a fresh broker of the original has (spec/remoting.md §15.1, §6.1 of a recorded registration).
func TestBuiltInTopics(t *testing.T) {
	cfg := options(memfs.New())
	cfg.TraceTopic = messages.TopicTrace
	k := start(t, cfg)
	want := map[string][2]int{ // queues, perm
		"MadeUpCluster_REPLY_TOPIC": {1, 6}, "SCHEDULE_TOPIC_XXXX": {18, 6}, "SELF_TEST_TOPIC": {1, 6}, "broker-a": {1, 7},
		"RMQ_SYS_TRACE_TOPIC": {1, 6}, "TBW102": {8, 7}, "BenchmarkTest": {1024, 6}, "MadeUpCluster": {16, 7},
		"OFFSET_MOVED_EVENT": {1, 6},
	}
	got := map[string][2]int{}
	for topic := range k.All() {
		require.Equal(t, topic.ReadQueueNums, topic.WriteQueueNums)
		require.Equal(t, metadata.FilterSingleTag, topic.TopicFilterType)
		got[topic.TopicName] = [2]int{topic.ReadQueueNums, topic.Perm}
	}
	require.Equal(t, want, got)
	require.Equal(t, len(want), k.Len())
	require.Zero(t, k.DataVersion().Counter)
	require.NotZero(t, k.DataVersion().TimestampMs)
	for name := range want {
		require.True(t, k.IsSystem(name), name)
		require.Contains(t, k.SystemTopics(), name)
	}
	for _, name := range []string{"RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "rmq_sys_x"} {
		require.True(t, k.IsSystem(name), name)
	}
	require.False(t, k.IsSystem("Orders"))
}

func TestOptionsDecideWhichTopicsAreTemplates(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	require.NoError(t, k.Close())

	cfg := options(disk)
	cfg.AutoCreate, cfg.ClusterTopic, cfg.BrokerTopic = false, false, false
	k = start(t, cfg)
	for _, name := range []string{"TBW102", "MadeUpCluster", "broker-a"} {
		topic, ok := k.Lookup(name)
		require.True(t, ok, name)
		require.Equal(t, 6, topic.Perm, name)
		_, err := k.EnsureForSend(t.Context(), "T", name, 4, false)
		require.ErrorIs(t, err, messages.ErrTopicNotExist, name)
	}
	require.NoError(t, k.Close())

	cfg = options(disk)
	cfg.DefaultQueues = 3
	k = start(t, cfg)
	topic, _ := k.Lookup("TBW102")
	require.Equal(t, [3]int{7, 3, 3}, [3]int{topic.Perm, topic.ReadQueueNums, topic.WriteQueueNums})
}

func TestAutoCreateOffOnAFreshStore(t *testing.T) {
	cfg := options(memfs.New())
	cfg.AutoCreate = false
	k := start(t, cfg)
	_, ok := k.Lookup("TBW102")
	require.False(t, ok)
}

func TestEnsureForSend(t *testing.T) {
	k := start(t, options(memfs.New()))
	plain := metadata.TopicConfig{TopicName: "Plain", ReadQueueNums: 4, WriteQueueNums: 4, Perm: 6}
	require.NoError(t, k.Update(t.Context(), plain))
	multi := metadata.TopicConfig{
		TopicName: "Multi", ReadQueueNums: 9, WriteQueueNums: 5, Perm: 3, TopicFilterType: metadata.FilterMultiTag,
	}
	require.NoError(t, k.Update(t.Context(), multi))

	for name, c := range map[string]struct {
		topic, from string
		queues      int
		unit        bool
		want        metadata.TopicConfig // Perm 0: not made
	}{
		"fewer than the template": {"A", "TBW102", 4, false, metadata.TopicConfig{WriteQueueNums: 4, Perm: 6, TopicFilterType: "SINGLE_TAG"}},
		"more than the template":  {"B", "TBW102", 100, false, metadata.TopicConfig{WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG"}},
		"negative":                {"C", "TBW102", -3, false, metadata.TopicConfig{WriteQueueNums: 0, Perm: 6, TopicFilterType: "SINGLE_TAG"}},
		"unit":                    {"D", "TBW102", 4, true, metadata.TopicConfig{WriteQueueNums: 4, Perm: 6, TopicFilterType: "SINGLE_TAG", TopicSysFlag: 1}},
		"unit retry":              {"%RETRY%u", "TBW102", 4, true, metadata.TopicConfig{WriteQueueNums: 4, Perm: 6, TopicFilterType: "SINGLE_TAG", TopicSysFlag: 2}},
		"cluster":                 {"E", "MadeUpCluster", 20, false, metadata.TopicConfig{WriteQueueNums: 16, Perm: 6, TopicFilterType: "SINGLE_TAG"}},
		"broker":                  {"F", "broker-a", 20, false, metadata.TopicConfig{WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG"}},
		"write queues and filter": {"G", "Multi", 20, false, metadata.TopicConfig{WriteQueueNums: 5, Perm: 2, TopicFilterType: "MULTI_TAG"}},
		"no template":             {"H", "Plain", 4, false, metadata.TopicConfig{}},
		"unknown template":        {"I", "Nope", 4, false, metadata.TopicConfig{}},
		"retry without template":  {"%RETRY%g", "Nope", 4, false, metadata.TopicConfig{WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG"}},
		"there already":           {"Plain", "Nope", 1, true, metadata.TopicConfig{WriteQueueNums: 4, Perm: 6, TopicFilterType: "SINGLE_TAG"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := k.EnsureForSend(t.Context(), c.topic, c.from, c.queues, c.unit)
			if c.want.Perm == 0 {
				require.ErrorIs(t, err, messages.ErrTopicNotExist)
				_, ok := k.Lookup(c.topic)
				require.False(t, ok)
				return
			}
			require.NoError(t, err)
			c.want.TopicName, c.want.ReadQueueNums = c.topic, c.want.WriteQueueNums
			require.Equal(t, c.want, got)
			found, ok := k.Lookup(c.topic)
			require.True(t, ok)
			require.Equal(t, got, found)
		})
	}
}

func TestBadNames(t *testing.T) {
	k := start(t, options(memfs.New()))
	version := k.DataVersion()
	for name, remark := range map[string]string{
		"":                                   "The specified topic is blank.",
		" ":                                  "The specified topic is blank.",
		"a.b":                                "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
		"../x":                               "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
		"T@g":                                "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
		"ü":                                  "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
		strings.Repeat("x", 128):             "The specified topic is longer than topic max length.",
		"%RETRY%" + strings.Repeat("x", 121): "The specified topic is longer than topic max length.",
	} {
		_, err := k.EnsureForSend(t.Context(), name, "TBW102", 4, false)
		var bad *messages.TopicNameError
		require.ErrorAs(t, err, &bad, name)
		require.ErrorIs(t, err, messages.ErrTopicName)
		require.Equal(t, remark, bad.Remark)
		require.ErrorIs(t, k.Update(t.Context(), metadata.TopicConfig{TopicName: name, Perm: 6}), messages.ErrTopicName)
	}
	_, err := k.EnsureRetry(t.Context(), "a b", 1, false)
	require.ErrorIs(t, err, messages.ErrTopicName)
	_, err = k.EnsureForSend(t.Context(), strings.Repeat("x", 127), "TBW102", 4, false)
	require.NoError(t, err)
	require.Equal(t, version.Counter+1, k.DataVersion().Counter, "only the last one was made")
}

func TestUpdate(t *testing.T) {
	k := start(t, options(memfs.New()))
	cfg := metadata.TopicConfig{
		TopicName: "Orders", ReadQueueNums: 4, WriteQueueNums: 2, Perm: 4, TopicFilterType: "MULTI_TAG", TopicSysFlag: 1,
	}
	require.NoError(t, k.Update(t.Context(), cfg))
	got, ok := k.Lookup("Orders")
	require.True(t, ok)
	require.Equal(t, cfg, got)

	version := k.DataVersion()
	require.NoError(t, k.Update(t.Context(), cfg))
	require.Equal(t, version, k.DataVersion(), "the same again is no change")

	require.NoError(t, k.ApplyOrder(t.Context(), []string{"Orders", "Nope"}))
	cfg.ReadQueueNums, cfg.TopicFilterType = 8, ""
	require.NoError(t, k.Update(t.Context(), cfg))
	got, _ = k.Lookup("Orders")
	require.Equal(t, metadata.FilterSingleTag, got.TopicFilterType)
	require.Equal(t, 8, got.ReadQueueNums)
	require.True(t, got.Order, "order comes from the name server only")

	for _, bad := range []func(*metadata.TopicConfig){
		func(c *metadata.TopicConfig) { c.ReadQueueNums = -1 },
		func(c *metadata.TopicConfig) { c.WriteQueueNums = -1 },
		func(c *metadata.TopicConfig) { c.ReadQueueNums = 1<<16 + 1 },
		func(c *metadata.TopicConfig) { c.WriteQueueNums = 1 << 30 },
		func(c *metadata.TopicConfig) { c.Perm = -1 },
		func(c *metadata.TopicConfig) { c.Perm = 16 },
		func(c *metadata.TopicConfig) { c.TopicFilterType = "ANY" },
	} {
		wrong := cfg
		bad(&wrong)
		require.ErrorIs(t, k.Update(t.Context(), wrong), messages.ErrTopicConfig)
	}
	after, _ := k.Lookup("Orders")
	require.Equal(t, got, after)
}

func TestSystemTopicsAreNotTouched(t *testing.T) {
	k := start(t, options(memfs.New()))
	for _, name := range append(k.SystemTopics(), "rmq_sys_anything") {
		require.ErrorIs(t, k.Update(t.Context(), metadata.TopicConfig{TopicName: name, Perm: 6}), messages.ErrSystemTopic, name)
		require.ErrorIs(t, k.Delete(t.Context(), name), messages.ErrSystemTopic, name)
	}
}

func TestInternalTopics(t *testing.T) {
	k := start(t, options(memfs.New()))
	topic, err := k.EnsureRetry(t.Context(), "g", 3, false)
	require.NoError(t, err)
	require.Equal(t, [4]int{3, 3, 6, 0}, [4]int{topic.ReadQueueNums, topic.WriteQueueNums, topic.Perm, topic.TopicSysFlag})
	again, err := k.EnsureRetry(t.Context(), "g", 1, true)
	require.NoError(t, err)
	require.Equal(t, topic, again, "one that is there stays as it is")
	unit, err := k.EnsureRetry(t.Context(), "u", 1, true)
	require.NoError(t, err)
	require.Equal(t, 2, unit.TopicSysFlag)
	dlq, err := k.EnsureDLQ(t.Context(), "g")
	require.NoError(t, err)
	require.Equal(t, "%DLQ%g", dlq.TopicName)
	half, err := k.EnsureInternal(t.Context(), messages.TopicTransactionHalf)
	require.NoError(t, err)
	require.Equal(t, [2]int{1, 6}, [2]int{half.WriteQueueNums, half.Perm})
	_, err = k.EnsureRetry(t.Context(), "many", 1<<20, false)
	require.ErrorIs(t, err, messages.ErrTopicConfig)
}

func TestListenerIsToldBeforeTheAnswer(t *testing.T) {
	listener, told := listen(t)
	cfg := options(memfs.New())
	cfg.Listener = listener
	k := start(t, cfg)
	require.Empty(t, told(), "the topics of the start are in the table")
	_, err := k.EnsureForSend(t.Context(), "A", "TBW102", 4, false)
	require.NoError(t, err)
	require.Equal(t, []messages.TopicsChanged{{Changed: []string{"A"}}}, told())
	require.NoError(t, k.Delete(t.Context(), "A"))
	require.Equal(t, messages.TopicsChanged{Removed: []string{"A"}}, told()[1])
	require.NoError(t, k.Delete(t.Context(), "A"), "one that is not there is no error")
	require.Len(t, told(), 2)
}

func TestOrderTopics(t *testing.T) {
	listener, told := listen(t)
	cfg := options(memfs.New())
	cfg.Listener = listener
	k := start(t, cfg)
	for _, name := range []string{"A", "B"} {
		_, err := k.EnsureForSend(t.Context(), name, "TBW102", 4, false)
		require.NoError(t, err)
	}
	require.NoError(t, k.ApplyOrder(t.Context(), []string{"A", "Unknown"}))
	require.NoError(t, k.ApplyOrder(t.Context(), []string{"B"}))
	for name, want := range map[string]bool{"A": false, "B": true} {
		topic, _ := k.Lookup(name)
		require.Equal(t, want, topic.Order, name)
	}
	require.Equal(t, []string{"A", "B"}, told()[3].Changed)
	require.NoError(t, k.ApplyOrder(t.Context(), []string{"B"}))
	require.Len(t, told(), 4, "nothing changed")
}

func TestReplace(t *testing.T) {
	listener, told := listen(t)
	cfg := options(memfs.New())
	cfg.Listener = listener
	k := start(t, cfg)
	_, err := k.EnsureForSend(t.Context(), "Gone", "TBW102", 4, false)
	require.NoError(t, err)

	// The master's table: in the dialect, with a name that would leave the folder.
	body := `{"dataVersion":{"counter":7,"timestamp":1700000000123},"topicConfigTable":{
		'New':{"order":true,"perm":6,"readQueueNums":3,"topicFilterType":"MULTI_TAG","topicName":"New","topicSysFlag":0,"writeQueueNums":2},
		"../../etc":{"perm":6,"readQueueNums":1,"topicName":"../../etc","writeQueueNums":1},
		"TBW102":{"order":false,"perm":7,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"TBW102","topicSysFlag":0,"writeQueueNums":8}}}`
	replaced, err := k.Replace(t.Context(), []byte(body))
	require.NoError(t, err)
	require.True(t, replaced)
	require.Equal(t, metadata.DataVersion{Counter: 7, TimestampMs: 1700000000123}, k.DataVersion())
	require.Equal(t, 2, k.Len())
	got, _ := k.Lookup("New")
	require.Equal(t, [2]int{3, 2}, [2]int{got.ReadQueueNums, got.WriteQueueNums})
	require.True(t, got.Order)
	news := told()[len(told())-1]
	require.Equal(t, []string{"New"}, news.Changed)
	require.Contains(t, news.Removed, "Gone")

	replaced, err = k.Replace(t.Context(), []byte(body))
	require.NoError(t, err)
	require.False(t, replaced, "the same version")
	_, err = k.Replace(t.Context(), []byte(`{"dataVersion":`))
	require.ErrorContains(t, err, "topics of the master")
	require.Equal(t, 2, k.Len())
}

func TestRestartKeepsState(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	cfg := metadata.TopicConfig{TopicName: "Orders", ReadQueueNums: 4, WriteQueueNums: 2, Perm: 4, TopicFilterType: "MULTI_TAG"}
	require.NoError(t, k.Update(t.Context(), cfg))
	_, err := k.EnsureForSend(t.Context(), "Sent", "TBW102", 4, false)
	require.NoError(t, err)
	require.NoError(t, k.Update(t.Context(), metadata.TopicConfig{TopicName: "Deleted", Perm: 6}))
	require.NoError(t, k.Delete(t.Context(), "Deleted"))
	before := k.Table()
	text := string(fixture.ReadFile(t, disk, file))

	// A power cut, without any Close.
	again := start(t, options(disk.Crash(1)))
	require.Equal(t, before, again.Table())
	require.NoError(t, again.Close())
	require.Equal(t, text, string(fixture.ReadFile(t, disk, file)), "a start that finds everything writes nothing")
}

// Who takes over the table learns of a topic that was deleted, also when it has been made again since.
func TestDeletionsAreToldWithTheTable(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	slave := start(t, options(memfs.New()))
	take := func() map[string]struct{} {
		before, master := slave.Table(), k.Table()
		body, err := k.JSON()
		require.NoError(t, err)
		_, err = slave.Replace(t.Context(), body)
		require.NoError(t, err)
		require.Equal(t, master, slave.Table())
		return before.DeletedSince(master.Deleted)
	}
	again := func() {
		require.NoError(t, k.Update(t.Context(), metadata.TopicConfig{TopicName: "Again", Perm: 6}))
	}
	again()
	require.NoError(t, k.Delete(t.Context(), "NeverMade"))
	require.Empty(t, take())
	for range 2 {
		require.NoError(t, k.Delete(t.Context(), "Again"))
		again()
		require.Equal(t, map[string]struct{}{"Again": {}}, take())
		require.Empty(t, take())
	}
	require.Equal(t, k.Table(), start(t, options(disk.Crash(1))).Table())
}

// The file as the original writes it, member by member (spec/store.md §13.2).
func TestFileShape(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	_, err := k.EnsureForSend(t.Context(), "TopicTest", "TBW102", 4, false)
	require.NoError(t, err)
	text := string(fixture.ReadFile(t, disk, file))
	require.Contains(t, text, "\t\t\"TopicTest\": {\n\t\t\t\"order\": false,\n\t\t\t\"perm\": 6,\n\t\t\t\"readQueueNums\": 4,\n"+
		"\t\t\t\"topicFilterType\": \"SINGLE_TAG\",\n\t\t\t\"topicName\": \"TopicTest\",\n\t\t\t\"topicSysFlag\": 0,\n"+
		"\t\t\t\"writeQueueNums\": 4\n\t\t}")
	var top map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &top))
	require.Len(t, top, 2)
	require.JSONEq(t, fmt.Sprintf(`{"counter":1,"timestamp":%d}`, k.DataVersion().TimestampMs), string(top["dataVersion"]))
	body, err := k.JSON()
	require.NoError(t, err)
	require.JSONEq(t, text, string(body))
	require.NotContains(t, string(body), " ")
}

func TestFileOfARealBroker(t *testing.T) {
	disk := golden(t)
	cfg := options(disk)
	cfg.BrokerName = "madeup-a"
	k := start(t, cfg)
	require.Equal(t, 13, k.Len())
	require.Equal(t, metadata.DataVersion{Counter: 5, TimestampMs: 1795966121471}, k.DataVersion(), "nothing was missing")
	topic, ok := k.Lookup("CfgMulti")
	require.True(t, ok)
	require.Equal(t, metadata.TopicConfig{
		TopicName: "CfgMulti", Perm: 6, ReadQueueNums: 3, WriteQueueNums: 2, TopicFilterType: "MULTI_TAG",
	}, topic)
	_, err := k.EnsureForSend(t.Context(), "CfgNew", "TBW102", 4, false)
	require.NoError(t, err)
	require.EqualValues(t, 6, k.DataVersion().Counter)
	require.NoError(t, k.Close())
	require.Equal(t, 14, start(t, cfg).Len())
}

func TestUnknownMembersAreKept(t *testing.T) {
	disk := memfs.New()
	fixture.WriteFile(t, disk, file, []byte(`{"dataVersion":{"counter":1,"timestamp":5},"later":{"x":1},"topicConfigTable":{"T":{"attributes":{"a":"b"},`+
		`"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":4}}}`))
	k := start(t, options(disk))
	require.NoError(t, k.Update(t.Context(), metadata.TopicConfig{TopicName: "T", ReadQueueNums: 5, WriteQueueNums: 5, Perm: 6}))
	text := string(fixture.ReadFile(t, disk, file))
	require.Contains(t, text, `"later": {`)
	require.Contains(t, text, `"attributes": {`)
}

func TestCloseRefusesAndKeepsLookups(t *testing.T) {
	k := start(t, options(memfs.New()))
	require.NoError(t, k.Close())
	_, err := k.EnsureForSend(context.Background(), "A", "TBW102", 4, false)
	require.ErrorIs(t, err, messages.ErrClosed)
	_, err = k.Replace(context.Background(), nil)
	require.ErrorIs(t, err, messages.ErrClosed)
	_, ok := k.Lookup("TBW102")
	require.True(t, ok)
}
