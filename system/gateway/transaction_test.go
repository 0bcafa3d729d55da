package gateway_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system/gateway"
)

const halfProperties = "TRAN_MSG\x01true\x02PGROUP\x01pg\x02UNIQ_KEY\x01UK\x02WAIT\x01true"

// half sends a half message to queue 1 of topic T; end is the request that commits it, with changes.
func (w *world) half(c *client, properties string) (m messages.StoredMessage, end func(changes ...string) *remoting.Command) {
	w.t.Helper()
	m = w.stored(c.ask(sending("T", "half", "e", "1", "f", "4", "i", properties)))
	return m, func(changes ...string) *remoting.Command {
		return req(remoting.RequestEndTransaction, append([]string{
			"producerGroup", "pg", "tranStateTableOffset", strconv.FormatInt(int64(m.QueueOffset), 10),
			"commitLogOffset", strconv.FormatInt(int64(m.PhysicalOffset), 10), "commitOrRollback", "8", "msgId", "UK",
			"fromTransactionCheck", "false",
		}, changes...)...)
	}
}

// The answers are RocketMQ's, in code and words; what it leaves unanswered is answered.
func TestEndTransaction(t *testing.T) {
	w := run(t)
	w.topic("T", 2)
	c := w.dial("broker")
	_, first := w.half(c, halfProperties)
	m, end := w.half(c, halfProperties)
	wait, _ := m.Properties.Get(messages.PropertyWait)
	require.Equal(t, "true", wait, "a half message keeps it")
	for name, x := range map[string]struct {
		cmd    *remoting.Command
		code   int
		remark string
	}{
		"group":        {end("producerGroup", "other"), remoting.ResponseSystemError, "The producer group wrong"},
		"queue offset": {end("tranStateTableOffset", "7"), remoting.ResponseSystemError, "The transaction state table offset wrong"},
		"place":        {end("commitLogOffset", "5"), remoting.ResponseSystemError, "Find prepared transaction message failed"},
		"unknown":      {end("commitOrRollback", "0"), remoting.ResponseSuccess, ""},
		"nonsense":     {end("commitOrRollback", "3"), remoting.ResponseSuccess, ""},
	} {
		a := c.ask(x.cmd)
		require.Equal(t, x.code, a.Code, name)
		require.Equal(t, x.remark, a.Remark, name)
	}
	target := messages.QueueKey{Topic: "T", QueueID: 1}
	count := func() messages.QueueOffset {
		require.NoError(t, w.store.AwaitDispatched(t.Context()))
		return w.store.MaxOffset(target)
	}
	require.Zero(t, count())
	for range 2 { // twice, and a rollback after it
		require.Equal(t, remoting.ResponseSuccess, c.ask(end()).Code)
	}
	require.Equal(t, remoting.ResponseSuccess, c.ask(end("commitOrRollback", "12")).Code)
	require.EqualValues(t, 1, count(), "delivered once")

	require.Equal(t, remoting.ResponseSuccess, c.ask(first("commitOrRollback", "12")).Code)
	require.Equal(t, remoting.ResponseSystemError, c.ask(first()).Code, "a commit after a rollback")
	require.EqualValues(t, 1, count())
	oneWay := end()
	oneWay.Flag |= remoting.FlagOneWay
	c.send(oneWay)
	c.silent()
}

func TestTransactionCheckBack(t *testing.T) {
	w := run(t, func(c *gateway.Config) {
		c.TransactionTimeout, c.TransactionInterval, c.TransactionMaxCheck = time.Millisecond, 20*time.Millisecond, 2
	})
	w.topic("T", 2)
	c := w.dial("broker")
	m, end := w.half(c, halfProperties)
	_, given := w.half(c, halfProperties+"\x02KEYS\x01never")
	producer := w.dial("broker")
	beat := req(remoting.RequestHeartbeat)
	beat.Body = []byte(`{"clientID":"id","producerDataSet":[{"groupName":"pg"}]}`)
	producer.send(beat)

	var asked remoting.CheckTransactionHeader
	for {
		push := producer.read()
		if push.IsResponse() {
			continue // to the heartbeat
		}
		require.Equal(t, remoting.RequestCheckTransactionState, push.Code)
		require.True(t, push.IsOneWay())
		require.NoError(t, remoting.FromExt(push.ExtFields, &asked))
		if asked.CommitLogOffset != int64(m.PhysicalOffset) {
			continue
		}
		require.Equal(t, remoting.CheckTransactionHeader{
			TranStateTableOffset: int64(m.QueueOffset), CommitLogOffset: int64(m.PhysicalOffset), MsgID: "UK", TransactionID: "UK",
			OffsetMsgID: m.OffsetMessageID(),
		}, asked)
		shown, err := record.DecodeAll(push.Body)
		require.NoError(t, err)
		require.Len(t, shown, 1)
		require.Equal(t, messages.QueueKey{Topic: "T", QueueID: 1}, shown[0].Queue())
		require.Equal(t, m.PhysicalOffset, shown[0].PhysicalOffset)
		require.Equal(t, "half", string(shown[0].Body))
		break
	}
	require.Equal(t, remoting.ResponseSuccess, producer.ask(end("fromTransactionCheck", "true")).Code)

	up := messages.QueueKey{Topic: messages.TopicTransCheckMaxTime}
	w.eventually(func() bool { return w.store.MaxOffset(up) > 0 }) // the one that nobody ends
	require.NotEqual(t, remoting.ResponseSuccess, c.ask(given()).Code)
	found, err := w.store.Get(t.Context(), messages.GetMessage{Queue: up, MaxMessages: 1})
	require.NoError(t, err)
	list, err := record.DecodeAll(found.Records[0])
	found.Release()
	require.NoError(t, err)
	half := messages.QueueKey{Topic: messages.TopicTransactionHalf}
	before := w.store.MaxOffset(half)
	require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestResumeCheckHalfMessage, "msgId", list[0].OffsetMessageID())).Code)
	w.eventually(func() bool { return w.store.MaxOffset(half) > before })
	for _, id := range []string{m.OffsetMessageID(), "nonsense", ""} {
		require.Equal(t, remoting.ResponseSystemError, c.ask(req(remoting.RequestResumeCheckHalfMessage, "msgId", id)).Code)
	}
}

func TestASlaveEndsNoTransactions(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.BrokerID = 1 })
	w.topic("T", 2)
	c := w.dial("broker")
	require.Nil(t, w.node.Broker().Transactions, "and checks none")
	require.Equal(t, remoting.ResponseNoPermission, c.ask(sending("T", "half", "i", halfProperties)).Code)
	a := c.ask(req(remoting.RequestEndTransaction, "producerGroup", "pg", "tranStateTableOffset", "0", "commitLogOffset", "0",
		"commitOrRollback", "8", "msgId", "UK"))
	require.Equal(t, remoting.ResponseSlaveNotAvailable, a.Code)
	require.Equal(t, remoting.ResponseSystemError, c.ask(req(remoting.RequestResumeCheckHalfMessage, "msgId", "0")).Code)
}
