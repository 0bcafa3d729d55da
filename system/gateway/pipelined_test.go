package gateway_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/testkit/memfs"
)

// pipelined is the i-th request of a stream: sends of all sizes, some one-way to a retry topic, and batches.
func pipelined(t *testing.T, who, i int) *remoting.Command {
	text := strings.Repeat(fmt.Sprintf("%d.%d ", who, i), 1+i*i%300)
	s := sending("T", text, "e", "0", "i", fmt.Sprintf("KEYS\x01k%d.%d\x02WAIT\x01false\x02own\x01%s", who, i, text[:min(len(text), 40)]))
	s.Opaque, s.Binary = int32(i+1), i%4 == 0
	if i%10 == 9 {
		body, err := record.EncodeBatchBody(nil, []messages.Message{{Body: []byte(text)}, {Body: []byte("second of " + text)}})
		require.NoError(t, err)
		s.Body, s.Code = body, remoting.RequestSendBatchMessage
		s.ExtFields = s.ExtFields.Set("m", "true")
	}
	return s
}

// What a send borrows of the read buffer, and of what is pooled, is its own as long as it needs it: every answer names the
// message that its request carried, whatever is sent before and behind it, and by others.
func TestPipelinedSendsAreStoredAsTheyCame(t *testing.T) {
	const conns, n = 4, 400
	w := run(t)
	w.topic("T", 1)
	var wg sync.WaitGroup
	for who := range conns {
		c := w.dial("broker")
		var stream []byte
		for i := range n {
			var err error
			stream, err = pipelined(t, who, i).Append(stream)
			require.NoError(t, err)
		}
		wg.Go(func() { _, _ = c.sock.Write(stream) })
		wg.Go(func() {
			for range n {
				a, err := remoting.ReadCommand(c.in, remoting.Limits{})
				if err != nil || a.Code != remoting.ResponseSuccess {
					t.Errorf("%v %v", a, err)
					return
				}
				checkPipelined(t, w, who, a)
			}
		})
	}
	wg.Wait()
}

func checkPipelined(t *testing.T, w *world, who int, a *remoting.Command) {
	i := int(a.Opaque) - 1
	text := strings.Repeat(fmt.Sprintf("%d.%d ", who, i), 1+i*i%300)
	want := []string{text}
	if i%10 == 9 {
		want = append(want, "second of "+text)
	}
	ids := strings.Split(ext(a, "msgId"), ",")
	if len(ids) != len(want) {
		t.Errorf("request %d.%d: %d ids", who, i, len(ids))
		return
	}
	for j, id := range ids {
		_, at, err := messages.ParseOffsetMessageID(id)
		if err != nil {
			t.Error(err)
			return
		}
		m, err := w.store.MessageAt(at)
		props := m.Properties.Map()
		if err != nil || string(m.Body) != want[j] || props["own"] != text[:min(len(text), 40)] ||
			props["KEYS"] != fmt.Sprintf("k%d.%d", who, i) || props["CLUSTER"] != "MadeUpCluster" || len(props) != 3 {
			t.Errorf("request %d.%d, message %d: %q %v %v", who, i, j, m.Body, props, err)
		}
	}
}

// A held pull has its group and its expression still when the read buffer has been overwritten many times.
func TestHeldPullsKeepWhatTheyWereAskedFor(t *testing.T) {
	w := run(t, filtering)
	w.topic("T", 1)
	w.group("g")
	c := w.dial("broker")
	held := pulling("T", 0, "sysFlag", "6", "subscription", "i = 2", "expressionType", "SQL92", "suspendTimeoutMillis", "600000")
	c.send(held)
	other := strings.Repeat("z", 3000)
	for i := range 20 {
		c.ask(req(remoting.RequestGetMaxOffset, "topic", "T", "queueId", "0", "padding", other[i:]))
	}
	w.numbered("T", 0, 3)
	a := c.response(held)
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Len(t, bodies(t, a), 1)
	require.Equal(t, "3", ext(a, "nextBeginOffset"))
}

// A pull of a group that has to be made waits for the disk; what the client has sent behind it does not: a Java client that seeks
// asks for the queue's ends meanwhile, and hands out the wrong messages when both are answered at the same moment.
func TestAPullThatMakesItsGroupHoldsNothingUp(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	w.fill("T", 1)
	stalled, release := make(chan struct{}, 1), make(chan struct{})
	w.disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite && strings.Contains(op.Name, "subscriptionGroup") {
			stalled <- struct{}{}
			<-release
		}
		return nil
	})
	c := w.dial("broker")
	pull := pulling("T", 0, "consumerGroup", "new")
	c.send(pull)
	<-stalled
	behind := req(remoting.RequestGetMaxOffset, "topic", "T", "queueId", "0")
	c.send(behind)
	first := c.read()
	require.Equal(t, behind.Opaque, first.Opaque)
	require.Equal(t, "1", ext(first, "offset"))
	w.disk.Inject(nil)
	close(release)
	require.Equal(t, remoting.ResponseSuccess, c.response(pull).Code)
}

// A send whose topic could not be made in time is refused, and its topic is made later all the same: after the template that it has
// named, though the read buffer has other requests by then.
func TestATopicThatIsMadeLateIsMadeAfterItsTemplate(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.Broker.KeeperTimeout = soon })
	stalled, release := make(chan struct{}, 1), make(chan struct{})
	w.disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite && strings.Contains(op.Name, "topics.json") {
			stalled <- struct{}{}
			<-release
		}
		return nil
	})
	first, second := w.dial("broker"), w.dial("broker")
	first.send(sending("First", "keeps the keeper busy"))
	<-stalled
	require.Equal(t, remoting.ResponseSystemError, second.ask(sending("Late", "x", "c", "TBW102")).Code)
	require.Equal(t, remoting.ResponseSystemError, second.ask(sending("None", "x", "c", "XXXXXX")).Code)
	w.disk.Inject(nil)
	close(release)
	w.topic("Behind", 1)
	_, there := w.node.Broker().Topics.Lookup("Late")
	require.True(t, there)
	_, there = w.node.Broker().Topics.Lookup("None")
	require.False(t, there)
}
