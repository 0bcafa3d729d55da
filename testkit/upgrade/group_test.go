package upgrade

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
	members "github.com/actormq/actormq/system/cluster"
	replicas "github.com/actormq/actormq/testkit/cluster"
	"github.com/actormq/actormq/testkit/fixture"
)

// faithful is clients that send to, and read from, one address whatever becomes of it, and try nothing again: any error is one too many.
type faithful struct {
	t       *testing.T
	address string
	client  *client.Client
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	acked  map[place]string
	read   map[place]string
	failed []error
	told   chan struct{} // after each send and each message that was read
}

const faithfulGroup = "faithful"

func keepTo(t *testing.T, address string) *faithful {
	t.Helper()
	f := &faithful{
		t: t, address: address, client: client.New(client.Options{}), acked: map[place]string{}, read: map[place]string{},
		told: make(chan struct{}, 1),
	}
	t.Cleanup(f.client.Close)
	f.sendOne(t.Context(), 0, "first") // makes the topic
	beat := remoting.NewRequest(remoting.RequestHeartbeat, nil)
	require.NoError(t, beat.EncodeBody(&remoting.HeartbeatData{ClientID: "faithful@1", ConsumerDataSet: []remoting.ConsumerData{{
		GroupName: faithfulGroup, ConsumeType: "CONSUME_PASSIVELY", MessageModel: "CLUSTERING",
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: topic, SubString: "*", ExpressionType: "TAG", SubVersion: 1}},
	}}}))
	answer, err := f.client.Call(t.Context(), address, beat) // the only one
	require.NoError(t, err)
	require.Equal(t, remoting.ResponseSuccess, answer.Code, answer.Remark)
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	for i := range int32(4) {
		f.running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				f.sendOne(context.WithoutCancel(ctx), i, fmt.Sprintf("%d/%d", i, n))
				rest(ctx, pace)
			}
		})
		f.running.Go(func() { f.readQueue(ctx, i) })
	}
	return f
}

func (f *faithful) note(where map[place]string, p place, body string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed = append(f.failed, fmt.Errorf("%s at %s: %w", body, time.Now().Format(time.StampMilli), err))
		return
	}
	if before, there := where[p]; there {
		f.failed = append(f.failed, fmt.Errorf("%v: %q, and before %q", p, body, before))
	}
	where[p] = body
	select {
	case f.told <- struct{}{}:
	default:
	}
}

func (f *faithful) sendOne(ctx context.Context, queue int32, body string) {
	sent, err := f.client.Send(ctx, f.address, remoting.SendMessageHeader{
		ProducerGroup: faithfulGroup, Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: queue,
		BornTimestampMs: time.Now().UnixMilli(), MaxReconsumeTimes: remoting.AbsentTimes,
	}, []byte(body))
	if err == nil && sent.Code != remoting.ResponseSuccess {
		err = fmt.Errorf("stored, but %s", remoting.ResponseName(sent.Code))
	}
	f.note(f.acked, place{queue: sent.QueueID, at: sent.QueueOffset}, body, err)
}

// readQueue pulls as a member of its group does: without a subscription, and held.
func (f *faithful) readQueue(ctx context.Context, queue int32) {
	for at := int64(0); ctx.Err() == nil; {
		got, err := f.client.Pull(ctx, f.address, remoting.PullMessageHeader{
			ConsumerGroup: faithfulGroup, Topic: topic, QueueID: queue, QueueOffset: at, MaxMsgNums: 32,
			SysFlag: remoting.PullFlagSuspend | remoting.PullFlagCommitOffset, CommitOffset: at, SuspendTimeoutMs: 15_000,
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			f.note(f.read, place{}, fmt.Sprintf("pull of queue %d at %d", queue, at), err)
			return
		}
		for _, m := range got.Messages {
			f.note(f.read, place{queue: queue, at: int64(m.QueueOffset)}, string(m.Body), nil)
			at = int64(m.QueueOffset) + 1
		}
	}
}

// until waits for a state of what was sent and read.
func (f *faithful) until(what string, reached func() bool) {
	f.t.Helper()
	late := time.After(time.Minute)
	for {
		f.mu.Lock()
		now, failed := reached(), slices.Clone(f.failed)
		f.mu.Unlock()
		require.Empty(f.t, failed)
		if now {
			return
		}
		select {
		case <-f.told:
		case <-late:
			require.FailNow(f.t, what)
		}
	}
}

func (f *faithful) goesOn(more int) {
	f.t.Helper()
	f.mu.Lock()
	sent, read := len(f.acked)+more, len(f.read)+more
	f.mu.Unlock()
	f.until("sends and pulls go on", func() bool { return len(f.acked) >= sent && len(f.read) >= read })
}

// drain asks a node of a group to have another one lead, and to stop after the grace.
func drain(t *testing.T, address string, grace time.Duration) {
	t.Helper()
	c := client.New(client.Options{})
	defer c.Close()
	require.NoError(t, c.Ask(t.Context(), address, remoting.RequestDrainBroker, &remoting.DrainHeader{GraceMs: grace.Milliseconds()}, nil))
}

// Clients whose routes name the node that led before do not notice that another one does: no send and no pull fails, nothing is read twice,
// and the leader knows who they are.
func TestADrainedLeaderServesThoseWhoKeepToIt(t *testing.T) {
	if os.Getenv("UPGRADE_CLIENT") != "" {
		t.Skip("another client does the work")
	}
	g := replicas.Build(t, 3)
	g.Start("1", "2", "3")
	g.Ready("1", "2", "3")
	first := g.Leader()
	at := func(id string) string { return g.Nodes[id[0]-'1'].Port(members.PortBroker) }
	f := keepTo(t, at(first))
	f.goesOn(200)
	began := time.Now()
	drain(t, at(first), time.Hour)
	var next string
	g.Until("another node leads", func() bool {
		s, err := g.Status()
		next = s.Leader
		return err == nil && s.Leads && next != first
	})
	f.goesOn(200)
	t.Logf("node %s led before, node %s does now; 200 more messages after %v", first, next, time.Since(began).Round(time.Millisecond))
	require.Equal(t, next, g.Leader(), "the drained node is in sync again, and leads no more")
	var who remoting.ConsumerList
	require.NoError(t, f.client.Ask(t.Context(), at(next), remoting.RequestGetConsumerListByGroup,
		&remoting.ConsumerGroupHeader{ConsumerGroup: faithfulGroup}, &who))
	require.Equal(t, []string{"faithful@1"}, who.ConsumerIDList)
	f.goesOn(200)
	f.stopSending()
	began = time.Now()
	g.Terminate(first)
	g.Ended(first)
	t.Logf("the drained node has ended after %v", time.Since(began).Round(time.Millisecond))
}

// startWithGrace starts a group whose nodes serve on for an hour, by the next leader, when they are stopped while they lead.
func startWithGrace(t *testing.T) *replicas.Group {
	t.Helper()
	if os.Getenv("UPGRADE_CLIENT") != "" {
		t.Skip("another client does the work")
	}
	g := replicas.Build(t, 3)
	g.Args = map[string][]string{}
	for _, n := range g.Nodes {
		g.Args[n.ID] = []string{"--stop-grace", "1h"}
	}
	g.Start("1", "2", "3")
	g.Ready("1", "2", "3")
	return g
}

// A node that leads and is stopped by a signal, as by systemctl and docker, hands over first, and serves its clients by the next leader for as
// long as it was told to; one that follows ends at once.
func TestALeaderThatIsStoppedServesThoseWhoKeepToItForAWhile(t *testing.T) {
	g := startWithGrace(t)
	first := g.Leader()
	f := keepTo(t, g.Nodes[first[0]-'1'].Port(members.PortBroker))
	f.goesOn(200)
	began := time.Now()
	g.Terminate(first)
	var next string
	g.Until("another node leads", func() bool {
		s, err := g.Status()
		next = s.Leader
		return err == nil && s.Leads && next != first
	})
	f.goesOn(200)
	t.Logf("node %s led before, node %s does now; 200 more messages after %v", first, next, time.Since(began).Round(time.Millisecond))
	f.stopSending()
	follower := strconv.Itoa(6 - int(first[0]-'0') - int(next[0]-'0'))
	g.Terminate(follower)
	g.Ended(follower) // within an hour
	g.Kill(first)
}

// Nodes that are stopped at once have nobody to serve their clients by, and do not wait for each other.
func TestNodesOfAGroupThatAreStoppedAtOnceEnd(t *testing.T) {
	g := startWithGrace(t)
	g.Until("all nodes are in sync", func() bool {
		s, err := g.Status()
		return err == nil && s.Leads && len(s.InSync) == 3
	})
	first := g.Leader()
	others := slices.DeleteFunc([]string{"1", "2", "3"}, func(id string) bool { return id == first })
	began := time.Now()
	for _, id := range append([]string{first}, others...) {
		g.Terminate(id)
	}
	for _, id := range append(others, first) {
		g.Ended(id)
		t.Logf("node %s has ended after %v", id, time.Since(began).Round(time.Millisecond))
	}
}

// stopSending ends the clients once all that was acknowledged is read.
func (f *faithful) stopSending() {
	f.t.Helper()
	f.stop()
	f.running.Wait()
	require.Empty(f.t, f.failed)
	for p, body := range f.read {
		require.Equal(f.t, f.acked[p], body, "%v", p)
	}
	f.t.Logf("%d sends, none failed; %d read, none twice", len(f.acked), len(f.read))
}

// RocketMQ's clients, with their defaults: they ask for routes every 30 s.
func TestARollingUpgradeOfAGroupUnderRocketMQsClients(t *testing.T) {
	kind := os.Getenv("UPGRADE_CLIENT")
	if kind == "" {
		t.Skip("takes minutes: UPGRADE_CLIENT=go or java")
	}
	g := replicas.Build(t, 3)
	g.Start("1", "2", "3")
	g.Ready("1", "2", "3")
	var names []string
	for _, n := range g.Nodes {
		names = append(names, n.Port(members.PortNameServer))
	}
	first := g.Leader()
	f := keepTo(t, g.Nodes[first[0]-'1'].Port(members.PortBroker))
	f.goesOn(1)
	f.stopSending() // there is a topic
	var said fixture.Said
	load := clientOf(t, kind, names)
	load.Stdout, load.Stderr = &said, &said
	require.NoError(t, load.Start())
	handed := 0
	for range fixture.Number(t, "UPGRADE_ROUNDS", 1) {
		for _, n := range g.Nodes {
			if g.Leader() == n.ID {
				handed++
			}
			began := time.Now()
			drain(t, n.Port(members.PortBroker), 35*time.Second)
			g.Ended(n.ID)
			ended := time.Now()
			g.Start(n.ID)
			g.Ready(n.ID)
			g.Leader()
			t.Logf("node %s drained in %v, in sync again after %v", n.ID, ended.Sub(began).Round(time.Millisecond), time.Since(ended).Round(time.Millisecond))
		}
	}
	require.NoError(t, load.Process.Signal(syscall.SIGTERM))
	require.NoError(t, load.Wait(), "%s", &said)
	t.Log(said.String())
	require.NotZero(t, handed, "no node that led was drained")
}

// clientOf is one of RocketMQ's clients under load.
func clientOf(t *testing.T, kind string, names []string) *exec.Cmd {
	t.Helper()
	if kind == "java" {
		load := exec.CommandContext(t.Context(), filepath.Join("..", "conformance", "java", "run.sh"), strings.Join(names, ";"), topic)
		load.Env = append(os.Environ(), "MAIN=conformance.LoadMain")
		return load
	}
	suite := filepath.Join(t.TempDir(), "suite")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", suite, ".")
	build.Dir = filepath.Join("..", "conformance", "go")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return exec.CommandContext(t.Context(), suite, "-namesrv", strings.Join(names, ","), "-load", topic)
}
