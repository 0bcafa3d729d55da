//go:build !linux || race

package socket

import "syscall"

const (
	possible = false
	maxParts = 1
)

type vector = struct{}

func readInto(uintptr, *transfer) (int, syscall.Errno)  { return 0, syscall.ENOSYS }
func writeFrom(uintptr, *transfer) (int, syscall.Errno) { return 0, syscall.ENOSYS }
