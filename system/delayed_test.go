package system_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const delayFile = "store/config/delayOffset.json"

// later is a message that asks for a delay.
func later(level int, body string) *messages.Message {
	m := message("T", 1, body)
	m.Properties = messages.Properties("TAGS\x01a").With(messages.PropertyDelay, strconv.Itoa(level))
	return m
}

func putAll(t *testing.T, s *system.Store, list ...*messages.Message) {
	t.Helper()
	for _, m := range list {
		r, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, messages.PutOK, r.Status)
	}
}

// inBubble runs a test with a store of its own, on a clock that jumps.
func inBubble(t *testing.T, opt system.Options, test func(t *testing.T, s *system.Store)) {
	t.Helper()
	fixture.Bubble(t, func(t *testing.T) {
		s, err := system.Open(opt)
		require.NoError(t, err)
		test(t, s)
		require.NoError(t, s.Close(t.Context()))
	})
}

// stored returns what is in a queue now.
func stored(t *testing.T, s *system.Store, key messages.QueueKey) []messages.StoredMessage {
	t.Helper()
	var all []messages.StoredMessage
	for at, end := s.MinOffset(key), s.MaxOffset(key); at < end; {
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32})
		require.NoError(t, err)
		for _, raw := range r.Records {
			list, err := record.DecodeAll(raw)
			require.NoError(t, err)
			all = append(all, list...)
		}
		at = r.NextOffset
		r.Release()
	}
	return all
}

func bodies(list []messages.StoredMessage) []string {
	out := make([]string, 0, len(list))
	for i := range list {
		out = append(out, string(list[i].Body))
	}
	return out
}

func offsetsOf(t *testing.T, disk vfs.Disk) map[int]int64 {
	t.Helper()
	var file metadata.DelayOffsets
	found, err := metadata.Load(disk, delayFile, &file)
	require.NoError(t, err)
	require.True(t, found, "there is no %s", delayFile)
	return file.Offsets
}

var target = messages.QueueKey{Topic: "T", QueueID: 1}

func TestEveryLevelDeliversAtItsTime(t *testing.T) {
	inBubble(t, small(memfs.New()), func(t *testing.T, s *system.Store) {
		levels, err := messages.ParseDelayLevels(messages.DefaultDelayLevels)
		require.NoError(t, err)
		began := time.Now()
		for level := len(levels); level > 0; level-- {
			putAll(t, s, later(level, fmt.Sprint(level)))
		}
		putAll(t, s, later(99, "beyond the last level"), later(0, "at once"), later(-1, "at once too"))
		settle()
		require.Equal(t, []string{"at once", "at once too"}, bodies(stored(t, s, target)))
		for i, d := range levels {
			<-time.After(time.Until(began.Add(d - time.Millisecond)))
			settle()
			require.EqualValues(t, i+2, s.MaxOffset(target), "not before %v", d)
			<-time.After(time.Millisecond)
			settle()
			require.GreaterOrEqual(t, int64(s.MaxOffset(target)), int64(i+3), "at %v", d)
			m := stored(t, s, target)[i+2]
			require.Equal(t, fmt.Sprint(i+1), string(m.Body))
			require.Equal(t, began.Add(d).UnixMilli(), m.StoreTimestampMs)
		}
		last := stored(t, s, target)
		require.Equal(t, "beyond the last level", string(last[len(last)-1].Body))
		require.Equal(t, map[string]string{"TAGS": "a", "DELAY": "18", "REAL_TOPIC": "T", "REAL_QID": "1"},
			last[len(last)-1].Properties.Map(), "a delivered message keeps what is stored")
	})
}

func TestALevelKeepsTheOrder(t *testing.T) {
	inBubble(t, small(memfs.New()), func(t *testing.T, s *system.Store) {
		var want []string
		for i := range 600 { // more than two batches
			want = append(want, fmt.Sprint(i))
			putAll(t, s, later(2, want[i]))
			if i%100 == 0 {
				<-time.After(time.Millisecond)
			}
		}
		<-time.After(5 * time.Second)
		settle()
		require.Equal(t, want, bodies(stored(t, s, target)))
	})
}

func TestAnIdleLevelIsWokenByAMessage(t *testing.T) {
	inBubble(t, small(memfs.New()), func(t *testing.T, s *system.Store) {
		for i := range 20 { // each finds the level idle again
			putAll(t, s, later(1, fmt.Sprint(i)))
			<-time.After(time.Second)
			settle()
			require.EqualValues(t, i+1, s.MaxOffset(target))
			<-time.After(time.Hour)
		}
	})
}

// TestAStopInOrderDeliversNothingTwice: L56.
func TestAStopInOrderDeliversNothingTwice(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		var want []string
		for round := range 4 {
			s, err := system.Open(small(disk))
			require.NoError(t, err)
			for i := range 300 {
				want = append(want, fmt.Sprintf("%d/%d", round, i))
				putAll(t, s, later(1, want[len(want)-1]))
			}
			<-time.After(time.Second) // some are on their way while it is closed
			require.NoError(t, s.Close(t.Context()))
			disk = disk.Crash(uint64(round))
		}
		s, err := system.Open(small(disk))
		require.NoError(t, err)
		<-time.After(time.Second)
		settle()
		require.Equal(t, want, bodies(stored(t, s, target)))
		require.Equal(t, map[int]messages.QueueOffset{1: 1200}, nonZero(s.DelayOffsets()))
		require.NoError(t, s.Close(t.Context()))
		require.Equal(t, map[int]int64{1: 1200}, offsetsOf(t, disk))
	})
}

func nonZero(offsets map[int]messages.QueueOffset) map[int]messages.QueueOffset {
	for level, at := range offsets {
		if at == 0 {
			delete(offsets, level)
		}
	}
	return offsets
}

func TestOffsetsAreSavedAfterTheInterval(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	opt.DelayOffsetInterval = 3 * time.Second
	inBubble(t, opt, func(t *testing.T, s *system.Store) {
		putAll(t, s, later(1, "a"), later(1, "b"), later(2, "c"))
		<-time.After(time.Second + 2900*time.Millisecond)
		settle()
		_, err := disk.Stat(delayFile)
		require.Error(t, err, "nothing is written before the interval is over")
		<-time.After(200 * time.Millisecond)
		settle()
		require.Equal(t, map[int]int64{1: 2}, offsetsOf(t, disk))
		<-time.After(time.Minute)
		settle()
		require.Equal(t, map[int]int64{1: 2, 2: 1}, offsetsOf(t, disk))
		var before metadata.DelayOffsets
		found, err := metadata.Load(disk, delayFile+".bak", &before)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, map[int]int64{1: 2}, before.Offsets)
	})
}

func TestStartingTwiceDeliversOnce(t *testing.T) {
	inBubble(t, small(memfs.New()), func(t *testing.T, s *system.Store) {
		for range 2 {
			require.NoError(t, s.DeliverDelayed(t.Context(), false))
		}
		putAll(t, s, later(1, "a"), later(1, "b"))
		<-time.After(time.Hour)
		settle()
		require.Zero(t, s.MaxOffset(target), "switched off")
		for range 3 {
			require.NoError(t, s.DeliverDelayed(t.Context(), true))
		}
		settle()
		require.Equal(t, []string{"a", "b"}, bodies(stored(t, s, target)))
		require.NoError(t, s.DeliverDelayed(t.Context(), false))
		putAll(t, s, later(1, "c"), later(18, "d"))
		<-time.After(3 * time.Hour)
		settle()
		require.EqualValues(t, 2, s.MaxOffset(target), "switched off again")
		require.NoError(t, s.DeliverDelayed(t.Context(), true))
		settle()
		require.ElementsMatch(t, []string{"a", "b", "c", "d"}, bodies(stored(t, s, target)))
	})
}

func TestASlaveDeliversNothing(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := small(disk)
		s, err := system.Open(opt)
		require.NoError(t, err)
		putAll(t, s, later(1, "a"))
		require.NoError(t, s.Close(t.Context()))
		opt.Role = messages.Slave
		s, err = system.Open(opt)
		require.NoError(t, err)
		<-time.After(time.Hour)
		settle()
		require.Zero(t, s.MaxOffset(target))
		require.Empty(t, s.DelayOffsets())
		require.ErrorIs(t, s.DeliverDelayed(t.Context(), true), system.ErrSlave)
		require.NoError(t, s.Close(t.Context()))
		opt.Role = messages.SyncMaster
		s, err = system.Open(opt)
		require.NoError(t, err)
		settle()
		require.Equal(t, []string{"a"}, bodies(stored(t, s, target)))
		require.NoError(t, s.Close(t.Context()))
		require.ErrorIs(t, s.DeliverDelayed(t.Context(), true), system.ErrStopped)
	})
}

// TestASavedOffsetOutsideOfItsQueueGoesToTheNearestEnd: L55.
func TestASavedOffsetOutsideOfItsQueueGoesToTheNearestEnd(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		s, err := system.Open(small(disk))
		require.NoError(t, err)
		putAll(t, s, later(1, "a"), later(1, "b"))
		<-time.After(time.Second)
		settle()
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, metadata.Save(disk, delayFile, map[string]any{
			"offsetTable": map[int]int64{1: 999_999, 2: -7, 3: 999_999, 77: 5}, "ours": "kept",
		}))
		s, err = system.Open(small(disk))
		require.NoError(t, err)
		putAll(t, s, later(1, "c"), later(2, "d"), later(3, "e"))
		<-time.After(10 * time.Second)
		settle()
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, bodies(stored(t, s, target)))
		require.NoError(t, s.Close(t.Context()))
		require.Equal(t, map[int]int64{1: 3, 2: 1, 3: 1, 77: 5}, offsetsOf(t, disk))
		var file map[string]json.RawMessage
		_, err = metadata.Load(disk, delayFile, &file)
		require.NoError(t, err)
		require.JSONEq(t, `"kept"`, string(file["ours"]))
	})
}

func TestUnreadableOffsetsDeliverAgainRatherThanNothing(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		s, err := system.Open(small(disk))
		require.NoError(t, err)
		putAll(t, s, later(1, "a"))
		<-time.After(time.Second)
		settle()
		require.NoError(t, s.Close(t.Context()))
		for _, name := range []string{delayFile, delayFile + ".bak"} {
			if f, err := disk.Create(name); err == nil {
				require.NoError(t, f.Close())
			}
			f, err := disk.Open(name, true)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("{damaged"), 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		s, err = system.Open(small(disk))
		require.NoError(t, err)
		settle()
		require.Equal(t, []string{"a", "a"}, bodies(stored(t, s, target)))
		require.NoError(t, s.Close(t.Context()))
		entries, err := disk.List("store/config")
		require.NoError(t, err)
		aside := 0
		for _, e := range entries {
			if strings.Contains(e.Name, ".unreadable-") {
				aside++
			}
		}
		require.Equal(t, 2, aside)
	})
}

func TestLevelsThatAreGoneAreStillDelivered(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := small(memfs.New())
		s, err := system.Open(opt)
		require.NoError(t, err)
		putAll(t, s, later(5, "a minute"), later(3, "ten seconds"), later(2, "five seconds"))
		require.NoError(t, s.Close(t.Context()))
		opt.DelayLevels = "1s 2s"
		began := time.Now()
		s, err = system.Open(opt)
		require.NoError(t, err)
		settle()
		require.Equal(t, []string{"five seconds"}, bodies(stored(t, s, target)), "its level has become shorter: now")
		putAll(t, s, later(5, "the last level"))
		<-time.After(2 * time.Second)
		settle()
		require.EqualValues(t, 2, s.MaxOffset(target))
		<-time.After(time.Until(began.Add(9998 * time.Millisecond)))
		settle()
		require.EqualValues(t, 2, s.MaxOffset(target))
		<-time.After(time.Millisecond)
		settle()
		require.EqualValues(t, 3, s.MaxOffset(target), "as it was stored")
		<-time.After(50 * time.Second)
		settle()
		require.Equal(t, []string{"five seconds", "the last level", "ten seconds", "a minute"}, bodies(stored(t, s, target)))
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestAMessageNearALimitIsRefusedOrDelivered: L03. What is accepted is delivered, and what comes behind it is on time.
func TestAMessageNearALimitIsRefusedOrDelivered(t *testing.T) {
	opt := small(memfs.New())
	opt.MaxMessageBytes = 40 << 10
	inBubble(t, opt, func(t *testing.T, s *system.Store) {
		topic := strings.Repeat("t", 127)
		accepted, refused := 0, 0
		try := func(m *messages.Message) {
			r, err := s.Put(t.Context(), m)
			if err == nil {
				accepted++
			} else {
				require.Contains(t, []messages.PutStatus{messages.MessageIllegal, messages.PropertiesSizeExceeded}, r.Status)
				refused++
			}
		}
		big := 0
		for over := range 600 {
			m := later(1, strings.Repeat("b", 32<<10-500+over))
			m.Topic, m.QueueID = topic, 0
			try(m)
		}
		big = accepted
		for over := range 100 {
			m := later(1, "x")
			m.Topic, m.QueueID = topic, 0
			m.Properties = m.Properties.With("p", strings.Repeat("p", 30<<10+over*10))
			try(m)
		}
		require.Positive(t, big)
		require.Positive(t, refused)
		putAll(t, s, later(1, "small"))
		<-time.After(time.Second)
		settle()
		require.EqualValues(t, 1, s.MaxOffset(target), "not held up")
		require.EqualValues(t, accepted, s.MaxOffset(messages.QueueKey{Topic: topic}))
		require.EqualValues(t, accepted+1, s.DelayOffsets()[1])
	})
}

// TestWhatHasNoDestinationIsLeftOut: what can't be delivered stands in nobody's way.
func TestWhatHasNoDestinationIsLeftOut(t *testing.T) {
	inBubble(t, small(memfs.New()), func(t *testing.T, s *system.Store) {
		raw := func(pairs string) *messages.Message {
			m := message(messages.TopicSchedule, 0, "lost")
			m.Properties = messages.Properties(strings.NewReplacer("|", "\x01", ",", "\x02").Replace(pairs))
			return m
		}
		putAll(t, s,
			raw("DELAY|1"), raw("DELAY|1,REAL_TOPIC|T"), raw("DELAY|1,REAL_TOPIC|T,REAL_QID|x"), raw("DELAY|1,REAL_TOPIC|T,REAL_QID|-1"),
			raw("DELAY|1,REAL_QID|1"), raw("DELAY|1,REAL_QID|0,REAL_TOPIC|"+messages.TopicSchedule),
			raw("DELAY|1,REAL_QID|0,REAL_TOPIC|"+messages.TopicTransactionHalf), raw("DELAY|1,REAL_QID|0,REAL_TOPIC|"+strings.Repeat("x", 128)),
			raw(""), later(1, "good"))
		<-time.After(time.Second)
		settle()
		require.Equal(t, []string{"good"}, bodies(stored(t, s, target)))
		require.EqualValues(t, 10, s.DelayOffsets()[1])
		require.Zero(t, s.MaxOffset(messages.QueueKey{Topic: messages.TopicTransactionHalf}))
	})
}

func TestAFullDiskDelaysDelayedMessagesAndLosesNone(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	opt.NoForcedCleaning = true // nothing makes room
	inBubble(t, opt, func(t *testing.T, s *system.Store) {
		var want []string
		for i := range 200 {
			want = append(want, fmt.Sprint(i))
			m := later(2, want[i])
			m.Properties = m.Properties.With("p", strings.Repeat(".", 1000))
			putAll(t, s, m)
		}
		usage, err := disk.Usage("store")
		require.NoError(t, err)
		disk.SetCapacity(usage.TotalBytes - usage.FreeBytes + 40<<10)
		<-time.After(time.Minute)
		settle()
		n := int64(s.MaxOffset(target))
		require.Less(t, n, int64(200), "there is no room for all of them")
		disk.SetCapacity(0)
		<-time.After(time.Minute)
		settle()
		require.Equal(t, want, bodies(stored(t, s, target)))
	})
}

func TestPutsThatAreRefusedAreMadeAgain(t *testing.T) {
	opt := small(memfs.New())
	opt.MaxPendingPuts, opt.FlushDiskType = 1, system.SyncFlush
	inBubble(t, opt, func(t *testing.T, s *system.Store) {
		var want []string
		for i := range 50 {
			want = append(want, fmt.Sprint(i))
			putAll(t, s, later(1, want[i]))
		}
		for i := range 200 { // the one place is taken again and again
			_, err := s.Put(t.Context(), message("other", 0, fmt.Sprint(i)))
			if err != nil {
				require.ErrorIs(t, err, system.ErrTooManyPuts)
			}
			<-time.After(10 * time.Millisecond)
		}
		<-time.After(10 * time.Second)
		settle()
		require.Equal(t, want, bodies(stored(t, s, target)))
	})
}

// TestCrashesDuringDeliveryLoseNothing: at any moment, whatever is left of what was not synced.
func TestCrashesDuringDeliveryLoseNothing(t *testing.T) {
	for _, flush := range []system.FlushDiskType{system.AsyncFlush, system.SyncFlush} {
		t.Run(flush.String(), func(t *testing.T) {
			for seed := range uint64(30) {
				fixture.Bubble(t, func(t *testing.T) { crashDuringDelivery(t, flush, seed) })
			}
		})
	}
}

func crashDuringDelivery(t *testing.T, flush system.FlushDiskType, seed uint64) {
	const count = 120
	disk := memfs.New()
	opt := small(disk)
	opt.FlushDiskType, opt.DelayOffsetInterval = flush, 700*time.Millisecond
	s, err := system.Open(opt)
	require.NoError(t, err)
	for i := range count {
		putAll(t, s, later(1+i%3, fmt.Sprint(i)))
		if i%4 == 0 {
			<-time.After(50 * time.Millisecond)
		}
	}
	<-time.After(time.Second)
	settle() // everything that was put is durable, and a part delivered
	<-time.After(time.Duration(seed) * 257 * time.Millisecond)
	crashed := disk.Crash(seed)
	if seed%5 == 0 {
		crashed = disk.Clone() // kill -9
	}
	saved := map[int]int64{}
	var file metadata.DelayOffsets
	if found, err := metadata.Load(crashed, delayFile, &file); err == nil && found {
		saved = file.Offsets
	}
	delivered := s.DelayOffsets()
	require.NoError(t, s.Close(context.WithoutCancel(t.Context())))

	opt.Disk = crashed
	again, err := system.Open(opt)
	require.NoError(t, err)
	<-time.After(20 * time.Second)
	settle()
	seen := map[string]int{}
	for _, body := range bodies(stored(t, again, target)) {
		seen[body]++
	}
	twice := 0
	for i := range count {
		n := seen[fmt.Sprint(i)]
		require.Positive(t, n, "seed %d: message %d is lost; saved %v, delivered %v", seed, i, saved, delivered)
		twice += n - 1
	}
	window := 0
	for level, at := range delivered {
		require.GreaterOrEqual(t, int64(at), saved[level])
		window += int(int64(at) - saved[level])
	}
	require.LessOrEqual(t, twice, window, "seed %d: more than what was delivered after the last save", seed)
	require.NoError(t, again.Close(t.Context()))
}

// TestADelayedMessageOfRocketMQIsDeliveredAsRocketMQDoes: the record of spec/store.md §17.5 at its place in the log, and its
// delivery at its own; only the time is ten seconds later than there, where the clock stood still.
func TestADelayedMessageOfRocketMQIsDeliveredAsRocketMQDoes(t *testing.T) {
	const (
		nowMs     = 1700000000123
		delayed   = 689
		delivered = 1526
		want      = "0000009adaa320a76c03b2490000000200000007000000000000000000000000000005f6000000000000018bcfe56418" +
			"0a0102030000162e0000018bcfe5687bc0a8000900002a9f000000000000000000000000000000056c6174657209546f" +
			"7069635465737400315245414c5f544f50494301546f706963546573740244454c415901330254414753015461674102" +
			"5245414c5f5149440132"
	)
	filler := func(bytes int) *messages.Message {
		return message("F", 0, strings.Repeat("f", bytes-record.MinBytes-1))
	}
	fixture.Bubble(t, func(t *testing.T) {
		<-time.After(time.Until(time.UnixMilli(nowMs)))
		opt := small(memfs.New())
		opt.StoreHost = netip.MustParseAddrPort("192.168.0.9:10911")
		s, err := system.Open(opt)
		require.NoError(t, err)
		m := &messages.Message{
			Topic: messages.TopicSchedule, QueueID: 2, Flag: 7, Body: []byte("later"), BornTimestampMs: 1699999999000,
			BornHost:   netip.MustParseAddrPort("10.1.2.3:5678"),
			Properties: "REAL_TOPIC\x01TopicTest\x02DELAY\x013\x02TAGS\x01TagA\x02REAL_QID\x012",
		}
		putAll(t, s, filler(delayed), m, filler(delivered-delayed-164))
		<-time.After(10 * time.Second)
		settle()
		got, err := s.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "TopicTest", QueueID: 2}, MaxMessages: 1})
		require.NoError(t, err)
		require.Len(t, got.Records, 1)
		raw := bytes.Clone(got.Records[0])
		place, _, err := record.Parse(raw, true)
		require.NoError(t, err)
		require.EqualValues(t, delivered, place.PhysicalOffset)
		got.Release()
		record.SetPlace(raw, 0, delivered, nowMs)
		require.Equal(t, want, hex.EncodeToString(raw))
		require.NoError(t, s.Close(t.Context()))
	})
}
