package console

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/actormq/actormq/messages"
)

const (
	// shownBytes is how much of a body a page shows.
	shownBytes = 64 << 10
	// plainBytes bounds what a compressed body may grow to.
	plainBytes = 16 << 20
	// previewRunes is how much of a body a list shows.
	previewRunes = 80
)

// body is a message's body, made readable.
type body struct {
	Size        int      // bytes, as they are shown: uncompressed, if they could be
	Stored      int      // bytes in the store
	Compression string   // what it is stored with; empty: nothing
	Problem     string   // why it is still compressed
	Forms       []string // text, json, hex: those that it has, the best first
	Text, JSON  string
	Hex         string
	Cut         bool // the page shows only the beginning
}

// decode reads a body as what it seems to be.
func (c *Console) decode(m *messages.StoredMessage) body {
	v := body{Stored: len(m.Body)}
	plain, err := c.plain(m, &v)
	if err != nil {
		v.Problem, plain = err.Error(), m.Body
	}
	v.Size, v.Cut = len(plain), len(plain) > shownBytes
	shown := plain[:min(len(plain), shownBytes)]
	v.Hex, v.Forms = hex.Dump(shown), []string{"hex"}
	if text, ok := readable(shown, v.Cut); ok {
		v.Text, v.Forms = text, []string{"text", "hex"}
	}
	if !v.Cut && (bytes.HasPrefix(bytes.TrimSpace(plain), []byte("{")) || bytes.HasPrefix(bytes.TrimSpace(plain), []byte("["))) {
		var out bytes.Buffer
		if indented(plain) < 4*shownBytes && json.Indent(&out, plain, "", jsonIndent) == nil {
			v.JSON, v.Forms = out.String(), []string{"json", "text", "hex"}
		}
	}
	return v
}

// jsonIndent stands before a value, for each one that it is in.
const jsonIndent = "  "

// indented is how long a JSON text gets by its indentation, or more: 20 KB of brackets in each other would take 200 MB.
func indented(plain []byte) (size int) {
	depth, quoted := 0, false
	for i := 0; i < len(plain); i++ {
		size++
		switch b := plain[i]; {
		case quoted && b == '\\':
			i++
			size++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{', b == '[':
			depth++
			size += 1 + len(jsonIndent)*depth
		case b == '}', b == ']':
			depth = max(depth-1, 0)
			size += 1 + len(jsonIndent)*depth
		case b == ',':
			size += 1 + len(jsonIndent)*depth
		}
	}
	return size
}

// plain uncompresses a body (spec/store.md §2.2).
func (c *Console) plain(m *messages.StoredMessage, v *body) ([]byte, error) {
	if m.SysFlag&messages.SysFlagCompressed == 0 {
		return m.Body, nil
	}
	kind := m.SysFlag & messages.SysFlagCompressionMask
	switch kind {
	case 0, messages.SysFlagCompressionZLIB:
		v.Compression = "zlib"
		return messages.Inflate(m.Body, plainBytes)
	case messages.SysFlagCompressionLZ4:
		v.Compression = "LZ4"
	case messages.SysFlagCompressionZSTD:
		v.Compression = "zstd"
	default:
		v.Compression = fmt.Sprintf("an unknown compression (%#x)", kind)
	}
	if c.cfg.Uncompress == nil {
		return nil, errors.New("not read here")
	}
	return c.cfg.Uncompress(kind, m.Body, plainBytes)
}

// readable is a body as text, if it is UTF-8 without control characters; the end of what was cut may lie within a character.
func readable(b []byte, cut bool) (string, bool) {
	for n := 0; cut && n < utf8.UTFMax && len(b) > 0 && !utf8.Valid(b); n++ {
		b = b[:len(b)-1]
	}
	if !utf8.Valid(b) {
		return "", false
	}
	text := string(b)
	odd := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' })
	return text, odd < 0
}

// preview is the beginning of a body for a list.
func preview(m *messages.StoredMessage) string {
	if m.SysFlag&messages.SysFlagCompressed != 0 {
		return "compressed"
	}
	const most = previewRunes * utf8.UTFMax
	text, ok := readable(m.Body[:min(len(m.Body), most)], len(m.Body) > most)
	if !ok {
		return hex.EncodeToString(m.Body[:min(len(m.Body), previewRunes/2)])
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > previewRunes {
		text = string(runes[:previewRunes]) + "…"
	}
	return text
}

// rawBody sends a body as it is stored, to be saved as a file.
func (c *Console) rawBody(w http.ResponseWriter, r *http.Request) {
	m, err := c.at(r)
	if err != nil {
		c.show(w, r, page{Nav: "messages"}, err)
		return
	}
	secure(w)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+m.OffsetMessageID()+`.bin"`)
	w.Header().Set("Content-Length", strconv.Itoa(len(m.Body)))
	_, _ = w.Write(m.Body) // nobody is left to tell
}
