package groups_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/groups"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// defaultsOf is the configuration that spec/remoting.md §15.4 gives as default.
func defaultsOf(t *testing.T, name string) metadata.SubscriptionGroupConfig {
	t.Helper()
	var cfg metadata.SubscriptionGroupConfig
	require.NoError(t, json.Unmarshal([]byte(`{"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,`+
		`"groupName":"`+name+`","notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}`), &cfg))
	return cfg
}

func TestBuiltInGroups(t *testing.T) {
	k := start(t, options(memfs.New()))
	names := []string{}
	for cfg := range k.All() {
		require.Equal(t, defaultsOf(t, cfg.GroupName), cfg)
		names = append(names, cfg.GroupName)
	}
	require.ElementsMatch(t, []string{
		"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL",
		"CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER",
	}, names)
	require.Equal(t, 7, k.Len())
	require.Zero(t, k.DataVersion().Counter)
	require.NotZero(t, k.DataVersion().TimestampMs)
}

func TestEnsure(t *testing.T) {
	k := start(t, options(memfs.New()))
	cfg, err := k.Ensure(t.Context(), "g")
	require.NoError(t, err)
	require.Equal(t, defaultsOf(t, "g"), cfg)
	require.Equal(t, cfg, k.Defaults("g"))
	version := k.DataVersion()
	require.EqualValues(t, 1, version.Counter)
	again, err := k.Ensure(t.Context(), "g")
	require.NoError(t, err)
	require.Equal(t, cfg, again)
	require.Equal(t, version, k.DataVersion())
}

func TestEnsureWithoutAutoCreate(t *testing.T) {
	opt := options(memfs.New())
	opt.AutoCreate = false
	k := start(t, opt)
	_, err := k.Ensure(t.Context(), "g")
	require.ErrorIs(t, err, messages.ErrGroupNotExist)
	_, ok := k.Lookup("g")
	require.False(t, ok)
	_, err = k.Ensure(t.Context(), "CID_RMQ_SYS_TRANS")
	require.NoError(t, err, "groups of the system may always")
	_, err = k.Ensure(t.Context(), "TOOLS_CONSUMER")
	require.NoError(t, err)
}

func TestBadNames(t *testing.T) {
	k := start(t, options(memfs.New()))
	for _, name := range []string{"", "a b", "a.b", "a@b", "ü", "../g", strings.Repeat("g", 256)} {
		_, err := k.Ensure(t.Context(), name)
		require.ErrorIs(t, err, messages.ErrGroupName, name)
		require.ErrorIs(t, k.Update(t.Context(), defaultsOf(t, name)), messages.ErrGroupName, name)
	}
	require.Equal(t, 7, k.Len())
	for _, name := range []string{strings.Repeat("g", 255), "ns%group", "a|b_c-D9"} {
		_, err := k.Ensure(t.Context(), name)
		require.NoError(t, err)
	}
}

func TestUpdateAndDelete(t *testing.T) {
	k := start(t, options(memfs.New()))
	cfg := metadata.SubscriptionGroupConfig{
		GroupName: "g", BrokerID: 1, ConsumeBroadcastEnable: true, ConsumeFromMinEnable: true, RetryMaxTimes: 3, RetryQueueNums: 2,
		WhichBrokerWhenConsumeSlowly: 4,
	}
	require.NoError(t, k.Update(t.Context(), cfg))
	got, ok := k.Lookup("g")
	require.True(t, ok)
	require.Equal(t, cfg, got)
	other := metadata.SubscriptionGroupConfig{GroupName: "g", ConsumeEnable: true, NotifyConsumerIDsChangedEnable: true, RetryMaxTimes: -1}
	require.NoError(t, k.Update(t.Context(), other))
	got, _ = k.Lookup("g")
	require.Equal(t, other, got)
	version := k.DataVersion()
	require.NoError(t, k.Update(t.Context(), other))
	require.Equal(t, version, k.DataVersion(), "the same again is no change")

	for _, bad := range []func(*metadata.SubscriptionGroupConfig){
		func(c *metadata.SubscriptionGroupConfig) { c.RetryQueueNums = -1 },
		func(c *metadata.SubscriptionGroupConfig) { c.RetryQueueNums = 1<<16 + 1 },
		func(c *metadata.SubscriptionGroupConfig) { c.RetryMaxTimes = -2 },
		func(c *metadata.SubscriptionGroupConfig) { c.RetryMaxTimes = 1 << 40 },
	} {
		wrong := other
		bad(&wrong)
		require.ErrorIs(t, k.Update(t.Context(), wrong), messages.ErrGroupConfig)
	}

	require.NoError(t, k.Delete(t.Context(), "g"))
	_, ok = k.Lookup("g")
	require.False(t, ok)
	require.NoError(t, k.Delete(t.Context(), "g"), "one that is not there is no error")
}

func TestReplace(t *testing.T) {
	k := start(t, options(memfs.New()))
	body := `{"dataVersion":{"counter":7,"timestamp":1700000000123},"subscriptionGroupTable":{
		'g':{"brokerId":0,"consumeEnable":true,"groupName":"g","retryMaxTimes":5,"retryQueueNums":2}}}`
	replaced, err := k.Replace(t.Context(), []byte(body))
	require.NoError(t, err)
	require.True(t, replaced)
	require.Equal(t, metadata.DataVersion{Counter: 7, TimestampMs: 1700000000123}, k.DataVersion())
	require.Equal(t, 1, k.Len())
	got, _ := k.Lookup("g")
	require.Equal(t, 5, got.RetryMaxTimes)
	replaced, err = k.Replace(t.Context(), []byte(body))
	require.NoError(t, err)
	require.False(t, replaced, "the same version")
	_, err = k.Replace(t.Context(), []byte(`{"dataVersion":`))
	require.ErrorContains(t, err, "subscription groups of the master")
	require.Equal(t, 1, k.Len())
}

func TestRestartKeepsState(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	_, err := k.Ensure(t.Context(), "a")
	require.NoError(t, err)
	off := defaultsOf(t, "off")
	off.ConsumeEnable = false
	require.NoError(t, k.Update(t.Context(), off))
	_, err = k.Ensure(t.Context(), "gone")
	require.NoError(t, err)
	require.NoError(t, k.Delete(t.Context(), "gone"))
	before, text := k.Table(), string(fixture.ReadFile(t, disk, file))

	again := start(t, options(disk.Crash(1))) // a power cut, without any Close
	require.Equal(t, before, again.Table())
	require.NoError(t, again.Close())
	require.Equal(t, text, string(fixture.ReadFile(t, disk, file)))
}

// The file as the original writes it, member by member (spec/store.md §13.2).
func TestFileShape(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	_, err := k.Ensure(t.Context(), "g1")
	require.NoError(t, err)
	text := string(fixture.ReadFile(t, disk, file))
	require.Contains(t, text, "\t\t\"g1\": {\n\t\t\t\"brokerId\": 0,\n\t\t\t\"consumeBroadcastEnable\": true,\n\t\t\t\"consumeEnable\": true,\n"+
		"\t\t\t\"consumeFromMinEnable\": true,\n\t\t\t\"groupName\": \"g1\",\n\t\t\t\"notifyConsumerIdsChangedEnable\": true,\n"+
		"\t\t\t\"retryMaxTimes\": 16,\n\t\t\t\"retryQueueNums\": 1,\n\t\t\t\"whichBrokerWhenConsumeSlowly\": 1\n\t\t}")
	var top map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &top))
	require.Len(t, top, 2)
	require.Contains(t, top, "subscriptionGroupTable")
	require.JSONEq(t, fmt.Sprintf(`{"counter":1,"timestamp":%d}`, k.DataVersion().TimestampMs), string(top["dataVersion"]))
	body, err := k.JSON()
	require.NoError(t, err)
	require.JSONEq(t, text, string(body))
	require.NotContains(t, string(body), "\t")
}

func TestFileOfARealBroker(t *testing.T) {
	disk := golden(t)
	k := start(t, options(disk))
	require.Equal(t, 10, k.Len())
	require.Equal(t, metadata.DataVersion{Counter: 3, TimestampMs: 1795966111359}, k.DataVersion(), "nothing was missing")
	off, ok := k.Lookup("CG_Off")
	require.True(t, ok)
	require.Equal(t, metadata.SubscriptionGroupConfig{
		GroupName: "CG_Off", NotifyConsumerIDsChangedEnable: true, RetryMaxTimes: 16, RetryQueueNums: 1, WhichBrokerWhenConsumeSlowly: 1,
	}, off)
	broadcast, _ := k.Lookup("CG_Broadcast")
	require.Equal(t, [2]int{5, 3}, [2]int{broadcast.RetryMaxTimes, broadcast.RetryQueueNums})
}

func TestUnknownMembersAreKept(t *testing.T) {
	disk := memfs.New()
	fixture.WriteFile(t, disk, file, []byte(`{"dataVersion":{"counter":1,"timestamp":5},"later":1,"subscriptionGroupTable":{"g":{"groupName":"g","attributes":{"a":"b"}}}}`))
	k := start(t, options(disk))
	require.NoError(t, k.Update(t.Context(), defaultsOf(t, "g")))
	text := string(fixture.ReadFile(t, disk, file))
	require.Contains(t, text, `"later": 1`)
	require.Contains(t, text, `"attributes": {`)
}

var errInjected = errors.New("injected")

// A power cut before any operation of a save, or in the middle of it: the table is the old or the new one, and the new one
// from the answer on.
func TestPowerCutDuringSave(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	_, err := k.Ensure(t.Context(), "old")
	require.NoError(t, err)
	pictures := fixture.PowerCuts(disk, func() { _, err = k.Ensure(t.Context(), "new") })
	require.NoError(t, err)
	require.Greater(t, len(pictures), 20)
	seen := map[bool]int{}
	for _, picture := range pictures {
		again := start(t, options(picture))
		_, ok := again.Lookup("old")
		require.True(t, ok)
		_, hasNew := again.Lookup("new")
		seen[hasNew]++
	}
	require.NotZero(t, seen[false])
	require.NotZero(t, seen[true])
	for seed := range uint64(20) {
		_, ok := start(t, options(disk.Crash(seed))).Lookup("new")
		require.True(t, ok, "answered, so durable")
	}
}

func TestFailedSaveChangesNothing(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	before := k.Table()
	for _, kind := range []memfs.Kind{memfs.KindCreate, memfs.KindWrite, memfs.KindDataSync, memfs.KindRename, memfs.KindSyncDir} {
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == kind {
				return errInjected
			}
			return nil
		})
		_, err := k.Ensure(t.Context(), "g")
		require.ErrorIs(t, err, errInjected, kind)
		require.ErrorIs(t, k.Delete(t.Context(), "TOOLS_CONSUMER"), errInjected)
		require.Equal(t, before, k.Table(), kind)
	}
	disk.Inject(nil)
	_, err := k.Ensure(t.Context(), "g")
	require.NoError(t, err)
	require.Equal(t, k.Table(), start(t, options(disk.Crash(3))).Table())
}

func TestUnreadableFileStopsTheStart(t *testing.T) {
	disk := memfs.New()
	fixture.WriteFile(t, disk, file, []byte(`{"dataVersion":`))
	_, err := groups.Start(fixture.System(t).Root, "groups", options(disk))
	require.ErrorContains(t, err, file)
	fixture.WriteFile(t, disk, file+".bak", []byte(`{"dataVersion":{"counter":3,"timestamp":9},"subscriptionGroupTable":{"g":{"groupName":"g"}}}`))
	_, ok := start(t, options(disk)).Lookup("g")
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
	require.Equal(t, 7, k.Len())
	disk.Inject(nil)
	_, err := k.Ensure(t.Context(), "g")
	require.NoError(t, err)
	require.Equal(t, k.Table(), start(t, options(disk)).Table(), "the first change writes it all")
}

// What waits while the disk is slow becomes one write.
func TestWaitingChangesAreOneWrite(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	var saves atomic.Int32
	entered, goOn := make(chan struct{}), make(chan struct{})
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRename && op.To == file && saves.Add(1) == 1 {
			close(entered)
			<-goOn
		}
		return nil
	})
	asks := make([]*messages.EnsureGroup, 100)
	for i := range asks {
		asks[i] = &messages.EnsureGroup{Group: fmt.Sprint("g", i), Answer: messages.NewAnswer[struct{}]()}
		k.Peer().Send(asks[i])
		if i == 0 {
			<-entered
		}
	}
	close(goOn)
	for _, ask := range asks {
		_, err := ask.Answer.Wait(t.Context())
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, saves.Load())
	require.Equal(t, 107, k.Len())
}

func TestPanicRefusesAndGoesOn(t *testing.T) {
	disk := memfs.New()
	k := start(t, options(disk))
	disk.Inject(func(memfs.Op) error { panic("injected") })
	_, err := k.Ensure(t.Context(), "a")
	require.ErrorIs(t, err, messages.ErrPanicked)
	disk.Inject(nil)
	_, ok := k.Lookup("a")
	require.False(t, ok)
	_, err = k.Ensure(t.Context(), "b")
	require.NoError(t, err)
}

func TestUnknownMessagesAndClose(t *testing.T) {
	k := start(t, options(memfs.New()))
	fixture.RefusesStrangers(t, k.Peer())

	require.NoError(t, k.Close())
	_, err := k.Ensure(context.Background(), "g")
	require.ErrorIs(t, err, messages.ErrClosed)
	_, err = k.Replace(context.Background(), nil)
	require.ErrorIs(t, err, messages.ErrClosed)
	_, ok := k.Lookup("TOOLS_CONSUMER")
	require.True(t, ok)
}

// Many senders and readers at once; the race detector looks on.
func TestConcurrentUse(t *testing.T) {
	k := start(t, options(memfs.New()))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 20 {
				name := fmt.Sprint("g", (worker+i)%16)
				cfg, err := k.Ensure(t.Context(), name)
				if err == nil && cfg.GroupName != name {
					t.Errorf("asked for %s, got %s", name, cfg.GroupName)
				}
				if err != nil && !errors.Is(err, messages.ErrGroupNotExist) {
					t.Error(err)
				}
				if worker == 0 {
					if err := k.Delete(t.Context(), name); err != nil {
						t.Error(err)
					}
				}
				k.Table()
			}
		})
	}
	all.Wait()
}
