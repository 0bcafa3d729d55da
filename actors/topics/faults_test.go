package topics_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/topics"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

var errInjected = errors.New("injected")

// A power cut before any operation of a save, or in the middle of it: the table is the old or the new one, and the new one
// from the answer on.
func TestPowerCutDuringSave(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	_, err := k.EnsureForSend(t.Context(), "Old", "TBW102", 4, false)
	require.NoError(t, err)

	pictures := fixture.PowerCuts(disk, func() { _, err = k.EnsureForSend(t.Context(), "New", "TBW102", 4, false) })
	require.NoError(t, err)
	require.Greater(t, len(pictures), 20)

	seen := map[bool]int{}
	for i, picture := range pictures {
		again, err := topics.Start(fixture.System(t).Root, "again", options(picture))
		require.NoError(t, err, "picture %d", i)
		_, ok := again.Lookup("Old")
		require.True(t, ok, "picture %d", i)
		_, hasNew := again.Lookup("New")
		seen[hasNew]++
		require.NoError(t, again.Close())
	}
	require.NotZero(t, seen[false])
	require.NotZero(t, seen[true])
	for seed := range uint64(20) {
		_, ok := start(t, options(disk.Crash(seed))).Lookup("New")
		require.True(t, ok, "answered, so durable")
	}
}

func TestFailedSaveChangesNothing(t *testing.T) {
	listener, told := listen(t)
	disk := memfs.New()
	cfg := options(disk)
	cfg.Listener = listener
	k := start(t, cfg)
	before := k.Table()
	for _, kind := range []memfs.Kind{memfs.KindCreate, memfs.KindWrite, memfs.KindDataSync, memfs.KindRename, memfs.KindSyncDir} {
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == kind {
				return errInjected
			}
			return nil
		})
		_, err := k.EnsureForSend(t.Context(), "A", "TBW102", 4, false)
		require.ErrorIs(t, err, errInjected, kind)
		require.Equal(t, before, k.Table(), kind)
		require.Empty(t, told(), kind)
	}
	disk.Inject(nil)
	_, err := k.EnsureForSend(t.Context(), "A", "TBW102", 4, false)
	require.NoError(t, err)
	_, ok := start(t, options(disk.Crash(3))).Lookup("A")
	require.True(t, ok)
}

func TestUnreadableFileStopsTheStart(t *testing.T) {
	disk := memfs.New()
	fixture.WriteFile(t, disk, file, []byte(`{"dataVersion":`))
	_, err := topics.Start(fixture.System(t).Root, "topics", options(disk))
	require.ErrorContains(t, err, file)

	fixture.WriteFile(t, disk, file+".bak", []byte(`{"dataVersion":{"counter":3,"timestamp":9},"topicConfigTable":{"T":{"perm":6,"topicName":"T"}}}`))
	_, ok := start(t, options(disk)).Lookup("T")
	require.True(t, ok, "the backup is good")
}

func TestStartOnAFullDisk(t *testing.T) {
	disk := memfs.New()
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindCreate {
			return errInjected
		}
		return nil
	})
	k := start(t, options(disk))
	_, ok := k.Lookup("TBW102")
	require.True(t, ok)
	disk.Inject(nil)
	_, err := k.EnsureForSend(t.Context(), "A", "TBW102", 4, false)
	require.NoError(t, err)
	require.Equal(t, k.Table(), start(t, options(disk)).Table(), "the first change writes it all")
}

// What waits while the disk is slow becomes one write.
func TestWaitingChangesAreOneWrite(t *testing.T) {
	const callers = 100
	disk := memfs.New()
	k := start(t, options(disk))
	version := k.DataVersion().Counter
	var saves atomic.Int32
	entered, goOn := make(chan struct{}), make(chan struct{})
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == file && saves.Add(1) == 1 {
			close(entered)
			<-goOn
		}
		return nil
	})
	first := messages.NewAnswer[struct{}]()
	k.Peer().Send(&messages.EnsureTopic{Topic: "First", Queues: 1, Perm: 6, Answer: first})
	<-entered
	answers := make([]*messages.Answer[struct{}], callers)
	for i := range answers {
		answers[i] = messages.NewAnswer[struct{}]()
		k.Peer().Send(&messages.EnsureTopic{Topic: fmt.Sprint("T", i), Queues: 1, Perm: 6, Answer: answers[i]})
	}
	close(goOn)
	for i, answer := range append(answers, first) {
		_, err := answer.Wait(t.Context())
		require.NoError(t, err, i)
	}
	require.EqualValues(t, 2, saves.Load())
	require.Equal(t, version+callers+1, k.DataVersion().Counter)
	require.Equal(t, k.Table(), start(t, options(disk.Crash(1))).Table())
}

// A topic that is made and deleted in one write has never been there; one that is deleted and made again is both.
func TestNewsOfOneWrite(t *testing.T) {
	listener, told := listen(t)
	disk := memfs.New()
	cfg := options(disk)
	cfg.Listener = listener
	k := start(t, cfg)
	_, err := k.EnsureDLQ(t.Context(), "g")
	require.NoError(t, err)
	entered, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.Inject(func(memfs.Op) error {
		once.Do(func() { close(entered) })
		<-goOn
		return nil
	})
	k.Peer().Send(&messages.EnsureTopic{Topic: "First", Queues: 1, Perm: 6})
	<-entered
	k.Peer().Send(&messages.EnsureTopic{Topic: "Short", Queues: 1, Perm: 6})
	k.Peer().Send(&messages.DeleteTopic{Topic: "Short"})
	k.Peer().Send(&messages.DeleteTopic{Topic: "%DLQ%g"})
	last := &messages.EnsureTopic{Topic: "%DLQ%g", Queues: 2, Perm: 6, Answer: messages.NewAnswer[struct{}]()}
	k.Peer().Send(last)
	close(goOn)
	_, err = last.Answer.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, messages.TopicsChanged{Changed: []string{"%DLQ%g"}, Removed: []string{"%DLQ%g", "Short"}}, told()[2])
	require.Len(t, told(), 3)
}

func TestPanicRefusesAndGoesOn(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	disk.Inject(func(op memfs.Op) error { panic("injected") })
	_, err := k.EnsureForSend(t.Context(), "A", "TBW102", 4, false)
	require.ErrorIs(t, err, messages.ErrPanicked)
	disk.Inject(nil)
	_, ok := k.Lookup("A")
	require.False(t, ok)
	_, err = k.EnsureForSend(t.Context(), "B", "TBW102", 4, false)
	require.NoError(t, err)
}

func TestUnknownMessageIsRefused(t *testing.T) {
	fixture.RefusesStrangers(t, start(t, options(memfs.New())).Peer())
}

func TestWaitEndsWithTheContext(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	goOn := make(chan struct{})
	entered := make(chan struct{})
	var once sync.Once
	disk.Inject(func(memfs.Op) error {
		once.Do(func() { close(entered) })
		<-goOn
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err := k.EnsureForSend(ctx, "A", "TBW102", 4, false)
	require.ErrorIs(t, err, context.Canceled)
	close(goOn)
	_, err = k.EnsureForSend(t.Context(), "A", "TBW102", 4, false)
	require.NoError(t, err)
}

// Many senders and readers at once; the race detector looks on.
func TestConcurrentUse(t *testing.T) {
	k := start(t, options(memfs.New()))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 20 {
				name := fmt.Sprint("T", (worker+i)%16)
				topic, err := k.EnsureForSend(t.Context(), name, "TBW102", 4, false)
				if err == nil && topic.TopicName != name {
					t.Errorf("asked for %s, got %s", name, topic.TopicName)
				}
				if err != nil && !errors.Is(err, messages.ErrTopicNotExist) {
					t.Error(err)
				}
				if worker == 0 {
					if err := k.Delete(t.Context(), name); err != nil {
						t.Error(err)
					}
				}
				for range k.All() { //nolint:revive // only reading
				}
				k.Table()
			}
		})
	}
	all.Wait()
}

func TestLookupDoesNotAllocate(t *testing.T) {
	k := start(t, options(memfs.New()))
	require.Zero(t, testing.AllocsPerRun(100, func() { _, lookupSink = k.Lookup("TBW102") }))
	require.True(t, lookupSink)
}

var lookupSink bool

func BenchmarkKeeper(b *testing.B) {
	k := start(b, options(memfs.New()))
	for i := range 2000 {
		k.Peer().Send(&messages.EnsureTopic{Topic: fmt.Sprint("T", i), Queues: 8, Perm: 6})
	}
	_, err := k.EnsureRetry(b.Context(), "g", 1, false)
	require.NoError(b, err)
	b.Run("op=lookup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, lookupSink = k.Lookup("T500")
		}
	})
	b.Run(fmt.Sprint("op=create/topics=", k.Len()), func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := k.EnsureForSend(b.Context(), fmt.Sprint("B", i), "TBW102", 4, false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
