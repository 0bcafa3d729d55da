//go:build linux && !race

package socket

import (
	"syscall"
	"unsafe"
)

// possible tells whether connections can be used directly.
const possible = true

// maxParts is the most parts of a write that goes directly: answers of a burst.
const maxParts = 128

type vector = syscall.Iovec

func readInto(fd uintptr, t *transfer) (int, syscall.Errno) {
	b := t.bufs[0]
	for {
		n, _, err := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		if err != syscall.EINTR { // the poller would not tell of what is there already
			return int(n), err
		}
	}
}

func writeFrom(fd uintptr, t *transfer) (int, syscall.Errno) {
	t.iov = t.iov[:0]
	for _, b := range t.bufs {
		if len(b) > 0 {
			part := vector{Base: unsafe.SliceData(b)}
			part.SetLen(len(b))
			t.iov = append(t.iov, part)
		}
	}
	call, from, size := uintptr(syscall.SYS_WRITEV), unsafe.Pointer(unsafe.SliceData(t.iov)), uintptr(len(t.iov))
	if len(t.iov) == 1 {
		call, from, size = syscall.SYS_WRITE, unsafe.Pointer(t.iov[0].Base), uintptr(t.iov[0].Len)
	}
	for {
		wrote, _, err := syscall.RawSyscall(call, fd, uintptr(from), size)
		if err != syscall.EINTR {
			clear(t.iov)
			return int(wrote), err
		}
	}
}
