package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/actormq/actormq/messages"
)

// maxPlainBytes bounds what a compressed body may grow to.
const maxPlainBytes = 64 << 20

// Line is what is printed of a message.
type Line struct {
	Broker      string            `json:"broker"`
	Queue       int32             `json:"queue"`
	Offset      int64             `json:"offset"`
	ID          string            `json:"msgId"`
	StoreTime   string            `json:"storeTime"`
	Tag         string            `json:"tag,omitempty"`
	Keys        string            `json:"keys,omitempty"`
	Properties  map[string]string `json:"properties,omitempty"`
	Body        *string           `json:"body,omitempty"`        // when it is UTF-8
	BodyBytes   []byte            `json:"bodyBase64,omitempty"`  // else
	Compression string            `json:"compression,omitempty"` // of BodyBytes
	Error       string            `json:"error,omitempty"`       // why BodyBytes is still compressed
}

// LineOf is what is printed of a message of a broker.
func LineOf(broker string, m *messages.StoredMessage) Line {
	l := Line{
		Broker: broker, Queue: m.QueueID, Offset: int64(m.QueueOffset), ID: m.OffsetMessageID(),
		StoreTime:  time.UnixMilli(m.StoreTimestampMs).UTC().Format("2006-01-02T15:04:05.000Z07:00"),
		Properties: m.Properties.Map(), BodyBytes: m.Body,
	}
	l.Tag, l.Keys = l.Properties[messages.PropertyTags], l.Properties[messages.PropertyKeys]
	if m.SysFlag&messages.SysFlagCompressed != 0 {
		l.uncompress(m.SysFlag & messages.SysFlagCompressionMask)
	}
	if text := string(l.BodyBytes); l.Compression == "" && utf8.ValidString(text) {
		l.Body, l.BodyBytes = &text, nil
	}
	return l
}

// uncompress replaces the body if it is of a type that can be read here (spec/store.md §2.2).
func (l *Line) uncompress(kind int32) {
	switch kind {
	case messages.SysFlagCompressionLZ4:
		l.Compression = "LZ4"
	case messages.SysFlagCompressionZSTD:
		l.Compression = "ZSTD"
	case 0, messages.SysFlagCompressionZLIB:
		plain, err := messages.Inflate(l.BodyBytes, maxPlainBytes)
		if err != nil {
			l.Compression, l.Error = "ZLIB", err.Error()
			return
		}
		l.BodyBytes = plain
	default:
		l.Compression = fmt.Sprintf("unknown type %#x", kind)
	}
}

// String is the line without a line end; the body stands last.
func (l Line) String() string {
	head := fmt.Sprintf("broker=%s queue=%d offset=%d time=%s tag=%s keys=%s ",
		Shown(l.Broker), l.Queue, l.Offset, l.StoreTime, Shown(l.Tag), Shown(l.Keys))
	switch {
	case l.Compression != "":
		head += fmt.Sprintf("bytes=%d compression=%q", len(l.BodyBytes), l.Compression)
		if l.Error != "" {
			head += fmt.Sprintf(" error=%q", l.Error)
		}
		return head
	case l.Body == nil:
		return head + "body=" + strconv.Quote(string(l.BodyBytes))
	case printable(*l.Body) && !strings.HasPrefix(*l.Body, `"`):
		return head + "body=" + *l.Body
	}
	return head + "body=" + strconv.Quote(*l.Body)
}

// Shown is a field as it stands in a line: quoted unless it is one plain word.
func Shown(s string) string {
	if printable(s) && !strings.ContainsAny(s, "\" =") {
		return s
	}
	return strconv.Quote(s)
}

// printable tells whether a terminal shows the text and does nothing else with it.
func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(c rune) bool { return !strconv.IsPrint(c) }) < 0
}

// WriteJSON writes a value on a line of its own.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
