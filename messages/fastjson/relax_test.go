package fastjson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRelaxReturnsStrictInputUnchanged(t *testing.T) {
	for _, in := range []string{
		`{}`, `[]`, `null`, `true`, `0`, `-0.5e+10`, `"a\u0001\"\\\/\b\f\n\r\t"`, ` { "a" : [ 1 , { "b" : null } ] } `,
		`{"0":"a","{\"queueId\":0}":1795966465037224025}`, "\"\xff\"",
	} {
		raw := []byte(in)
		out, err := Relax(raw)
		require.NoError(t, err, in)
		require.Equal(t, in, string(out))
		require.Same(t, &raw[0], &out[0], "copied: %s", in)
		require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = Relax(raw) }), in)
	}
}

func TestRelaxDialect(t *testing.T) {
	for in, want := range map[string]string{
		`{0:"a",-1:2,1.5:3}`:                            `{"0":"a","-1":2,"1.5":3}`,
		`{"correctionOffsets":{0:9223372036854775807}}`: `{"correctionOffsets":{"0":9223372036854775807}}`,
		`{name:1,$x_9:true,null:null}`:                  `{"name":1,"$x_9":true,"null":null}`,
		`{'a':'it"s \' \" \\'}`:                         `{"a":"it\"s ' \" \\"}`,
		`{{"brokerName":"b","queueId":0}:5}`:            `{"{\"brokerName\":\"b\",\"queueId\":0}":5}`,
		`{{0:"x\ty"} : {{a:1}:2}}`:                      `{"{\"0\":\"x\\ty\"}" : {"{\"a\":1}":2}}`,
		`{{{a:1}:2}:3}`:                                 `{"{\"{\\\"a\\\":1}\":2}":3}`,
		"{{\n\"q\":\t0}:1}":                             `{"{\u000A\"q\":\u00090}":1}`,
		"\"raw \x01 and \n\"":                           `"raw \u0001 and \u000A"`,
		`"\x41\v\F\0\7\'"`:                              `"\u0041\u000B\f\u0000\u0007'"`,
	} {
		out, err := Relax([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, want, string(out))
		require.True(t, json.Valid(out), in)
	}
}

func TestRelaxRefuses(t *testing.T) {
	for in, cause := range map[string]error{
		``: ErrSyntax, ` `: ErrSyntax, `{`: ErrSyntax, `{"a"`: ErrSyntax, `{"a":}`: ErrSyntax, `{"a":1,}`: ErrSyntax, `[1,]`: ErrSyntax, `[1 2]`: ErrSyntax,
		`{"a":1}x`: ErrSyntax, `"a`: ErrSyntax, `'a"`: ErrSyntax, `01`: ErrSyntax, `1.`: ErrSyntax, `1e`: ErrSyntax, `-`: ErrSyntax, `+1`: ErrSyntax,
		`nul`: ErrSyntax, `NaN`: ErrSyntax, `{[1]:2}`: ErrSyntax, `"\q"`: ErrSyntax, `"\u12g4"`: ErrSyntax, `"\x1"`: ErrSyntax, `{9a:1}`: ErrSyntax, "{\x00:1}": ErrSyntax, "\"\\": ErrSyntax,
		`{{{{a:1}:1}:1}:1}`:                              ErrTooDeep,
		strings.Repeat("[", MaxDepth+2):                  ErrTooDeep,
		strings.Repeat(`{"a":`, MaxDepth+2):              ErrTooDeep,
		strings.Repeat(" ", MaxBytes+1):                  ErrTooLarge,
		`"` + strings.Repeat("\x01", MaxBytes-2) + `"`:   ErrTooLarge,
		`{` + strings.Repeat(`"a":1,`, 3) + `"a":1,b:'c`: ErrSyntax,
	} {
		out, err := Relax([]byte(in))
		require.ErrorIs(t, err, cause, "%.40q", in)
		require.Nil(t, out)
	}
}

func TestRelaxNamesTheOffset(t *testing.T) {
	_, err := Relax([]byte(`{0:"a",!`))
	var at *Error
	require.ErrorAs(t, err, &at)
	require.Equal(t, 7, at.Offset)
	require.EqualError(t, err, `bad json at byte 7: unexpected '!' instead of a key`)
}

func TestRelaxDepthLimitIsExact(t *testing.T) {
	nest := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	_, err := Relax(nest(MaxDepth + 1))
	require.NoError(t, err)
	_, err = Relax(nest(MaxDepth + 2))
	require.ErrorIs(t, err, ErrTooDeep)
}

func FuzzRelax(f *testing.F) {
	for _, s := range []string{`{0:"a"}`, `{{"a":1}:{b:'c"'}}`, `[1,null,"\u00e9"]`, `{'\x41':-1.5E3}`, "\"\x01\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := string(in)
		out, err := Relax(in)
		require.Equal(t, before, string(in), "input changed")
		if err != nil {
			require.Nil(t, out)
			require.False(t, json.Valid(in) && len(in) < MaxDepth, "strict input refused: %v", err)
			return
		}
		require.True(t, json.Valid(out), "not strict: %q → %q", in, out)
		if json.Valid(in) {
			require.Equal(t, before, string(out))
		}
		again, err := Relax(out)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
	})
}

func BenchmarkRelax(b *testing.B) {
	entry := `{"brokerName":"broker-a","queueId":3,"topic":"DemoAuto"}:{"lastUpdateTimestamp":1795966465037,"maxOffset":3,"minOffset":0}`
	for name, in := range map[string]string{
		"form=strict":      `{"offsetTable":[` + strings.TrimSuffix(strings.Repeat(`{"brokerName":"broker-a","queueId":3},`, 100), ",") + `]}`,
		"form=object-keys": `{"offsetTable":{` + strings.TrimSuffix(strings.Repeat(entry+",", 100), ",") + `}}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			raw := []byte(in)
			for b.Loop() {
				if _, err := Relax(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
