package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/fixture"
)

// says answers every request with the code, the fields and the body.
func says(code int, remark string, ext remoting.Ext, body []byte) func(*peer) {
	return func(p *peer) {
		for c := p.read(); c != nil; c = p.read() {
			a := c.Answer(code, remark)
			a.ExtFields, a.Body = ext, body
			p.write(a)
		}
	}
}

const routeBody = `{"brokerDatas":[{"brokerAddrs":{0:"h:1"},"brokerName":"b","cluster":"C"}],"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":2,"writeQueueNums":2}]}`

func TestRouteAsksNameServersInOrder(t *testing.T) {
	tests := map[string]struct {
		peers peers
		want  string // in the error
	}{
		"the first":              {peers{"a": says(0, "", nil, []byte(routeBody)), "b": says(1, "not asked", nil, nil)}, ""},
		"the second":             {peers{"b": says(0, "", nil, []byte(routeBody))}, ""},
		"one that hangs up":      {peers{"a": func(p *peer) { p.read() }, "b": says(0, "", nil, []byte(routeBody))}, ""},
		"a refusal is an answer": {peers{"a": says(17, "No topic\nSee", nil, nil), "b": says(0, "", nil, []byte(routeBody))}, "GET_ROUTEINFO_BY_TOPIC at a: TOPIC_NOT_EXIST (17): No topic"},
		"none":                   {peers{}, "no connection"},
		"no JSON":                {peers{"a": says(0, "", nil, []byte(`{"brokerDatas":`))}, "route of T from a"},
		"no body":                {peers{"a": says(0, "", nil, nil)}, "route of T from a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := New(Options{NameServers: []string{"a", "b"}, Dial: tt.peers.dial(t)})
			defer c.Close()
			route, err := c.Route(t.Context(), "T")
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				require.NotContains(t, err.Error(), "\n")
				return
			}
			require.NoError(t, err)
			require.Equal(t, "h:1", route.BrokerDatas[0].BrokerAddrs[0])
			require.Equal(t, int32(2), route.QueueDatas[0].ReadQueueNums)
		})
	}
	c := New(Options{})
	defer c.Close()
	_, err := c.Route(t.Context(), "T")
	require.ErrorIs(t, err, ErrNoNameServer)
}

func TestHasCode(t *testing.T) {
	err := &RefusedError{Request: remoting.RequestSendMessageV2, Address: "h:1", Code: remoting.ResponseSystemBusy, Remark: "later"}
	require.EqualError(t, err, "SEND_MESSAGE_V2 at h:1: SYSTEM_BUSY (2): later")
	require.True(t, HasCode(err, 1, 2))
	require.False(t, HasCode(err, 1))
	require.False(t, HasCode(err))
	require.False(t, HasCode(nil, 0))
	require.False(t, HasCode(ErrClosed, 0))
}

// stored is an answer's body: two records.
func stored(t *testing.T) []byte {
	t.Helper()
	var b []byte
	for _, body := range []string{"one", "two"} {
		var err error
		b, err = record.Append(b, &messages.Message{Topic: "T", Body: []byte(body)})
		require.NoError(t, err)
	}
	return b
}

func TestPull(t *testing.T) {
	ext := remoting.ToExt(&remoting.PullMessageAnswer{NextBeginOffset: 7, MinOffset: 1, MaxOffset: 9})
	tests := map[string]struct {
		peer   func(*peer)
		bodies []string
		want   string
	}{
		"found":         {says(0, "FOUND", ext, stored(t)), []string{"one", "two"}, ""},
		"not found":     {says(19, "", ext, nil), nil, ""},
		"at once again": {says(20, "", ext, nil), nil, ""},
		"moved":         {says(21, "", ext, stored(t)), nil, ""},
		"refused":       {says(24, "who?", remoting.Ext{}, nil), nil, "PULL_MESSAGE at a: SUBSCRIPTION_NOT_EXIST (24): who?"},
		"no offsets":    {says(19, "", remoting.Ext{}, nil), nil, `PULL_MESSAGE at a: ext field "suggestWhichBrokerId" is missing`},
		"torn records":  {says(0, "", ext, stored(t)[:100]), nil, "PULL_MESSAGE at a: record 1 of the answer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := New(Options{Dial: peers{"a": tt.peer}.dial(t)})
			defer c.Close()
			p, err := c.Pull(t.Context(), "a", remoting.PullMessageHeader{Topic: "T"})
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, remoting.PullMessageAnswer{NextBeginOffset: 7, MinOffset: 1, MaxOffset: 9}, p.PullMessageAnswer)
			var bodies []string
			for _, m := range p.Messages {
				bodies = append(bodies, string(m.Body))
			}
			require.Equal(t, tt.bodies, bodies)
		})
	}
}

func TestPullWaitsAsLongAsItMayBeHeld(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		c := New(Options{Dial: peers{"a": silent}.dial(t)})
		defer c.Close()
		for _, tt := range []struct {
			flag int32
			want time.Duration
		}{{0, 3 * time.Second}, {remoting.PullFlagSuspend, 23 * time.Second}} {
			begin := time.Now()
			_, err := c.Pull(t.Context(), "a", remoting.PullMessageHeader{Topic: "T", SysFlag: tt.flag, SuspendTimeoutMs: 15_000})
			require.ErrorIs(t, err, ErrNoAnswer)
			require.Equal(t, tt.want, time.Since(begin))
		}
	})
}

func TestSend(t *testing.T) {
	ext := remoting.ToExt(&remoting.SendMessageAnswer{MsgID: "7F", QueueID: 3, QueueOffset: 12})
	for _, code := range []int{0, 10, 11, 12} {
		var got remoting.SendMessageHeader
		var body []byte
		c := New(Options{Dial: peers{"a": func(p *peer) {
			r := p.read()
			var err error
			if got, err = remoting.DecodeSend(r); err != nil {
				t.Error(err)
			}
			body = r.Body
			a := r.Answer(code, "")
			a.ExtFields = ext
			p.write(a)
			silent(p)
		}}.dial(t)})
		h := remoting.SendMessageHeader{ProducerGroup: "g", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: 3, BornTimestampMs: 5, Properties: "a\x01b", MaxReconsumeTimes: -1, BrokerName: "b"}
		sent, err := c.Send(t.Context(), "a", h, []byte("body"))
		require.NoError(t, err)
		require.Equal(t, Sent{Code: code, SendMessageAnswer: remoting.SendMessageAnswer{MsgID: "7F", QueueID: 3, QueueOffset: 12}}, sent)
		c.Close()
		require.Equal(t, h, got)
		require.Equal(t, "body", string(body))
	}
	c := New(Options{Dial: peers{"full": says(14, "disk full", nil, nil), "odd": says(0, "", nil, nil)}.dial(t)})
	defer c.Close()
	_, err := c.Send(t.Context(), "full", remoting.SendMessageHeader{}, nil)
	require.True(t, HasCode(err, remoting.ResponseServiceNotAvailable))
	_, err = c.Send(t.Context(), "odd", remoting.SendMessageHeader{}, nil)
	require.ErrorContains(t, err, `stored, but the answer is bad: ext field "msgId" is missing`)
}

// asked returns what a call asks for, and what it returns for the answer.
func asked[T any](t *testing.T, answer func(*remoting.Command) *remoting.Command, call func(context.Context, *Client, Queue) (T, error)) (*remoting.Command, T) {
	t.Helper()
	var got *remoting.Command
	c := New(Options{Dial: peers{"h:1": func(p *peer) {
		got = p.read()
		p.write(answer(got))
		silent(p)
	}}.dial(t)})
	v, err := call(t.Context(), c, Queue{Broker: "b", Address: "h:1", Topic: "T", ID: 2})
	c.Close()
	require.NoError(t, err)
	return got, v
}

func TestOffsets(t *testing.T) {
	offset := func(c *remoting.Command) *remoting.Command {
		a := c.Answer(0, "")
		a.ExtFields = remoting.ToExt(&remoting.OffsetAnswer{Offset: 42})
		return a
	}
	queue := remoting.Ext{{Name: "topic", Value: "T"}, {Name: "queueId", Value: "2"}}
	group := append(remoting.Ext{{Name: "consumerGroup", Value: "g"}}, queue...)
	tests := map[string]struct {
		code int
		ext  remoting.Ext
		call func(context.Context, *Client, Queue) (int64, error)
	}{
		"min": {31, queue, func(ctx context.Context, c *Client, q Queue) (int64, error) { return c.MinOffset(ctx, q) }},
		"max": {30, queue, func(ctx context.Context, c *Client, q Queue) (int64, error) { return c.MaxOffset(ctx, q) }},
		"time": {29, append(queue[:2:2], remoting.Pair{Name: "timestamp", Value: "999"}),
			func(ctx context.Context, c *Client, q Queue) (int64, error) { return c.OffsetFrom(ctx, q, 1000) }},
		"group": {14, group, func(ctx context.Context, c *Client, q Queue) (int64, error) { return c.GroupOffset(ctx, q, "g") }},
		"commit": {15, append(group[:3:3], remoting.Pair{Name: "commitOffset", Value: "42"}),
			func(ctx context.Context, c *Client, q Queue) (int64, error) { return 42, c.Commit(ctx, q, "g", 42) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, at := asked(t, offset, tt.call)
			require.Equal(t, tt.code, got.Code)
			require.Equal(t, tt.ext, got.ExtFields)
			require.Equal(t, int64(42), at)
		})
	}
	c := New(Options{Dial: peers{"h:1": says(0, "", nil, nil)}.dial(t)})
	defer c.Close()
	_, err := c.MaxOffset(t.Context(), Queue{Address: "h:1"})
	require.ErrorContains(t, err, `GET_MAX_OFFSET at h:1: ext field "offset" is missing`)
}

func TestHasGroupOffset(t *testing.T) {
	for body, want := range map[string]bool{
		`{"offsetTable":{"T@g":{0:5,2:0}}}`: true, // the dialect
		`{"offsetTable":{"T@g":{"0":5}}}`:   false,
		`{"offsetTable":{"T@h":{"2":5}}}`:   false,
		`{"offsetTable":{}}`:                false,
	} {
		got, has := asked(t, func(c *remoting.Command) *remoting.Command {
			a := c.Answer(0, "")
			a.Body = []byte(body)
			return a
		}, func(ctx context.Context, c *Client, q Queue) (bool, error) { return c.HasGroupOffset(ctx, q, "g") })
		require.Equal(t, remoting.RequestGetAllConsumerOffset, got.Code)
		require.Equal(t, want, has, body)
	}
}
