package documents

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/golden"
	"github.com/actormq/actormq/testkit/process"
)

// ownNetwork is set where the test has the ports of a node to itself.
const ownNetwork = "DOCUMENTS_NETWORK"

// rehearsal is a folder with bin/actormq in it, in which commands are run in order. It belongs to the test's goroutine.
type rehearsal struct {
	t     *testing.T
	dir   string
	words map[string]string // what the reader puts in
	env   []string
	all   map[string]bool // what is documented, and what of it has been run
	ran   []string        // every command line
	out   string          // what the last one has said
}

// runs runs a documented command, as it stands there but for the reader's words, and requires that it succeeds. What it writes to
// standard output matches each pattern.
func (r *rehearsal) runs(says string, shows ...string) { r.t.Helper(); r.runsAs(says, says, shows...) }

// runsAs runs a documented command with what the document leaves out, or for a shorter time.
func (r *rehearsal) runsAs(says, instead string, shows ...string) {
	r.t.Helper()
	r.documented(says)
	r.sh(instead, shows...)
}

// documented requires that some document has the command, and notes that it has been run.
func (r *rehearsal) documented(says string) {
	r.t.Helper()
	_, known := r.all[says]
	require.True(r.t, known, "no document has it any more: %s", says)
	r.all[says] = true
}

// sh runs what a text has the reader do otherwise.
func (r *rehearsal) sh(line string, shows ...string) { r.t.Helper(); r.ends(0, line, shows...) }

// ends is sh for a command that ends with a status.
func (r *rehearsal) ends(status int, line string, shows ...string) {
	r.t.Helper()
	cmd := r.command(line)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err == nil {
		gone := r.mayRunOver(cmd.Process.Pid)
		_ = cmd.Wait() // the status says it
		gone()
	}
	r.out = out.String()
	require.Equal(r.t, status, cmd.ProcessState.ExitCode(), "%s\n%s%s", line, r.out, &errs)
	for _, pattern := range shows {
		require.Regexp(r.t, "(?m)"+pattern, r.out, line)
	}
}

// eventually runs a command again until it succeeds.
func (r *rehearsal) eventually(line string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.command(line).Run() == nil }, 30*time.Second, 50*time.Millisecond, line)
}

// dispatched waits until consumers find what has been sent: who types takes longer than that.
func (r *rehearsal) dispatched() {
	r.t.Helper()
	r.eventually("curl -s http://127.0.0.1:10914/metrics | grep -q '^actormq_dispatch_lag_bytes 0$'")
}

func (r *rehearsal) command(line string) *exec.Cmd {
	for _, word := range slices.Sorted(maps.Keys(r.words)) {
		line = regexp.MustCompile(`\b`+word+`\b`).ReplaceAllLiteralString(line, r.words[word])
	}
	r.ran = append(r.ran, line)
	cmd := exec.Command("bash", "-o", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = r.dir, append(append(os.Environ(), "PATH="+r.dir+"/bin:"+os.Getenv("PATH"), "GOFLAGS=-buildvcs=false",
		"PPROF_TMPDIR="+r.dir), r.env...) // pprof keeps what it has fetched
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// running is a node that a command has started, in a process group of its own.
type running struct {
	*process.Process
	r    *rehearsal
	said *fixture.Said
	gone func() bool
}

// mayRunOver kills a process group shortly before the test's time is over: the test then fails and cleans up, instead of leaving what it has
// started behind. The group has ended when gone is called, which is true the first time: its number may be another's from then on.
func (r *rehearsal) mayRunOver(group int) (gone func() bool) {
	var once sync.Once
	first := func() (is bool) {
		once.Do(func() { is = true })
		return is
	}
	end, ok := r.t.Deadline()
	if !ok {
		return first
	}
	over := time.AfterFunc(time.Until(end)-5*time.Second, func() { _ = syscall.Kill(-group, syscall.SIGKILL) })
	return func() bool {
		over.Stop()
		return first()
	}
}

// node runs a documented command that becomes a node, and returns when it serves. What is left out comes behind.
func (r *rehearsal) node(says, more string) *running {
	r.t.Helper()
	r.documented(says)
	return r.start(says + more)
}

// start starts a node.
func (r *rehearsal) start(line string) *running {
	r.t.Helper()
	said := &fixture.Said{}
	n := &running{r: r, said: said, Process: process.Begin(r.t, said, r.command(line))}
	n.gone = r.mayRunOver(n.PID())
	r.t.Cleanup(func() { // it has ended, unless the test has failed
		if n.gone() {
			_ = syscall.Kill(-n.PID(), syscall.SIGKILL)
		}
	})
	n.Ready()
	return n
}

// stop sends a signal to the node, as a terminal does, and requires that it has closed the store.
func (n *running) stop(s syscall.Signal) {
	n.r.t.Helper()
	require.NoError(n.r.t, syscall.Kill(-n.PID(), s))
	n.closed()
}

// closed waits until the node has ended, and requires that it has closed the store.
func (n *running) closed() {
	n.r.t.Helper()
	_ = n.Await() // `go run` tells of the signal
	n.gone()
	lines := strings.Split(strings.TrimSpace(n.said.String()), "\n")
	require.Contains(n.r.t, strings.Join(lines[max(len(lines)-2, 0):], ""), "the store is closed")
}

// golden lays a store out that RocketMQ has written, with a broker.conf that has its sizes.
func (r *rehearsal) golden(name string) (dir, conf string) {
	r.t.Helper()
	dir, err := golden.Load(name).Unpack(r.t.TempDir())
	require.NoError(r.t, err)
	conf = filepath.Join(r.dir, name+".conf")
	r.sh("echo storePathRootDir=" + dir + " > " + conf)
	return dir, conf
}

// apart runs the test again in a network of its own, where a node's ports are free, and returns true; where there is none it returns false.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownNetwork) != "" {
		return false
	}
	const up = `ip link set lo up && exec "$@"`
	enter := []string{"-rnm", "sh", "-c", up, "sh"}
	if out, err := exec.Command("unshare", append(enter, "true")...).CombinedOutput(); err != nil {
		for _, port := range []int{9876, 10909, 10911, 10914, 20911, 20914, 21107} {
			if l, taken := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); taken != nil {
				t.Skipf("there is no network of its own (%v: %s), and of the ports that a node has by default %d is taken", err, out, port)
			} else {
				_ = l.Close() // it was only to see that it can be had
			}
		}
		return false
	}
	fixture.Again(t, ownNetwork+"=yes", append([]string{"unshare"}, enter...)...)
	return true
}

// What a command starts ends with the test's time, and what it fetches stays in the test's folder.
func TestARehearsalLeavesNothingBehind(t *testing.T) {
	r := &rehearsal{t: t, dir: t.TempDir()}
	r.sh("echo $PPROF_TMPDIR", "^"+regexp.QuoteMeta(r.dir)+"$")
	gone := r.mayRunOver(1 << 30) // no process has this number
	require.True(t, gone())
	require.False(t, gone(), "its number may be another's")
}
