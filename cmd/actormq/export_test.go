package main

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/golden"
)

// whatRocketMQRead is the part of what is expected of a golden store that is about messages.
type whatRocketMQRead struct {
	Loaded  bool
	Records []struct {
		PhyOffset int64
		Kind      string
	}
	Queues []struct {
		Topic    string
		QueueID  int32
		Messages []struct {
			Offset int64
			Msg    *struct {
				PhyOffset, QueueOffset, StoreTimestamp int64
				Topic, RawSha256                       string
				QueueID                                int32
				CRCOK                                  *bool `json:"crcOk"`
				BodyHex                                *string
				Properties                             map[string]string
			}
		}
	}
}

// TestExportOfGoldenStores: whatever RocketMQ reads by its queues is in the export, as it is, damaged store or not; and the
// directory stays as it was.
func TestExportOfGoldenStores(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			s := golden.Load(name)
			dir, params := unpack(t, s)
			before := snapshot(t, dir)
			stdout, _, err := run("store", "export", dir, "--params", params)
			require.NoError(t, err)
			require.True(t, equalStates(before, snapshot(t, dir)), "the directory was changed")
			got := map[int64]exportLine{}
			for lines := json.NewDecoder(strings.NewReader(stdout)); lines.More(); {
				var l exportLine
				require.NoError(t, lines.Decode(&l))
				got[l.Offset] = l
			}
			if len(s.Expected()) == 0 { // RocketMQ loses something that is whole: what was put and must still be there is
				require.Empty(t, s.Check(asDump(t, got)))
				return
			}
			var want whatRocketMQRead
			require.NoError(t, json.Unmarshal(s.Expected(), &want))
			messages := 0
			for _, x := range want.Records {
				if x.Kind == "msg" {
					messages++
					require.Contains(t, got, x.PhyOffset)
				}
			}
			require.Len(t, got, messages)
			for _, q := range want.Queues {
				for _, m := range q.Messages {
					if m.Msg == nil || m.Msg.CRCOK != nil && !*m.Msg.CRCOK {
						continue
					}
					l, ok := got[m.Msg.PhyOffset]
					require.True(t, ok, "%s %d: offset %d is missing", m.Msg.Topic, m.Msg.QueueID, m.Msg.QueueOffset)
					require.Equal(t, []any{m.Msg.Topic, m.Msg.QueueID, m.Msg.QueueOffset, m.Msg.StoreTimestamp}, []any{l.Topic, l.Queue, l.QueueOffset, l.StoreTimeMs})
					require.Equal(t, len(m.Msg.Properties), len(l.Properties))
					if body := l.BodyBytes; m.Msg.BodyHex != nil {
						if l.Body != nil {
							body = []byte(*l.Body)
						}
						require.Equal(t, *m.Msg.BodyHex, hex.EncodeToString(body))
					}
				}
			}
		})
	}
}

// asDump are the messages of an export as a dump shows them, with the answers that an index of them gives.
func asDump(t *testing.T, lines map[int64]exportLine) []byte {
	t.Helper()
	type msg struct {
		QueueOffset int64 `json:"queueOffset"`
		PhyOffset   int64 `json:"phyOffset"`
	}
	type queue struct {
		Topic    string           `json:"topic"`
		ID       int32            `json:"queueId"`
		Messages []map[string]msg `json:"messages"`
	}
	type answer struct {
		Topic   string  `json:"topic"`
		Key     string  `json:"key"`
		Offsets []int64 `json:"phyOffsets"`
	}
	hits := map[[2]string][]int64{}
	all := struct {
		Queues []queue  `json:"queues"`
		Index  []answer `json:"index"`
	}{}
	for at, l := range lines {
		all.Queues = append(all.Queues, queue{l.Topic, l.Queue, []map[string]msg{{"msg": {l.QueueOffset, at}}}})
		for _, key := range strings.Fields(l.Properties["KEYS"]) {
			hits[[2]string{l.Topic, key}] = append(hits[[2]string{l.Topic, key}], at)
		}
	}
	for of, offsets := range hits {
		all.Index = append(all.Index, answer{of[0], of[1], offsets})
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	return text
}
