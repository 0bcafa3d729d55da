package remoting

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/frames"
)

// jsonFrame is a frame with that header.
func jsonFrame(header, body []byte) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(lengthBytes+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	return append(append(frame, header...), body...)
}

// knowing is a view that has learned a frame's header.
func knowing(tb testing.TB, frame []byte) *View {
	var v View
	for range 2 {
		if _, err := v.Command(frame, Limits{}); err != nil {
			tb.Fatal(err)
		}
	}
	return &v
}

// alike requires that a view with a past and one without tell the same of a frame.
func alike(t *testing.T, v *View, frame []byte) (fits bool) {
	t.Helper()
	got, err := v.Command(frame, Limits{})
	fits = v.shape.misses == 0
	want, wantErr := new(View).Command(frame, Limits{})
	if wantErr != nil {
		require.Error(t, err, "%q", frame)
		require.Equal(t, wantErr.Error(), err.Error())
		return fits
	}
	require.NoError(t, err, "%q", frame)
	require.Equal(t, want.Own(), got.Own(), "%q", frame)
	return fits
}

// Whatever differs from the header that was learned: each byte of it in turn, as many other bytes as matter.
func TestHeadersThatAreNearlyAlikeAreReadAsTheyAre(t *testing.T) {
	for _, name := range []string{"send-v2", "pull-found", "send-v1-go"} {
		recorded := frames.Get(name).Request
		v := knowing(t, recorded.Bytes)
		text := bytes.Clone(recorded.HeaderRaw())
		fitting := 0
		for i := range text {
			for _, other := range []byte("\x00\x01 \"\\/09aznu-+.,:{}[]\x7f\x80\xc3\xff") {
				changed := bytes.Clone(text)
				changed[i] = other
				if alike(t, v, jsonFrame(changed, []byte("body"))) {
					fitting++
				}
				if v.shape.misses > 0 { // it may have learned this one
					v = knowing(t, recorded.Bytes)
				}
			}
		}
		require.Greater(t, fitting, len(text), "most of %s is free to differ", name)
	}
}

// The requests of a producer: only the first two are scanned.
func TestRequestsOfOneClientAreAlike(t *testing.T) {
	var v View
	for i := range 100 {
		header := fmt.Appendf(nil, `{"code":310,"extFields":{"a":"group","b":"topic","e":"%d","g":"%d","i":"UNIQ_KEY\u0001%032X\u0002TAGS\u0001T\u0002","m":"false"},`+
			`"flag":0,"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":407}`, i%8, 1_700_000_000_000+i, i*i, 1000+i)
		require.Equal(t, i > 1, alike(t, &v, jsonFrame(header, fmt.Append(nil, "body ", i))), "request %d", i)
	}
}

// What is written in an unusual way is read as it is, learned or not.
func TestUnusualHeadersAreReadAgainAndAgain(t *testing.T) {
	for _, header := range []string{
		`{"code":"310","opaque":"7","extFields":{"a":"x"}}`, `{"code":310,"opaque":-7,"extFields":{"a":"x"}}`,
		`{"code":310,"opaque": 7 ,"extFields":{"a":"x"}}`,
		`{"code":310,"opaque":null,"extFields":{"a":"x"}}`, `{"code":310,"opaque":7,"opaque":8,"extFields":{"a":"x"}}`,
		`{"code":310,"opaque":7,"extFields":{"a":"x","a":"y"}}`, `{"code":310,"opaque":7,"extFields":{"a":"x"},"extFields":{"b":"y"}}`,
		`{"code":310,"opaque":7,"extFields":{"a":"x"},"extFields":null}`, `{"code":310,"opaque":7,"extFields":{}}`,
		`{"code":310,"opaque":7,"extFields":{"a":1,"b":[2,"c"],"d":{"e":"f"},"g":null,"h":""}}`,
		`{"code":310,"opaque":7,"extFields":{"\u0061":"\u0062","c\n":"\"\\"}}`, `{"code":310,"opaque":7,"extFields":{"":"x"},"remark":"r"}`,
		`{"code":310,"opaque":7,"x":{"opaque":1,"extFields":{"a":"y"}},"extFields":{"a":"x` + "\u00fc\xff" + `"}}`, `{"extFields":{"a":"x"}}`, `{}`,
	} {
		v := knowing(t, jsonFrame([]byte(header), nil))
		for i := range len(header) {
			for _, other := range []byte("0 \"\\n9") {
				changed := []byte(header)
				changed[i] = other
				alike(t, v, jsonFrame(changed, nil))
			}
		}
	}
}

func FuzzViewOfHeadersAlike(f *testing.F) {
	for _, c := range frames.All() {
		if c.Request != nil && c.Request.Serialize == "JSON" {
			f.Add(c.Request.HeaderRaw(), uint16(20), []byte("1"))
			f.Add(c.Request.HeaderRaw(), uint16(100), []byte(`","z":"`))
		}
	}
	f.Fuzz(func(t *testing.T, header []byte, at uint16, other []byte) {
		var v View
		alike(t, &v, jsonFrame(header, nil))
		alike(t, &v, jsonFrame(header, []byte("body")))
		changed := bytes.Clone(header)
		if int(at) < len(changed) {
			copy(changed[at:], other)
		}
		alike(t, &v, jsonFrame(changed, nil))
		alike(t, &v, jsonFrame(header, nil))
	})
}
