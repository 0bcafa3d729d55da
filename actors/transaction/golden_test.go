package transaction

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/golden"
)

// What RocketMQ made of its own half messages is what we make of them, byte for byte: committed messages, op messages, and the half
// messages themselves.
func TestRocketMQsBytes(t *testing.T) {
	dir, err := golden.Load("tx-broker").Unpack(t.TempDir())
	require.NoError(t, err)
	log, err := os.ReadFile(filepath.Join(dir, "commitlog", "00000000000000000000"))
	require.NoError(t, err)
	commits, ops, halves := 0, 0, 0
	for at := 0; ; {
		r, kind, err := record.Parse(log[at:], true)
		if err != nil || kind != record.KindMessage {
			break
		}
		raw, m := log[at:at+int(r.Size)], r.Stored()
		at += int(r.Size)
		var ours *messages.Message
		switch {
		case messages.TransactionOf(m.SysFlag) == messages.SysFlagTransactionCommit:
			half, _, err := record.Parse(log[m.PreparedTransactionOffset:], true)
			require.NoError(t, err)
			stored := half.Stored()
			ours, err = restored(&stored)
			require.NoError(t, err)
			commits++
		case m.Topic == messages.TopicTransactionOp:
			endedBy(&r, func(half messages.QueueOffset) {
				ours = op(half, m.StoreHost, time.UnixMilli(m.BornTimestampMs))
			})
			require.NotNil(t, ours)
			ours.BornHost = m.BornHost
			ops++
		default:
			to, err := real(&m)
			require.NoError(t, err)
			sent := m.Message
			sent.Topic, sent.QueueID, sent.SysFlag = to.Topic, to.QueueID, messages.SysFlagTransactionPrepared
			sent.Properties = m.Properties.Without(messages.PropertyRealTopic, messages.PropertyRealQueueID)
			Halve(&sent)
			ours = &sent
			halves++
		}
		b, err := record.Append(nil, ours)
		require.NoError(t, err)
		record.SetPlace(b, m.QueueOffset, m.PhysicalOffset, m.StoreTimestampMs)
		require.Equal(t, raw, b, "at %d", m.PhysicalOffset)
	}
	require.Equal(t, []int{14, 18, 25}, []int{commits, ops, halves})
}
