package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// cgroupFiles say how much memory a container may use: version 2 of control groups, then version 1.
var cgroupFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// boundHeap makes the limit of the heap a part of what the container may use, so that the collector works before the kernel kills;
// the rest is for the page cache, in which the log is mapped. GOMEMLIMIT wins. It returns the limit, 0 when none was set.
func boundHeap(files []string) int64 {
	const most = 1 << 50 // version 1 writes a huge number for none
	if os.Getenv("GOMEMLIMIT") != "" {
		return 0
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || limit <= 0 || limit >= most {
			return 0 // "max"
		}
		heap := limit / 10 * 6
		debug.SetMemoryLimit(heap)
		return heap
	}
	return 0
}
