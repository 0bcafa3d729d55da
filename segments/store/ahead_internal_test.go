package store

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/memfs"
)

// scanning is a planner that has begun to scan a log, and keeps keys.
func scanning(t *testing.T, limits aheadLimits) *planner {
	t.Helper()
	queues, err := consumequeue.OpenTable(memfs.New(), "q", consumequeue.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, queues.Close()) })
	limits = limits.withDefaults()
	p := &planner{loaded: loaded{queues: queues, floors: &floors{}}, limits: limits, kept: &keptKeys{limit: limits.keys}}
	p.judge = newJudge(p)
	return p
}

// With 5 GB and 100,000 queues the stretches know of tens of thousands of queues each: what the walk has behind it goes.
func TestAStretchIsLetGoOnceItIsTaken(t *testing.T) {
	done := make(chan struct{})
	close(done)
	a := &ahead{rest: []*stretch{{done: done}, {from: 1, done: done}}}
	first := weak.Make(a.rest[0])
	a.next()
	runtime.GC()
	require.Nil(t, first.Value())
	require.True(t, a.begins(1))

	p, key := scanning(t, aheadLimits{}), messages.QueueKey{Topic: "T"}
	s := &stretch{to: 2, seen: []seenQueue{{key: key, end: 3}}, odd: []oddRecord{{queue: &glimpse{unitWindow: unitWindow{key: key}}}}}
	p.judge.dropQueue(p.judge.verdicts.of([]byte("T"), 0), errNoRecord) // there is nothing to be said of the odd one
	var keys index.Keys
	require.True(t, keys.Add([]byte("T"), "u", "", 1, 1))
	s.keys = keys.Take()
	require.NoError(t, p.take(s))
	require.Equal(t, []*index.Packed{&s.keys}, p.kept.all)
	require.Empty(t, s.seen)
	require.Empty(t, s.odd)
}

// A record may have some ten thousand keys of one letter: in memory they are twelve times as long as in the log, six once they are packed.
func TestAStretchOfManyKeysEnds(t *testing.T) {
	p := scanning(t, aheadLimits{})
	properties := []byte(messages.PropertiesOf(map[string]string{messages.PropertyKeys: strings.Repeat("a ", 16_000)}))
	r := &aheadReader{planner: p, s: &stretch{until: math.MaxInt64}}
	r.queues = newQueueStates(func(key messages.QueueKey) *glimpse { return &glimpse{unitWindow: unitWindow{key: key}} })
	var err error
	for at := messages.PhysicalOffset(0); err == nil && r.keys.Len() < maxKeys; at += 1 << 10 {
		err = r.item(&Item{From: at, To: at + 1<<10, Record: record.Record{
			PhysicalOffset: at, Topic: []byte("T"), Properties: properties,
		}})
	}
	require.ErrorIs(t, err, errLooked)
	require.Less(t, r.keys.Len(), maxKeys/4)
}

// What readers remember of queues is bounded for all of them together.
func TestManyQueuesHaveFewReaders(t *testing.T) {
	l := aheadLimits{readers: 16}.withDefaults()
	require.Equal(t, 16, l.readersOf(0))
	require.Equal(t, 16, l.readersOf(1000))
	require.Equal(t, 4, l.readersOf(100_000))
	require.Zero(t, l.readersOf(1_000_000), "the walk is alone")
	require.LessOrEqual(t, aheadLimits{}.withDefaults().readers, maxReaders)
}
