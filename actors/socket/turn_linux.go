package socket

import (
	"net"
	"sync"
	"syscall"
	"unsafe"
)

// turn lets those run whose connections have something to read. While the processors of a program are busy, the runtime looks at its poller
// every 10 ms only, and whatever the goroutines do that run, runtime.Gosched for one, it does not look earlier: that takes a processor
// that has nobody to run. So who gives way waits by the poller too, for a datagram that he sends to himself. Others that are ready run
// meanwhile, what has come for connections was there before it, and so is what he comes behind.
type turn struct {
	raw  syscall.RawConn
	sent bool
	call func(fd uintptr) bool // bound once
	room [1]byte
}

// mostTurns bounds the descriptors: who comes when so many give way waits for one of them first.
const mostTurns = 64

// turns are pooled: as many as readers give way at a time. Their sockets are closed with them.
var (
	turns  = sync.Pool{New: func() any { return newTurn() }}
	places = make(chan struct{}, mostTurns)
)

// newTurn returns nil when there is no socket to be had.
func newTurn() *turn {
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"}) // the system names it, outside the file system
	if err != nil {
		return nil
	}
	t := new(turn)
	t.call = t.pass
	if t.raw, err = c.SyscallConn(); err == nil {
		err = t.toItself()
	}
	if err != nil {
		_ = c.Close() // nothing depends on it
		return nil
	}
	return t
}

// toItself connects the socket to itself.
func (t *turn) toItself() (err error) {
	bad := t.raw.Control(func(fd uintptr) {
		var self syscall.Sockaddr
		if self, err = syscall.Getsockname(int(fd)); err == nil {
			err = syscall.Connect(int(fd), self)
		}
	})
	if bad != nil {
		return bad
	}
	return err
}

// giveWay returns once all have run that could, and those for whose connections there was something. It takes some
// 4 µs where there is nobody.
func giveWay() {
	places <- struct{}{}
	defer func() { <-places }()
	t := turns.Get().(*turn)
	if t == nil {
		return
	}
	t.sent = false
	if t.raw.Read(t.call) == nil { // else it can't be waited for
		turns.Put(t)
	}
}

// pass sends the datagram when it is called first, and takes it when the poller has told of it.
func (t *turn) pass(fd uintptr) (over bool) {
	if t.sent {
		return t.transfer(syscall.SYS_READ, fd) != syscall.EAGAIN
	}
	t.sent = true
	return t.transfer(syscall.SYS_WRITE, fd) != 0
}

func (t *turn) transfer(call, fd uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&t.room)), unsafe.Sizeof(t.room))
	return errno
}
