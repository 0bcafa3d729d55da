package gateway

import (
	"bufio"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/actors/socket"
	"github.com/actormq/actormq/messages"
)

// frame is one outgoing command. Its parts are written back to back.
type frame struct {
	next  *frame
	head  []byte // prefix and header, and a body that the command owns
	tail  [][]byte
	own   [1][]byte           // backs tail for a body
	hold  *messages.GetResult // tail lies in it; released once written
	bytes int64
}

var framePool = sync.Pool{New: func() any { return new(frame) }}

// maxPooledHead bounds the buffer that a pooled frame keeps.
const maxPooledHead = 16 << 10

func (f *frame) free() {
	if f.hold != nil {
		f.hold.Release()
	}
	head := f.head[:0]
	if cap(head) > maxPooledHead {
		head = nil
	}
	*f = frame{head: head}
	framePool.Put(f)
}

// old tells whether some of the frame may have to be read from the disk first. What is near the log's end is in memory, from writing; so is,
// but for a piece, a record that is not larger than a page, as the read has looked at its head.
func (f *frame) old() bool {
	const recentBytes, pageBytes = 64 << 20, 4 << 10
	if f.hold == nil || f.hold.Oldest <= recentBytes {
		return false
	}
	return slices.ContainsFunc(f.tail, func(record []byte) bool { return len(record) > pageBytes })
}

// writing is the mark at the bottom of an outbox's list while somebody writes.
var writing = new(frame)

// outbox orders what goes out on one connection. It is the combining protocol of actors/mailbox: nil = idle; writing =
// somebody writes, nothing is queued; else a list of newer frames, the newest first, that ends in writing. Pushing never
// blocks; what is queued is bounded by the connection's gate, which every answer has passed as a request.
type outbox struct {
	head  atomic.Pointer[frame]
	bytes atomic.Int64 // queued or being written

	sock     *socket.Socket
	wire     *bufio.Writer // with TLS; nil: the socket itself, with vectored writes
	began    atomic.Int64  // when the running write began, in ns; 0: none runs
	wrote    atomic.Int64  // when the last write ended, in ns
	broken   atomic.Bool   // a write has failed: frames are dropped
	onWrote  func()        // after each write
	onBroken func(error)   // once

	old           bool        // some of what is being written may have to be read from the disk first
	scratch, part net.Buffers // the writer's only; WriteTo eats part, which must not move to the heap for each call
	joined        joined      // the writer's only
}

// maxWriteBytes is the most that one write call is given: a peer that takes that much within WriteTimeout is alive.
const maxWriteBytes = 1 << 20

// put sends a frame; it does not block. If nobody writes, a goroutine is made that does.
func (o *outbox) put(f *frame) {
	if o.push(f) {
		go o.run(f)
	}
}

// putWriting is put by a goroutine that may block: if nobody writes, it does.
func (o *outbox) putWriting(f *frame) {
	if o.push(f) {
		o.run(f)
	}
}

// putPrompt is put for an answer that no other one is about to follow: if nobody writes, what the peer takes at once is written here, without
// waiting, and the rest by a goroutine.
func (o *outbox) putPrompt(f *frame) {
	if !o.push(f) {
		return
	}
	if o.wire != nil || f.old() || !o.offer(f) {
		go o.run(f)
		return
	}
	o.written(f, nil)
	if !o.head.CompareAndSwap(writing, nil) {
		go o.finish() // it may wait
	}
}

// offer writes what the peer takes of a frame at once. False: the frame has what is left, or could not be written.
func (o *outbox) offer(f *frame) bool {
	if o.broken.Load() {
		return false
	}
	o.scratch = append(append(o.scratch[:0], f.head), f.tail...)
	o.part = o.scratch
	err := o.sock.Offer(&o.part)
	o.wrote.Store(time.Now().UnixNano())
	if err == nil && len(o.part) == 0 {
		return true
	}
	if len(o.part) > len(f.tail) {
		f.head = o.part[0]
	} else {
		f.head, f.tail = nil, slices.Clone(o.part)
	}
	return false
}

// push queues a frame behind those that somebody writes. True: nobody did, and the caller has the outbox and writes the frame.
func (o *outbox) push(f *frame) bool {
	o.bytes.Add(f.bytes)
	for {
		h := o.head.Load()
		if h == nil {
			if !o.claim() {
				continue
			}
			f.next = nil
			return true
		}
		f.next = h
		if o.head.CompareAndSwap(h, f) {
			return false
		}
	}
}

// claim makes the caller the one who writes; it must call finish. False: somebody else writes.
func (o *outbox) claim() bool { return o.head.CompareAndSwap(nil, writing) }

// finish writes what has come in since claim and gives the outbox free.
func (o *outbox) finish() {
	for !o.head.CompareAndSwap(writing, nil) {
		o.write(o.take())
	}
}

func (o *outbox) run(f *frame) {
	o.write(f)
	o.finish()
}

// take empties the list and returns it oldest first.
func (o *outbox) take() *frame {
	var oldest *frame
	for f := o.head.Swap(writing); f != writing; {
		next := f.next
		f.next = oldest
		oldest, f = f, next
	}
	return oldest
}

// write sends a chain in as few calls as possible and frees it.
func (o *outbox) write(f *frame) {
	for f != nil {
		first, size := f, 0
		o.old = false
		o.scratch = o.scratch[:0]
		for f != nil && (size == 0 || size+int(f.bytes) <= maxWriteBytes) {
			o.lay(f)
			size += int(f.bytes)
			o.old = o.old || f.old()
			f = f.next
		}
		o.writeAll()
		o.written(first, f)
	}
}

// written frees the frames of a chain, up to end, whose parts scratch has.
func (o *outbox) written(first, end *frame) {
	for first != end {
		next := first.next
		o.bytes.Add(-first.bytes)
		first.free()
		first = next
	}
	clear(o.scratch)
	o.joined.free()
	o.onWrote()
}

// writeAll writes scratch, at most maxWriteBytes a call.
func (o *outbox) writeAll() {
	for rest := o.scratch; len(rest) > 0 && !o.broken.Load(); {
		n, size := 0, 0
		for n < len(rest) && (n == 0 || size+len(rest[n]) <= maxWriteBytes) {
			size += len(rest[n])
			n++
		}
		o.part, rest = rest[:n], rest[n:]
		o.began.Store(time.Now().UnixNano())
		err := o.writePart()
		o.began.Store(0)
		o.wrote.Store(time.Now().UnixNano())
		if err != nil && !o.broken.Swap(true) {
			o.onBroken(err)
		}
	}
}

func (o *outbox) writePart() error {
	if o.wire == nil && o.old {
		_, err := o.sock.WriteSlow(&o.part)
		return err
	}
	if o.wire == nil {
		_, err := o.sock.Write(&o.part)
		return err
	}
	if _, err := o.part.WriteTo(o.wire); err != nil {
		return err
	}
	return o.wire.Flush()
}
