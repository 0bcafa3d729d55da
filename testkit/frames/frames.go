package frames

import (
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"
)

//go:embed testdata/*.json
var files embed.FS

// Case is one recorded exchange.
type Case struct {
	Name        string `json:"case"` // as in "F:send-v2" of the specification
	Title       string `json:"title"`
	Link        string `json:"link"` // which connection it was seen on
	Explanation string `json:"explanation"`
	RequestFrom string `json:"request_from"` // who sent the request
	Request     *Frame `json:"request"`
	Response    *Frame `json:"response"` // nil: one-way, or not answered
}

// Frame is one recorded frame.
type Frame struct {
	Bytes       []byte `json:"-"`         // the whole frame
	Serialize   string `json:"serialize"` // "JSON" or "ROCKETMQ"
	HeaderBytes int    `json:"header_length"`
	BodyBytes   int    `json:"body_length"`
	Header      Header `json:"header"`
	BodyText    string `json:"body_text"` // empty when the body is none or no text; "hex:…" for compressed bytes
	Hex         string `json:"hex"`

	// Decoded forms of a body that is no text: stored records, batch items, inflated register body.
	BodyRecords json.RawMessage `json:"body_records"`
	BodyBatch   json.RawMessage `json:"body_batch"`
	BodyZlib    json.RawMessage `json:"body_zlib_decoded"`
}

// Header is the decoded header of a frame. ExtFields is nil when the frame has none.
type Header struct {
	Code      int               `json:"code"`
	Language  string            `json:"language"`
	Version   int               `json:"version"`
	Opaque    int32             `json:"opaque"`
	Flag      int32             `json:"flag"`
	Remark    string            `json:"remark"`
	ExtFields map[string]string `json:"extFields"`
}

// HeaderRaw returns the header's bytes without the eight bytes before it.
func (f *Frame) HeaderRaw() []byte { return f.Bytes[8 : 8+f.HeaderBytes] }

// Body returns the body's bytes; empty when there is none.
func (f *Frame) Body() []byte { return f.Bytes[8+f.HeaderBytes:] }

// Both returns the request and, if there is one, the response.
func (c *Case) Both() []*Frame {
	if c.Response == nil {
		return []*Frame{c.Request}
	}
	return []*Frame{c.Request, c.Response}
}

// All returns the cases in the order of their numbers. The answer is shared: read only.
func All() []Case { return load() }

// Get returns the case with that name.
func Get(name string) Case {
	for _, c := range load() {
		if c.Name == name {
			return c
		}
	}
	panic(fmt.Sprintf("BUG: no recorded frame %q", name))
}

var load = sync.OnceValue(func() []Case {
	entries, err := files.ReadDir("testdata")
	must("testdata", err)
	cases := make([]Case, len(entries))
	for i, entry := range entries {
		cases[i] = parse(entry.Name())
	}
	return cases
})

func parse(name string) Case {
	text, err := files.ReadFile(path.Join("testdata", name))
	must(name, err)
	var c Case
	must(name, json.Unmarshal(text, &c))
	for _, f := range c.Both() {
		f.Bytes, err = hex.DecodeString(f.Hex)
		must(name, err)
		if len(f.Bytes) != 8+f.HeaderBytes+f.BodyBytes {
			must(name, fmt.Errorf("%d bytes, want 8+%d+%d", len(f.Bytes), f.HeaderBytes, f.BodyBytes))
		}
		if f.BodyText != "" && !strings.HasPrefix(f.BodyText, "hex:") && f.BodyText != string(f.Body()) {
			must(name, fmt.Errorf("body is not its text"))
		}
	}
	return c
}

func must(name string, err error) {
	if err != nil {
		panic(fmt.Sprintf("BUG: recorded frame %s: %v", name, err))
	}
}
