package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestADamagedFileIsNotCarried(t *testing.T) {
	disk := memfs.New()
	s, err := system.Open(system.Options{Dir: "store", Disk: disk, SegmentBytes: 64 << 10, IndexSlots: 100, IndexEntries: 1000, WindowBytes: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.Background())) }()
	c := newCarrier(disk, s, func() bool { return false })
	const topics = 0 // of what is carried
	name := s.ConfigDir() + "/" + carried[topics]
	for _, text := range []string{`{"saved":"before"}`, `{"saved":"last"}`} {
		require.NoError(t, metadata.Save(disk, name, json.RawMessage(text)))
	}
	fixture.WriteFile(t, disk, name, []byte(`{"saved":`))
	require.NoError(t, c.put(topics))
	require.NoError(t, s.AwaitDispatched(t.Context()))
	content, err := c.last(t.Context(), topics)
	require.NoError(t, err)
	require.JSONEq(t, `{"saved":"before"}`, string(content))
}

func TestTheNextLeaderHasTheConfigurationAsTheLogHasIt(t *testing.T) {
	g := newGroup(t, 3)
	g.start("1", "2", "3")
	g.put()
	old := g.leader()
	topics := json.RawMessage(`{"topicConfigTable":{"made":{"topicName":"made"}}}`)
	offsets := func(mine, transactions int64) metadata.OffsetTable {
		return metadata.OffsetTable{Offsets: map[string]map[int32]int64{
			"T@g": {0: mine}, "RMQ_SYS_TRANS_HALF_TOPIC@" + messages.GroupTransactions: {0: transactions},
		}}
	}
	g.up[old].mu.Lock()
	files := g.up[old].files
	g.up[old].mu.Unlock()
	require.NoError(t, metadata.Save(files, "store/config/topics.json", topics))
	require.NoError(t, metadata.Save(files, "store/config/consumerOffset.json", offsets(5, 3)))
	m := &messages.Message{Topic: "T", Body: []byte("later"), Properties: messages.Properties("").With(messages.PropertyDelay, "1")}
	g.until("acknowledged", func() bool {
		r, err := g.up[old].Store().Put(t.Context(), m)
		return err == nil && r.Status == messages.PutOK
	})
	g.until("it is delivered, and that is in the log", func() bool {
		s := g.up[old].Store()
		return s.DelayOffsets()[1] >= 1 && s.MaxOffset(stateQueue(len(carried)-1)) >= 1
	})
	for id, disk := range g.disks {
		if id != old { // what followers are told by their leader: further in both
			require.NoError(t, metadata.Save(disk, "store/config/consumerOffset.json", offsets(7, 99)))
			require.NoError(t, metadata.Save(disk, "store/config/delayOffset.json", metadata.DelayOffsets{Offsets: map[int]int64{1: 50}}))
		}
	}
	g.stop(old)
	next := g.leader()
	var got metadata.OffsetTable
	_, err := metadata.Load(g.disks[next], "store/config/consumerOffset.json", &got)
	require.NoError(t, err)
	require.Equal(t, offsets(7, 3).Offsets, got.Offsets, "how far transactions are is what the log says")
	var made json.RawMessage
	_, err = metadata.Load(g.disks[next], "store/config/topics.json", &made)
	require.NoError(t, err)
	require.JSONEq(t, string(topics), string(made))
	require.Less(t, g.up[next].Store().DelayOffsets()[1], messages.QueueOffset(50))
}

// What a follower was told of a topic's life before does not come back with it: consumers of the topic that was made again would pass over
// what it has.
func TestTheNextLeaderForgetsTheOffsetsOfATopicsLifeBefore(t *testing.T) {
	disk := memfs.New()
	s, err := system.Open(system.Options{Dir: "store", Disk: disk, SegmentBytes: 64 << 10, IndexSlots: 100, IndexEntries: 1000, WindowBytes: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.Background())) }()
	c := newCarrier(disk, s, func() bool { return false })
	table := metadata.TopicTable{Topics: map[string]metadata.TopicConfig{"Again": {TopicName: "Again"}, "Stays": {TopicName: "Stays"}}}
	save := func(name string, v any) { require.NoError(t, metadata.Save(disk, s.ConfigDir()+"/"+name, v)) }
	offsets := func(again, stays int64) metadata.OffsetTable {
		return metadata.OffsetTable{Offsets: map[string]map[int32]int64{"Again@g": {0: again}, "Stays@g": {0: stays}}}
	}
	table.Deleted = map[string]metadata.DataVersion{"Again": {Counter: 7, TimestampMs: 1}}
	save(topicsFile, table)
	save(offsetsFile, offsets(2, 10))
	for i, name := range carried {
		if name == topicsFile || name == offsetsFile {
			require.NoError(t, c.put(i))
		}
	}
	require.NoError(t, s.AwaitDispatched(t.Context()))

	table.Deleted = nil // as the follower was told last
	save(topicsFile, table)
	save(offsetsFile, offsets(100, 11))
	failing := errors.New("injected")
	disk.Inject(func(op memfs.Op) error { // a restore that ends half-way is done again
		if strings.Contains(op.Name, topicsFile) && op.Kind.Changes() {
			return failing
		}
		return nil
	})
	require.ErrorIs(t, c.restore(t.Context(), false), failing)
	disk.Inject(nil)
	save(offsetsFile, offsets(100, 11))
	require.NoError(t, c.restore(t.Context(), false))
	var got metadata.OffsetTable
	_, err = metadata.Load(disk, s.ConfigDir()+"/"+offsetsFile, &got)
	require.NoError(t, err)
	require.Equal(t, offsets(2, 11).Offsets, got.Offsets)
}

// A node that leaves its cluster after it has followed does not deliver again what the leader has delivered long ago.
func TestAFollowerThatEndsKeepsHowFarDelayedMessagesAre(t *testing.T) {
	g := newGroup(t, 2)
	g.start("1", "2")
	g.put()
	leader := g.leader()
	s := g.up[leader].Store()
	g.until("acknowledged", func() bool {
		r, err := s.Put(t.Context(), &messages.Message{Topic: "T", Properties: messages.Properties("").With(messages.PropertyDelay, "1")})
		return err == nil && r.Status == messages.PutOK
	})
	follower := g.nodes[0].ID
	if follower == leader {
		follower = g.nodes[1].ID
	}
	g.until("the offset is in the follower's log", func() bool {
		var in metadata.DelayOffsets
		f := g.up[follower].Store()
		if f == nil {
			return false
		}
		content, err := newCarrier(g.disks[follower], f, nil).last(t.Context(), len(carried)-1)
		return err == nil && content != nil && metadata.Parse(content, &in) == nil && in.Offsets[1] >= 1
	})
	g.stop(follower)
	var kept metadata.DelayOffsets
	found, err := metadata.Load(g.disks[follower], "store/config/"+delayFile, &kept)
	require.NoError(t, err)
	require.True(t, found)
	require.Positive(t, kept.Offsets[1])
}
