package remoting

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unsafe"
)

// View decodes frames where they lie, for those who are through with a command before the next one is read: strings, ext
// fields and body share the memory of the frame and of the view, so that nothing is allocated. Not for concurrent use.
type View struct {
	cmd  Command
	ext  Ext
	text []byte

	shape shape    // of JSON headers
	parts rawParts // while one is learned
}

// mostViewText is the memory for strings with escapes that a view keeps from one frame to the next.
const mostViewText = 16 << 10

// Command decodes a whole frame. Errors as [ReadCommand]; a frame that is longer or shorter than its length says is a bad one.
// The command is valid until the bytes of the frame change, or until the next call; [Command.Own] makes it last.
func (v *View) Command(frame []byte, limits Limits) (*Command, error) {
	limits = limits.orDefaults()
	if len(frame) < prefixBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrBadFrame, len(frame))
	}
	n := int64(binary.BigEndian.Uint32(frame))
	if n > int64(limits.FrameBytes) {
		return nil, fmt.Errorf("%w: length %d, limit %d", ErrFrameTooLarge, n, limits.FrameBytes)
	}
	if n != int64(len(frame)-lengthBytes) {
		return nil, fmt.Errorf("%w: length %d in %d bytes", ErrBadFrame, n, len(frame))
	}
	isBinary, header, err := headerOf(frame, int(n))
	if err != nil {
		return nil, err
	}
	v.cmd = Command{Binary: isBinary, Body: frame[prefixBytes+header:]}
	fields := extBuilder{ext: v.ext, left: limits.ExtFields, text: v.text[:0]}
	err = v.decode(viewString(frame[prefixBytes:prefixBytes+header]), &fields)
	if v.ext = fields.ext; cap(v.ext) > usualFields {
		v.ext = nil
	}
	if v.text = fields.text; cap(v.text) > mostViewText {
		v.text = nil
	}
	if err != nil {
		return nil, err
	}
	return &v.cmd, nil
}

// decode is Command.decode, but for headers that look like others before.
func (v *View) decode(header string, fields *extBuilder) error {
	if v.cmd.Binary {
		return v.cmd.decode(header, fields)
	}
	if v.shape.read(&v.cmd, header, fields) {
		return nil
	}
	if !v.shape.due(header) {
		return v.cmd.decode(header, fields)
	}
	fields.parts = &v.parts
	v.parts.fields = v.parts.fields[:0]
	if err := v.cmd.decode(header, fields); err != nil {
		return err
	}
	v.shape.learn(&v.cmd, header, &v.parts)
	clear(v.parts.fields) // they are parts of the frame
	v.parts.opaque = ""
	return nil
}

// Own returns a copy that shares memory with nothing.
func (c *Command) Own() *Command {
	own := *c
	size := len(c.Remark)
	for _, field := range c.ExtFields {
		size += len(field.Name) + len(field.Value)
	}
	var text strings.Builder // grown once: strings are cut from it while it is written
	text.Grow(size)
	keep := func(s string) string {
		text.WriteString(s)
		return text.String()[text.Len()-len(s):]
	}
	own.Remark = keep(c.Remark)
	if c.ExtFields != nil {
		own.ExtFields = make(Ext, len(c.ExtFields))
	}
	for i, field := range c.ExtFields {
		own.ExtFields[i] = Pair{Name: keep(field.Name), Value: keep(field.Value)}
	}
	own.Body = bytes.Clone(c.Body)
	return &own
}

// Forget drops what shares memory with something else: strings, ext fields and body.
func (c *Command) Forget() { c.Remark, c.ExtFields, c.Body = "", nil, nil }

// viewString looks at bytes as a string without copying them: it is good as long as they are not changed.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
