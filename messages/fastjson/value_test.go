package fastjson

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type queue struct {
	BrokerName string `json:"brokerName"`
	QueueID    int32  `json:"queueId"`
	Topic      string `json:"topic"`
}

type everything struct {
	Bool    bool             `json:"bool"`
	Float   float64          `json:"float"`
	Hidden  string           `json:"-"`
	Int     int64            `json:"int"`
	Ints    []int32          `json:"ints"`
	Named   map[string]*int8 `json:"named"`
	Nested  *queue           `json:"nested,omitempty"`
	Plain   string
	Queues  map[queue]int64  `json:"queues"`
	Small   uint8            `json:"small,omitempty"`
	ByID    map[int64]string `json:"byId,omitempty"`
	Text    string           `json:"text,omitempty"`
	private string
}

func TestUnmarshalTakesTheDialect(t *testing.T) {
	var got everything
	in := `{"Plain":"p" , 'bool':"TRUE","byId":{0:"a",-7:"b"},"float":"1.5","int":"-1795966465037224025","ints":["2598925",-1,null,"",true],
		"named":{k:5,"n":null},"nested":{"queueId":"3","unknown":[{"a":["]"]},1.5e3,"}"]},"private":"x","Hidden":"x",
		"queues":{{"brokerName":"b","queueId":1,"topic":"T"}:7,"{\"queueId\":2}":8},"small":255,"text":-1.50,"Text":"other name"}`
	err := Unmarshal([]byte(strings.ReplaceAll(in, ",true]", "]")), &got)
	require.NoError(t, err)
	five := int8(5)
	require.Equal(t, everything{
		Plain: "p", Bool: true, ByID: map[int64]string{0: "a", -7: "b"}, Float: 1.5, Int: -1795966465037224025,
		Ints: []int32{2598925, -1, 0, 0}, Named: map[string]*int8{"k": &five, "n": nil}, Nested: &queue{QueueID: 3},
		Queues: map[queue]int64{{"b", 1, "T"}: 7, {QueueID: 2}: 8}, Small: 255, Text: "-1.50",
	}, got)
	require.Empty(t, got.private)
}

func TestUnmarshalKeepsDefaultsForMissingAndNull(t *testing.T) {
	got := everything{Bool: true, Int: 16, Text: "t", Ints: []int32{1}, Named: map[string]*int8{"a": nil}}
	want := got
	require.NoError(t, Unmarshal([]byte(`{"bool":null,"int":null,"text":null,"ints":null,"named":null}`), &got))
	require.Equal(t, want, got)
	require.NoError(t, Unmarshal([]byte(`{"int":1,"int":2,"ints":[],"named":{}}`), &got))
	require.Equal(t, int64(2), got.Int)
	require.Equal(t, []int32{}, got.Ints)
	require.Empty(t, got.Named)
}

func TestUnmarshalRefuses(t *testing.T) {
	for in, want := range map[string]struct {
		cause error
		field string
	}{
		`{"small":256}`:                  {ErrType, "small"},
		`{"small":-1}`:                   {ErrType, "small"},
		`{"ints":[1,2147483648]}`:        {ErrType, "ints"},
		`{"int":9223372036854775808}`:    {ErrType, "int"},
		`{"int":1.5}`:                    {ErrType, "int"},
		`{"int":{}}`:                     {ErrType, "int"},
		`{"bool":"yes"}`:                 {ErrType, "bool"},
		`{"float":"x"}`:                  {ErrType, "float"},
		`{"text":[]}`:                    {ErrType, "text"},
		`{"nested":{"queueId":"x"}}`:     {ErrType, "nested.queueId"},
		`{"nested":[]}`:                  {ErrType, "nested"},
		`{"ints":{}}`:                    {ErrType, "ints"},
		`{"byId":{"x":"y"}}`:             {ErrType, "byId"},
		`{"queues":{"no object":1}}`:     {ErrType, "queues"},
		`{"queues":{{"queueId":"x"}:1}}`: {ErrType, "queues"},
		`{"queues":{"[1]":1}}`:           {ErrType, "queues"},
		`[]`:                             {ErrType, ""},
		`{"text":`:                       {ErrSyntax, ""},
		`{"named":` + strings.Repeat(`{"a":`, MaxDepth+1): {ErrTooDeep, ""},
	} {
		err := Unmarshal([]byte(in), &everything{})
		require.ErrorIs(t, err, want.cause, in)
		var at *Error
		require.ErrorAs(t, err, &at)
		require.Equal(t, want.field, at.Field, in)
	}
	require.ErrorIs(t, Unmarshal([]byte(`1`), 1), ErrType)
	require.ErrorIs(t, Unmarshal([]byte(`1`), (*int)(nil)), ErrType)
	require.EqualError(t, Unmarshal([]byte(`{"nested":{"queueId":"x"}}`), &everything{}), `json value does not fit at byte 24 in nested.queueId: "x" into int32`)
}

func TestUnmarshalLimitsWhatSmallTextCanTake(t *testing.T) {
	in := []byte("[" + strings.TrimSuffix(strings.Repeat("{},", 100_000), ",") + "]")
	var many []everything
	require.ErrorIs(t, Unmarshal(in, &many), ErrTooLarge)
	var few []queue
	require.NoError(t, Unmarshal(in, &few))
	require.Len(t, few, 100_000)
}

func TestMarshal(t *testing.T) {
	five := int8(5)
	v := everything{
		Float: 2, Int: math.MinInt64, Ints: []int32{1, 2}, Named: map[string]*int8{"b": &five, "a": nil}, Plain: "<&>\u2028é\x01\"\\\n\x1f\xff",
		Queues: map[queue]int64{{"b", 1, "T"}: 7, {"a", 0, "T"}: 5}, ByID: map[int64]string{10: "x", 9: "y"},
	}
	out, err := Marshal(v)
	require.NoError(t, err)
	require.True(t, json.Valid(out))
	require.Equal(t, `{"bool":false,"float":2.0,"int":-9223372036854775808,"ints":[1,2],"named":{"a":null,"b":5},"Plain":"<&>`+"\u2028é"+`\u0001\"\\\n\u001F`+"\uFFFD"+`",`+
		`"queues":{"{\"brokerName\":\"a\",\"queueId\":0,\"topic\":\"T\"}":5,"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}":7},"byId":{"10":"x","9":"y"}}`, string(out))

	out, err = Marshal(&everything{})
	require.NoError(t, err)
	require.Equal(t, `{"bool":false,"float":0.0,"int":0,"ints":[],"named":{},"Plain":"","queues":{}}`, string(out))

	out, err = MarshalRawKeys(map[queue]map[int]float64{{"b", 0, "T"}: {0: math.NaN(), 1: 1e300}})
	require.NoError(t, err)
	require.Equal(t, `{{"brokerName":"b","queueId":0,"topic":"T"}:{0:null,1:1e+300}}`, string(out))

	for _, bad := range []any{nil, func() {}, map[string]any{"a": 1}, []chan int{nil}, map[queue]complex64{{}: 1}, map[[1]int]int{{}: 1}} {
		_, err = Marshal(bad)
		require.ErrorIs(t, err, ErrType, "%T", bad)
		_, err = MarshalRawKeys(bad)
		require.ErrorIs(t, err, ErrType, "%T", bad)
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		``: ``, `plain`: `plain`, `\"\\\/\b\f\n\r\t\'\v\F`: "\"\\/\b\f\n\r\t'\v\f", `a\u0001b\u00e9`: "a\x01bé",
		`\uD83D\uDE00!`: "😀!", `\uD83D`: "\uFFFD", `\uDE00\uD83D`: "\uFFFD\uFFFD", `\uD83D\u0041`: "\uFFFDA", `\x41\0\7`: "A\x00\x07", "\xff": "\uFFFD", "\xff\\n": "\uFFFD\n",
	} {
		got, err := Unquote(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{`\`, `a\`, `\u12`, `\u12g4`, `\x`, `\xg0`, `\8`, `\q`, `\u+123`} {
		_, err := Unquote(in)
		require.Error(t, err, in)
	}
}

// FuzzUnmarshal: whatever is accepted survives a round trip in both written forms.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"int":"1","queues":{{"queueId":0}:1},"named":{"a":null},"byId":{0:"x"},"text":"\ud83d"}`))
	f.Add([]byte(`{'nested':{"topic":1.5},"ints":[1,"2"]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var first everything
		if err := Unmarshal(in, &first); err != nil {
			var at *Error
			require.ErrorAs(t, err, &at)
			return
		}
		if first.Float != first.Float || math.IsInf(first.Float, 0) {
			return
		}
		strict, err := Marshal(first)
		require.NoError(t, err)
		require.True(t, json.Valid(strict), "%q", strict)
		raw, err := MarshalRawKeys(first)
		require.NoError(t, err)
		for _, text := range [][]byte{strict, raw} {
			var again everything
			require.NoError(t, Unmarshal(text, &again), "%q", text)
			back, err := Marshal(again)
			require.NoError(t, err)
			require.Equal(t, string(strict), string(back))
		}
	})
}
