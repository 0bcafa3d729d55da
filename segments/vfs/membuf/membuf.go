package membuf

import (
	"fmt"
	"io"
)

// spareLimit bounds the room that a growing buffer keeps ready, in bytes.
const spareLimit = 1 << 20

// Buffer is a file's content. Its methods are not safe for concurrent use: the owner locks. Bytes handed out by Hold are
// shared with the holder and not guarded by that lock.
type Buffer struct {
	head  []byte // may be held; is not moved while holds > 0
	tail  []byte // behind head, when head could not grow in place
	size  int64
	holds int
}

// New makes a buffer of the content, which it owns from then on.
func New(content []byte) *Buffer {
	n := len(content)
	return &Buffer{head: content[:n:n], size: int64(n)}
}

// Size is the length in bytes.
func (b *Buffer) Size() int64 { return b.size }

// ReadAt follows io.ReaderAt; off is not negative.
func (b *Buffer) ReadAt(p []byte, off int64) (int, error) {
	n := b.copyOut(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (b *Buffer) copyOut(p []byte, off int64) int {
	if off >= b.size {
		return 0
	}
	p = p[:min(int64(len(p)), b.size-off)]
	n := 0
	if off < int64(len(b.head)) {
		n = copy(p, b.head[off:])
	}
	if n < len(p) {
		n += copy(p[n:], b.tail[off+int64(n)-int64(len(b.head)):])
	}
	return n
}

// Snapshot copies like ReadAt, returns the number of bytes and may run while a holder writes: a byte that is being
// written comes out old or new. The race detector does not see it, as it does not see the kernel reading a mapped page.
//
//go:norace
func (b *Buffer) Snapshot(p []byte, off int64) int {
	if off >= b.size {
		return 0
	}
	if rest := b.size - off; int64(len(p)) > rest {
		p = p[:rest]
	}
	n := 0
	if off < int64(len(b.head)) {
		n = copyUnseen(p, b.head[off:])
	}
	if n < len(p) {
		n += copyUnseen(p[n:], b.tail[off+int64(n)-int64(len(b.head)):])
	}
	return n
}

// copyUnseen is copy, which would call the race detector itself, wherever it stands.
//
//go:norace
func copyUnseen(to, from []byte) int {
	const block = 512
	n := min(len(to), len(from))
	i := 0
	for ; i+block <= n; i += block {
		*(*[block]byte)(to[i:]) = *(*[block]byte)(from[i:])
	}
	for ; i < n; i++ {
		to[i] = from[i]
	}
	return n
}

// WriteAt copies p to off, which is not negative, and grows the buffer when needed.
func (b *Buffer) WriteAt(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	if end := off + int64(len(p)); end > b.size {
		b.Resize(end)
	}
	n := 0
	if off < int64(len(b.head)) {
		n = copy(b.head[off:], p)
	}
	if n < len(p) {
		copy(b.tail[off+int64(n)-int64(len(b.head)):], p[n:])
	}
}

// Resize sets the length; what is added reads as zeros.
func (b *Buffer) Resize(size int64) {
	held := int64(len(b.head) + len(b.tail))
	if size < b.size {
		b.zero(size, b.size)
	} else {
		// A holder may have written behind the end; a file shows zeros there.
		b.zero(b.size, min(size, held))
		b.grow(size)
	}
	b.size = size
}

func (b *Buffer) zero(from, to int64) {
	h := int64(len(b.head))
	if from < h {
		clear(b.head[from:min(to, h)])
	}
	if to > h {
		clear(b.tail[max(from-h, 0) : to-h])
	}
}

// grow makes head and tail at least n bytes long together; what is added is zero.
func (b *Buffer) grow(n int64) {
	held := int64(len(b.head) + len(b.tail))
	switch {
	case n <= held:
	case len(b.tail) == 0 && n <= int64(cap(b.head)):
		b.head = b.head[:n]
	case b.holds == 0:
		b.join(n)
	default:
		tail := make([]byte, n-int64(len(b.head)))
		copy(tail, b.tail)
		b.tail = tail
	}
}

// join moves everything into a new head of n bytes. Nobody holds the old one.
func (b *Buffer) join(n int64) {
	spare := min(int64(len(b.head)), spareLimit)
	head := make([]byte, n, n+spare)
	copy(head[copy(head, b.head):], b.tail)
	b.head, b.tail = head, nil
}

// Hold returns the first n bytes themselves, which stay in place until Release is called as often as Hold succeeded. It
// fails when n is not within 1..Size, and when more is asked for than can lie in one piece because a shorter part is
// already held.
func (b *Buffer) Hold(n int64) ([]byte, error) {
	if n < 1 || n > b.size {
		return nil, fmt.Errorf("cannot map %d bytes of %d", n, b.size)
	}
	if n > int64(len(b.head)) {
		if b.holds > 0 {
			return nil, fmt.Errorf("cannot map %d bytes while the first %d, from before the file grew, are mapped", n, len(b.head))
		}
		b.join(int64(len(b.head) + len(b.tail)))
	}
	b.holds++
	return b.head[:n:n], nil
}

// Release ends one Hold.
func (b *Buffer) Release() { b.holds-- }
