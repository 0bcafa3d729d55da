package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/memfs"
)

// askOnce is a Caller with a connection for each request.
func askOnce(ctx context.Context, address string, request *remoting.Command) (*remoting.Command, error) {
	var d net.Dialer
	sock, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sock.Close() }()
	request.Opaque = 7
	b, err := request.Append(nil)
	if err == nil {
		_, err = sock.Write(b)
	}
	if err != nil {
		return nil, err
	}
	return remoting.ReadCommand(bufio.NewReader(sock), remoting.Limits{})
}

func TestASlaveTakesOverItsMastersConfiguration(t *testing.T) { // spec/store.md §12.7; L66, L89, L91
	delays := map[int32]int64{3: 17}
	m := run(t, func(cfg *gateway.Config) { cfg.Tools.DelayOffsets = func() map[int32]int64 { return delays } })
	m.topic("Orders", 6)
	m.topic("Gone", 2)
	q := messages.QueueKey{Topic: "Orders", QueueID: 1}
	ctx := t.Context()
	require.NoError(t, m.node.Broker().Offsets.CommitWait(ctx, "G", q, 42))
	require.NoError(t, m.node.Broker().Offsets.CommitWait(ctx, "G", messages.QueueKey{Topic: "Gone"}, 1))
	_, err := m.node.Broker().Groups.Ensure(ctx, "G")
	require.NoError(t, err)

	s := run(t, func(cfg *gateway.Config) {
		cfg.Master, cfg.Broker.BrokerID = m.node.Addr("broker").String(), 1
		cfg.SyncFirst, cfg.SyncInterval = 5*time.Millisecond, 5*time.Millisecond
		cfg.Join.Connect = func(func(string)) (gateway.Caller, func()) { return askOnce, func() {} }
	})
	b := s.node.Broker()
	s.eventually(func() bool {
		topic, there := b.Topics.Lookup("Orders")
		_, group := b.Groups.Lookup("G")
		return there && topic.ReadQueueNums == 6 && group && b.Offsets.Lookup("G", q) == 42
	})
	require.Equal(t, m.node.Broker().Topics.Table(), b.Topics.Table())
	s.eventually(func() bool {
		var saved metadata.DelayOffsets
		found, err := metadata.Load(s.disk, s.store.ConfigDir()+"/delayOffset.json", &saved)
		return err == nil && found && saved.Offsets[3] == 17
	})

	require.NoError(t, b.Offsets.CommitWait(ctx, "G", q, 50), "somebody reads at the slave")
	require.NoError(t, m.node.Broker().Offsets.CommitWait(ctx, "G", messages.QueueKey{Topic: "Orders"}, 3))
	s.eventually(func() bool { return b.Offsets.Lookup("G", messages.QueueKey{Topic: "Orders"}) == 3 })
	require.EqualValues(t, 50, b.Offsets.Lookup("G", q), "what is newer here stays")

	_, err = s.store.Put(ctx, &messages.Message{Topic: "Gone", Body: []byte("x")})
	require.NoError(t, err)
	s.eventually(func() bool { return s.store.MaxOffset(messages.QueueKey{Topic: "Gone"}) == 1 })
	m.dial("broker").ask(req(remoting.RequestDeleteTopicInBroker, "topic", "Gone"))
	s.eventually(func() bool {
		_, there := b.Topics.Lookup("Gone")
		return !there && s.store.MaxOffset(messages.QueueKey{Topic: "Gone"}) == 0
	})
	require.Equal(t, messages.NoOffset, b.Offsets.Lookup("G", messages.QueueKey{Topic: "Gone"}))
}

// follow starts a slave that takes the configuration over every few milliseconds.
func (w *world) follow() *world {
	return run(w.t, func(cfg *gateway.Config) {
		cfg.Master, cfg.Broker.BrokerID = w.node.Addr("broker").String(), 1
		cfg.SyncFirst, cfg.SyncInterval = 5*time.Millisecond, 5*time.Millisecond
		cfg.Join.Connect = func(func(string)) (gateway.Caller, func()) { return askOnce, func() {} }
	})
}

// A master that deletes a topic tells its offsets for a while yet, or again, when a consumer commits late. A slave that has deleted the topic
// would keep them for good: one that is made again under the same name would not begin anew.
func TestASlaveTakesNoOffsetsOfTopicsThatAreGone(t *testing.T) {
	m := run(t)
	m.topic("Orders", 6)
	m.topic("Gone", 2)
	ctx, gone, light := t.Context(), messages.QueueKey{Topic: "Gone"}, messages.QueueKey{Topic: messages.LMQTopicPrefix + "a"}
	of := m.node.Broker().Offsets
	require.NoError(t, of.CommitWait(ctx, "G", gone, 1))
	s := m.follow()
	b := s.node.Broker()
	s.eventually(func() bool { return b.Offsets.Lookup("G", gone) == 1 })
	m.dial("broker").ask(req(remoting.RequestDeleteTopicInBroker, "topic", "Gone"))
	s.eventually(func() bool {
		_, there := b.Topics.Lookup("Gone")
		return !there && b.Offsets.Lookup("G", gone) == messages.NoOffset
	})
	require.NoError(t, of.CommitWait(ctx, "G", gone, 1))
	require.NoError(t, of.CommitWait(ctx, "G", light, 7))
	s.eventually(func() bool { return b.Offsets.Lookup("G", light) == 7 })
	require.Equal(t, messages.NoOffset, b.Offsets.Lookup("G", gone))
}

// A topic that is made again within a round looks as before to who compares two tables: with the offsets of its life before, consumers would
// pass over what it has by then, once the slave serves them.
func TestASlaveForgetsTheOffsetsOfATopicThatIsMadeAgain(t *testing.T) {
	m := run(t)
	m.topic("Again", 2)
	ctx, again, late := t.Context(), messages.QueueKey{Topic: "Again"}, messages.QueueKey{Topic: "Again", QueueID: 1}
	of := m.node.Broker().Offsets
	require.NoError(t, of.CommitWait(ctx, "G", again, 100))
	var round sync.RWMutex
	var failing atomic.Bool
	s := run(t, func(cfg *gateway.Config) {
		cfg.Master, cfg.Broker.BrokerID = m.node.Addr("broker").String(), 1
		cfg.SyncFirst, cfg.SyncInterval = 5*time.Millisecond, 5*time.Millisecond
		cfg.Join.Connect = func(func(string)) (gateway.Caller, func()) {
			return func(ctx context.Context, address string, request *remoting.Command) (*remoting.Command, error) {
				round.RLock()
				defer round.RUnlock()
				return askOnce(ctx, address, request)
			}, func() {}
		}
	})
	b := s.node.Broker()
	s.eventually(func() bool { return b.Offsets.Lookup("G", again) == 100 })
	s.disk.Inject(func(op memfs.Op) error { // the first attempt to forget them fails
		if strings.Contains(op.Name, "consumerOffset.json") && failing.CompareAndSwap(true, false) {
			return errors.New("injected")
		}
		return nil
	})
	round.Lock()
	m.dial("broker").ask(req(remoting.RequestDeleteTopicInBroker, "topic", "Again"))
	m.topic("Again", 2)
	require.NoError(t, of.CommitWait(ctx, "G", late, 3))
	failing.Store(true)
	round.Unlock()
	s.eventually(func() bool { return b.Offsets.Lookup("G", late) == 3 && !failing.Load() })
	s.eventually(func() bool { return b.Offsets.Lookup("G", again) == messages.NoOffset })
	_, there := b.Topics.Lookup("Again")
	require.True(t, there)
	require.NoError(t, of.CommitWait(ctx, "G", again, 5))
	s.eventually(func() bool { return b.Offsets.Lookup("G", again) == 5 })
}

// What a slave could not delete with the round that tells of it goes with a later one.
func TestASlaveDeletesAtLastWhatItCouldNot(t *testing.T) {
	m := run(t)
	m.topic("Gone", 2)
	gone := messages.QueueKey{Topic: "Gone"}
	require.NoError(t, m.node.Broker().Offsets.CommitWait(t.Context(), "G", gone, 1))
	s := m.follow()
	b := s.node.Broker()
	s.eventually(func() bool { return b.Offsets.Lookup("G", gone) == 1 })
	_, err := s.store.Put(t.Context(), &messages.Message{Topic: "Gone", Body: []byte("x")})
	require.NoError(t, err)
	s.eventually(func() bool { return s.store.MaxOffset(gone) == 1 })
	var failed atomic.Int64
	s.disk.Inject(func(op memfs.Op) error {
		if strings.Contains(op.Name, "consumerOffset.json") {
			failed.Add(1)
			return errors.New("injected")
		}
		return nil
	})
	m.dial("broker").ask(req(remoting.RequestDeleteTopicInBroker, "topic", "Gone"))
	s.eventually(func() bool { _, there := b.Topics.Lookup("Gone"); return !there && failed.Load() > 0 })
	s.disk.Inject(nil)
	s.eventually(func() bool { return s.store.MaxOffset(gone) == 0 })
}

// The round of a promotion is the last one, and the master is gone in it more often than not. In another round it may be back, with the topic made again.
func TestASlaveDeletesAtLastWhatItCouldNotWhenItsMasterIsGone(t *testing.T) {
	m := run(t)
	m.topic("Gone", 2)
	gone := messages.QueueKey{Topic: "Gone"}
	require.NoError(t, m.node.Broker().Offsets.CommitWait(t.Context(), "G", gone, 1))
	var dead atomic.Bool
	var unheard atomic.Int64
	s := run(t, func(cfg *gateway.Config) {
		cfg.Master, cfg.Broker.BrokerID = m.node.Addr("broker").String(), 1
		cfg.SyncFirst, cfg.SyncInterval = 5*time.Millisecond, 5*time.Millisecond
		cfg.Join.Connect = func(func(string)) (gateway.Caller, func()) {
			return func(ctx context.Context, address string, r *remoting.Command) (*remoting.Command, error) {
				if dead.Load() {
					unheard.Add(1)
					return nil, errors.New("nobody answers")
				}
				return askOnce(ctx, address, r)
			}, func() {}
		}
	})
	b := s.node.Broker()
	s.eventually(func() bool { return b.Offsets.Lookup("G", gone) == 1 })
	_, err := s.store.Put(t.Context(), &messages.Message{Topic: "Gone", Body: []byte("x")})
	require.NoError(t, err)
	s.eventually(func() bool { return s.store.MaxOffset(gone) == 1 })
	s.node.TakeOver(t.Context()) // for a promotion of which nothing comes: it does not count
	s.node.StaySlave()
	s.disk.Inject(func(op memfs.Op) error {
		if !strings.Contains(op.Name, "consumerOffset.json") {
			return nil
		}
		if _, there := b.Topics.Lookup("Gone"); !there {
			dead.Store(true)
		}
		return errors.New("injected")
	})
	m.dial("broker").ask(req(remoting.RequestDeleteTopicInBroker, "topic", "Gone"))
	s.eventually(dead.Load)
	s.disk.Inject(nil)
	heard := unheard.Load()
	s.eventually(func() bool { return unheard.Load() > heard+10 })
	require.EqualValues(t, 1, s.store.MaxOffset(gone))
	s.node.TakeOver(t.Context())
	_, there := b.Topics.Lookup("Gone")
	require.False(t, there)
	s.eventually(func() bool { return s.store.MaxOffset(gone) == 0 })
}

// A round that is cut short while the master's topics are being saved has them taken all the same; the next one finds nothing new in them.
func TestASlaveDeletesWhatWentInARoundThatWasCutShort(t *testing.T) {
	m := run(t)
	m.topic("Gone", 2)
	gone := messages.QueueKey{Topic: "Gone"}
	var again atomic.Bool
	asked, taken, saving, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	var ask, save sync.Once
	s := run(t, func(cfg *gateway.Config) {
		cfg.Master, cfg.Broker.BrokerID = m.node.Addr("broker").String(), 1
		cfg.SyncFirst, cfg.SyncInterval = 5*time.Millisecond, 5*time.Millisecond
		cfg.Join.Connect = func(func(string)) (gateway.Caller, func()) {
			return func(ctx context.Context, address string, r *remoting.Command) (*remoting.Command, error) {
				if r.Code == remoting.RequestGetAllTopicConfig && again.Load() {
					ask.Do(func() { close(asked) })
					<-taken
				}
				return askOnce(ctx, address, r)
			}, func() {}
		}
	})
	b := s.node.Broker()
	s.eventually(func() bool { _, there := b.Topics.Lookup("Gone"); return there })
	_, err := s.store.Put(t.Context(), &messages.Message{Topic: "Gone", Body: []byte("x")})
	require.NoError(t, err)
	s.eventually(func() bool { return s.store.MaxOffset(gone) == 1 })
	s.disk.Inject(func(op memfs.Op) error {
		if strings.Contains(op.Name, "topics.json") && op.Kind.Changes() {
			save.Do(func() {
				close(saving)
				<-goOn
			})
		}
		return nil
	})
	m.dial("broker").ask(req(remoting.RequestDeleteTopicInBroker, "topic", "Gone"))
	<-saving
	again.Store(true)
	cut := make(chan struct{})
	go func() { // cuts the round short, as a promotion does
		defer close(cut)
		s.node.TakeOver(t.Context())
	}()
	<-asked
	close(goOn)
	s.eventually(func() bool { _, there := b.Topics.Lookup("Gone"); return !there })
	close(taken)
	<-cut
	s.eventually(func() bool { return s.store.MaxOffset(gone) == 0 })
}

// A master whose delay offsets stay as they are costs a slave no write, and in a replica group nobody asks for them: they come with the log.
func TestDelayOffsetsAreSavedWhenTheyHaveChanged(t *testing.T) {
	var at, asked atomic.Int64
	at.Store(17)
	m := run(t, func(cfg *gateway.Config) {
		cfg.Tools.DelayOffsets = func() map[int32]int64 { return map[int32]int64{3: at.Load()} }
	})
	follow := func(asked *atomic.Int64, more func(*gateway.Config)) *world {
		return run(t, func(cfg *gateway.Config) {
			cfg.Master, cfg.Broker.BrokerID = m.node.Addr("broker").String(), 1
			cfg.SyncFirst, cfg.SyncInterval = 5*time.Millisecond, 5*time.Millisecond
			cfg.Join.Connect = func(func(string)) (gateway.Caller, func()) {
				return func(ctx context.Context, address string, request *remoting.Command) (*remoting.Command, error) {
					if request.Code == remoting.RequestGetAllDelayOffset {
						asked.Add(1)
					}
					return askOnce(ctx, address, request)
				}, func() {}
			}
			more(cfg)
		})
	}
	s := follow(&asked, func(*gateway.Config) {})
	file := s.store.ConfigDir() + "/delayOffset.json"
	saved := func() int64 {
		var table metadata.DelayOffsets
		_, err := metadata.Load(s.disk, file, &table)
		require.NoError(t, err)
		return table.Offsets[3]
	}
	s.eventually(func() bool { return saved() == 17 })
	require.NoError(t, s.disk.Remove(file))
	from := asked.Load()
	s.eventually(func() bool { return asked.Load() >= from+3 }) // two answers at least have been handled
	require.Zero(t, saved())
	at.Store(18)
	s.eventually(func() bool { return saved() == 18 })

	var inGroup atomic.Int64
	g := follow(&inGroup, func(cfg *gateway.Config) { cfg.Files = cfg.Disk })
	for _, topic := range []string{"First", "Second"} { // between the two lies the end of a round
		m.topic(topic, 6)
		g.eventually(func() bool { _, there := g.node.Broker().Topics.Lookup(topic); return there })
	}
	require.Zero(t, inGroup.Load())
}
