//go:build linux || darwin || freebsd

package vfs_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/actormq/actormq/segments/vfs"
)

// childMode tells a copy of the test program, in "how:path", which lock to take.
const childMode = "ACTORMQ_VFS_LOCK"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		how, name, _ := strings.Cut(mode, ":")
		os.Exit(lockChild(how, name))
	}
	os.Exit(m.Run())
}

// lockChild takes the lock, tells how that ended, and keeps it until its input ends.
func lockChild(how, name string) int {
	take := lockAsWeDo
	if how == "java" {
		take = lockAsJavaDoes
	}
	if err := take(name); err != nil {
		fmt.Fprintln(os.Stdout, "refused:", err)
		return 0
	}
	fmt.Fprintln(os.Stdout, "locked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func lockAsWeDo(name string) error {
	_, err := vfs.New().Lock(name)
	return err
}

// lockAsJavaDoes is FileChannel.tryLock(0, 1, false).
func lockAsJavaDoes(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET, Start: 0, Len: 1}
	return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock)
}

// holder is a process that was told to take a lock.
type holder struct {
	cmd   *exec.Cmd
	input io.Closer
	said  string
}

func startHolder(t *testing.T, how, name string) *holder {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childMode+"="+how+":"+name, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return &holder{cmd: cmd, input: in, said: strings.TrimSpace(line)}
}

func (h *holder) end(t *testing.T) {
	t.Helper()
	require.NoError(t, h.input.Close())
	require.NoError(t, h.cmd.Wait())
}

func TestLockExcludesOtherProcesses(t *testing.T) {
	for what, how := range map[string]string{"ours": "ours", "java": "java", "folder": "ours"} {
		t.Run(what, func(t *testing.T) {
			name := path.Join(t.TempDir(), "lock")
			if what == "folder" {
				require.NoError(t, os.Mkdir(name, 0o700))
			}
			l, err := vfs.New().Lock(name)
			require.NoError(t, err)
			second := startHolder(t, how, name)
			require.Contains(t, second.said, "refused:")
			second.end(t)

			require.NoError(t, l.Close())
			second = startHolder(t, how, name)
			require.Equal(t, "locked", second.said)
			_, err = vfs.New().Lock(name)
			require.ErrorIs(t, err, vfs.ErrLocked)
			requirePathError(t, err, "lock", name)
			second.end(t)

			l, err = vfs.New().Lock(name)
			require.NoError(t, err, "a refused attempt left something behind")
			require.NoError(t, l.Close())
		})
	}
}

func TestKilledHolderLosesTheLock(t *testing.T) {
	name := path.Join(t.TempDir(), "lock")
	h := startHolder(t, "ours", name)
	require.Equal(t, "locked", h.said)
	require.NoError(t, h.cmd.Process.Kill())
	require.Error(t, h.cmd.Wait())
	l, err := vfs.New().Lock(name)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestLockInOneProcess(t *testing.T) {
	for name, open := range disks() {
		if strings.HasPrefix(name, "overlay") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			d, dir := open(t)
			name := path.Join(dir, "lock")
			l, err := d.Lock(name)
			require.NoError(t, err)
			_, err = d.Lock(name)
			require.ErrorIs(t, err, vfs.ErrLocked)
			_, err = d.Lock(path.Join(dir, "..", path.Base(dir), "lock"))
			require.ErrorIs(t, err, vfs.ErrLocked, "another spelling of the path")
			other, err := d.Lock(path.Join(dir, "lock2"))
			require.NoError(t, err)
			require.NoError(t, other.Close())
			folder, err := d.Lock(dir)
			require.NoError(t, err)
			_, err = d.Lock(dir)
			require.ErrorIs(t, err, vfs.ErrLocked)
			require.NoError(t, folder.Close())
			require.NoError(t, l.Close())
			require.ErrorIs(t, l.Close(), fs.ErrClosed)

			l, err = d.Lock(name)
			require.NoError(t, err)
			require.NoError(t, l.Close())
			_, err = d.Lock(path.Join(dir, "none", "lock"))
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.Equal(t, "", get(t, d, name))
		})
	}
}

// TestRefusedLockKeepsTheFirst: where locks belong to the process, closing a second descriptor of the file drops them.
func TestRefusedLockKeepsTheFirst(t *testing.T) {
	dir := t.TempDir()
	name, link := path.Join(dir, "lock"), path.Join(dir, "link")
	l, err := vfs.New().Lock(name)
	require.NoError(t, err)
	require.NoError(t, os.Link(name, link))
	for _, n := range []string{name, link} {
		_, err = vfs.New().Lock(n)
		require.ErrorIs(t, err, vfs.ErrLocked, n)
	}
	second := startHolder(t, "java", name)
	require.Contains(t, second.said, "refused:")
	second.end(t)
	require.NoError(t, l.Close())
}
