package remoting

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/actormq/actormq/testkit/frames"
	"github.com/stretchr/testify/require"
)

func frameOf(serialize byte, header, body string) []byte {
	n := 4 + len(header) + len(body)
	frame := []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), serialize, byte(len(header) >> 16), byte(len(header) >> 8), byte(len(header))}
	return append(append(frame, header...), body...)
}

func TestJSONHeaderTolerance(t *testing.T) {
	for header, want := range map[string]Command{
		`{}`: {},
		` { "code" : 5 , "flag":1 ,"opaque":-2147483648} ` + "\n": {Code: 5, Flag: 1, Opaque: -2147483648},
		`{"code":"12","version":"407","flag":"","opaque":null}`:   {Code: 12, Version: 407},
		`{"language":"GO"}`:    {Language: LanguageGo},
		`{"language":9}`:       {Language: LanguageGo},
		`{"language":"COBOL"}`: {Language: LanguageUnknown},
		`{"language":null,"remark":null,"extFields":null}`:                                  {Language: LanguageUnknown},
		`{"remark":"a\"b\\","code":1,"code":2}`:                                             {Remark: `a"b\`, Code: 2},
		`{"extFields":{}}`:                                                                  {ExtFields: Ext{}},
		`{"extFields":{"a":1,"b":-1.5e3,"c":true,"d":null,"e":"","f":{"x":["}"]}}}`:         {ExtFields: Ext{{"a", "1"}, {"b", "-1.5e3"}, {"c", "true"}, {"e", ""}, {"f", `{"x":["}"]}`}}},
		`{"extFields":{"a":"1","b":"2","a":"3"}}`:                                           {ExtFields: Ext{{"a", "3"}, {"b", "2"}}},
		`{"extFields":{"a":"1"},"extFields":{"b":"2"}}`:                                     {ExtFields: Ext{{"b", "2"}}},
		`{"other":[{"code":7,"x":"]\\\""}],"more":{"deep":[[[]]]},"n":-0.1E+2,"t":false}`:   {},
		"{\"remark\":\"\xff\u00e9\",\"extFields\":{\"\\u0069\":\"\\u0001\\uD83D\\uDE00\"}}": {Remark: "\uFFFDé", ExtFields: Ext{{"i", "\x01😀"}}},
	} {
		c, err := read(frameOf(0, header, ""))
		require.NoError(t, err, header)
		require.Equal(t, want, *c, header)
	}
}

func TestJSONHeaderRefuses(t *testing.T) {
	for header, want := range map[string]string{
		``: "unexpected end", `[]`: "instead of an object", `{`: "unexpected end", `{"code"}`: "instead of a colon", `{"code":}`: "instead of a value",
		`{"code":1,}`: "instead of a name", `{"code":1;}`: "in object", `{"code":1}x`: "after the header", `{code:1}`: "instead of a name",
		`{"code":nul}`: "instead of a value", `{"x":12abc}`: "instead of a value", `{"x":"abc}`: "has no end", `{"x":"a\"}`: "has no end", `{"remark":"\q"}`: "bad escape",
		`{"remark":"\u12"}`: "bad escape", `{"code":1.5}`: `code "1.5" is no 32-bit number`, `{"opaque":2147483648}`: "opaque", `{"version":"x"}`: "version", `{"flag":true}`: "flag",
		`{"x":{"y":[}`: "in a nested value", `{"extFields":[]}`: "instead of an object", `{"extFields":{"a":}}`: "instead of a value", `{"extFields":"x"}`: "instead of an object",
		"{\"x\":\x00}": "instead of a value",
	} {
		c, err := read(frameOf(0, header, "body"))
		require.ErrorIs(t, err, ErrBadHeader, header)
		require.ErrorContains(t, err, want, header)
		require.Nil(t, c)
	}
}

func TestBinaryHeaderRefuses(t *testing.T) {
	good, err := (&Command{Remark: "r", ExtFields: Ext{{"key", "value"}}, Binary: true}).AppendHeader(nil, 0)
	require.NoError(t, err)
	header := string(good[8:])
	require.Len(t, header, 21+1+2+3+4+5)
	patch := func(at int, with string) string { return header[:at] + with + header[at+len(with):] }
	for name, bad := range map[string]string{
		"short": header[:20], "empty": "",
		"remark beyond":        patch(13, "\x00\x00\x00\xff"),
		"remark negative":      patch(13, "\xff\xff\xff\xff"),
		"no room for ext":      patch(13, "\x00\x00\x00\x12"),
		"ext beyond":           patch(18, "\x00\x00\x00\xff"),
		"ext negative":         patch(18, "\x80\x00\x00\x00"),
		"key beyond":           patch(22, "\x00\x0d"),
		"key negative":         patch(22, "\xff\xff"),
		"value beyond":         patch(27, "\x00\x00\x00\x06"),
		"value negative":       patch(27, "\xff\xff\xff\xfb"),
		"value length cut":     patch(18, "\x00\x00\x00\x07"),
		"cut inside the entry": header[:len(header)-1],
	} {
		c, err := read(frameOf(1, bad, ""))
		require.ErrorIs(t, err, ErrBadHeader, name)
		require.Nil(t, c)
	}
	negativeKey := patch(18, "\x00\x00\x00\x0e")[:22] + "\x80\x00" + strings.Repeat("x", 40_000)
	_, err = read(frameOf(1, negativeKey, ""))
	require.ErrorIs(t, err, ErrBadHeader)
}

func TestBinaryHeaderTolerance(t *testing.T) {
	header := "\xff\xfe\x63\x01\x97\x00\x00\x00\x05\x00\x00\x00\x01" + "\x00\x00\x00\x01\xff" +
		"\x00\x00\x00\x19" + "\x00\x01a\x00\x00\x00\x011" + "\x00\x01b\x00\x00\x00\x00" + "\x00\x01a\x00\x00\x00\x03\xc3\xa9\xff" + "rest is ignored"
	c, err := read(frameOf(1, header, "b"))
	require.NoError(t, err)
	require.Equal(t, &Command{Code: -2, Language: 99, Version: 407, Opaque: 5, Flag: 1, Remark: "\uFFFD", ExtFields: Ext{{"a", "é\uFFFD"}, {"b", ""}}, Body: []byte("b"), Binary: true}, c)
}

func TestBinaryHeaderHasLimits(t *testing.T) {
	for _, c := range []*Command{
		{Code: 40_000}, {Code: -40_000}, {Version: 1 << 15}, {ExtFields: Ext{{strings.Repeat("k", 1<<15), ""}}},
	} {
		c.Binary = true
		out, err := c.Append([]byte("kept"))
		require.ErrorIs(t, err, ErrBadHeader)
		require.Equal(t, "kept", string(out))
	}
}

func TestExtFieldsAreLimited(t *testing.T) {
	for _, binary := range []bool{false, true} {
		c := &Command{Binary: binary}
		for i := range 5 {
			c.ExtFields = append(c.ExtFields, Pair{strings.Repeat("k", i), "v"})
		}
		frame, err := c.Append(nil)
		require.NoError(t, err)
		_, err = ReadCommand(bufio.NewReader(bytes.NewReader(frame)), Limits{ExtFields: 5})
		require.NoError(t, err)
		_, err = ReadCommand(bufio.NewReader(bytes.NewReader(frame)), Limits{ExtFields: 4})
		require.ErrorIs(t, err, ErrBadHeader)
	}
	// Repeated names count too, or their search would be paid by us.
	_, err := read(frameOf(0, `{"extFields":{`+strings.Repeat(`"a":"1",`, DefaultExtFields)+`"a":"2"}}`, ""))
	require.ErrorIs(t, err, ErrBadHeader)
}

func TestFrameLengths(t *testing.T) {
	for name, test := range map[string]struct {
		frame []byte
		want  error
	}{
		"nothing":               {nil, io.EOF},
		"cut length":            {[]byte{0, 0, 0}, io.ErrUnexpectedEOF},
		"cut header length":     {[]byte{0, 0, 0, 9, 0}, io.ErrUnexpectedEOF},
		"length below 4":        {[]byte{0, 0, 0, 3}, ErrBadFrame},
		"length 0":              {[]byte{0, 0, 0, 0}, ErrBadFrame},
		"negative length":       {[]byte{0xff, 0xff, 0xff, 0xff}, ErrFrameTooLarge},
		"over the limit":        {[]byte{1, 0, 0, 1}, ErrFrameTooLarge},
		"header beyond frame":   {[]byte{0, 0, 0, 6, 0, 0, 0, 3, '{', '}', ' '}, ErrBadFrame},
		"serialize type":        {frameOf(2, "{}", ""), ErrBadFrame},
		"tls hello":             {[]byte("\x16\x03\x01\x02\x00\x01\x00\x01"), ErrFrameTooLarge},
		"http":                  {[]byte("GET / HTTP/1.1\r\n\r\n"), ErrFrameTooLarge},
		"largest, not sent":     {[]byte{1, 0, 0, 0, 0, 0, 0, 2, '{', '}'}, io.ErrUnexpectedEOF},
		"large header not sent": {[]byte{1, 0, 0, 0, 0, 0xff, 0xff, 0xfc, '{'}, io.ErrUnexpectedEOF},
	} {
		c, err := read(test.frame)
		require.ErrorIs(t, err, test.want, name)
		require.Nil(t, c, name)
	}
	_, err := ReadCommand(bufio.NewReader(bytes.NewReader(frameOf(0, "{}", "12345"))), Limits{FrameBytes: 10})
	require.ErrorIs(t, err, ErrFrameTooLarge)
	_, err = ReadCommand(bufio.NewReader(bytes.NewReader(frameOf(0, "{}", "12345"))), Limits{FrameBytes: 11})
	require.NoError(t, err)
}

func TestTruncatedFramesNeverDecode(t *testing.T) {
	for _, name := range []string{"send-v2", "send-v2-binary", "pull-found"} {
		c := frames.Get(name)
		for _, f := range c.Both() {
			for n := range len(f.Bytes) {
				got, err := read(f.Bytes[:n])
				require.Nil(t, got)
				if n == 0 {
					require.Equal(t, io.EOF, err)
				} else {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s cut at %d", name, n)
				}
			}
		}
	}
}

func TestReadErrorsArePassedOn(t *testing.T) {
	gone := errors.New("connection reset")
	frame := frames.Get("send-v2").Request.Bytes
	for _, n := range []int{0, 2, 6, 20, len(frame) - 1} {
		r := io.MultiReader(bytes.NewReader(frame[:n]), iotest.ErrReader(gone))
		_, err := ReadCommand(bufio.NewReader(r), Limits{})
		require.ErrorIs(t, err, gone, "after %d", n)
	}
}

func TestLargeHeaderAndBodyArriveInPieces(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	value := strings.Repeat("v", 300_000)
	for _, binary := range []bool{false, true} {
		frame, err := (&Command{ExtFields: Ext{{"i", value}}, Body: body, Binary: binary}).Append(nil)
		require.NoError(t, err)
		c, err := ReadCommand(bufio.NewReaderSize(iotest.HalfReader(bytes.NewReader(frame)), 16), Limits{})
		require.NoError(t, err)
		require.Equal(t, body, c.Body)
		require.Equal(t, len(c.Body), cap(c.Body))
		require.Equal(t, Ext{{"i", value}}, c.ExtFields)
	}
}

// A peer that only claims a large frame gets no memory for it.
func TestLiarsGetNoMemory(t *testing.T) {
	body := append([]byte{1, 0, 0, 0, 0, 0, 0, 2, '{', '}'}, make([]byte, 100)...)
	header := append([]byte{1, 0, 0, 0, 0, 0xff, 0xff, 0xfc}, make([]byte, 10_000)...)
	for _, frame := range [][]byte{body, header, {0x7f, 0xff, 0xff, 0xff}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read(frame)
		runtime.ReadMemStats(&after)
		require.Error(t, err)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200_000))
	}
}

func TestOversizedFramesAreNotWritten(t *testing.T) {
	c := &Command{}
	header, err := c.AppendHeader(nil, 0)
	require.NoError(t, err)
	room := DefaultFrameBytes - 4 - (len(header) - 8)
	_, err = c.AppendHeader(nil, room)
	require.NoError(t, err)
	for _, c := range []*Command{{Body: make([]byte, room+1)}, {Remark: strings.Repeat("x", DefaultFrameBytes)}} {
		out, err := c.Append([]byte("kept"))
		require.ErrorIs(t, err, ErrFrameTooLarge)
		require.Equal(t, "kept", string(out))
	}
}

// reference decodes a JSON header with the standard library; ok is false where the two need not agree: bad UTF-8,
// null, escaped or repeated or differently spelled names, languages.
func reference(header []byte) (c Command, ok bool) {
	var h struct {
		Code    int                `json:"code"`
		Version int                `json:"version"`
		Opaque  int32              `json:"opaque"`
		Flag    int32              `json:"flag"`
		Remark  string             `json:"remark"`
		Ext     *map[string]string `json:"extFields"`
	}
	if !utf8.Valid(header) || json.Unmarshal(header, &h) != nil || bytes.Contains(header, []byte("null")) || bytes.Contains(header, []byte(`\u`)) {
		return c, false
	}
	var names map[string]json.RawMessage
	if json.Unmarshal(header, &names) != nil || names["language"] != nil || len(names) != bytes.Count(header, []byte(`":`)) {
		return c, false
	}
	for name := range names {
		for _, known := range []string{"code", "version", "opaque", "flag", "remark", "extFields"} {
			if name != known && strings.EqualFold(name, known) {
				return c, false
			}
		}
	}
	c = Command{Code: h.Code, Version: h.Version, Opaque: h.Opaque, Flag: h.Flag, Remark: h.Remark}
	if h.Ext != nil {
		c.ExtFields = Ext{}
		for name, value := range *h.Ext {
			c.ExtFields = append(c.ExtFields, Pair{name, value})
		}
	}
	return c, len(c.ExtFields) < DefaultExtFields
}

func decodeHeader(c *Command, header []byte) error {
	return c.decode(string(header), &extBuilder{left: DefaultExtFields})
}

func FuzzJSONHeader(f *testing.F) {
	for _, c := range frames.All() {
		for _, frame := range c.Both() {
			if frame.Serialize == "JSON" {
				f.Add(frame.HeaderRaw())
			}
		}
	}
	f.Add([]byte(`{"code":"1","x":[{"y":"}"}],"extFields":{"a":1,"a":null,"\ud83d":"\udE00"}}`))
	f.Add([]byte(`{"code":1,"opaque":-2,"flag":3,"version":407,"remark":"r\n","other":2.5}`))
	f.Fuzz(func(t *testing.T, header []byte) {
		c := &Command{}
		err := decodeHeader(c, header)
		if want, ok := reference(header); ok {
			require.NoError(t, err, "%q", header)
			require.Equal(t, contentOf(&want), contentOf(c), "%q", header)
		}
		if err != nil {
			require.ErrorIs(t, err, ErrBadHeader)
			return
		}
		again := &Command{}
		require.NoError(t, decodeHeader(again, c.appendJSON(nil, nil)))
		if c.Language > LanguageRust {
			c.Language, again.Language = 0, 0
		}
		require.Equal(t, c, again)
	})
}

func FuzzBinaryHeader(f *testing.F) {
	f.Add([]byte(nil))
	for _, c := range frames.All() {
		for _, frame := range c.Both() {
			c, err := read(frame.Bytes)
			require.NoError(f, err)
			header, err := c.appendBinary(nil, nil)
			require.NoError(f, err)
			f.Add(header)
		}
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		c := &Command{Binary: true}
		if err := decodeHeader(c, header); err != nil {
			require.ErrorIs(t, err, ErrBadHeader)
			return
		}
		for _, f := range c.ExtFields {
			if len(f.Name) > 1<<15-1 {
				t.Skip("replaced bytes made the name longer")
			}
		}
		out, err := c.appendBinary(nil, nil)
		require.NoError(t, err)
		again := &Command{Binary: true}
		require.NoError(t, decodeHeader(again, out))
		require.Equal(t, c, again)
	})
}

func FuzzReadCommand(f *testing.F) {
	for _, c := range frames.All() {
		for _, frame := range c.Both() {
			f.Add(frame.Bytes)
		}
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(stream), 64)
		for {
			c, err := ReadCommand(r, Limits{FrameBytes: 1 << 20})
			if err != nil {
				require.Nil(t, c)
				return
			}
			out, err := c.Append(nil)
			require.NoError(t, err)
			again, err := read(out)
			require.NoError(t, err)
			require.Equal(t, c.Body, again.Body)
			require.Equal(t, fieldsOf(append(Ext{}, c.ExtFields...)), fieldsOf(append(Ext{}, again.ExtFields...)))
		}
	})
}
