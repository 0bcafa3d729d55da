package bridge_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/extension"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/client"
	"github.com/actormq/actormq/system/ext/bridge"
	"github.com/actormq/actormq/system/ext/dedupe"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/memfs"
	"github.com/actormq/actormq/testkit/node"
)

func to(names string) client.Options { return client.Options{NameServers: []string{names}} }

// open opens a store with a bridge from it.
func open(t *testing.T, disk vfs.Disk, cfg bridge.Config) (*system.Store, *bridge.Bridge) {
	t.Helper()
	b, err := bridge.New(cfg)
	require.NoError(t, err)
	opt := options(disk)
	b.Plug(&opt)
	opt.Dispatchers[0].SaveInterval = time.Millisecond
	s, err := system.Open(opt)
	require.NoError(t, err)
	return s, b
}

func put(t *testing.T, s *system.Store, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		_, err := s.Put(context.Background(), &messages.Message{
			Topic: "Orders", QueueID: int32(i % 4), Flag: int32(i), SysFlag: messages.SysFlagMultiTags, BornTimestampMs: int64(i),
			ReconsumeTimes: int32(i % 3), Body: fmt.Appendf(nil, "order %d", i), Properties: messages.PropertiesOf(map[string]string{
				messages.PropertyKeys: fmt.Sprintf("k%d all", i), messages.PropertyTags: "new", "shop": "7", messages.PropertyUniqKey: fmt.Sprintf("U%d", i),
			})})
		require.NoError(t, err)
	}
	_, err := s.Put(context.Background(), &messages.Message{Topic: "Private", Body: []byte("not for others")})
	require.NoError(t, err)
}

// TestEverythingArrivesThroughRestartsOfSourceAndTarget is done with a node of ours, and with RocketMQ itself where its jar is.
func TestEverythingArrivesThroughRestartsOfSourceAndTarget(t *testing.T) {
	t.Run("to a node", func(t *testing.T) { restarts(t, &ours{}) })
	t.Run("to RocketMQ", func(t *testing.T) {
		jar := os.Getenv("PEER_JAR")
		if jar == "" {
			t.Skip("needs JDK 11 and PEER_JAR=<testkit/peer's rmqpeer.jar, built with Maven>")
		}
		restarts(t, &rocket{jar: jar})
	})
}

func restarts(t *testing.T, far target) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	far.start(t)
	cfg := bridge.Config{Side: "here", Target: "there", Client: to(far.nameServer()), Topics: []string{"Orders"}, KeepQueues: true}
	disk := memfs.New()
	s, b := open(t, disk, cfg)
	put(t, s, 0, 200)
	require.NoError(t, s.AwaitExtension(ctx, b.Name()))
	require.Equal(t, int64(200), b.Status(s).Copied)
	require.Zero(t, b.Status(s).LagBytes)
	require.Equal(t, extension.Running, b.Status(s).State)

	far.stop(t)
	put(t, s, 200, 300)
	until(ctx, t, func() error {
		if now := b.Status(s); now.State != extension.BackingOff || now.LagBytes == 0 {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
	require.ErrorIs(t, b.Status(s).LastError, client.ErrConnection)
	require.NoError(t, s.Close(ctx), "a target that is away holds up no stop")
	s, b = open(t, disk, cfg)
	far.start(t)
	require.NoError(t, s.ResumeExtension(b.Name())) // at once
	require.NoError(t, s.AwaitExtension(ctx, b.Name()))
	require.Equal(t, int64(100), b.Status(s).Copied, "it goes on where it was")

	putting := make(chan struct{}) // source and target die in the middle
	go func() { defer close(putting); put(t, s, 300, 1500) }()
	until(ctx, t, func() error {
		if n := b.Status(s).Copied; n < 150 {
			return fmt.Errorf("%d are copied", n)
		}
		return nil
	})
	far.kill(t)
	<-putting
	left := disk.Clone()
	require.NoError(t, s.Close(ctx))
	far.start(t)
	s, b = open(t, left, cfg)
	require.NoError(t, s.AwaitExtension(ctx, b.Name()))
	t.Logf("%+v", b.Status(s))
	same(t, received(ctx, t, far.nameServer(), "Orders", 1500))
	require.NoError(t, s.Close(ctx))
	far.stop(t)
}

// same requires that the queues hold what put has put, in its order, parts of it more than once.
func same(t *testing.T, queues [][]messages.StoredMessage) {
	t.Helper()
	require.Len(t, queues, 4)
	for id, list := range queues {
		next := id
		for _, m := range list {
			var i int
			_, err := fmt.Sscanf(string(m.Body), "order %d", &i)
			require.NoError(t, err)
			require.LessOrEqual(t, i, next, "in order, or again")
			next = max(next, i+4)
			require.Equal(t, id, i%4)
			require.Equal(t, int32(i), m.Flag)
			require.Equal(t, int64(i), m.BornTimestampMs)
			require.Equal(t, int32(i%3), m.ReconsumeTimes)
			require.NotZero(t, m.SysFlag&messages.SysFlagMultiTags)
			for name, want := range map[string]string{
				messages.PropertyKeys: fmt.Sprintf("k%d all", i), messages.PropertyTags: "new", "shop": "7",
				messages.PropertyUniqKey: fmt.Sprintf("U%d", i), bridge.PropertyOrigin: "here",
			} {
				got, _ := m.Properties.Get(name)
				require.Equal(t, want, got, name)
			}
		}
	}
}

// side is a node with bridges to others.
func side(t *testing.T, name string, bridges ...*bridge.Bridge) *node.Node {
	return node.Start(t, func(opt *system.Options, cfg *gateway.Config) {
		cfg.Broker.BrokerName = name
		for _, b := range bridges {
			b.Plug(opt)
		}
	})
}

func TestTwoSidesCopyToEachOtherAndNothingGoesRound(t *testing.T) {
	ctx := t.Context()
	var a, z *node.Node
	var there, back *bridge.Bridge
	var err error
	z = side(t, "z") // it comes to know where a is
	there, err = bridge.New(bridge.Config{Side: "a", Target: "z", Client: to(z.NameServer.String())})
	require.NoError(t, err)
	a = side(t, "a", there)
	back, err = bridge.New(bridge.Config{Side: "z", Target: "a", Client: to(a.NameServer.String())})
	require.NoError(t, err)
	z.Stop()
	names, host := z.NameServer, z.Broker
	z = node.Start(t, func(opt *system.Options, cfg *gateway.Config) {
		opt.StoreHost, cfg.Broker.StoreHost, cfg.Listen, cfg.NameServerListen = host, host, host.String(), names.String()
		back.Plug(opt)
	})
	for i := range 100 {
		for n, s := range map[string]*system.Store{"a": a.Store, "z": z.Store} {
			_, err := s.Put(ctx, &messages.Message{Topic: "Orders", QueueID: 0, Body: fmt.Append(nil, n, i)})
			require.NoError(t, err)
		}
	}
	for range 3 { // there and back, and what came back
		require.NoError(t, a.Store.AwaitExtension(ctx, there.Name()))
		require.NoError(t, z.Store.AwaitExtension(ctx, back.Name()))
	}
	for _, n := range []*node.Node{a, z} {
		var bodies []string
		for _, queue := range received(ctx, t, n.NameServer.String(), "Orders", 200) {
			for _, m := range queue {
				bodies = append(bodies, string(m.Body))
			}
		}
		slices.Sort(bodies)
		require.Len(t, slices.Compact(slices.Clone(bodies)), 200)
		require.Len(t, bodies, 200, "each message once")
	}
	require.Equal(t, int64(100), there.Status(a.Store).Looped)
	require.Equal(t, int64(100), back.Status(z.Store).Looped)
}

func TestWhatTheTargetRefusesHoldsItsQueueUpOrIsLeftOut(t *testing.T) {
	ctx := t.Context()
	refuse := system.PutHook{Name: "no-beer", Func: func(m *messages.Message) error {
		if string(m.Body) == "beer" {
			return fmt.Errorf("no beer")
		}
		return nil
	}}
	far := node.Start(t, func(opt *system.Options, _ *gateway.Config) { opt.PutHooks = []system.PutHook{refuse} })
	disk := memfs.New()
	cfg := bridge.Config{Side: "here", Target: "there", Client: to(far.NameServer.String())}
	s, b := open(t, disk, cfg)
	for i, body := range []string{"coffee", "beer", "tea", "juice"} {
		_, err := s.Put(ctx, &messages.Message{Topic: "Orders", QueueID: int32(i / 3), Body: []byte(body)})
		require.NoError(t, err)
	}
	_, err := s.Put(ctx, &messages.Message{Topic: "Two%Words%", Body: []byte("another topic")})
	require.NoError(t, err)
	until(ctx, t, func() error {
		if now := b.Status(s); now.Failures < 2 || now.Copied < 3 {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
	require.True(t, client.HasCode(b.Status(s).LastError, 13), b.Status(s).LastError)
	require.Equal(t, int64(3), b.Status(s).Copied, "coffee, juice of the other queue, another topic: once, however often it is tried")
	require.NoError(t, s.Close(ctx))

	cfg.SkipIllegal = true
	s, b = open(t, disk, cfg)
	require.NoError(t, s.AwaitExtension(ctx, b.Name()))
	require.Equal(t, int64(1), b.Status(s).Illegal)
	received(ctx, t, far.NameServer.String(), "Orders", 3)
	require.NoError(t, s.Close(ctx))
}

// TestWhatATargetKnowsFromBeforeACrashHoldsNobodyUp: it refuses duplicates, and everything is copied again.
func TestWhatATargetKnowsFromBeforeACrashHoldsNobodyUp(t *testing.T) {
	far := node.Start(t, func(opt *system.Options, _ *gateway.Config) { dedupe.New(dedupe.Config{}).Plug(opt) })
	disk := memfs.New()
	cfg := bridge.Config{Side: "here", Target: "there", Client: to(far.NameServer.String()), Topics: []string{"Orders"}}
	s, b := open(t, disk, cfg)
	put(t, s, 0, 20)
	left := disk.Clone()
	require.NoError(t, s.AwaitExtension(t.Context(), b.Name()))
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, far.Store.AwaitExtension(t.Context(), "dedupe"))
	s, b = open(t, left, cfg)
	require.NoError(t, s.AwaitExtension(t.Context(), b.Name()))
	now := b.Status(s)
	require.Zero(t, now.Copied+now.Illegal+now.Failures, "%+v", now)
	n := 0
	for _, queue := range received(t.Context(), t, far.NameServer.String(), "Orders", 20) {
		n += len(queue)
	}
	require.Equal(t, 20, n)
	require.NoError(t, s.Close(t.Context()))
}

func TestAQueueThatTheTargetDoesNotHaveIsSaid(t *testing.T) {
	far := node.Start(t, nil)
	s, b := open(t, memfs.New(), bridge.Config{Side: "here", Target: "there", Client: to(far.NameServer.String()), KeepQueues: true})
	_, err := s.Put(t.Context(), &messages.Message{Topic: "Orders", QueueID: 11, Body: []byte("x")})
	require.NoError(t, err)
	until(t.Context(), t, func() error {
		if b.Status(s).LastError == nil {
			return fmt.Errorf("no error yet")
		}
		return nil
	})
	require.ErrorIs(t, b.Status(s).LastError, bridge.ErrNoQueue)
	require.NoError(t, s.Close(t.Context()))
}

func TestMessagesOfOthersAreCopiedOnUnlessOwnOnlySaysNot(t *testing.T) {
	ctx := t.Context()
	far := node.Start(t, nil)
	for name, tt := range map[string]struct {
		own  bool
		want int64
	}{"Ring": {false, 2}, "Mesh": {true, 1}} {
		cfg := bridge.Config{Side: "here", Target: "there", Client: to(far.NameServer.String()), Topics: []string{name}, OwnOnly: tt.own}
		s, b := open(t, memfs.New(), cfg)
		for body, origin := range map[string]string{"of others": "elsewhere", "own": "", "was there": "there elsewhere", "went round": "here elsewhere"} {
			m := &messages.Message{Topic: name, Body: []byte(body), Properties: messages.PropertiesOf(map[string]string{"a": "b"})}
			if origin != "" {
				m.Properties = m.Properties.With(bridge.PropertyOrigin, origin)
			}
			_, err := s.Put(ctx, m)
			require.NoError(t, err)
		}
		require.NoError(t, s.AwaitExtension(ctx, b.Name()))
		require.Equal(t, tt.want, b.Status(s).Copied)
		require.Equal(t, 4-tt.want, b.Status(s).Looped)
		require.NoError(t, s.Close(ctx))
	}
	for _, queue := range received(ctx, t, far.NameServer.String(), "Ring", 2) {
		for _, m := range queue {
			been, _ := m.Properties.Get(bridge.PropertyOrigin)
			require.Equal(t, map[string]string{"own": "here", "of others": "elsewhere here"}[string(m.Body)], been)
		}
	}
}

func TestEveryProblemOfAConfigurationIsNamed(t *testing.T) {
	_, err := bridge.New(bridge.Config{Side: "here and", InFlight: -1, Topics: []string{"a b"}})
	require.ErrorIs(t, err, bridge.ErrConfig)
	for _, want := range []string{`Side is "here and"`, `Target is ""`, "NameServers", "InFlight is -1", `"a b"`} {
		require.ErrorContains(t, err, want)
	}
	_, err = bridge.New(bridge.Config{Side: "a", Target: "a", Client: to("x:1")})
	require.ErrorContains(t, err, "the Target is this Side")
}
