package remoting

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/actormq/actormq/messages/fastjson"
	"github.com/actormq/actormq/testkit/frames"
	"github.com/stretchr/testify/require"
)

var requestBodies = map[int]func() any{
	RequestRegisterBroker:                   func() any { return &RegisterBrokerBody{} },
	RequestQueryDataVersion:                 func() any { return &DataVersion{} },
	RequestHeartbeat:                        func() any { return &HeartbeatData{} },
	RequestCheckClientConfig:                func() any { return &CheckClientConfig{} },
	RequestLockBatchMQ:                      func() any { return &LockBatch{} },
	RequestUnlockBatchMQ:                    func() any { return &LockBatch{} },
	RequestUpdateAndCreateSubscriptionGroup: func() any { return &SubscriptionGroupConfig{} },
	RequestResetConsumerClientOffset:        func() any { return &ResetOffsets{} },
}

var answerBodies = map[int]func() any{
	RequestGetRouteInfoByTopic:           func() any { return &TopicRouteData{} },
	RequestGetBrokerClusterInfo:          func() any { return &ClusterInfo{} },
	RequestGetAllTopicListFromNameServer: func() any { return &TopicList{} },
	RequestGetSystemTopicListFromNS:      func() any { return &TopicList{} },
	RequestGetSystemTopicListFromBroker:  func() any { return &TopicList{} },
	RequestGetKVListByNamespace:          func() any { return &KVTable{} },
	RequestRegisterBroker:                func() any { return &KVTable{} },
	RequestQueryDataVersion:              func() any { return &DataVersion{} },
	RequestGetConsumerListByGroup:        func() any { return &ConsumerList{} },
	RequestLockBatchMQ:                   func() any { return &LockBatchAnswer{} },
	RequestGetTopicStatsInfo:             func() any { return &TopicStats{} },
	RequestGetConsumeStats:               func() any { return &ConsumeStats{} },
	RequestGetConsumerConnectionList:     func() any { return &ConsumerConnection{} },
	RequestGetProducerConnectionList:     func() any { return &ProducerConnection{} },
	RequestGetAllProducerInfo:            func() any { return &ProducerTable{} },
	RequestQueryTopicConsumeByWho:        func() any { return &GroupList{} },
	RequestConsumeMessageDirectly:        func() any { return &ConsumeDirectlyResult{} },
	RequestInvokeBrokerToResetOffset:     func() any { return &ResetOffsets{} },
	RequestViewBrokerStatsData:           func() any { return &StatsData{} },
	RequestQueryConsumeQueue:             func() any { return &ConsumeQueueData{} },
	RequestQueryConsumeTimeSpan:          func() any { return &ConsumeTimeSpans{} },
	RequestQueryCorrectionOffset:         func() any { return &CorrectionOffsets{} },
	RequestGetAllConsumerOffset:          func() any { return &ConsumerOffsetTable{} },
	RequestGetAllDelayOffset:             func() any { return &DelayOffsetTable{} },
}

// checkBody: the recorded text decodes and is written back equal in content, strict and in the dialect.
func checkBody(t *testing.T, text []byte, newBody func() any) {
	body := newBody()
	require.NoError(t, fastjson.Unmarshal(text, body))
	strict, err := fastjson.Marshal(body)
	require.NoError(t, err)
	require.True(t, json.Valid(strict))
	raw, err := fastjson.MarshalRawKeys(body)
	require.NoError(t, err)
	want, err := fastjson.Relax(text)
	require.NoError(t, err)
	require.JSONEq(t, strings.ReplaceAll(string(want), `["2598925"]`, `[2598925]`), string(strict))
	relaxed, err := fastjson.Relax(raw)
	require.NoError(t, err)
	require.Equal(t, string(strict), string(relaxed))
	again := newBody()
	require.NoError(t, fastjson.Unmarshal(strict, again))
	require.Equal(t, body, again)
}

func TestRecordedBodies(t *testing.T) {
	count := 0
	for _, c := range frames.All() {
		if newBody, ok := requestBodies[c.Request.Header.Code]; ok && c.Request.BodyText != "" {
			count++
			t.Run(c.Name+"/request", func(t *testing.T) { checkBody(t, c.Request.Body(), newBody) })
		}
		if newBody, ok := answerBodies[c.Request.Header.Code]; ok && c.Response != nil && c.Response.BodyText != "" {
			count++
			t.Run(c.Name+"/answer", func(t *testing.T) { checkBody(t, c.Response.Body(), newBody) })
		}
	}
	require.Greater(t, count, 40)
}

func TestRouteBodyIsByteForByteWhatJavaWrites(t *testing.T) {
	for _, name := range []string{"route-tbw102-standard-json", "route-master-slave", "route-binary"} {
		recorded := frames.Get(name).Response.BodyText
		var route TopicRouteData
		require.NoError(t, fastjson.Unmarshal([]byte(recorded), &route))
		c := &Command{}
		require.NoError(t, c.EncodeBody(&route))
		require.Equal(t, recorded, string(c.Body))
		require.NotContains(t, string(c.Body), " ")
	}
	c := &Command{}
	require.NoError(t, c.EncodeBody(TopicRouteData{}))
	require.Equal(t, `{"brokerDatas":[],"filterServerTable":{},"queueDatas":[]}`, string(c.Body))
}

func TestHeartbeatOfGo(t *testing.T) {
	c, err := read(frames.Get("heartbeat-consumer-go").Request.Bytes)
	require.NoError(t, err)
	var beat HeartbeatData
	require.NoError(t, c.DecodeBody(&beat))
	require.Equal(t, HeartbeatData{
		ClientID: "192.0.2.2@go-c", ProducerDataSet: []ProducerData{},
		ConsumerDataSet: []ConsumerData{{
			ConsumeFromWhere: "CONSUME_FROM_FIRST_OFFSET", ConsumeType: "CONSUME_PASSIVELY", GroupName: "cg_go", MessageModel: "CLUSTERING",
			SubscriptionDataSet: []SubscriptionData{
				{CodeSet: []int32{}, ExpressionType: "TAG", SubString: "*", SubVersion: 1795966465037224025, TagsSet: []string{}, Topic: "%RETRY%cg_go"},
				{CodeSet: []int32{2598925}, ExpressionType: "TAG", SubString: "TagG", SubVersion: 1795966465037097856, TagsSet: []string{"TagG"}, Topic: "DemoGo"},
			},
		}},
	}, beat)
	c.Body = bytes.Replace(c.Body, []byte("2598925"), []byte("2598925000"), 1)
	err = c.DecodeBody(&beat)
	require.ErrorIs(t, err, fastjson.ErrType)
	require.ErrorContains(t, err, "in consumerDataSet.subscriptionDataSet.codeSet")
}

// Go clients read this body only with raw object keys (spec/remoting.md §2.3).
func TestResetBodyIsWrittenRaw(t *testing.T) {
	recorded := frames.Get("reset-offset-client").Request.BodyText
	body, err := fastjson.MarshalRawKeys(ResetOffsets{map[MessageQueue]int64{{"broker-a", 1, "DemoAuto"}: 5, {"broker-a", 0, "DemoAuto"}: 4}})
	require.NoError(t, err)
	require.Equal(t, recorded, string(body))
}

func TestGroupConfigKeepsDefaults(t *testing.T) {
	config := SubscriptionGroupConfig{ConsumeEnable: true, RetryMaxTimes: 16, RetryQueueNums: 1}
	require.NoError(t, fastjson.Unmarshal([]byte(`{"groupName":"g","retryMaxTimes":3,"attributes":{},"retryQueueNums":null}`), &config))
	require.Equal(t, SubscriptionGroupConfig{ConsumeEnable: true, RetryMaxTimes: 3, RetryQueueNums: 1, GroupName: "g"}, config)
}

func TestRecordedRegisterBodies(t *testing.T) {
	tables := map[string]*RegisterBrokerBody{}
	for _, name := range []string{"register-broker-json", "register-broker-oneway", "register-broker-slave", "register-broker-compressed"} {
		c, err := read(frames.Get(name).Request.Bytes)
		require.NoError(t, err)
		var h RegisterBrokerHeader
		require.NoError(t, FromExt(c.ExtFields, &h))
		tables[name], err = DecodeRegisterBody(&h, c.Body)
		require.NoError(t, err, name)
		c.Body[5]++
		_, err = DecodeRegisterBody(&h, c.Body)
		require.ErrorIs(t, err, ErrCRC)
	}
	plain := tables["register-broker-json"].TopicConfigSerializeWrapper
	require.Equal(t, DataVersion{Counter: 0, TimestampMs: 1795966090909}, plain.DataVersion)
	require.Equal(t, TopicConfig{Perm: 7, ReadQueueNums: 2, TopicFilterType: "SINGLE_TAG", TopicName: "TBW102", WriteQueueNums: 2}, plain.TopicConfigTable["TBW102"])
	packed := tables["register-broker-compressed"].TopicConfigSerializeWrapper
	require.NotZero(t, packed.DataVersion.TimestampMs)
	require.Greater(t, len(packed.TopicConfigTable), 8)
	for name, topic := range packed.TopicConfigTable {
		require.Equal(t, name, topic.TopicName)
		require.Equal(t, "SINGLE_TAG", topic.TopicFilterType)
		require.Positive(t, topic.Perm)
	}
	none, err := DecodeRegisterBody(&RegisterBrokerHeader{BodyCRC32: 5}, nil)
	require.NoError(t, err)
	require.Equal(t, &RegisterBrokerBody{}, none)
}

func deflate(t *testing.T, plain string) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, err := z.Write([]byte(plain))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}

func sized(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func TestCompressedRegisterBodyRefuses(t *testing.T) {
	version, one, servers := sized(`{"counter":1,"timestamp":2}`), "\x00\x00\x00\x01", sized(`["f"]`)
	h := &RegisterBrokerHeader{BrokerName: "b", Compressed: true}
	body, err := DecodeRegisterBody(h, deflate(t, version+one+sized("T 1 2 6 SINGLE_TAG")+servers))
	require.NoError(t, err)
	require.Equal(t, []string{"f"}, body.FilterServerList)
	require.Equal(t, TopicConfig{TopicName: "T", ReadQueueNums: 1, WriteQueueNums: 2, Perm: 6, TopicFilterType: "SINGLE_TAG"}, body.TopicConfigSerializeWrapper.TopicConfigTable["T"])
	for name, test := range map[string]struct {
		plain string
		want  error
	}{
		"empty":            {"", ErrBadFrame},
		"version beyond":   {"\x00\x00\x00\x05{}", ErrBadFrame},
		"version negative": {"\xff\xff\xff\xff{}", ErrBadFrame},
		"version no json":  {sized("{") + one, fastjson.ErrSyntax},
		"no count":         {version + "\x00", ErrBadFrame},
		"too few topics":   {version + "\xff\xff\xff\xff" + sized("T 1 2 6 SINGLE_TAG"), ErrBadFrame},
		"four words":       {version + one + sized("T 1 2 6") + servers, ErrBadFrame},
		"no number":        {version + one + sized("T 1 x 6 SINGLE_TAG") + servers, ErrBadFrame},
		"no servers":       {version + one + sized("T 1 2 6 SINGLE_TAG"), ErrBadFrame},
		"bomb":             {strings.Repeat("\x00", maxInflated+1), ErrFrameTooLarge},
	} {
		_, err := DecodeRegisterBody(h, deflate(t, test.plain))
		require.ErrorIs(t, err, test.want, name)
	}
	_, err = DecodeRegisterBody(h, []byte("no zlib"))
	require.ErrorIs(t, err, zlib.ErrHeader)
	_, err = DecodeRegisterBody(h, deflate(t, version)[:10])
	require.Error(t, err)
	require.Equal(t, int32(crc32.ChecksumIEEE([]byte("abc"))&0x7FFFFFFF), RegisterCRC([]byte("abc")))
}

func TestRegisterBodyReadsBackInBothForms(t *testing.T) {
	b := &RegisterBrokerBody{FilterServerList: []string{}, TopicConfigSerializeWrapper: TopicConfigTable{
		DataVersion: DataVersion{Counter: 3, TimestampMs: 4},
		TopicConfigTable: map[string]TopicConfig{
			"A": {TopicName: "A", ReadQueueNums: 4, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG"},
			"B": {TopicName: "B", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 4, TopicFilterType: "MULTI_TAG"},
		},
	}}
	for _, compressed := range []bool{false, true} {
		h := &RegisterBrokerHeader{BrokerName: "b"}
		body, err := b.Encode(h, compressed)
		require.NoError(t, err)
		require.Equal(t, compressed, h.Compressed)
		got, err := DecodeRegisterBody(h, body)
		require.NoError(t, err)
		require.Equal(t, b, got)
		h.BodyCRC32++
		_, err = DecodeRegisterBody(h, body)
		require.ErrorIs(t, err, ErrCRC)
	}
}
