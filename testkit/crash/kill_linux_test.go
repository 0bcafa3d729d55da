package crash_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/testkit/crash"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/process"
)

// sizes of the node's files: small, so that everything rolls.
var sizes = store.Params{
	SegmentBytes: 128 << 10, ConsumeQueueFileBytes: 8000, IndexSlots: 2000, IndexEntries: 8000, CheckCRC: true, MessageIndex: true,
}

// node is a process of actormq.
type node struct {
	*process.Process

	t       *testing.T
	program string
	dir     string
	broker  string
	said    fixture.Said // of all its lives
}

func buildNode(t *testing.T) *node {
	t.Helper()
	program, err := process.Build(t.TempDir())
	require.NoError(t, err)
	return &node{t: t, program: program, dir: t.TempDir()}
}

// start starts the node, with further key=value settings, and returns when it serves.
func (n *node) start(more ...string) {
	n.t.Helper()
	n.broker = process.Port(n.t, 1).String()
	args := []string{"--durable", "--store-dir", n.dir, "--listen", n.broker, "--namesrv-listen", process.Port(n.t, 1).String(), "--log-level", "warn"}
	for key, value := range map[string]any{
		"vipChannel": false, "mappedFileSizeCommitLog": sizes.SegmentBytes, "mappedFileSizeConsumeQueue": sizes.ConsumeQueueFileBytes,
		"maxHashSlotNum": sizes.IndexSlots, "maxIndexNum": sizes.IndexEntries,
	} {
		args = append(args, "--set", fmt.Sprint(key, "=", value))
	}
	for _, pair := range more {
		args = append(args, "--set", pair)
	}
	n.Process = process.Start(n.t, &n.said, n.program, args...)
}

// load sends to a node from several connections, and keeps what was acknowledged.
type load struct {
	mu    sync.Mutex
	acked []crash.Acked
	next  int
	grown chan struct{} // told of each acknowledgement that somebody may wait for
	count map[int]int   // answers by code
}

func newLoad() *load { return &load{grown: make(chan struct{}, 1), count: map[int]int{}} }

// run sends until the context ends or the node goes away, then returns.
func (l *load) run(ctx context.Context, broker string, connections int) {
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() { l.send(ctx, broker) })
	}
	wg.Wait()
}

func (l *load) send(ctx context.Context, broker string) {
	conn, err := net.DialTimeout("tcp", broker, 10*time.Second)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	r := bufio.NewReader(conn)
	for ctx.Err() == nil {
		if !l.one(conn, r) {
			return
		}
	}
}

// one sends one message and takes the answer; false when the connection has ended.
func (l *load) one(conn net.Conn, r *bufio.Reader) bool {
	l.mu.Lock()
	i := l.next
	l.next++
	l.mu.Unlock()
	body, key := fmt.Sprintf("%08d %s", i, strings.Repeat("x", i*31%900)), fmt.Sprint("k", i)
	m := remoting.NewRequest(remoting.RequestSendMessageV2, &remoting.SendMessageV2Header{
		ProducerGroup: "load", Topic: "Killed", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: int32(i % 4),
		BornTimestampMs: time.Now().UnixMilli(), Properties: "KEYS\x01" + key + "\x02UNIQ_KEY\x01u" + key + "\x02TAGS\x01t",
	})
	m.Opaque, m.Body = int32(i), []byte(body)
	frame, err := m.Append(nil)
	if err != nil {
		panic(err)
	}
	if _, err := conn.Write(frame); err != nil {
		return false
	}
	answer, err := remoting.ReadCommand(r, remoting.Limits{})
	if err != nil {
		return false
	}
	l.answered(answer, crash.Acked{Body: body, Key: key})
	return true
}

func (l *load) answered(answer *remoting.Command, a crash.Acked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[answer.Code]++
	if answer.Code != remoting.ResponseSuccess {
		return
	}
	var h remoting.SendMessageAnswer
	if err := remoting.FromExt(answer.ExtFields, &h); err != nil {
		panic(err)
	}
	_, at, err := messages.ParseOffsetMessageID(h.MsgID)
	if err != nil {
		panic(err)
	}
	a.Queue, a.At, a.From = messages.QueueKey{Topic: "Killed", QueueID: h.QueueID}, messages.QueueOffset(h.QueueOffset), at
	l.acked = append(l.acked, a)
	select {
	case l.grown <- struct{}{}:
	default:
	}
}

// await waits until there are so many acknowledgements.
func (l *load) await(t *testing.T, want int) {
	t.Helper()
	limit := time.After(time.Minute)
	for l.total() < want {
		select {
		case <-l.grown:
		case <-limit:
			t.Fatalf("%d acknowledgements instead of %d", l.total(), want)
		}
	}
}

func (l *load) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// TestKillingANode (L15, L18, L26, L43) kills a node under load, again and again, and requires every acknowledged message each time:
//
//	KILL_ROUNDS=200 go test -v -timeout 1h -run TestKillingANode ./testkit/crash
//
// Every seventh time the node is stopped for some time first (SIGSTOP) and must go on; every tenth time it ends in order.
func TestKillingANode(t *testing.T) {
	rounds := fixture.Number(t, "KILL_ROUNDS", 3)
	n, l := buildNode(t), newLoad()
	dir := crash.Directory{Params: sizes}
	dir.Params.Dir = n.dir
	rnd := rand.New(rand.NewPCG(uint64(fixture.Number(t, "KILL_SEED", 1)), 5))
	for round := range rounds {
		n.start()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.run(ctx, n.broker, 4)
		}()
		l.await(t, l.total()+1+rnd.IntN(150))
		if round%7 == 2 {
			n.Signal(syscall.SIGSTOP)
			select {
			case <-time.After(time.Duration(1+rnd.IntN(2)) * time.Second):
			case <-done:
				t.Fatal("the node went away")
			}
			n.Signal(syscall.SIGCONT)
			l.await(t, l.total()+50)
		}
		if round%10 == 9 {
			cancel()
			<-done
			require.NoError(t, n.End(syscall.SIGTERM))
		} else {
			_ = n.End(syscall.SIGKILL) // which is an error
			<-done
			cancel()
		}
		count, err := dir.Check(l.acked, round == rounds-1)
		require.NoError(t, err, "round %d, node's log:\n%s", round, n.said.String())
		if round%20 == 19 || round == rounds-1 {
			t.Logf("round %d: %d messages, %d acknowledged", round+1, count, len(l.acked))
		}
	}
	require.Len(t, l.count, 1, "answers by code: %v", l.count)
}

// TestAFullFileSystem fills a file system of its own with a node, gives it room again, and kills the node.
func TestAFullFileSystem(t *testing.T) {
	n, l := buildNode(t), newLoad()
	resize := func(flags uintptr, size string) error {
		return syscall.Mount("none", n.dir, "tmpfs", flags, "size="+size)
	}
	if err := resize(0, "2m"); err != nil {
		t.Skip("no tmpfs can be mounted here: ", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(n.dir, syscall.MNT_DETACH)) }()
	n.start("cleanFileForciblyEnable=false") // what is deleted on purpose is no loss
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx, n.broker, 4)
	}()
	refused := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		sum := 0
		for code, k := range l.count {
			if code != remoting.ResponseSuccess {
				sum += k
			}
		}
		return sum
	}
	require.Eventually(t, func() bool { return refused() > 10 }, time.Minute, 10*time.Millisecond, "nothing is refused")
	full := l.total()
	require.Positive(t, full)
	require.NoError(t, resize(syscall.MS_REMOUNT, "30m"))
	l.await(t, full+100)       // goes on by itself
	_ = n.End(syscall.SIGKILL) // which is an error
	<-done
	cancel()
	dir := crash.Directory{Params: sizes}
	dir.Params.Dir = n.dir
	count, err := dir.Check(l.acked, true)
	require.NoError(t, err, "node's log:\n%s", n.said.String())
	t.Logf("%d messages, %d acknowledged, %d when the file system was full; answers by code: %v", count, len(l.acked), full, l.count)
}
