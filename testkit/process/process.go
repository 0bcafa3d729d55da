package process

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/fixture"
)

// patience is how long a node may take to start and to end.
const patience = 3 * time.Minute

// programVar names the program where it has been built once for the tests of all packages, as .ci/run does: to link it takes seconds each time.
const programVar = "NODE_PROGRAM"

// Build builds the program into a folder and returns its path, or that of the one that is named by NODE_PROGRAM.
func Build(dir string) (string, error) {
	if built := os.Getenv(programVar); built != "" {
		return built, nil
	}
	program := filepath.Join(dir, "actormq")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "github.com/actormq/actormq/cmd/actormq").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return program, nil
}

// Port is an address on loopback where so many ports in a row are free, the first of which it names.
func Port(t testing.TB, row int) Address {
	t.Helper()
	for range 100 {
		first := 20000 + rand.IntN(12000-row)
		if free(first, row) {
			return Address(first)
		}
	}
	t.Fatal("no free port")
	return 0
}

// Address is a port on loopback.
type Address int

// Beside is the address of a port so much further.
func (p Address) Beside(n int) Address { return p + Address(n) }

// String is host:port.
func (p Address) String() string { return fmt.Sprint("127.0.0.1:", int(p)) }

func free(first, row int) bool {
	for port := first; port < first+row; port++ {
		l, err := net.Listen("tcp", Address(port).String())
		if err != nil {
			return false
		}
		_ = l.Close() // it was only to see that it can be had
	}
	return true
}

// Process is a node that has been started.
type Process struct {
	t     testing.TB
	said  *fixture.Said
	cmd   *exec.Cmd
	ready chan struct{} // closed when it serves for the first time
	ended chan struct{} // closed when it has ended
	err   error         // how, then
}

// Start starts `program node args` and returns when it serves. Standard error goes to said.
func Start(t testing.TB, said *fixture.Said, program string, args ...string) *Process {
	t.Helper()
	p := Begin(t, said, exec.Command(program, append([]string{"node"}, args...)...))
	p.Ready()
	return p
}

// Begin starts a command that becomes a node, and does not wait for it. Standard error goes to said.
func Begin(t testing.TB, said *fixture.Said, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, said: said, cmd: cmd, ready: make(chan struct{}), ended: make(chan struct{})}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go func() {
		serves := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if !serves && strings.HasPrefix(lines.Text(), "ready") {
				serves = true
				close(p.ready)
			}
		}
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p
}

// Ready waits until the process serves for the first time.
func (p *Process) Ready() {
	p.t.Helper()
	select {
	case <-p.ready:
	case <-p.ended:
		require.FailNow(p.t, "the node has ended", "%v: %s", p.err, p.said)
	case <-time.After(patience):
		require.FailNow(p.t, "the node is not ready", "%s", p.said)
	}
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// End sends a signal and waits until the process has gone. The error is how it ended.
func (p *Process) End(s syscall.Signal) error {
	p.t.Helper()
	p.Signal(s)
	return p.Await()
}

// Kill ends the process at once, paused or not; it may have ended by itself.
func (p *Process) Kill() {
	p.t.Helper()
	_ = p.cmd.Process.Kill()
	_ = p.Await() // by the signal
}

// Await waits until the process has gone, by a signal or because something else has told it to. The error is how it ended.
func (p *Process) Await() error {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		require.FailNow(p.t, "the node does not end", "%s", p.said)
		return nil
	}
}
