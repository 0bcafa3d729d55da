package system_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/writer"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

func light(disk vfs.Disk) system.Options {
	opt := small(disk)
	opt.MultiDispatch, opt.LightTopics = true, true
	return opt
}

// further is a message of T/2 that is in other queues too.
func further(body, names string) *messages.Message {
	m := message("T", 2, body)
	m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyMultiDispatch: names})
	return m
}

// TestAMessageIsInItsFurtherQueues holds the vector of spec/store.md §17.9.
func TestAMessageIsInItsFurtherQueues(t *testing.T) {
	disk := memfs.New()
	opt := light(disk)
	s, err := system.Open(opt)
	require.NoError(t, err)
	m := further("x", "%LMQ%a,B")
	m.Properties = m.Properties.With(messages.PropertyWait, "true").With(messages.PropertyMultiQueueOffset, "77")
	put(t, s, m)
	put(t, s, m)
	keys := []messages.QueueKey{{Topic: "T", QueueID: 2}, {Topic: "%LMQ%a"}, {Topic: "B", QueueID: 2}}
	for _, key := range keys {
		require.Equal(t, []string{"x", "x"}, read(t, s, key, 0, 2), "%v", key)
	}
	first, err := s.MessageAt(0)
	require.NoError(t, err)
	require.Equal(t, messages.Properties("INNER_MULTI_DISPATCH\x01%LMQ%a,B\x02INNER_MULTI_QUEUE_OFFSET\x010,0"), first.Properties)
	second, err := s.MessageAt(0x97)
	require.NoError(t, err)
	at, _ := second.Properties.Get(messages.PropertyMultiQueueOffset)
	require.Equal(t, "1,1", at)
	require.NoError(t, s.Close(t.Context()))

	want := append(consumequeue.Unit{Size: 0x97}.AppendTo(nil), consumequeue.Unit{PhysicalOffset: 0x97, Size: 0x97}.AppendTo(nil)...)
	for _, name := range []string{"T/2", "%LMQ%a/0", "B/2"} {
		f, err := disk.Open("store/consumequeue/"+name+"/00000000000000000000", false)
		require.NoError(t, err)
		got := make([]byte, len(want))
		_, err = f.ReadAt(got, 0)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
		require.NoError(t, f.Close())
	}
}

// TestFurtherQueuesGoOnAfterAStopAndAKill: their offsets are those of the queues, and lost queues are built again.
func TestFurtherQueuesGoOnAfterAStopAndAKill(t *testing.T) {
	disk := memfs.New()
	opt := light(disk)
	want := map[messages.QueueKey][]string{}
	key := func(name string) messages.QueueKey { return record.FurtherQueue(name, 2) }
	for round := range 6 {
		s, err := system.Open(opt)
		require.NoError(t, err)
		for i := range 60 {
			body := fmt.Sprint(round, "-", i, strings.Repeat("y", 300))
			names := []string{"%LMQ%a", fmt.Sprint("%LMQ%", i%3+1), fmt.Sprint("B", i%2)}[:1+i%3]
			put(t, s, further(body, strings.Join(names, ",")))
			for _, name := range append(names, "T") {
				want[key(name)] = append(want[key(name)], body)
			}
		}
		require.NoError(t, s.AwaitDispatched(t.Context()))
		for k, list := range want {
			require.Equal(t, list, read(t, s, k, 0, len(list)), "%v", k)
		}
		next := disk
		if round%2 == 1 {
			next = disk.Clone()
		}
		require.NoError(t, s.Close(context.WithoutCancel(t.Context())))
		disk = next
		opt.Disk = disk
		if round == 3 {
			require.NoError(t, removeAll(disk, "store/consumequeue/%LMQ%a/0"))
			require.NoError(t, removeAll(disk, "store/consumequeue/B1/2"))
		}
	}
	s, err := system.Open(opt)
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	report, err := verify.Run(disk, store.Params{
		Dir: opt.Dir, SegmentBytes: opt.SegmentBytes, ConsumeQueueFileBytes: opt.ConsumeQueueFileBytes, MultiDispatch: true,
		IndexSlots: opt.IndexSlots, IndexEntries: opt.IndexEntries, CheckCRC: true, MessageIndex: true,
	}, nil)
	require.NoError(t, err)
	require.True(t, report.Whole, "%v", report.Findings)
}

func TestFurtherQueuesThatCannotBe(t *testing.T) {
	opt := light(memfs.New())
	opt.MaxLightQueues, opt.SegmentBytes = 2, 128<<10
	s := open(t, opt)
	for _, names := range []string{"%LMQ%a,%LMQ%a", "T", "a/b", "B,,C", strings.Repeat("x", 128)} {
		r, err := s.Put(t.Context(), further("x", names))
		require.ErrorIs(t, err, system.ErrFurtherQueues, names)
		require.Equal(t, messages.MessageIllegal, r.Status)
	}
	put(t, s, further("x", "%LMQ%a,%LMQ%b"))
	r, err := s.Put(t.Context(), further("x", "%LMQ%c")) // W31: the original's limit has no effect
	require.ErrorIs(t, err, writer.ErrLightQueues)
	require.Equal(t, messages.LMQConsumeQueueNumExceeded, r.Status)
	put(t, s, further("x", "%LMQ%b,Other"))
	long := further("x", "%LMQ%a")
	long.Properties = long.Properties.With("P", strings.Repeat("p", messages.MaxPropertiesBytes-len(long.Properties)-3))
	r, err = s.Put(t.Context(), long)
	require.ErrorIs(t, err, record.ErrPropertiesTooLong)
	require.Equal(t, messages.PropertiesSizeExceeded, r.Status)
	require.Equal(t, []string{"x", "x"}, read(t, s, messages.QueueKey{Topic: "T", QueueID: 2}, 0, 2), "what is refused uses nothing up")
	require.NoError(t, s.AwaitDispatched(t.Context()))
	require.EqualValues(t, 1, s.MaxOffset(messages.QueueKey{Topic: "%LMQ%a"}))
	require.Nil(t, s.Writable())
}

// TestWhatComesAgainIsInItsFurtherQueuesOnce: a delayed message goes there when it is delivered, half messages when they are
// committed, a copy that goes back to its group not at all.
func TestWhatComesAgainIsInItsFurtherQueuesOnce(t *testing.T) {
	opt := light(memfs.New())
	opt.DelayLevels = "1s"
	s := open(t, opt)
	m := further("later", "%LMQ%a")
	m.Properties = m.Properties.With(messages.PropertyDelay, "1")
	put(t, s, m)
	again := further("again", "%LMQ%a")
	again.Topic = messages.RetryTopicPrefix + "g"
	put(t, s, again)
	require.NoError(t, s.AwaitDispatched(t.Context()))
	require.Zero(t, s.MaxOffset(messages.QueueKey{Topic: "%LMQ%a"}))
	require.Equal(t, []string{"later"}, read(t, s, messages.QueueKey{Topic: "%LMQ%a"}, 0, 1))

	tx, err := s.Transactions(t.Context(), system.TransactionOptions{})
	require.NoError(t, err)
	half, _, err := tx.Prepare(t.Context(), "g", further("committed", "%LMQ%a"))
	require.NoError(t, err)
	require.NoError(t, s.AwaitDispatched(t.Context()))
	require.EqualValues(t, 1, s.MaxOffset(messages.QueueKey{Topic: "%LMQ%a"}))
	_, err = tx.Commit(t.Context(), half)
	require.NoError(t, err)
	require.Equal(t, []string{"later", "committed"}, read(t, s, messages.QueueKey{Topic: "%LMQ%a"}, 0, 2))
}

// TestWithoutMultiDispatchTheListIsAProperty like any other.
func TestWithoutMultiDispatchTheListIsAProperty(t *testing.T) {
	s := open(t, small(memfs.New()))
	m := further("x", "%LMQ%a,B")
	put(t, s, m)
	read(t, s, m.Queue(), 0, 1)
	stored, err := s.MessageAt(0)
	require.NoError(t, err)
	require.Equal(t, m.Properties, stored.Properties)
	require.Zero(t, s.MaxOffset(messages.QueueKey{Topic: "%LMQ%a"}))
}
