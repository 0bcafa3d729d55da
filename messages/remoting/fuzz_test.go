package remoting_test

import (
	"bytes"
	"compress/zlib"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/fastjson"
	"github.com/actormq/actormq/messages/remoting"
)

// bodies are those that come from outside.
var bodies = []any{
	&remoting.TopicRouteData{}, &remoting.ClusterInfo{}, &remoting.TopicList{}, &remoting.KVTable{}, &remoting.DataVersion{},
	&remoting.TopicConfig{}, &remoting.TopicConfigTable{}, &remoting.SubscriptionGroupConfig{}, &remoting.SubscriptionGroupTable{},
	&remoting.ConsumerOffsetTable{}, &remoting.DelayOffsetTable{}, &remoting.HeartbeatData{}, &remoting.ConsumerList{},
	&remoting.CheckClientConfig{}, &remoting.LockBatch{}, &remoting.LockBatchAnswer{}, &remoting.TopicStats{}, &remoting.ConsumeStats{},
	&remoting.ConsumerConnection{}, &remoting.ProducerTable{}, &remoting.GroupList{}, &remoting.ResetOffsets{},
	&remoting.ConsumerStatus{}, &remoting.ConsumeDirectlyResult{}, &remoting.ConsumeTimeSpans{}, &remoting.CorrectionOffsets{},
	&remoting.StatsData{}, &remoting.ConsumeQueueData{}, &remoting.RegisterBrokerBody{},
}

// A body is read or refused; what was read can be written and read again.
func FuzzBodies(f *testing.F) {
	for i, text := range []string{
		`{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"b","cluster":"c"}],"queueDatas":[]}`, `{}`, `[]`, `null`, `{"a":`,
		`{"consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T","tagsSet":["a"],"codeSet":[97]}]}]}`,
		`{"offsetTable":{"T@g":{0:1,1:2}}}`, `{"lockOKMQSet":[{"topic":"T","brokerName":"b","queueId":1}]}`,
		strings.Repeat(`{"brokerDatas":`, 300),
	} {
		for n := range bodies {
			if (n+i)%3 == 0 {
				f.Add(uint8(n), []byte(text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, number uint8, body []byte) {
		kind := reflect.TypeOf(bodies[int(number)%len(bodies)]).Elem()
		first := reflect.New(kind).Interface()
		if (&remoting.Command{Body: body}).DecodeBody(first) != nil {
			return
		}
		out, err := fastjson.Marshal(first)
		require.NoError(t, err)
		second := reflect.New(kind).Interface()
		require.NoError(t, (&remoting.Command{Body: out}).DecodeBody(second), "%s", out)
		again, err := fastjson.Marshal(second)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
	})
}

// A broker's registration is read or refused, inflated or not, within the limit.
func FuzzRegisterBody(f *testing.F) {
	deflate := func(text string) []byte {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return b.Bytes()
	}
	f.Add(false, false, []byte(`{"filterServerList":[],"topicConfigSerializeWrapper":{"topicConfigTable":{},"dataVersion":{"counter":1}}}`))
	f.Add(true, false, deflate("\x00\x00\x00\x02{}\x00\x00\x00\x01\x00\x00\x00\x0eT 4 4 6 SINGLE\x00\x00\x00\x02[]"))
	f.Add(true, true, deflate("\x00\x00\x00\x02{}\xff\xff\xff\xff"))
	f.Add(true, false, deflate(strings.Repeat("\x00", 1<<20)))
	f.Fuzz(func(t *testing.T, compressed, checked bool, body []byte) {
		h := remoting.RegisterBrokerHeader{BrokerName: "b", Compressed: compressed}
		if checked {
			h.BodyCRC32 = remoting.RegisterCRC(body)
		}
		decoded, err := remoting.DecodeRegisterBody(&h, body)
		if err != nil {
			require.Nil(t, decoded)
			return
		}
		_, err = fastjson.Marshal(decoded)
		require.NoError(t, err)
	})
}

// headers are those of requests and answers.
var headers = []remoting.Header{
	&remoting.SendMessageHeader{}, &remoting.SendMessageV2Header{}, &remoting.SendMessageAnswer{}, &remoting.PullMessageHeader{},
	&remoting.PullMessageAnswer{}, &remoting.QueryConsumerOffsetHeader{}, &remoting.UpdateConsumerOffsetHeader{},
	&remoting.SearchOffsetHeader{}, &remoting.SendBackHeader{}, &remoting.EndTransactionHeader{}, &remoting.CheckTransactionHeader{},
	&remoting.QueryMessageHeader{}, &remoting.RegisterBrokerHeader{}, &remoting.CreateTopicHeader{}, &remoting.ResetOffsetHeader{},
	&remoting.UpdateACLHeader{}, &remoting.QueryConsumeQueueHeader{},
}

// A header is filled or its first bad field is named; what was filled can be written and read again.
func FuzzHeaders(f *testing.F) {
	for n, h := range headers {
		var text strings.Builder
		for i, pair := range remoting.ToExt(h) {
			text.WriteString(pair.Name + "=" + []string{"", "1", "true", "-9223372036854775808"}[i%4] + "\n")
		}
		f.Add(uint8(n), text.String())
	}
	f.Fuzz(func(t *testing.T, number uint8, lines string) {
		var ext remoting.Ext
		for line := range strings.SplitSeq(lines, "\n") {
			if name, value, ok := strings.Cut(line, "="); ok && len(ext) < 64 {
				ext = ext.Set(name, value)
			}
		}
		kind := reflect.TypeOf(headers[int(number)%len(headers)]).Elem()
		first := reflect.New(kind).Interface().(remoting.Header)
		if err := remoting.FromExt(ext, first); err != nil {
			var field *remoting.FieldError
			require.ErrorAs(t, err, &field)
			return
		}
		second := reflect.New(kind).Interface().(remoting.Header)
		require.NoError(t, remoting.FromExt(remoting.ToExt(first), second))
		require.Equal(t, first, second)
	})
}
