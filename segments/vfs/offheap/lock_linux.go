package offheap

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

const mlockOnFault = 1 // MLOCK_ONFAULT

func lock(b []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MLOCK2, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), mlockOnFault)
	if errno == 0 {
		return nil
	}
	if errno == unix.ENOSYS {
		return unix.Mlock(b)
	}
	return errno
}

func populate(b []byte) error {
	err := unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	if errors.Is(err, unix.EINVAL) {
		return nil // an old kernel: the first touch of a page faults
	}
	return err
}
