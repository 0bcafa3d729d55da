package offsets_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

var errInjected = errors.New("injected")

// counted counts the saves of a disk from now on.
func counted(disk *memfs.Disk) *atomic.Int32 {
	var saves atomic.Int32
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == file {
			saves.Add(1)
		}
		return nil
	})
	return &saves
}

func TestSavedAnIntervalAfterTheFirstChange(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		saves := counted(disk)
		cfg := options(disk)
		cfg.Interval = 0 // the default
		k := start(t, cfg)
		pass(time.Hour)
		synctest.Wait()
		require.Zero(t, saves.Load(), "nothing has changed")

		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1))
		pass(4900 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, saves.Load())
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 2))
		pass(200 * time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 1, saves.Load())
		require.EqualValues(t, 2, start(t, options(disk.Crash(1))).Lookup("g", key("T")))

		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 2))
		pass(time.Hour)
		synctest.Wait()
		require.EqualValues(t, 1, saves.Load(), "the same offset again is no change")
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1))
		pass(6 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 2, saves.Load(), "the timer is armed again")
	})
}

func TestCloseSaves(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 3))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("U", 4), 5))
	require.NoError(t, k.Close())
	again := start(t, options(disk.Crash(1)))
	require.Equal(t, k.Table(), again.Table())
	require.Equal(t, 2, again.Len())
	saves := counted(disk)
	require.NoError(t, start(t, options(disk)).Close())
	require.Zero(t, saves.Load(), "nothing has changed")
}

func TestFailedSaveIsTriedAgain(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		cfg := options(disk)
		cfg.Interval = time.Second
		k := start(t, cfg)
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindDataSync {
				return errInjected
			}
			return nil
		})
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1))
		require.ErrorIs(t, k.Save(t.Context()), errInjected)
		n, err := k.Remove(t.Context(), "g", "")
		require.ErrorIs(t, err, errInjected)
		require.Equal(t, 1, n)
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 2))
		pass(3 * time.Second) // the timer has tried too, and nothing changes any more
		synctest.Wait()
		disk.Inject(nil)
		pass(2 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 2, start(t, options(disk.Crash(1))).Lookup("g", key("T")))
		require.NoError(t, k.Save(t.Context()))
	})
}

// While the disk is slow, commits and queries go on, and those who wait for durability share the next save.
func TestSlowDiskHoldsNobodyUp(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	entered, goOn := make(chan struct{}), make(chan struct{})
	var saves atomic.Int32
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == file && saves.Add(1) == 1 {
			close(entered)
			<-goOn
		}
		return nil
	})
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1))
	asks := make([]*messages.SaveOffsets, 10)
	for i := range asks {
		asks[i] = &messages.SaveOffsets{Answer: messages.NewAnswer[struct{}]()}
	}
	k.Peer().Send(asks[0])
	<-entered
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 2))
	got, err := k.Query(t.Context(), "g", key("T"))
	require.NoError(t, err)
	require.EqualValues(t, 2, got)
	for _, ask := range asks[1:] {
		k.Peer().Send(ask)
	}
	select {
	case <-asks[1].Answer.Done():
		t.Fatal("answered before its commit was saved")
	default:
	}
	close(goOn)
	for _, ask := range asks {
		_, err := ask.Answer.Wait(t.Context())
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, saves.Load())
	require.EqualValues(t, 2, start(t, options(disk.Crash(2))).Lookup("g", key("T")))
}

func TestCloseWhileSaving(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		k := start(t, options(disk))
		goOn := make(chan struct{})
		var saves atomic.Int32
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindRename && op.To == file && saves.Add(1) == 1 {
				<-goOn
			}
			return nil
		})
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1))
		first := &messages.SaveOffsets{Answer: messages.NewAnswer[struct{}]()}
		k.Peer().Send(first)
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 2))
		second := &messages.SaveOffsets{Answer: messages.NewAnswer[struct{}]()}
		k.Peer().Send(second)
		closed := make(chan error)
		go func() { closed <- k.Close() }()
		synctest.Wait() // the actor is stopping and waits for the disk
		close(goOn)
		require.NoError(t, <-closed)
		for _, ask := range []*messages.SaveOffsets{first, second} {
			_, err := ask.Answer.Wait(t.Context())
			require.NoError(t, err)
		}
		require.EqualValues(t, 2, saves.Load())
		require.EqualValues(t, 2, start(t, options(disk.Crash(2))).Lookup("g", key("T")))
	})
}

// A power cut before any operation of a save, or in the middle of it: the offsets are the old or the new ones (L44).
func TestPowerCutDuringSave(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1))
	require.NoError(t, k.Save(t.Context()))
	pictures := fixture.PowerCuts(disk, func() {
		require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 2))
		require.NoError(t, k.Save(t.Context()))
	})
	require.Greater(t, len(pictures), 20)
	seen := map[messages.QueueOffset]int{}
	for _, picture := range pictures {
		again := start(t, options(picture))
		require.NoError(t, again.LoadErr())
		seen[again.Lookup("g", key("T"))]++
	}
	require.Len(t, seen, 2)
	require.NotZero(t, seen[1])
	require.NotZero(t, seen[2])
}

// L44: offsets that can't be read do not stop the start; the file is kept, and it is told.
func TestUnreadableFile(t *testing.T) {
	disk := memfs.New()
	fixture.WriteFile(t, disk, file, []byte("\x00\x00garbage"))
	fixture.WriteFile(t, disk, file+".bak", []byte(`{"offsetTable":`))
	k := start(t, options(disk))
	require.ErrorContains(t, k.LoadErr(), file)
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 1))
	require.NoError(t, k.Save(t.Context()))
	entries, err := disk.List("store/config")
	require.NoError(t, err)
	aside := 0
	for _, e := range entries {
		if strings.Contains(e.Name, ".unreadable-") {
			aside++
		}
	}
	require.Equal(t, 2, aside)
	again := start(t, options(disk.Crash(1)))
	require.NoError(t, again.LoadErr())
	require.EqualValues(t, 1, again.Lookup("g", key("T")))

	fixture.WriteFile(t, disk, "other/c.json", []byte("garbage"))
	fixture.WriteFile(t, disk, "other/c.json.bak", []byte(`{"offsetTable":{"T@g":{0:8}}}`))
	cfg := options(disk)
	cfg.Path = "other/c.json"
	k = start(t, cfg)
	require.NoError(t, k.LoadErr(), "the backup is good")
	require.EqualValues(t, 8, k.Lookup("g", key("T")))
}

func TestUnreadableDisk(t *testing.T) {
	disk := golden(t)
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRead {
			return errInjected
		}
		return nil
	})
	k := start(t, options(disk))
	require.ErrorIs(t, k.LoadErr(), errInjected)
	require.Zero(t, k.Len())
}

// The file as the original writes it, apart from the spaces and the quotes around queue ids, which it accepts
// (spec/store.md §13.1).
func TestFileShape(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	require.NoError(t, k.Save(t.Context()))
	require.NoError(t, k.CommitWait(t.Context(), "g1", key("TopicTest", 1), 7))
	require.NoError(t, k.CommitWait(t.Context(), "g1", key("TopicTest", 0), 5))
	require.NoError(t, k.Save(t.Context()))
	text := string(fixture.ReadFile(t, disk, file))
	require.Equal(t, "{\n\t\"offsetTable\": {\n\t\t\"TopicTest@g1\": {\n\t\t\t\"0\": 5,\n\t\t\t\"1\": 7\n\t\t}\n\t}\n}\n", text)
	require.True(t, json.Valid([]byte(text)))
	body, err := k.JSON()
	require.NoError(t, err)
	require.Equal(t, `{"offsetTable":{"TopicTest@g1":{"0":5,"1":7}}}`, string(body))

	_, err = k.Remove(t.Context(), "g1", "")
	require.NoError(t, err)
	require.Equal(t, "{\n\t\"offsetTable\": {}\n}\n", string(fixture.ReadFile(t, disk, file)))
}

func TestFileOfARealBroker(t *testing.T) {
	disk := golden(t)
	k := start(t, options(disk))
	require.NoError(t, k.LoadErr())
	require.Equal(t, map[string]map[int32]int64{
		"CfgOrdered@CG_Broadcast": {1: 1}, "CfgOrders@CG_Plain": {0: 3, 2: 5},
	}, k.Table().Offsets)
	require.Equal(t, 3, k.Len())
	require.NoError(t, k.CommitWait(t.Context(), "CG_Plain", key("CfgOrders", 1), 4))
	require.NoError(t, k.Close())
	require.Equal(t, map[int32]messages.QueueOffset{0: 3, 1: 4, 2: 5}, start(t, options(disk)).Queues("CG_Plain", "CfgOrders"))
}

func TestOtherMembersAreKept(t *testing.T) {
	disk := memfs.New()
	fixture.WriteFile(t, disk, file, []byte(`{"dataVersion":{"counter":1},"lmqOffsetTable":{"%LMQ%a@g":9},`+
		`"offsetTable":{"T@g":{"0":1,"1":-1},"noseparator":{"0":1},"E@g":{}}}`))
	k := start(t, options(disk))
	require.Equal(t, map[int32]messages.QueueOffset{0: 1}, k.Queues("g", "T"))
	require.NoError(t, k.CommitWait(t.Context(), "g", key("T"), 2))
	require.NoError(t, k.Save(t.Context()))
	require.JSONEq(t, `{"dataVersion":{"counter":1},"lmqOffsetTable":{"%LMQ%a@g":9},"offsetTable":{"T@g":{"0":2},"E@g":{}}}`,
		string(fixture.ReadFile(t, disk, file)))
}

// TestOffsetsOfLightGroupsStandApart: as RocketMQ keeps them with enableLmq (spec/store.md §13.2); what was kept without it counts
// until there is such a file.
func TestOffsetsOfLightGroupsStandApart(t *testing.T) {
	disk := memfs.New()
	fixture.WriteFile(t, disk, file, []byte(`{"offsetTable":{"T@g":{"0":1},"%LMQ%a@%LMQ%g":{"0":9}}}`))
	cfg := options(disk)
	cfg.Path, cfg.Before, cfg.LightGroups = "store/config/lmqConsumerOffset.json", file, true
	k := start(t, cfg)
	require.Equal(t, map[int32]messages.QueueOffset{0: 9}, k.Queues("%LMQ%g", "%LMQ%a"))
	require.NoError(t, k.CommitWait(t.Context(), "%LMQ%g", key("%LMQ%b"), 2))
	require.NoError(t, k.Close())
	require.JSONEq(t, `{"lmqOffsetTable":{"%LMQ%a@%LMQ%g":9,"%LMQ%b@%LMQ%g":2},"offsetTable":{"T@g":{"0":1}}}`,
		string(fixture.ReadFile(t, disk, cfg.Path)))
	fixture.WriteFile(t, disk, file, []byte(`{"offsetTable":{"T@g":{"0":77}}}`))
	k = start(t, cfg)
	require.Equal(t, map[int32]messages.QueueOffset{0: 1}, k.Queues("g", "T"))
	require.Equal(t, map[int32]messages.QueueOffset{0: 2}, k.Queues("%LMQ%g", "%LMQ%b"))
}
