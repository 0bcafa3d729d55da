package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/golden"
)

// goldenMessage is a message as a dump shows it.
type goldenMessage struct {
	PhyOffset, QueueOffset, StoreTimestamp int64
	Topic, MsgID                           string
	QueueID, SysFlag                       int32
	CRCOK                                  *bool `json:"crcOk"`
	BodyHex                                *string
	Properties                             map[string]string
}

// whole tells whether it is a message that can be shown: not damaged, and no stand-in for a lost one, which has no host.
func (m *goldenMessage) whole() bool {
	return (m.CRCOK == nil || *m.CRCOK) && !strings.HasPrefix(m.MsgID, "0000000000000000")
}

// goldenNode is a node on a golden store.
type goldenNode struct {
	*testNode

	end   int64 // of the log as RocketMQ left it: what lies behind is what the node has delivered since
	all   map[int64]*goldenMessage
	index map[[2]string][]int64 // by topic and key
}

// some is a part of many, from the first to the last.
func some[T any](all []T) (few []T) {
	const most = 4
	for i := range min(len(all), most) {
		few = append(few, all[i*(len(all)-1)/max(min(len(all), most)-1, 1)])
	}
	return few
}

// TestMessagesOfGoldenStores: what a node on the store shows by id, key, unique key and time is what is to be read from it.
func TestMessagesOfGoldenStores(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			n := serveGolden(t, golden.Load(name))
			n.byID()
			n.byKey()
			n.byUniqueKey()
			n.byTime()
		})
	}
}

// serveGolden starts a node on a store, with what RocketMQ reads from it; where it loses something that is whole, with what our dump shows, which
// TestDumpOfGoldenStores judges.
func serveGolden(t *testing.T, s golden.Store) *goldenNode {
	t.Helper()
	dir, params := unpack(t, s)
	text := s.Expected()
	if len(text) == 0 {
		stdout, _, err := run("store", "dump", dir, "--json", "-", "--params", params)
		require.NoError(t, err)
		text = []byte(stdout)
	}
	var dump struct {
		CommitLog struct{ MaxOffset int64 }
		Queues    []struct {
			Messages []struct{ Msg *goldenMessage }
		}
		Index []struct {
			Topic, Key string
			PhyOffsets []int64
		}
	}
	require.NoError(t, json.Unmarshal(text, &dump))
	n := &goldenNode{end: dump.CommitLog.MaxOffset, all: map[int64]*goldenMessage{}, index: map[[2]string][]int64{}}
	queues := map[string]int32{}
	for _, q := range dump.Queues {
		for _, m := range q.Messages {
			if m.Msg != nil && m.Msg.whole() {
				n.all[m.Msg.PhyOffset] = m.Msg
				queues[m.Msg.Topic] = max(queues[m.Msg.Topic], m.Msg.QueueID+1)
			}
		}
	}
	for _, a := range dump.Index {
		n.index[[2]string{a.Topic, a.Key}] = a.PhyOffsets
	}
	n.testNode = n.start(t, s, dir)
	for topic, count := range queues {
		if _, known := n.gateway.Broker().Topics.Lookup(topic); !known && !strings.HasPrefix(topic, "RMQ_SYS_") {
			n.want("topic", "create", topic, "--queues", fmt.Sprint(count))
		}
	}
	return n
}

func (n *goldenNode) start(t *testing.T, s golden.Store, dir string) *testNode {
	t.Helper()
	var p struct {
		CommitLogSize, ConsumeQueueSize int64
		HashSlots, IndexNum             int32
		DelayLevels                     string
		LMQ, ConsumeQueueExt            bool
	}
	require.NoError(t, json.Unmarshal(s.Params, &p))
	set := []string{
		fmt.Sprint("mappedFileSizeCommitLog=", p.CommitLogSize), fmt.Sprint("mappedFileSizeConsumeQueue=", p.ConsumeQueueSize),
		fmt.Sprint("maxHashSlotNum=", p.HashSlots), fmt.Sprint("maxIndexNum=", p.IndexNum), "storePathRootDir=" + dir, "fileReservedTime=87600",
		fmt.Sprint("enableLmq=", p.LMQ), fmt.Sprint("enableMultiDispatch=", p.LMQ), fmt.Sprint("enableConsumeQueueExt=", p.ConsumeQueueExt),
	}
	if p.DelayLevels != "" {
		set = append(set, "messageDelayLevel="+p.DelayLevels)
	}
	return serveIn(t, dir, set...)
}

// find runs a command and returns the lines of what was in the log when it was dumped, by physical offset.
func (n *goldenNode) find(args ...string) map[int64]tools.Line {
	n.t.Helper()
	stdout, stderr, err := run(append(append([]string{"message"}, args...), "--json", "--namesrv", n.names, "--broker", n.broker)...)
	require.NoError(n.t, err, "%v: %s", args, stderr)
	lines := map[int64]tools.Line{}
	for _, l := range jsonLines[tools.Line](n.t, stdout) {
		_, at, err := messages.ParseOffsetMessageID(l.ID)
		require.NoError(n.t, err)
		if int64(at) < n.end {
			lines[int64(at)] = l
		}
	}
	return lines
}

// is requires that a line is the message.
func (n *goldenNode) is(l tools.Line, m *goldenMessage) {
	n.t.Helper()
	at := time.UnixMilli(m.StoreTimestamp).UTC().Format("2006-01-02T15:04:05.000Z07:00")
	require.Equal(n.t, []any{m.QueueID, m.QueueOffset, m.MsgID, at}, []any{l.Queue, l.Offset, l.ID, l.StoreTime})
	require.Len(n.t, l.Properties, len(m.Properties))
	for name, value := range m.Properties {
		require.Equal(n.t, value, l.Properties[name], "%s: property %s", m.MsgID, name)
	}
	if m.BodyHex != nil && m.SysFlag&messages.SysFlagCompressed == 0 {
		body := l.BodyBytes
		if l.Body != nil {
			body = []byte(*l.Body)
		}
		require.Equal(n.t, *m.BodyHex, hex.EncodeToString(body), m.MsgID)
	}
}

// sorted are messages in the order of the log.
func (n *goldenNode) sorted(keep func(*goldenMessage) bool) (all []*goldenMessage) {
	for _, m := range n.all {
		if keep(m) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *goldenMessage) int { return int(a.PhyOffset - b.PhyOffset) })
	return all
}

func (n *goldenNode) byID() {
	n.t.Helper()
	for _, m := range some(n.sorted(func(*goldenMessage) bool { return true })) {
		n.is(n.find("show", m.MsgID)[m.PhyOffset], m)
	}
}

func (n *goldenNode) byKey() {
	n.t.Helper()
	const most = 64 // of one answer
	keyed := n.sorted(func(m *goldenMessage) bool { return m.Properties[messages.PropertyKeys] != "" })
	for _, m := range some(keyed) {
		key := strings.Fields(m.Properties[messages.PropertyKeys])[0]
		found := n.find("find", "--topic", m.Topic, "--key", key)
		for at, l := range found {
			require.Contains(n.t, strings.Fields(l.Keys), key)
			n.is(l, n.all[at])
		}
		if hits := n.index[[2]string{m.Topic, key}]; len(hits) < most {
			require.Contains(n.t, hits, m.PhyOffset)
			require.Contains(n.t, found, m.PhyOffset)
		}
	}
}

func (n *goldenNode) byUniqueKey() {
	n.t.Helper()
	for _, m := range some(n.sorted(func(m *goldenMessage) bool { return m.Properties[messages.PropertyUniqKey] != "" })) {
		n.is(n.find("find", "--topic", m.Topic, "--unique-key", m.Properties[messages.PropertyUniqKey])[m.PhyOffset], m)
	}
}

// byTime asks for all of a topic, and for the middle of it.
func (n *goldenNode) byTime() {
	n.t.Helper()
	topics := map[string]bool{}
	for _, m := range n.all {
		topics[m.Topic] = !strings.HasPrefix(m.Topic, "RMQ_SYS_")
	}
	for topic, known := range topics {
		all := n.sorted(func(m *goldenMessage) bool { return m.Topic == topic })
		if !known || !slices.IsSortedFunc(all, func(a, b *goldenMessage) int { return int(a.StoreTimestamp - b.StoreTimestamp) }) {
			continue // of a topic without a route, or of a log whose times go back: a search by time has no one answer
		}
		for _, span := range [][2]int64{
			{all[0].StoreTimestamp, all[len(all)-1].StoreTimestamp}, {all[len(all)/3].StoreTimestamp, all[2*len(all)/3].StoreTimestamp},
		} {
			found := n.find("find", "--topic", topic, "--max", "100000", "--from", moment(span[0]), "--to", moment(span[1]))
			want := 0
			for _, m := range all {
				if m.StoreTimestamp >= span[0] && m.StoreTimestamp <= span[1] {
					want++
					require.Equal(n.t, m.MsgID, found[m.PhyOffset].ID)
				}
			}
			require.Len(n.t, found, want)
		}
	}
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }
