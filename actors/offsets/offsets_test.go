package offsets_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestCommitAndLookup(t *testing.T) {
	k := start(t, options(memfs.New()))
	require.Equal(t, messages.NoOffset, k.Lookup("g", key("T")))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 5))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T", 1023), 7))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T", 3), 0))
	require.NoError(t, k.CommitWait(t.Context(), "h", key("T"), 9))
	for _, c := range []struct {
		group string
		queue messages.QueueKey
		want  messages.QueueOffset
	}{
		{"g", key("T"), 5}, {"g", key("T", 1023), 7}, {"g", key("T", 3), 0}, {"h", key("T"), 9},
		{"g", key("T", 2), messages.NoOffset}, {"g", key("U"), messages.NoOffset}, {"i", key("T"), messages.NoOffset},
	} {
		got, err := k.Query(t.Context(), c.group, c.queue)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Equal(t, c.want, k.Lookup(c.group, c.queue))
	}
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 6))
	require.Equal(t, map[int32]messages.QueueOffset{0: 6, 3: 0, 1023: 7}, k.Queues("g", "T"))
	require.Empty(t, k.Queues("g", "U"))
	require.Equal(t, []string{"g", "h"}, k.Groups("T"))
	require.Equal(t, []string{"T"}, k.Topics("h"))
	require.Empty(t, k.Topics("T"))
	require.Equal(t, 4, k.Len())
}

func TestCommitsThatAreIgnored(t *testing.T) {
	k := start(t, options(memfs.New()))
	for _, c := range []struct {
		group  string
		queue  messages.QueueKey
		offset messages.QueueOffset
	}{
		{"g", key("T"), -1}, {"g", key("T", -1), 5}, {"", key("T"), 5}, {"g", key(""), 5}, {"g", key("T@x"), 5},
		{strings.Repeat("g", 256), key("T"), 5}, {"g", key(strings.Repeat("t", 128)), 5},
	} {
		require.NoError(t, k.CommitWait(t.Context(), c.group, c.queue, c.offset), "the answer to a commit is always 0")
		require.Equal(t, messages.NoOffset, k.Lookup(c.group, c.queue))
	}
	require.Zero(t, k.Len())
	require.NoError(t, k.CommitWait(t.Context(), "g@h", key("T"), 5))
	require.NoError(t, k.Save(t.Context()))
	require.EqualValues(t, 5, k.Lookup("g@h", key("T")))
}

// L79: a commit that goes back is accepted, counted, and logged now and then.
func TestBackwardCommit(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		cfg := options(memfs.New())
		cfg.Logger = zerolog.New(&log)
		k := start(t, cfg)
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 500))
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 500))
		require.Zero(t, k.Backward())
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 0))
		require.EqualValues(t, 1, k.Backward())
		require.Zero(t, k.Lookup("g", key("T")))
		for i := range 1000 {
			require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), messages.QueueOffset(2000-i)))
		}
		require.EqualValues(t, 1000, k.Backward())
		require.Equal(t, 1, strings.Count(log.String(), "goes back"))
		require.Contains(t, log.String(), `"from":500,"to":0`)
		pass(6 * time.Second)
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1))
		require.Equal(t, 2, strings.Count(log.String(), "goes back"))
		require.Contains(t, log.String(), `"since_last":1000`)
	})
}

func TestBackwardCommitRefused(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		cfg := options(memfs.New())
		cfg.RefuseBackward = true
		k := start(t, cfg)
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 500))
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 0))
		require.EqualValues(t, 500, k.Lookup("g", key("T")))
		require.EqualValues(t, 1, k.Backward())
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 501))
		require.EqualValues(t, 501, k.Lookup("g", key("T")))

		require.NoError(t, k.ExpectReset("g", "T", time.Minute))
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 10))
		require.EqualValues(t, 10, k.Lookup("g", key("T")), "an operator wants it")
		require.NoError(t, k.CommitWait(t.Context(), "h", key("T"), 5))
		require.NoError(t, k.CommitWait(t.Context(), "h", key("T"), 4))
		require.EqualValues(t, 5, k.Lookup("h", key("T")), "of that group only")
		pass(time.Minute)
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 9))
		require.EqualValues(t, 10, k.Lookup("g", key("T")), "until then only")
		require.EqualValues(t, 3, k.Backward())
	})
}

func TestClone(t *testing.T) {
	k := start(t, options(memfs.New()))
	for queue := range int32(3) {
		require.NoError(t, k.CommitWait(t.Context(), "src", key("T", queue), 10))
	}
	require.NoError(t, k.CommitWait(t.Context(), "src", key("U"), 20))
	require.NoError(t, k.CommitWait(t.Context(), "src", key("%RETRY%src"), 30))
	require.NoError(t, k.CommitWait(t.Context(), "dst", key("T", 7), 1))
	n, err := k.Clone(t.Context(), "src", "dst", "T")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, map[int32]messages.QueueOffset{0: 10, 1: 10, 2: 10}, k.Queues("dst", "T"), "in place of its own")
	require.Equal(t, 8, k.Len())
	require.NoError(t, k.CommitWait(t.Context(), "src", key("T"), 11))
	require.EqualValues(t, 10, k.Lookup("dst", key("T")), "cells of its own")

	n, err = k.Clone(t.Context(), "src", "all", "")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []string{"T", "U"}, k.Topics("all"), "not the other's retry topic")
	for from, to := range map[string]string{"none": "x", "src": "src"} {
		n, err = k.Clone(t.Context(), from, to, "")
		require.NoError(t, err)
		require.Zero(t, n)
	}
}

func TestRemove(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	for _, group := range []string{"a", "b"} {
		for _, topic := range []string{"T", "U", "V"} {
			require.NoError(t, k.CommitWait(t.Context(), group, key(topic), 1))
		}
	}
	for _, c := range []struct {
		group, topic string
		want         int
	}{{"a", "T", 1}, {"", "U", 2}, {"b", "", 2}, {"none", "", 0}} {
		n, err := k.Remove(t.Context(), c.group, c.topic)
		require.NoError(t, err)
		require.Equal(t, c.want, n)
		require.Equal(t, k.Table(), start(t, options(disk.Crash(7))).Table(), "durable when answered (L91)")
	}
	require.Equal(t, []string{"V"}, k.Topics("a"))
	require.Equal(t, 1, k.Len())
	_, err := k.Remove(t.Context(), "", "")
	require.Error(t, err)
	require.Equal(t, 1, k.Len())
	require.NoError(t, k.CommitWait(t.Context(), "a", key("T"), 0))
	require.Zero(t, k.Lookup("a", key("T")), "it begins anew")
	require.Zero(t, k.Backward())
}

// L66: offsets from the master never put the own ones back, unless that is asked for.
func TestMerge(t *testing.T) {
	k := start(t, options(memfs.New()))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1000))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T", 1), 10))
	body := `{"offsetTable":{"T@g":{0:500,1:20,2:3},"%RETRY%h@h":{0:0},"odd":{0:1},"T@n":{0:-1}}}`
	require.NoError(t, k.Merge(t.Context(), []byte(body), false, nil))
	require.Equal(t, map[int32]messages.QueueOffset{0: 1000, 1: 20, 2: 3}, k.Queues("g", "T"))
	require.Zero(t, k.Lookup("h", key("%RETRY%h")))
	require.Equal(t, 4, k.Len())
	require.NoError(t, k.Merge(t.Context(), []byte(body), true, nil))
	require.EqualValues(t, 500, k.Lookup("g", key("T")))
	require.Zero(t, k.Backward())
	body = `{"offsetTable":{"T@g":{0:700},"Gone@g":{0:1}}}`
	require.NoError(t, k.Merge(t.Context(), []byte(body), false, func(topic string) bool { return topic != "Gone" }))
	require.EqualValues(t, 700, k.Lookup("g", key("T")))
	require.Equal(t, messages.NoOffset, k.Lookup("g", key("Gone")))
	require.ErrorContains(t, k.Merge(t.Context(), []byte(`{"offsetTable":[`), false, nil), "offsets of the master")
}

func TestLimit(t *testing.T) {
	cfg := options(memfs.New())
	cfg.MaxPositions = 2
	k := start(t, cfg)
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T", 0), 1))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T", 1), 1))
	require.ErrorIs(t, k.CommitWait(t.Context(), "g", key("T", 2), 1), messages.ErrBusy)
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T", 1), 2), "known ones go on")
	require.NoError(t, k.Merge(t.Context(), []byte(`{"offsetTable":{"T@h":{"0":1}}}`), false, nil))
	require.Equal(t, 2, k.Len())
	_, err := k.Remove(t.Context(), "g", "")
	require.NoError(t, err)
	require.NoError(t, k.CommitWait(t.Context(), "h", key("T"), 1))
}

// A client may name any queue: what a new one costs does not grow with those that it has named before, so others are not held up.
func TestManyQueuesOfOneTopicAreNoBurden(t *testing.T) {
	const queues, most = 30_000, 1 << 30 // a copy of all positions for each new one would be 7 GB
	k := start(t, options(memfs.New()))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	want := map[int32]messages.QueueOffset{}
	for _, i := range rand.New(rand.NewPCG(5, 6)).Perm(queues) {
		queue := int32(i) * (math.MaxInt32 / queues)
		want[queue] = messages.QueueOffset(i)
		require.NoError(t, k.Commit("g", key("T", queue), want[queue]))
	}
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T", 0), 0))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most))
	require.Equal(t, want, k.Queues("g", "T"))
	require.Equal(t, queues, k.Len())
	n, err := k.Clone(t.Context(), "g", "h", "T")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, want, k.Queues("h", "T"))
	require.Equal(t, 2*queues, k.Len())
}

// What one goroutine does in turn, against a map.
func TestAgainstMap(t *testing.T) {
	k := start(t, options(memfs.New()))
	random := rand.New(rand.NewPCG(3, 4))
	want := map[string]map[int32]int64{}
	for range 3000 {
		group, topic := fmt.Sprint("g", random.IntN(5)), fmt.Sprint("T", random.IntN(20))
		queue, offset := random.Int32N(10), random.Int64N(1000)
		if random.IntN(50) == 0 {
			_, err := k.Remove(t.Context(), group, topic)
			require.NoError(t, err)
			delete(want, topic+"@"+group)
			continue
		}
		require.NoError(t, k.Commit(group, key(topic, queue), messages.QueueOffset(offset)))
		if want[topic+"@"+group] == nil {
			want[topic+"@"+group] = map[int32]int64{}
		}
		want[topic+"@"+group][queue] = offset
	}
	_, err := k.Query(t.Context(), "g", key("T")) // behind the last commit
	require.NoError(t, err)
	require.Equal(t, want, k.Table().Offsets)
}

// A sender sees its own commits, whatever others do.
func TestQueryIsBehindOwnCommits(t *testing.T) {
	k := start(t, options(memfs.New()))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			group := fmt.Sprint("g", worker)
			for i := range messages.QueueOffset(300) {
				if err := k.Commit(group, key("T", int32(i)%4), i); err != nil {
					t.Error(err)
				}
				got, err := k.Query(t.Context(), group, key("T", int32(i)%4))
				if err != nil || got != i {
					t.Errorf("%s: committed %d, got %d, %v", group, i, got, err)
				}
				k.Lookup("g0", key("T"))
				k.Table()
			}
		})
	}
	all.Wait()
	for worker := range 8 {
		require.Equal(t, map[int32]messages.QueueOffset{0: 296, 1: 297, 2: 298, 3: 299}, k.Queues(fmt.Sprint("g", worker), "T"))
	}
}

func TestMessagesFromOtherActors(t *testing.T) {
	k := start(t, options(memfs.New()))
	k.Peer().Send(&messages.CommitOffset{Group: "g", Queue: key("T"), Offset: 4})
	ask := &messages.QueryOffset{Group: "g", Queue: key("T"), Answer: messages.NewAnswer[messages.QueueOffset]()}
	k.Peer().Send(ask)
	got, err := ask.Answer.Wait(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 4, got)

	fixture.RefusesStrangers(t, k.Peer())
}

func TestCloseRefusesAndKeepsLookups(t *testing.T) {
	k := start(t, options(memfs.New()))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 4))
	require.NoError(t, k.Close())
	_, err := k.Query(context.Background(), "g", key("T"))
	require.ErrorIs(t, err, messages.ErrClosed)
	require.NoError(t, k.Commit("g", key("T"), 5), "dropped")
	require.EqualValues(t, 4, k.Lookup("g", key("T")))
}

func TestHotPathAllocations(t *testing.T) {
	k := start(t, options(memfs.New()))
	q := key("T")
	require.NoError(t, k.CommitWait(t.Context(), "g", q, 1))
	require.Zero(t, testing.AllocsPerRun(100, func() { offsetSink = k.Lookup("g", q) }))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _ = k.Commit("g", q, 2) }), 1.0, "the message")
}

var offsetSink messages.QueueOffset

func TestTablesAreCopies(t *testing.T) {
	k := start(t, options(memfs.New()))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1))
	table := k.Table()
	maps.DeleteFunc(table.Offsets["T@g"], func(int32, int64) bool { return true })
	k.Queues("g", "T")[0] = 9
	require.EqualValues(t, 1, k.Lookup("g", key("T")))
}

func BenchmarkKeeper(b *testing.B) {
	k := start(b, options(memfs.New()))
	for topic := range 10_000 {
		if err := k.Commit("g", key(fmt.Sprint("T", topic)), 1); err != nil {
			b.Fatal(err)
		}
	}
	q := key("T5000")
	b.Run("op=lookup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			offsetSink = k.Lookup("g", q)
		}
	})
	b.Run("op=commit/callers=1", func(b *testing.B) {
		b.ReportAllocs()
		for i := messages.QueueOffset(0); b.Loop(); i++ {
			if err := k.Commit("g", q, i); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=commit/callers=many", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := messages.QueueOffset(0); pb.Next(); i++ {
				if err := k.Commit("g", q, i); err != nil && !errors.Is(err, messages.ErrBusy) {
					b.Fatal(err)
				}
			}
		})
	})
}
