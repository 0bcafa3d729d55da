package remoting

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of what a peer may send; zero values are the defaults.
type Limits struct {
	FrameBytes int // largest length field, default DefaultFrameBytes
	ExtFields  int // most ext fields of a command, default DefaultExtFields
}

// Defaults of Limits.
const (
	DefaultFrameBytes = 16_777_216 // as the original's (spec/remoting.md §1.1)
	DefaultExtFields  = 512
)

func (l Limits) orDefaults() Limits {
	if l.FrameBytes == 0 {
		l.FrameBytes = DefaultFrameBytes
	}
	if l.ExtFields == 0 {
		l.ExtFields = DefaultExtFields
	}
	return l
}

// Serialize types: the first byte of the second word.
const (
	serializeJSON   = 0
	serializeBinary = 1
)

const (
	lengthBytes = 4 // of the length field and of the word after it
	prefixBytes = 2 * lengthBytes
	headerMask  = 1<<24 - 1
)

// ReadCommand reads one frame. It returns io.EOF if the stream ends before the first byte, an error that wraps
// io.ErrUnexpectedEOF if it ends inside the frame, else ErrFrameTooLarge, ErrBadFrame or ErrBadHeader; the stream is
// then somewhere inside the frame. The body is a slice of its own, exactly as large as it is.
func ReadCommand(r *bufio.Reader, limits Limits) (*Command, error) {
	limits = limits.orDefaults()
	word, err := r.Peek(lengthBytes)
	if err != nil {
		return nil, prefixError(len(word), err)
	}
	frame := int64(binary.BigEndian.Uint32(word))
	if frame > int64(limits.FrameBytes) {
		return nil, fmt.Errorf("%w: length %d, limit %d", ErrFrameTooLarge, frame, limits.FrameBytes)
	}
	if frame < lengthBytes {
		return nil, fmt.Errorf("%w: length %d", ErrBadFrame, frame)
	}
	prefix, err := r.Peek(prefixBytes)
	if err != nil {
		return nil, prefixError(len(prefix), err)
	}
	isBinary, header, err := headerOf(prefix, int(frame))
	if err != nil {
		return nil, err
	}
	body := int(frame) - lengthBytes - header
	_, _ = r.Discard(prefixBytes) // it has just been peeked
	c := &Command{Binary: isBinary}
	if err := c.readHeader(r, header, limits.ExtFields); err != nil {
		return nil, err
	}
	if c.Body, err = readExactly(r, body); err != nil {
		return nil, err
	}
	return c, nil
}

// headerOf reads the second word: the codec and the header's length, which fits into the frame.
func headerOf(prefix []byte, frame int) (isBinary bool, header int, err error) {
	serialize, header := prefix[lengthBytes], int(binary.BigEndian.Uint32(prefix[lengthBytes:])&headerMask)
	if header > frame-lengthBytes {
		return false, 0, fmt.Errorf("%w: header length %d in a frame of length %d", ErrBadFrame, header, frame)
	}
	if serialize > serializeBinary {
		return false, 0, fmt.Errorf("%w: serialize type %d", ErrBadFrame, serialize)
	}
	return serialize == serializeBinary, header, nil
}

func prefixError(got int, err error) error {
	if errors.Is(err, io.EOF) {
		if got == 0 {
			return io.EOF
		}
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("remoting frame, byte %d: %w", got, err)
}

// readHeader decodes the next n bytes, without a copy of its own if they fit into the reader's buffer.
func (c *Command) readHeader(r *bufio.Reader, n, maxFields int) error {
	decode := func(header []byte) error { return c.decode(string(header), &extBuilder{left: maxFields}) }
	if n > r.Size() {
		header, err := readExactly(r, n)
		if err != nil {
			return err
		}
		return decode(header)
	}
	header, err := r.Peek(n)
	if err != nil {
		return partError(len(header), n, err)
	}
	if err := decode(header); err != nil {
		return err
	}
	_, _ = r.Discard(n) // it has just been peeked
	return nil
}

// decode reads a header, of which the command's strings are parts.
func (c *Command) decode(header string, fields *extBuilder) error {
	if c.Binary {
		return c.decodeBinary(header, fields)
	}
	return c.decodeJSON(header, fields)
}

// firstStep is what is allocated on a peer's word alone; after that, at most four times of what has arrived.
const firstStep = 64 << 10

// readExactly reads n bytes into a new slice, nil for none.
func readExactly(r io.Reader, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	buf := make([]byte, min(n, firstStep))
	for filled := 0; ; {
		got, err := io.ReadFull(r, buf[filled:])
		if filled += got; err != nil {
			return nil, partError(filled, n, err)
		}
		if filled == n {
			return buf, nil
		}
		grown := make([]byte, min(n, 4*filled))
		copy(grown, buf)
		buf = grown
	}
}

func partError(got, want int, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("remoting frame, %d of %d bytes of a part: %w", got, want, err)
}

// AppendHeader appends the frame up to its body: lengths and header, for a body of bodyBytes that the caller sends
// after it. c.Body is not looked at. It fails with ErrFrameTooLarge over DefaultFrameBytes, which no peer would read,
// and with ErrBadHeader when a field does not fit into the binary codec; dst is then returned as it was.
func (c *Command) AppendHeader(dst []byte, bodyBytes int) ([]byte, error) {
	return c.AppendTyped(dst, nil, bodyBytes)
}

// AppendTyped is AppendHeader with the fields of h in the place of c.ExtFields, unless h is nil. It allocates only to grow dst.
func (c *Command) AppendTyped(dst []byte, h Header, bodyBytes int) ([]byte, error) {
	from := len(dst)
	out := append(dst, make([]byte, prefixBytes)...)
	serialize := uint32(serializeJSON)
	if c.Binary {
		serialize = serializeBinary
		var err error
		if out, err = c.appendBinary(out, h); err != nil {
			return dst, err
		}
	} else {
		out = c.appendJSON(out, h)
	}
	header := len(out) - from - prefixBytes
	frame := lengthBytes + header + bodyBytes
	if frame > DefaultFrameBytes {
		return dst, fmt.Errorf("%w: length %d, limit %d, %s", ErrFrameTooLarge, frame, DefaultFrameBytes, c.String())
	}
	binary.BigEndian.PutUint32(out[from:], uint32(frame))
	binary.BigEndian.PutUint32(out[from+lengthBytes:], serialize<<24|uint32(header))
	return out, nil
}

// Append appends the whole frame. Errors as AppendHeader.
func (c *Command) Append(dst []byte) ([]byte, error) {
	out, err := c.AppendHeader(dst, len(c.Body))
	if err != nil {
		return dst, err
	}
	return append(out, c.Body...), nil
}
