package remoting

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/actormq/actormq/testkit/frames"
	"github.com/stretchr/testify/require"
)

func read(frame []byte) (*Command, error) {
	return ReadCommand(bufio.NewReader(bytes.NewReader(frame)), Limits{})
}

func fieldsOf(ext Ext) map[string]string {
	if ext == nil {
		return nil
	}
	fields := map[string]string{}
	for _, f := range ext {
		fields[f.Name] = f.Value
	}
	return fields
}

// contentOf is what must survive every way through both codecs.
func contentOf(c *Command) frames.Header {
	return frames.Header{
		Code: c.Code, Language: c.Language.String(), Version: c.Version, Opaque: c.Opaque, Flag: c.Flag, Remark: c.Remark,
		ExtFields: fieldsOf(c.ExtFields),
	}
}

// each calls f for all recorded frames.
func each(t *testing.T, f func(t *testing.T, recorded *frames.Frame)) {
	for _, c := range frames.All() {
		for i, frame := range c.Both() {
			t.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) { f(t, frame) })
		}
	}
}

func TestRecordedFramesDecode(t *testing.T) {
	each(t, func(t *testing.T, recorded *frames.Frame) {
		r := bufio.NewReader(bytes.NewReader(append(bytes.Clone(recorded.Bytes), "next"...)))
		c, err := ReadCommand(r, Limits{})
		require.NoError(t, err)
		require.Equal(t, recorded.Header, contentOf(c))
		require.Equal(t, recorded.Serialize == "ROCKETMQ", c.Binary)
		require.Equal(t, recorded.Body(), append([]byte{}, c.Body...))
		require.Equal(t, len(c.Body), cap(c.Body))
		rest, err := r.Peek(4)
		require.NoError(t, err)
		require.Equal(t, "next", string(rest))
	})
}

func TestRecordedFramesEncodeEqualInBothCodecs(t *testing.T) {
	each(t, func(t *testing.T, recorded *frames.Frame) {
		c, err := read(recorded.Bytes)
		require.NoError(t, err)
		own := c.Binary
		for _, c.Binary = range []bool{own, !own} {
			frame, err := c.Append([]byte("before"))
			require.NoError(t, err)
			again, err := read(frame[len("before"):])
			require.NoError(t, err)
			require.Equal(t, c.Binary, again.Binary)
			want := recorded.Header
			if c.Binary && len(want.ExtFields) == 0 {
				want.ExtFields = nil // the binary codec cannot tell empty from absent
			}
			require.Equal(t, want, contentOf(again))
			require.Equal(t, c.Body, again.Body)
		}
	})
}

// What Java wrote, we write byte for byte, as long as the order of the fields is kept.
func TestJavaFramesAreWrittenByteForByte(t *testing.T) {
	count := 0
	each(t, func(t *testing.T, recorded *frames.Frame) {
		if recorded.Header.Language != "JAVA" || !bytes.Contains(recorded.HeaderRaw(), []byte("serializeType")) && recorded.Serialize == "JSON" {
			t.Skip("written by another client")
		}
		count++
		c, err := read(recorded.Bytes)
		require.NoError(t, err)
		frame, err := c.Append(nil)
		require.NoError(t, err)
		require.Equal(t, string(recorded.Bytes), string(frame))
	})
	require.Greater(t, count, 180)
}

func TestJSONHeaderIsStrict(t *testing.T) {
	c := &Command{Code: -1, Language: 99, Opaque: -5, Version: Version, Remark: "a\"\\\n\x00\xff", ExtFields: Ext{{"k\"", "<v\x01>"}, {"", ""}}}
	frame, err := c.AppendHeader(nil, 7)
	require.NoError(t, err)
	require.True(t, json.Valid(frame[8:]))
	require.Equal(t, `{"code":-1,"extFields":{"k\"":"<v\u0001>","":""},"flag":0,"opaque":-5,"remark":"a\"\\\n\u0000`+"\uFFFD"+`",`+
		`"serializeTypeCurrentRPC":"JSON","version":407}`, string(frame[8:]))
	require.Equal(t, []byte{0, 0, 0, byte(len(frame) - 4 + 7), 0, 0, 0, byte(len(frame) - 8)}, frame[:8])
}

func TestAnswerMirrorsTheRequest(t *testing.T) {
	request := &Command{Code: RequestHeartbeat, Language: LanguageGo, Version: 317, Opaque: 9, Flag: 0, Binary: true, Body: []byte("x")}
	answer := request.Answer(ResponseSystemError, "no")
	require.Equal(t, &Command{Code: 1, Remark: "no", Version: 407, Opaque: 9, Flag: FlagResponse, Binary: true}, answer)
	require.True(t, answer.IsResponse())
	require.False(t, answer.IsOneWay())
	require.True(t, (&Command{Flag: FlagOneWay}).IsOneWay())
	require.Equal(t, "request HEART_BEAT #9", request.String())
	require.Equal(t, "response SYSTEM_ERROR #9", answer.String())
	require.Equal(t, "request 999 #0", NewRequest(999, nil).String())
	require.Nil(t, NewRequest(999, nil).ExtFields)
	require.Equal(t, Ext{{"topic", "T"}, {"acceptStandardJsonOnly", "false"}}, NewRequest(RequestGetRouteInfoByTopic, &RouteHeader{Topic: "T"}).ExtFields)
}

func TestLanguages(t *testing.T) {
	for l := LanguageJava; l <= LanguageRust; l++ {
		require.Equal(t, l, LanguageOf(l.String()))
	}
	require.Equal(t, "GO", Language(9).String())
	require.Equal(t, "RUST", Language(12).String())
	require.Equal(t, LanguageUnknown, LanguageOf("COBOL"))
	require.Equal(t, "UNKNOWN", Language(13).String())
}

func TestExt(t *testing.T) {
	e := Ext(nil).Set("a", "1").Set("b", "2").Set("a", "3")
	require.Equal(t, Ext{{"a", "3"}, {"b", "2"}}, e)
	v, ok := e.Get("b")
	require.True(t, ok)
	require.Equal(t, "2", v)
	_, ok = e.Get("B")
	require.False(t, ok)
}

func TestBodies(t *testing.T) {
	c := &Command{Code: RequestGetConsumerListByGroup, Opaque: 3}
	require.NoError(t, c.EncodeBody(ConsumerList{ConsumerIDList: []string{"a"}}))
	require.Equal(t, `{"consumerIdList":["a"]}`, string(c.Body))
	var list ConsumerList
	require.NoError(t, c.DecodeBody(&list))
	require.Equal(t, []string{"a"}, list.ConsumerIDList)
	c.Body = nil
	require.EqualError(t, c.DecodeBody(&list), "body of request GET_CONSUMER_LIST_BY_GROUP #3: bad json at byte 0: unexpected end instead of a value")
	require.Error(t, c.EncodeBody(func() {}))
}
