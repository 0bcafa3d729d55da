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
	Loaded bool
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
			if len(s.Expected()) == 0 {
				require.NotEmpty(t, got) // judged by what must be kept: TestGoldenStoresGrow
				return
			}
			var want whatRocketMQRead
			require.NoError(t, json.Unmarshal(s.Expected(), &want))
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
