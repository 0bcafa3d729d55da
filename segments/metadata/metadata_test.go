package metadata

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const name = "/store/config/consumerOffset.json"

func text(t testing.TB, disk vfs.Disk, name string) string {
	b, err := readAll(disk, name)
	require.NoError(t, err)
	return string(b)
}

func offsets(n int64) OffsetTable {
	return OffsetTable{Offsets: map[string]map[int32]int64{OffsetKey("TopicTest", "g1"): {0: n, 1: 7}}}
}

func load(t testing.TB, disk vfs.Disk) (OffsetTable, bool) {
	var got OffsetTable
	found, err := Load(disk, name, &got)
	require.NoError(t, err)
	return got, found
}

// The texts of spec/store.md §13.2, as RocketMQ writes them.
const (
	theirOffsets = "{\n\t\"offsetTable\":{\n\t\t\"TopicTest@g1\":{0:5,1:7\n\t\t}\n\t}\n}"
	theirDelays  = "{\n\t\"offsetTable\":{1:10,2:20,18:3\n\t}\n}"
	theirTopics  = "{\n\t\"dataVersion\":{\n\t\t\"counter\":2,\n\t\t\"timestamp\":1700000000123\n\t},\n\t\"topicConfigTable\":{\n\t\t\"TopicTest\":{\n" +
		"\t\t\t\"order\":false,\n\t\t\t\"perm\":6,\n\t\t\t\"readQueueNums\":4,\n\t\t\t\"topicFilterType\":\"SINGLE_TAG\",\n" +
		"\t\t\t\"topicName\":\"TopicTest\",\n\t\t\t\"topicSysFlag\":0,\n\t\t\t\"writeQueueNums\":4\n\t\t}\n\t}\n}"
	theirGroups = "{\n\t\"dataVersion\":{\n\t\t\"counter\":0,\n\t\t\"timestamp\":1700000000123\n\t},\n\t\"subscriptionGroupTable\":{\n\t\t\"g1\":{\n" +
		"\t\t\t\"brokerId\":0,\n\t\t\t\"consumeBroadcastEnable\":true,\n\t\t\t\"consumeEnable\":true,\n\t\t\t\"consumeFromMinEnable\":true,\n" +
		"\t\t\t\"groupName\":\"g1\",\n\t\t\t\"notifyConsumerIdsChangedEnable\":true,\n\t\t\t\"retryMaxTimes\":16,\n" +
		"\t\t\t\"retryQueueNums\":1,\n\t\t\t\"whichBrokerWhenConsumeSlowly\":1\n\t\t}\n\t}\n}"
)

func TestTheirFilesAreReadAndOursAreStandard(t *testing.T) {
	topics := TopicTable{DataVersion: DataVersion{Counter: 2, TimestampMs: 1700000000123}, Topics: map[string]TopicConfig{
		"TopicTest": {Perm: PermRead | PermWrite, ReadQueueNums: 4, TopicFilterType: FilterSingleTag, TopicName: "TopicTest", WriteQueueNums: 4},
	}}
	groups := GroupTable{DataVersion: DataVersion{TimestampMs: 1700000000123}, Groups: map[string]SubscriptionGroupConfig{
		"g1": {ConsumeBroadcastEnable: true, ConsumeEnable: true, ConsumeFromMinEnable: true, GroupName: "g1",
			NotifyConsumerIDsChangedEnable: true, RetryMaxTimes: 16, RetryQueueNums: 1, WhichBrokerWhenConsumeSlowly: 1},
	}}
	five := offsets(5)
	for _, c := range []struct {
		theirs     string
		got, want  any
		quotedKeys string // what the text is when the integer keys are quoted, "": as it is
	}{
		{theirOffsets, &OffsetTable{}, &five, `{"offsetTable":{"TopicTest@g1":{"0":5,"1":7}}}`},
		{theirDelays, &DelayOffsets{}, &DelayOffsets{Offsets: map[int]int64{1: 10, 2: 20, 18: 3}}, `{"offsetTable":{"1":10,"18":3,"2":20}}`},
		{theirTopics, &TopicTable{}, &topics, ""},
		{theirGroups, &GroupTable{}, &groups, ""},
	} {
		disk := memfs.New()
		fixture.WriteFile(t, disk, name, []byte(c.theirs))
		found, err := Load(disk, name, c.got)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, c.want, c.got)
		require.NoError(t, Save(disk, name, c.got))
		want := c.quotedKeys
		if want == "" {
			want = c.theirs
		}
		require.JSONEq(t, want, text(t, disk, name))
		require.Equal(t, c.theirs, text(t, disk, name+".bak"))
	}
}

func TestMembersAreSortedAndIndentedByTabs(t *testing.T) {
	disk := memfs.New()
	require.NoError(t, Save(disk, name, TopicTable{}))
	require.Equal(t, "{\n\t\"dataVersion\": {\n\t\t\"counter\": 0,\n\t\t\"timestamp\": 0\n\t},\n\t\"topicConfigTable\": {}\n}\n", text(t, disk, name))
	for _, empty := range []any{OffsetTable{}, &DelayOffsets{}} {
		require.NoError(t, Save(disk, name, empty))
		require.Equal(t, "{\n\t\"offsetTable\": {}\n}\n", text(t, disk, name))
	}
	require.NoError(t, Save(disk, name, GroupTable{}))
	require.Contains(t, text(t, disk, name), `"subscriptionGroupTable": {}`)
}

func TestUnknownMembersAreKept(t *testing.T) {
	const content = `{"aNew":[1,2],"dataVersion":{"counter":1,"stateVersion":4,"timestamp":2},
		"topicConfigTable":{"T":{"attributes":{"message.type":"FIFO"},"order":true,"perm":6,"readQueueNums":8,
		"topicFilterType":"MULTI_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":8}},"zNew":null}`
	disk := memfs.New()
	fixture.WriteFile(t, disk, name, []byte(content))
	var table TopicTable
	_, err := Load(disk, name, &table)
	require.NoError(t, err)
	require.Equal(t, int64(4), table.DataVersion.StateVersion)
	require.JSONEq(t, `{"message.type":"FIFO"}`, string(table.Topics["T"].Unknown["attributes"]))
	require.NoError(t, Save(disk, name, table))
	require.JSONEq(t, content, text(t, disk, name))

	for _, c := range []struct {
		v       any
		content string
	}{
		{&OffsetTable{}, `{"dataVersion":{"counter":3},"lmqOffsetTable":{"%LMQ%a@g":5},"offsetTable":{}}`},
		{&DelayOffsets{}, `{"dataVersion":{"counter":3},"offsetTable":{"1":2}}`},
		{&GroupTable{}, `{"dataVersion":{"counter":1,"timestamp":2},"forbiddenTable":{},"subscriptionGroupTable":{"g":{"brokerId":0,
			"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"groupName":"g",
			"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}}}`},
	} {
		fixture.WriteFile(t, disk, name, []byte(c.content))
		_, err := Load(disk, name, c.v)
		require.NoError(t, err)
		require.NoError(t, Save(disk, name, c.v))
		require.JSONEq(t, c.content, text(t, disk, name))
	}
}

func TestBackup(t *testing.T) {
	const good = `{"offsetTable":{"TopicTest@g1":{0:1,1:7}}}`
	for label, c := range map[string]struct {
		main, bak string // "-": missing
		want      int64  // -1: not found
		from      string
		fails     bool
		reported  bool
	}{
		"both missing":       {"-", "-", -1, "", false, false},
		"both empty":         {"", "", -1, "", false, false},
		"main missing":       {"-", good, 1, ".bak", false, false},
		"main empty":         {"", good, 1, ".bak", false, false},
		"main garbage":       {"{\x00\x00\x00", good, 1, ".bak", false, true},
		"main cut":           {good[:20], good, 1, ".bak", false, true},
		"main of other type": {`{"offsetTable":[1]}`, good, 1, ".bak", false, true},
		"main good":          {`{"offsetTable":{"TopicTest@g1":{"0":2,"1":7}}}`, good, 2, "main", false, false},
		"bak garbage":        {"-", "[[", -1, "", true, false},
		"both garbage":       {"{", "{", -1, "", true, true},
		"no bak":             {"{", "-", -1, "", true, true},
	} {
		t.Run(label, func(t *testing.T) {
			disk := memfs.New()
			for file, content := range map[string]string{name: c.main, name + ".bak": c.bak} {
				if content != "-" {
					fixture.WriteFile(t, disk, file, []byte(content))
				}
			}
			got := OffsetTable{LMQOffsets: map[string]int64{"before": 1}}
			report, err := LoadReport(disk, name, &got)
			found, err2 := Load(disk, name, &OffsetTable{})
			require.Equal(t, err, err2)
			require.Equal(t, c.want >= 0, found)
			require.Equal(t, map[string]string{"": "", "main": name, ".bak": name + ".bak"}[c.from], report.From)
			require.Equal(t, c.reported, report.MainErr != nil)
			if c.fails {
				require.ErrorIs(t, err, ErrDamaged)
				var damage *segments.CorruptionError
				require.ErrorAs(t, err, &damage)
			} else {
				require.NoError(t, err)
			}
			if c.want < 0 {
				require.Equal(t, OffsetTable{LMQOffsets: map[string]int64{"before": 1}}, got, "unchanged")
			} else {
				require.Equal(t, offsets(c.want), got)
			}
		})
	}
}

func TestDamagedFileIsNotBackedUp(t *testing.T) {
	disk := memfs.New()
	require.NoError(t, Save(disk, name, offsets(1)))
	require.NoError(t, Save(disk, name, offsets(2)))
	fixture.WriteFile(t, disk, name, []byte("\x00\x00\x00"))
	require.NoError(t, Save(disk, name, offsets(3)))
	fixture.WriteFile(t, disk, name, []byte("\x00\x00\x00"))
	got, found := load(t, disk)
	require.True(t, found)
	require.Equal(t, offsets(1), got)
}

// TestCrashAtEveryStep (W25, L44) ends a Save before each of its operations, by power cut and by kill: old or new loads, and a
// file that RocketMQ reads is there once there was one.
func TestCrashAtEveryStep(t *testing.T) {
	for _, before := range []int64{0, 1, 2} {
		disk := memfs.New()
		require.NoError(t, disk.MkdirAll(path.Dir(name)))
		for i := range before {
			require.NoError(t, Save(disk, name, offsets(i+1)))
		}
		steps := 0
		check := func(disk *memfs.Disk, done bool) {
			got, found := load(t, disk)
			switch {
			case found && before > 0 && !done:
				require.Contains(t, []OffsetTable{offsets(before), offsets(before + 1)}, got)
			case found || done || before > 0:
				require.Equal(t, offsets(before+1), got)
			}
			if before > 0 {
				require.NotEmpty(t, text(t, disk, name), "never without the main file")
			}
			require.NoError(t, Save(disk, name, offsets(9)))
			got, _ = load(t, disk.Crash(1))
			require.Equal(t, offsets(9), got)
		}
		disk.Inject(func(op memfs.Op) error {
			if op.Kind.Changes() {
				steps++
				for seed := range uint64(20) {
					check(disk.Crash(seed), false)
				}
				check(disk.Clone(), false)
			}
			return nil
		})
		require.NoError(t, Save(disk, name, offsets(before+1)))
		disk.Inject(nil)
		require.Greater(t, steps, 4)
		for seed := range uint64(20) {
			check(disk.Crash(seed), true)
		}
	}
}

func TestFailedSaveKeepsTheOld(t *testing.T) {
	for _, kind := range []memfs.Kind{memfs.KindCreate, memfs.KindWrite, memfs.KindDataSync, memfs.KindRename, memfs.KindClose, memfs.KindOpen} {
		disk := memfs.New()
		require.NoError(t, Save(disk, name, offsets(1)))
		boom := errors.New("boom")
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == kind {
				return memfs.Short(3, boom)
			}
			return nil
		})
		require.ErrorIs(t, Save(disk, name, offsets(2)), boom, kind)
		disk.Inject(nil)
		got, _ := load(t, disk)
		require.Equal(t, offsets(1), got)
		require.NoError(t, Save(disk, name, offsets(3)))
		got, _ = load(t, disk.Crash(1))
		require.Equal(t, offsets(3), got)
	}
	disk := memfs.New()
	require.NoError(t, Save(disk, name, offsets(1)))
	disk.SetCapacity(8192)
	huge := OffsetTable{Offsets: map[string]map[int32]int64{}}
	for i := range 1000 {
		huge.Offsets[OffsetKey("T"+strconv.Itoa(i), "g")] = map[int32]int64{0: 1}
	}
	require.ErrorIs(t, Save(disk, name, huge), vfs.ErrNoSpace)
	entries, err := disk.List(path.Dir(name))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing half-written takes room")
	got, _ := load(t, disk)
	require.Equal(t, offsets(1), got)
}

func TestReadErrorIsNotDamage(t *testing.T) {
	disk := memfs.New()
	require.NoError(t, Save(disk, name, offsets(1)))
	require.NoError(t, Save(disk, name, offsets(2)))
	boom := errors.New("boom")
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindRead && op.Name == name {
			return boom
		}
		return nil
	})
	found, err := Load(disk, name, &OffsetTable{})
	require.ErrorIs(t, err, boom)
	require.NotErrorIs(t, err, ErrDamaged)
	require.False(t, found)
}

func TestOffsetKey(t *testing.T) {
	topic, group, ok := SplitOffsetKey(OffsetKey("%RETRY%g", "g"))
	require.True(t, ok)
	require.Equal(t, [2]string{"%RETRY%g", "g"}, [2]string{topic, group})
	_, _, ok = SplitOffsetKey("nothing")
	require.False(t, ok)
}

func TestDataVersion(t *testing.T) {
	v := DataVersion{Counter: 4, TimestampMs: 5}
	v.Advance(77)
	require.Equal(t, DataVersion{Counter: 5, TimestampMs: 77}, v)
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{theirOffsets, theirDelays, theirTopics, theirGroups, "", "null", "{", `{"offsetTable":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []any{&OffsetTable{}, &DelayOffsets{}, &TopicTable{}, &GroupTable{}} {
			disk := memfs.New()
			fixture.WriteFile(t, disk, name, data)
			found, err := Load(disk, name, v)
			if err != nil {
				require.ErrorIs(t, err, ErrDamaged)
			}
			if !found {
				continue
			}
			require.NoError(t, Save(disk, name, v))
			first := text(t, disk, name)
			require.True(t, json.Valid([]byte(first)))
			found, err = Load(disk, name, v)
			require.NoError(t, err)
			require.True(t, found)
			require.NoError(t, Save(disk, name, v))
			require.Equal(t, first, text(t, disk, name))
		}
	})
}

// TestPermissionsStay: who may not read a file that holds secrets may not read what replaces it, or the copy of it.
func TestPermissionsStay(t *testing.T) {
	dir := t.TempDir()
	rules, table := path.Join(dir, "plain_acl.yml"), path.Join(dir, "topics.json")
	require.NoError(t, os.WriteFile(rules, []byte("accounts:"), 0o600))
	require.NoError(t, os.WriteFile(table, []byte("{}"), 0o400))
	require.NoError(t, WriteText(vfs.New(), rules, []byte("accounts: []")))
	require.NoError(t, Save(vfs.New(), table, &map[string]int{}))
	for name, want := range map[string]os.FileMode{rules: 0o600, rules + ".bak": 0o600, table: 0o400, table + ".bak": 0o400} {
		st, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, want, st.Mode().Perm(), name)
	}
}

func TestOfManyDeletionsTheNewestAreKept(t *testing.T) {
	var noted map[string]DataVersion
	var v DataVersion
	for i := range maxDeleted + 3 {
		v.Advance(77)
		before := noted
		noted = NoteDeleted(noted, strconv.Itoa(i), v)
		require.NotContains(t, before, strconv.Itoa(i), "it may be published")
	}
	require.Len(t, noted, maxDeleted)
	require.NotContains(t, noted, "2")
	require.Contains(t, noted, "3")
	require.Equal(t, v, noted[strconv.Itoa(maxDeleted+2)])
}
