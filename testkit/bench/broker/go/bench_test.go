package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is this test binary run as brokerbench.
func program(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "BROKERBENCH=1")
	return c
}

func TestMain(m *testing.M) {
	if os.Getenv("BROKERBENCH") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestWhatCannotBeMeasuredIsNamed: it was a division by zero.
func TestWhatCannotBeMeasuredIsNamed(t *testing.T) {
	for _, bad := range [][]string{{"-conns", "0"}, {"-queues", "0"}, {"-body", "-1"}, {"-inflight", "-2"}, {"-rate", "0"}, {"-seconds", "NaN"}, {"stray"}} {
		out, err := program(append([]string{"-workload", "loopback", "-seconds", "0.01", "-warmup", "0"}, bad...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), strings.TrimPrefix(bad[0], "-")) || strings.Contains(string(out), "panic") {
			t.Errorf("%v: %v: %s", bad, err, out)
		}
	}
}

// TestTheServerOfAColdStartEndsWithTheBench: it has a process group of its own.
func TestTheServerOfAColdStartEndsWithTheBench(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := program("-workload", "coldstart", "-addr", addr, "-exec", "echo serving; exec sleep 600")
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 8)
	if _, err := out.Read(line); err != nil || !strings.HasPrefix(string(line), "serving") {
		t.Fatalf("%q: %v", line, err)
	}
	server := descendants(c.Process.Pid)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out.Read(line) // ends when the server, which has the pipe too, has ended
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Errorf("one of %v still runs", server)
	}
	c.Wait()
}

// TestADeadPeerIsNotWaitedFor: it takes the connection, and answers nothing.
func TestADeadPeerIsNotWaitedFor(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	before := patience
	patience = 100 * time.Millisecond
	defer func() { patience = before }()
	for _, oneway := range []bool{false, true} {
		o := &options{addr: l.Addr().String(), conns: 2, inflight: 4, queues: 1, body: 1 << 20}
		if _, err := o.produce(3600, 0, oneway, 1); !os.IsTimeout(err) {
			t.Errorf("%v", err)
		}
	}
}
