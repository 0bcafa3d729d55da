//go:build linux && !vfsportable

package system_test

import (
	"bytes"
	"os"
	"path"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
)

// inMemory counts the pages of a log's segment that are in memory.
func inMemory(t *testing.T, opt system.Options, start int64) int {
	t.Helper()
	f, err := os.Open(path.Join(opt.Dir, "commitlog", segments.Name(start)))
	require.NoError(t, err)
	b, err := unix.Mmap(int(f.Fd()), 0, int(opt.SegmentBytes), unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	pages := make([]byte, len(b)/4096)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&pages[0])))
	require.Zero(t, errno)
	require.NoError(t, unix.Munmap(b))
	require.NoError(t, f.Close())
	return len(pages) - bytes.Count(pages, []byte{0})
}

// What a slave has synced and dispatched leaves its memory, but for the end of the log, as long as nobody reads there.
func TestASlaveForgetsWhatNobodyReads(t *testing.T) {
	const segment = 2 << 20
	dir := t.TempDir()
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &fs))
	if fs.Type == unix.TMPFS_MAGIC {
		t.Skip("the folder is in memory")
	}
	large := func(opt system.Options, name string) system.Options {
		opt.Dir, opt.SegmentBytes, opt.WindowBytes, opt.FlushInterval = path.Join(dir, name), segment, 256<<10, 10*time.Millisecond
		return opt
	}
	mo := large(master(vfs.New(), messages.AsyncMaster), "master")
	m := open(t, mo)
	so := large(slaveOf(vfs.New(), m.HAAddress()), "slave")
	so.HAUnreadMemory = segment
	s := open(t, so)
	follows(t, m)
	// put has the slave sync once more after it has dispatched what came before: only then is it forgotten.
	put := func(from, to int) {
		putMany(t, m, from, to-1, 32<<10)
		caughtUp(t, m, s)
		putMany(t, m, to-1, to, 32<<10)
		until(t, "the slave has all on its disk", func() bool { return s.FlushedTo() == m.Status().WrittenTo })
	}
	put(0, 480)
	const few = segment / 4096 / 4
	left, of := 0, 5 // the system takes back all of a large page or nothing: one run in fifteen keeps more than half
	for i := range of {
		left += inMemory(t, so, int64(i)*segment)
	}
	require.Less(t, left, of*segment/4096*7/8, "the first segments")
	require.Greater(t, inMemory(t, mo, 0), few, "the master is read")
	require.Greater(t, inMemory(t, so, 7*segment), few, "it is near the end")

	require.GreaterOrEqual(t, len(read(t, s, messages.QueueKey{Topic: "T", QueueID: 0}, 0, 10)), 10, "from the disk")
	put(480, 640)
	require.Greater(t, inMemory(t, so, 8*segment), few, "somebody reads at the slave")
}
