package strain_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/testkit/fixture"
)

const (
	largestBody = 4 << 20
	// sendsASecond of all clients together: some 15 MB.
	sendsASecond = 60
)

// someBody has 1 B to 4 MiB: each order of magnitude is as likely as any other.
func someBody(rnd *rand.Rand) []byte {
	b := make([]byte, int(math.Exp(rnd.Float64()*math.Log(largestBody))))
	source := rand.NewChaCha8([32]byte{byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32())})
	_, _ = source.Read(b) // it does not fail
	return b
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// sending is a send whose properties have the sum of its body.
func sending(rnd *rand.Rand, body []byte) ([]byte, error) {
	m := remoting.NewRequest(remoting.RequestSendMessageV2, &remoting.SendMessageV2Header{
		ProducerGroup: "strain", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: queues, QueueID: rnd.Int32N(queues),
		BornTimestampMs: time.Now().UnixMilli(), Properties: "sum\x01" + sumOf(body),
	})
	m.Opaque, m.Body = 1, body
	return m.Append(nil)
}

// places are those of acknowledged messages that have not been received yet.
type places struct {
	mu           sync.Mutex
	acknowledged int
	early        map[string]bool // received before the acknowledgement has
	missing      map[string]bool
}

func (p *places) sent(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acknowledged++
	if p.early[id] {
		delete(p.early, id)
	} else {
		p.missing[id] = true
	}
}

func (p *places) received(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.missing[id] {
		delete(p.missing, id)
	} else {
		p.early[id] = true
	}
}

func (p *places) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.missing)
}

// busy sends until the time is over; now and then it breaks off within a frame and connects again.
func (n *node) busy(rnd *rand.Rand, pause time.Duration, over <-chan time.Time, to *places) (err error) {
	var conn net.Conn
	defer func() {
		if conn != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	for {
		select {
		case <-over:
			return nil
		case <-time.After(time.Duration(rnd.Int64N(int64(2*pause) + 1))):
		}
		if conn == nil {
			if conn, err = net.Dial("tcp", n.broker); err != nil {
				return err
			}
		}
		frame, err := sending(rnd, someBody(rnd))
		if err != nil {
			return err
		}
		if rnd.IntN(4) == 0 {
			_, err := conn.Write(frame[:rnd.IntN(len(frame))])
			if err = errors.Join(err, conn.Close()); err != nil {
				return err
			}
			conn = nil
			continue
		}
		if err := acknowledged(conn, frame, to); err != nil {
			return err
		}
	}
}

// acknowledged sends a frame and notes where its message is.
func acknowledged(conn net.Conn, frame []byte, to *places) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write(frame); err != nil {
		return err
	}
	a, err := remoting.ReadCommand(bufio.NewReader(conn), remoting.Limits{})
	if err != nil {
		return err
	}
	if a.Code != remoting.ResponseSuccess {
		return fmt.Errorf("a send is refused: %s", a)
	}
	id, _ := a.ExtFields.Get("msgId")
	to.sent(id)
	return nil
}

// receive takes all of a queue until the context ends and compares each body with the sum beside it.
func (n *node) receive(ctx context.Context, t *testing.T, queue int32, from *places) error {
	c := n.client(t)
	for at := int64(0); ; {
		got, err := n.pull(ctx, c, queue, at)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end
		}
		if err != nil {
			return err
		}
		for i := range got.Messages {
			m := &got.Messages[i]
			sum, summed := m.Properties.Get("sum")
			if summed && sum != sumOf(m.Body) || int64(m.QueueOffset) != at+int64(i) {
				return fmt.Errorf("queue %d, %d from %d: offset %d, %d bytes, sum %s instead of %s",
					queue, i, at, m.QueueOffset, len(m.Body), sumOf(m.Body), sum)
			}
			if summed {
				from.received(m.OffsetMessageID())
			}
		}
		at = got.NextBeginOffset
	}
}

// Many connections, bodies of 1 B to 4 MiB, connections that break off within a frame: what is received is what was sent whole, byte
// by byte, and everything that was acknowledged is received.
//
//	STRAIN_SECONDS=300 STRAIN_CONNECTIONS=200 go test -v -timeout 15m -run TestEveryBody ./testkit/strain
func TestEveryBodyArrivesAsItWasSent(t *testing.T) {
	n, streams := start(t), random(t)
	connections := fixture.Number(t, "STRAIN_CONNECTIONS", 50)
	pause := time.Duration(connections) * time.Second / sendsASecond
	p := &places{early: map[string]bool{}, missing: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	receivers, senders := make(chan error, queues), make(chan error, connections)
	for q := range int32(queues) {
		go func() { receivers <- n.receive(ctx, t, q, p) }()
	}
	for range connections {
		rnd, over := streams(), time.After(span(t, 2))
		go func() { senders <- n.busy(rnd, pause, over, p) }()
	}
	for range connections {
		require.NoError(t, <-senders)
	}
	require.Eventually(t, func() bool { return p.left() == 0 || len(receivers) > 0 }, patience, 10*time.Millisecond)
	cancel()
	for range queues {
		require.NoError(t, <-receivers)
	}
	require.Empty(t, p.early, "nothing is stored that was not acknowledged: all senders have their answers")
	require.Positive(t, p.acknowledged)
	t.Logf("%d messages of %d connections, all received as they were sent", p.acknowledged, connections)
}
