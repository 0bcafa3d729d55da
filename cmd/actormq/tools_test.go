package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// testNode is a running node of a test; its name server is names.
type testNode struct {
	*node
	t             *testing.T
	dir           string
	broker, names string
	set           []string
}

// freePort finds a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// serve starts a node with a small store; set are further settings.
func serve(t *testing.T, set ...string) *testNode {
	t.Helper()
	return serveIn(t, t.TempDir(), set...)
}

// serveIn starts it in a folder.
func serveIn(t *testing.T, dir string, set ...string) *testNode {
	t.Helper()
	n := &testNode{t: t, dir: dir, set: set}
	var err error
	for range 5 { // somebody else may take a port before the node does
		n.broker, n.names = freePort(t), freePort(t)
		if err = n.start(); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	require.NoError(t, err)
	t.Cleanup(n.end)
	return n
}

func (n *testNode) start() error {
	f := nodeFlags{storeDir: n.dir, listen: n.broker, set: append([]string{
		"namesrvListen=" + n.names, "vipChannel=false", "adminListen=", "mappedFileSizeCommitLog=1048576", "mappedFileSizeConsumeQueue=20000",
		"maxHashSlotNum=500", "maxIndexNum=2000",
	}, n.set...)}
	conf, err := f.configuration(newNodeCommand())
	if err != nil {
		return err
	}
	n.node, err = startNode(conf, zerolog.Nop())
	return err
}

// end stops the node if it runs.
func (n *testNode) end() {
	if n.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	require.NoError(n.t, n.stop(ctx))
	n.node = nil
}

// client asks the node what the commands do not tell.
func (n *testNode) client() *client.Client {
	c := client.New(client.Options{NameServers: []string{n.names}})
	n.t.Cleanup(c.Close)
	return c
}

func (n *testNode) queue(topic string, id int32) client.Queue {
	return client.Queue{Broker: "broker-a", Address: n.broker, Topic: topic, ID: id}
}

// produce sends to a topic and wants all of it sent.
func (n *testNode) produce(topic string, args ...string) []sentLine {
	n.t.Helper()
	stdout, stderr, err := run(append([]string{"produce", "--namesrv", n.names, "--json", "--topic", topic}, args...)...)
	require.NoError(n.t, err)
	require.Empty(n.t, stderr)
	lines := jsonLines[sentLine](n.t, stdout)
	n.await(topic, lines)
	return lines
}

// await returns when readers can see what was sent: a message is acknowledged before it is in its consume queue.
func (n *testNode) await(topic string, lines []sentLine) {
	n.t.Helper()
	for _, line := range lines {
		if line.Queue == nil {
			continue
		}
		key := messages.QueueKey{Topic: topic, QueueID: *line.Queue}
		got, err := n.store.GetWait(n.t.Context(), messages.GetMessage{Queue: key, Offset: messages.QueueOffset(*line.Offset), MaxMessages: 1})
		require.NoError(n.t, err)
		require.Equal(n.t, messages.Found, got.Status)
		got.Release()
	}
}

// consume reads and wants no trouble.
func (n *testNode) consume(args ...string) []tools.Line {
	n.t.Helper()
	stdout, stderr, err := run(append([]string{"consume", "--namesrv", n.names, "--json"}, args...)...)
	require.NoError(n.t, err)
	require.Empty(n.t, stderr)
	return jsonLines[tools.Line](n.t, stdout)
}

func jsonLines[T any](t *testing.T, text string) []T {
	t.Helper()
	all := []T{}
	for line := range strings.Lines(text) {
		var v T
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&v), line)
		all = append(all, v)
	}
	return all
}

// bodies are those of the messages, which have one.
func bodies(t *testing.T, all []tools.Line) []string {
	t.Helper()
	texts := []string{}
	for _, m := range all {
		require.NotNil(t, m.Body, "%+v", m)
		texts = append(texts, *m.Body)
	}
	return texts
}

// runWith executes the command line with something on standard input.
func runWith(stdin io.Reader, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	c := newRootCommand()
	c.SetIn(stdin)
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SetArgs(args)
	err = c.Execute()
	return out.String(), errs.String(), err
}

// running is a command that goes on by itself.
type running struct {
	t     *testing.T
	lines *bufio.Reader
	notes *bufio.Reader
	ended chan error
}

// launch starts a command; it is awaited at the end of the test. What it writes must be read: it waits for that.
func launch(ctx context.Context, t *testing.T, args ...string) *running {
	t.Helper()
	out, outW := io.Pipe()
	notes, notesW := io.Pipe()
	r := &running{t: t, lines: bufio.NewReader(out), notes: bufio.NewReader(notes), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(ctx)
	c := newRootCommand()
	c.SetOut(outW)
	c.SetErr(notesW)
	c.SetArgs(args)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := c.ExecuteContext(ctx)
		_, _ = outW.Close(), notesW.Close()
		r.ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		_, _ = out.Close(), notes.Close()
		<-done
	})
	return r
}

// line is the next line of standard output.
func (r *running) line() string {
	r.t.Helper()
	s, err := r.lines.ReadString('\n')
	require.NoError(r.t, err)
	return s
}

// note is the next line of standard error.
func (r *running) note() string {
	r.t.Helper()
	s, err := r.notes.ReadString('\n')
	require.NoError(r.t, err)
	return s
}

// cluster is a name server and brokers that follow a script: what no single node of ours does.
type cluster struct {
	t     *testing.T
	names string

	mu    sync.Mutex
	asked []*remoting.Command // all requests but those for routes, in order
}

// script answers a request; nil hangs up.
type script func(*remoting.Command) *remoting.Command

// fake starts a cluster with a topic T of two queues at each broker. A broker without a script is not reachable.
func fake(t *testing.T, brokers map[string]script) *cluster {
	t.Helper()
	c := &cluster{t: t}
	route := remoting.TopicRouteData{}
	for name, s := range brokers {
		address := freePort(t)
		if s != nil {
			address = c.listen(func(r *remoting.Command) *remoting.Command {
				c.mu.Lock()
				c.asked = append(c.asked, r)
				c.mu.Unlock()
				return s(r)
			})
		}
		route.BrokerDatas = append(route.BrokerDatas, remoting.BrokerData{BrokerName: name, BrokerAddrs: map[int64]string{0: address}})
		route.QueueDatas = append(route.QueueDatas, remoting.QueueData{BrokerName: name, Perm: 6, ReadQueueNums: 2, WriteQueueNums: 2})
	}
	c.names = c.listen(func(r *remoting.Command) *remoting.Command {
		if topic, _ := r.ExtFields.Get("topic"); topic != "T" {
			return r.Answer(remoting.ResponseTopicNotExist, "No topic route info")
		}
		a := r.Answer(remoting.ResponseSuccess, "")
		if err := a.EncodeBody(route); err != nil {
			t.Error(err)
		}
		return a
	})
	return c
}

// requests are those that came so far, with the given code.
func (c *cluster) requests(code int) []*remoting.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	var some []*remoting.Command
	for _, r := range c.asked {
		if r.Code == code {
			some = append(some, r)
		}
	}
	return some
}

// listen answers by a script until the test ends.
func (c *cluster) listen(s script) string {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { answerAll(conn, s) })
		}
	})
	c.t.Cleanup(func() {
		require.NoError(c.t, l.Close())
		all.Wait() // the commands have closed their connections
	})
	return l.Addr().String()
}

func answerAll(conn net.Conn, s script) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		r, err := remoting.ReadCommand(in, remoting.Limits{})
		if err != nil {
			return
		}
		a := s(r)
		if a == nil {
			return
		}
		frame, err := a.Append(nil)
		if err == nil {
			_, err = conn.Write(frame)
		}
		if err != nil {
			return
		}
	}
}

// with is an answer of success with typed fields.
func with(r *remoting.Command, code int, h remoting.Header) *remoting.Command {
	a := r.Answer(code, "")
	a.ExtFields = remoting.ToExt(h)
	return a
}

// field is a number in a request's header.
func field(t *testing.T, r *remoting.Command, name string) int64 {
	t.Helper()
	text, _ := r.ExtFields.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, name)
	return n
}
