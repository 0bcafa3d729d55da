package remoting

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/actormq/actormq/testkit/frames"
	"github.com/stretchr/testify/require"
)

// requestHeaders and answerHeaders are the typed headers of the codes; those that are not listed have none.
var requestHeaders = map[int]func() Header{
	RequestSendMessage:                     func() Header { return &SendMessageHeader{} },
	RequestSendReplyMessage:                func() Header { return &SendMessageHeader{} },
	RequestSendMessageV2:                   func() Header { return &SendMessageV2Header{} },
	RequestSendBatchMessage:                func() Header { return &SendMessageV2Header{} },
	RequestSendReplyMessageV2:              func() Header { return &SendMessageV2Header{} },
	RequestPullMessage:                     func() Header { return &PullMessageHeader{} },
	RequestQueryMessage:                    func() Header { return &QueryMessageHeader{} },
	RequestQueryConsumerOffset:             func() Header { return &QueryConsumerOffsetHeader{} },
	RequestUpdateConsumerOffset:            func() Header { return &UpdateConsumerOffsetHeader{} },
	RequestUpdateAndCreateTopic:            func() Header { return &CreateTopicHeader{} },
	RequestSearchOffsetByTimestamp:         func() Header { return &SearchOffsetHeader{} },
	RequestGetMaxOffset:                    func() Header { return &QueueHeader{} },
	RequestGetMinOffset:                    func() Header { return &QueueHeader{} },
	RequestGetEarliestMsgStoreTime:         func() Header { return &QueueHeader{} },
	RequestViewMessageByID:                 func() Header { return &ViewMessageHeader{} },
	RequestUnregisterClient:                func() Header { return &UnregisterClientHeader{} },
	RequestConsumerSendMsgBack:             func() Header { return &SendBackHeader{} },
	RequestEndTransaction:                  func() Header { return &EndTransactionHeader{} },
	RequestGetConsumerListByGroup:          func() Header { return &ConsumerGroupHeader{} },
	RequestCheckTransactionState:           func() Header { return &CheckTransactionHeader{} },
	RequestNotifyConsumerIdsChanged:        func() Header { return &ConsumerGroupHeader{} },
	RequestUpdateAndCreateACLConfig:        func() Header { return &UpdateACLHeader{} },
	RequestDeleteACLConfig:                 func() Header { return &DeleteACLHeader{} },
	RequestUpdateGlobalWhiteAddrsConfig:    func() Header { return &WhiteAddrsHeader{} },
	RequestPutKVConfig:                     func() Header { return &PutKVHeader{} },
	RequestGetKVConfig:                     func() Header { return &KVKeyHeader{} },
	RequestDeleteKVConfig:                  func() Header { return &KVKeyHeader{} },
	RequestRegisterBroker:                  func() Header { return &RegisterBrokerHeader{} },
	RequestUnregisterBroker:                func() Header { return &BrokerHeader{} },
	RequestGetRouteInfoByTopic:             func() Header { return &RouteHeader{} },
	RequestGetTopicStatsInfo:               func() Header { return &TopicHeader{} },
	RequestGetConsumerConnectionList:       func() Header { return &ConsumerGroupHeader{} },
	RequestGetProducerConnectionList:       func() Header { return &ProducerGroupHeader{} },
	RequestWipeWritePermOfBroker:           func() Header { return &BrokerNameHeader{} },
	RequestDeleteSubscriptionGroup:         func() Header { return &DeleteGroupHeader{} },
	RequestGetConsumeStats:                 func() Header { return &ConsumeStatsHeader{} },
	RequestDeleteTopicInBroker:             func() Header { return &TopicHeader{} },
	RequestDeleteTopicInNamesrv:            func() Header { return &DeleteTopicInNamesrvHeader{} },
	RequestGetKVListByNamespace:            func() Header { return &KVNamespaceHeader{} },
	RequestResetConsumerClientOffset:       func() Header { return &ResetOffsetHeader{} },
	RequestGetConsumerStatusFromClient:     func() Header { return &ConsumerStatusHeader{} },
	RequestInvokeBrokerToResetOffset:       func() Header { return &ResetOffsetHeader{} },
	RequestInvokeBrokerToGetConsumerStatus: func() Header { return &ConsumerStatusHeader{} },
	RequestGetTopicsByCluster:              func() Header { return &ClusterHeader{} },
	RequestQueryTopicConsumeByWho:          func() Header { return &TopicHeader{} },
	RequestQueryConsumeTimeSpan:            func() Header { return &TopicGroupHeader{} },
	RequestGetConsumerRunningInfo:          func() Header { return &RunningInfoHeader{} },
	RequestQueryCorrectionOffset:           func() Header { return &CorrectionOffsetHeader{} },
	RequestConsumeMessageDirectly:          func() Header { return &ConsumeDirectlyHeader{} },
	RequestCloneGroupOffset:                func() Header { return &CloneOffsetHeader{} },
	RequestViewBrokerStatsData:             func() Header { return &StatsHeader{} },
	RequestGetBrokerConsumeStats:           func() Header { return &BrokerConsumeStatsHeader{} },
	RequestQueryConsumeQueue:               func() Header { return &QueryConsumeQueueHeader{} },
	RequestQueryDataVersion:                func() Header { return &BrokerHeader{} },
	RequestDrainBroker:                     func() Header { return &DrainHeader{} },
	RequestPromoteBroker:                   func() Header { return &PromoteHeader{} },
	RequestRelayBroker:                     func() Header { return &RelayHeader{} },
	RequestResumeCheckHalfMessage:          func() Header { return &ResumeHalfHeader{} },
	RequestPushReplyMessageToClient:        func() Header { return &ReplyPushHeader{} },
	RequestAddWritePermOfBroker:            func() Header { return &BrokerNameHeader{} },
}

var answerHeaders = map[int]func() Header{
	RequestSendMessage:             func() Header { return &SendMessageAnswer{} },
	RequestSendMessageV2:           func() Header { return &SendMessageAnswer{} },
	RequestSendBatchMessage:        func() Header { return &SendMessageAnswer{} },
	RequestSendReplyMessageV2:      func() Header { return &SendMessageAnswer{} },
	RequestPullMessage:             func() Header { return &PullMessageAnswer{} },
	RequestQueryMessage:            func() Header { return &QueryMessageAnswer{} },
	RequestQueryConsumerOffset:     func() Header { return &OffsetAnswer{} },
	RequestSearchOffsetByTimestamp: func() Header { return &OffsetAnswer{} },
	RequestGetMaxOffset:            func() Header { return &OffsetAnswer{} },
	RequestGetMinOffset:            func() Header { return &OffsetAnswer{} },
	RequestGetEarliestMsgStoreTime: func() Header { return &TimestampAnswer{} },
	RequestGetBrokerConfig:         func() Header { return &VersionAnswer{} },
	RequestGetBrokerClusterACLInfo: func() Header { return &ACLInfoAnswer{} },
	RequestGetKVConfig:             func() Header { return &KVValueAnswer{} },
	RequestRegisterBroker:          func() Header { return &RegisterBrokerAnswer{} },
	RequestWipeWritePermOfBroker:   func() Header { return &WipeWritePermAnswer{} },
	RequestAddWritePermOfBroker:    func() Header { return &AddWritePermAnswer{} },
	RequestQueryDataVersion:        func() Header { return &DataVersionAnswer{} },
}

// besides are fields that belong to no header (spec/remoting.md §1.9).
var besides = []string{"bname", "ReqT", "AccessKey", "Signature"}

// checkTyped: the recorded fields decode, and come back the same except for absent or zero optional ones.
func checkTyped(t *testing.T, recorded *frames.Frame, h Header) {
	c, err := read(recorded.Bytes)
	require.NoError(t, err)
	require.NoError(t, FromExt(c.ExtFields, h))
	back := fieldsOf(ToExt(h))
	for name, value := range recorded.Header.ExtFields {
		if got, ok := back[name]; ok || !slices.Contains(besides, name) && value != "" && value != "0" {
			require.Equal(t, value, got, "%T %s", h, name)
		}
		delete(back, name)
	}
	for name, value := range back {
		require.Equal(t, "false", value, "%T made up %s", h, name)
	}
}

func TestRecordedRequestsHaveTypedHeaders(t *testing.T) {
	seen := map[int]bool{}
	for _, c := range frames.All() {
		t.Run(c.Name, func(t *testing.T) {
			newHeader, ok := requestHeaders[c.Request.Header.Code]
			if !ok {
				for name := range c.Request.Header.ExtFields {
					require.Contains(t, besides, name)
				}
				return
			}
			seen[c.Request.Header.Code] = true
			if c.Name == "pull-on-vip" {
				err := FromExt(Ext{{"topic", "DemoAuto"}, {"consumerGroup", "cg_x"}}, newHeader())
				require.EqualError(t, err, `ext field "queueId" is missing`)
				return
			}
			checkTyped(t, c.Request, newHeader())
		})
	}
	require.Greater(t, len(seen), 45)
}

func TestRecordedAnswersHaveTypedHeaders(t *testing.T) {
	seen := map[int]bool{}
	for _, c := range frames.All() {
		if c.Response == nil || len(c.Response.Header.ExtFields) == 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			newHeader, ok := answerHeaders[c.Request.Header.Code]
			require.True(t, ok)
			if _, ok := newHeader().(*SendMessageAnswer); ok && c.Response.Header.ExtFields["msgId"] == "" {
				require.Equal(t, map[string]string{ExtMsgRegion: "DefaultRegion", ExtTraceOn: "true"}, c.Response.Header.ExtFields)
				return
			}
			seen[c.Request.Header.Code] = true
			checkTyped(t, c.Response, newHeader())
		})
	}
	require.Greater(t, len(seen), 14)
}

// Every header reads back what it writes, with and without optional fields, and names each required field that lacks.
func TestHeadersRoundTrip(t *testing.T) {
	for _, headers := range []map[int]func() Header{requestHeaders, answerHeaders} {
		for _, code := range slices.Sorted(maps.Keys(headers)) {
			newHeader := headers[code]
			full := Ext{}
			for _, f := range ToExt(newHeader()) {
				full = append(full, Pair{f.Name, map[string]string{"": "text", "0": "7", "false": "true"}[f.Value]})
			}
			h := newHeader()
			require.NoError(t, FromExt(full, h))
			again := newHeader()
			require.NoError(t, FromExt(ToExt(h), again))
			require.Equal(t, h, again)
			for i, f := range full {
				without := slices.Delete(slices.Clone(full), i, i+1)
				if err := FromExt(without, newHeader()); err != nil {
					var at *FieldError
					require.ErrorAs(t, err, &at)
					require.Equal(t, &FieldError{Name: f.Name, Cause: ErrFieldMissing}, at)
				}
				if f.Value == "7" {
					wrong := slices.Clone(full)
					wrong[i].Value = "7x"
					err := FromExt(wrong, newHeader())
					require.ErrorIs(t, err, ErrFieldInvalid)
					require.EqualError(t, err, `ext field "`+f.Name+`": "7x": not a number of its width`)
				}
			}
		}
	}
}

func TestSendHeaderOfBothForms(t *testing.T) {
	want := SendMessageHeader{
		ProducerGroup: "pg_demo", Topic: "DemoAuto", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestampMs: 1795966267589,
		Properties:        "color\x01red\x02KEYS\x01key-1 key-2\x02UNIQ_KEY\x01FD000000000000000000000000000002482C30946E09938688C40000\x02WAIT\x01true\x02TAGS\x01TagA",
		MaxReconsumeTimes: AbsentTimes, BrokerName: "broker-a",
	}
	c, err := read(frames.Get("send-v2").Request.Bytes)
	require.NoError(t, err)
	got, err := DecodeSend(c)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, code := range []int{RequestSendMessage, RequestSendReplyMessage, RequestSendMessageV2, RequestSendBatchMessage, RequestSendReplyMessageV2} {
		h := Header(&want)
		if code != RequestSendMessage && code != RequestSendReplyMessage {
			h = (*SendMessageV2Header)(&want)
		}
		got, err := DecodeSend(NewRequest(code, h))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	c, err = read(frames.Get("send-batch-go").Request.Bytes)
	require.NoError(t, err)
	got, err = DecodeSend(c)
	require.NoError(t, err)
	require.True(t, got.Batch)
	require.Zero(t, got.MaxReconsumeTimes)
	c.ExtFields = c.ExtFields.Set("e", "2147483648")
	_, err = DecodeSend(c)
	require.EqualError(t, err, `ext field "e": "2147483648": not a number of its width`)
}

func TestFieldsOfAnyOrder(t *testing.T) {
	ext := Ext{{"queueId", "3"}, {"x", "y"}, {"topic", "T"}, {"consumerGroup", "G"}}
	for range ext {
		ext = append(ext[1:], ext[0])
		var h QueryConsumerOffsetHeader
		require.NoError(t, FromExt(ext, &h))
		require.Equal(t, QueryConsumerOffsetHeader{"G", "T", 3}, h)
	}
}

func TestFieldRules(t *testing.T) {
	var h SendBackHeader
	base := Ext{{"offset", "1"}, {"group", ""}, {"delayLevel", "-1"}}
	require.NoError(t, FromExt(base, &h), "an empty text is a value")
	require.Equal(t, int32(AbsentTimes), h.MaxReconsumeTimes)
	require.NoError(t, FromExt(append(base, Pair{"unitMode", "TRUE"}, Pair{"maxReconsumeTimes", "+16"}), &h))
	require.True(t, h.UnitMode)
	require.Equal(t, int32(16), h.MaxReconsumeTimes)
	require.NoError(t, FromExt(append(base, Pair{"unitMode", "1"}, Pair{"maxReconsumeTimes", ""}), &h))
	require.False(t, h.UnitMode)
	require.Equal(t, int32(AbsentTimes), h.MaxReconsumeTimes)
	require.ErrorIs(t, FromExt(Ext{{"offset", ""}, {"group", "g"}, {"delayLevel", "0"}}, &h), ErrFieldMissing)
	require.ErrorIs(t, FromExt(append(base, Pair{"maxReconsumeTimes", "1.0"}), &h), ErrFieldInvalid)
	err := FromExt(Ext{{"offset", "x"}}, &h)
	var first *FieldError
	require.True(t, errors.As(err, &first))
	require.Equal(t, "offset", first.Name, "the first error is reported")
	require.Equal(t, Ext{}, ToExt(&RegisterBrokerAnswer{}), "empty, not absent")
}

func TestCodeNames(t *testing.T) {
	require.Equal(t, "SEND_MESSAGE_V2", RequestName(310))
	require.Equal(t, "PULL_OFFSET_MOVED", ResponseName(21))
	require.Equal(t, "200050", RequestName(200050))
	require.Equal(t, "-1", ResponseName(-1))
	for code := range requestHeaders {
		require.Contains(t, requestNames, code)
	}
	require.Len(t, requestNames, 89)
	require.Len(t, responseNames, 29)
}
