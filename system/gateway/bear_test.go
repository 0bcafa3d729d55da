package gateway_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
)

// size is a number of a test that an environment variable makes larger (docs/TESTING.md).
func size(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// randomBody is one that can be told from others and checked: of n bytes, of which the first ones are random.
func randomBody(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], random.Uint64())
		copy(b[i:], word[:])
	}
	return b
}

const largestBody = 4 << 20

// sizes are mostly small, but for some that fill a message.
func someSize(random *rand.Rand) int {
	switch random.IntN(40) {
	case 0:
		return largestBody - random.IntN(2)
	case 1, 2, 3:
		return 1 + random.IntN(256<<10)
	}
	return 1 + random.IntN(8<<10)
}

// busyClient sends and breaks off for a while; every acknowledged body's sum is noted.
func (w *world) busyClient(random *rand.Rand, sends int, sums *sync.Map) error {
	var sock net.Conn
	for range sends {
		if sock == nil {
			var err error
			if sock, err = net.Dial("tcp", w.node.Addr("broker").String()); err != nil {
				return err
			}
		}
		b := randomBody(random, someSize(random))
		sum := sha256.Sum256(b)
		r := sending("T", string(b), "i", "sum\x01"+hex.EncodeToString(sum[:]), "e", strconv.Itoa(random.IntN(4)))
		r.Opaque = 1
		frame, err := r.Append(nil)
		if err != nil {
			return err
		}
		if random.IntN(4) == 0 { // in the middle of a frame
			_, err := sock.Write(frame[:random.IntN(len(frame))])
			if err = errors.Join(err, sock.Close()); err != nil {
				return err
			}
			sock = nil
			continue
		}
		if _, err := sock.Write(frame); err != nil {
			return err
		}
		a, err := remoting.ReadCommand(bufio.NewReader(sock), remoting.Limits{})
		if err != nil {
			return err
		}
		if a.Code == remoting.ResponseSuccess {
			sums.Store(ext(a, "msgId"), hex.EncodeToString(sum[:]))
		}
	}
	if sock != nil {
		return sock.Close()
	}
	return nil
}

// Many connections, bodies of 1 B to 4 MiB, connections that break off within a frame: what is stored is what was sent whole.
func TestEveryBodyArrivesAsItWasSent(t *testing.T) {
	w := run(t)
	w.topic("T", 4)
	connections, sends := size(t, "ACTORMQ_BEAR_CONNECTIONS", 40), size(t, "ACTORMQ_BEAR_SENDS", 8)
	seed := uint64(size(t, "ACTORMQ_BEAR_SEED", int(time.Now().UnixNano()&0x7fffffff)))
	t.Logf("seed %d", seed)
	var sums sync.Map
	var clients sync.WaitGroup
	failures := make(chan error, connections)
	for i := range connections {
		clients.Go(func() { failures <- w.busyClient(rand.New(rand.NewPCG(seed, uint64(i))), sends, &sums) })
	}
	clients.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	acknowledged := 0
	sums.Range(func(id, sum any) bool {
		acknowledged++
		_, at, err := messages.ParseOffsetMessageID(id.(string))
		require.NoError(t, err)
		m, err := w.store.MessageAt(at)
		require.NoError(t, err)
		got := sha256.Sum256(m.Body)
		require.Equal(t, sum, hex.EncodeToString(got[:]))
		return true
	})
	require.NotZero(t, acknowledged)
	w.eventually(func() bool { // a message is acknowledged before it is in its queue
		end := messages.QueueOffset(0)
		for id := range int32(4) {
			end += w.store.MaxOffset(messages.QueueKey{Topic: "T", QueueID: id})
		}
		return int(end) >= acknowledged
	})
	stored := 0
	for id := range int32(4) {
		stored += w.everyBodyIsWhole(messages.QueueKey{Topic: "T", QueueID: id})
	}
	require.GreaterOrEqual(t, stored, acknowledged)
	t.Logf("%d messages", stored)
}

// everyBodyIsWhole reads a queue to its end and compares each body with the sum beside it.
func (w *world) everyBodyIsWhole(q messages.QueueKey) (n int) {
	w.t.Helper()
	for at := messages.QueueOffset(0); at < w.store.MaxOffset(q); at++ {
		got, err := w.store.Get(w.t.Context(), messages.GetMessage{Queue: q, Offset: at, MaxMessages: 1})
		require.NoError(w.t, err)
		require.Equal(w.t, messages.Found, got.Status)
		list, err := record.DecodeAll(slices.Concat(got.Records...))
		require.NoError(w.t, err)
		sum := sha256.Sum256(list[0].Body)
		want, _ := list[0].Properties.Get("sum")
		require.Equal(w.t, want, hex.EncodeToString(sum[:]), "queue %d offset %d", q.QueueID, at)
		got.Release()
		n++
	}
	return n
}

// hostile are beginnings of connections after which nothing good comes.
func hostile(random *rand.Rand) []byte {
	noise := randomBody(random, 1+random.IntN(4096))
	switch random.IntN(6) {
	case 0:
		return []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	case 1: // a hello that does not go on
		return []byte{0x16, 3, 1, 2, 0, 1, 0, 1}
	case 2: // a frame of 16 MiB, of which little comes
		return binary.BigEndian.AppendUint32(nil, 16<<20)
	case 3: // a header that is longer than its frame
		return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 100), 1<<23), noise...)
	case 4: // a frame that stops in its header
		b, _ := sending("T", "x").Append(nil)
		return b[:len(b)/2]
	}
	return noise
}

// L99: garbage, and peers that never finish what they have begun, on every port, encrypted or not: nobody else notices.
func TestClientsDoNotNoticeHostilePeers(t *testing.T) {
	w := run(t, func(c *gateway.Config) {
		c.TLSMode = edge.TLSPermissive
		c.Limits.HandshakeTimeout = time.Second
	})
	w.topic("T", 4)
	peers := size(t, "ACTORMQ_BEAR_HOSTILE", 60)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var attackers sync.WaitGroup
	over := make(chan struct{})
	for i := range peers {
		attackers.Go(func() {
			random := rand.New(rand.NewPCG(99, uint64(i)))
			port := []string{"broker", "vip", "namesrv"}[i%3]
			for again := true; again; {
				sock, err := net.Dial("tcp", w.node.Addr(port).String())
				if err != nil {
					return
				}
				_, _ = sock.Write(hostile(random)) // it may be closed already
				again = dribble(sock, over)
				_ = sock.Close()
			}
		})
	}
	sums := sync.Map{}
	for i := range 4 {
		require.NoError(t, w.busyClient(rand.New(rand.NewPCG(7, uint64(i))), 25, &sums))
		c := w.dial("namesrv")
		require.Equal(t, remoting.ResponseSuccess, c.ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "T")).Code)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	close(over)
	attackers.Wait()
	const most = 256 << 20 // large frames have a budget of 128 MiB; the simulated disk holds what was sent
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(most))
	for id := range int32(4) {
		w.everyBodyIsWhole(messages.QueueKey{Topic: "T", QueueID: id})
	}
}

// dribble sends a byte now and then until the peer closes the connection: then true. False: it is over.
func dribble(sock net.Conn, over <-chan struct{}) bool {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = bufio.NewReader(sock).WriteTo(nowhere{})
	}()
	for {
		select {
		case <-closed:
			return true
		case <-over:
			_ = sock.Close()
			<-closed
			return false
		case <-time.After(20 * time.Millisecond):
			_, _ = sock.Write([]byte{0})
		}
	}
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// parking is a store at which something happens between a pull's look and its parking.
type parking struct {
	broker.Store

	between func()
}

func (p parking) Park(m *messages.ParkPull) {
	p.between()
	p.Store.Park(m)
}

// L74: the message comes after the pull has found nothing and before it is parked. It is answered with it, not when its time is over.
func TestAMessageThatArrivesWhileThePullIsBeingParked(t *testing.T) {
	var w *world
	var once sync.Once
	w = run(t, func(c *gateway.Config) {
		store := c.Store
		c.Store = parking{Store: store, between: func() {
			once.Do(func() {
				_, err := store.Put(t.Context(), &messages.Message{
					Topic: "T", Body: []byte("just now"), BornHost: c.Broker.StoreHost, StoreHost: c.Broker.StoreHost,
				})
				require.NoError(t, err)
				w.eventually(func() bool { return store.MaxOffset(messages.QueueKey{Topic: "T"}) == 1 }) // and its arrival has been told
			})
		}}
	})
	w.topic("T", 1)
	c := w.dial("broker")
	a := c.ask(pulling("T", 0, "sysFlag", "6", "suspendTimeoutMillis", "300000", "subscription", "*"))
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	require.Equal(t, []string{"just now"}, bodies(t, a))
}

// L76: who asks far behind the end, again and again, is told where it goes on; that fills neither the log nor a topic.
func TestOffsetsFarBeyondTheEndDoNotFillTheDisk(t *testing.T) {
	var log lines
	w := run(t, func(c *gateway.Config) { c.Broker.Logger, c.Limits.Logger = zerolog.New(&log), zerolog.New(&log) })
	w.topic("T", 1)
	w.fill("T", 5)
	c := w.dial("broker")
	written := len(log.String())
	for range 2000 {
		a := c.ask(pulling("T", 100_000))
		require.Equal(t, remoting.ResponsePullOffsetMoved, a.Code)
		require.Equal(t, "5", ext(a, "nextBeginOffset"))
	}
	require.Less(t, len(log.String())-written, 10<<10)
}

// L75: a reader that wants one message of very many is told how far it has got, and goes on at once.
func TestARareTagIsReachedWithoutWaiting(t *testing.T) {
	w := run(t)
	w.topic("T", 1)
	c := w.dial("broker")
	const others = 3000
	for range others {
		r := sending("T", "x", "i", "TAGS\x01other")
		r.Flag |= remoting.FlagOneWay
		c.send(r)
	}
	w.settle(c.ask(sending("T", "wanted", "i", "TAGS\x01rare")))
	at, asked := 0, 0
	for ; ; asked++ {
		require.Less(t, asked, 100)
		a := c.ask(pulling("T", at, "sysFlag", "6", "suspendTimeoutMillis", "300000", "subscription", "rare"))
		if a.Code == remoting.ResponseSuccess {
			require.Equal(t, []string{"wanted"}, bodies(t, a))
			return
		}
		require.Equal(t, remoting.ResponsePullRetryImmediately, a.Code, a.Remark)
		next, err := strconv.Atoi(ext(a, "nextBeginOffset"))
		require.NoError(t, err)
		require.Greater(t, next, at, "it gets on")
		at = next
	}
}

// L77, L112: a committed offset and the end of a queue never go back over a restart of the node.
func TestOffsetsDoNotGoBackOverARestart(t *testing.T) {
	var cfg *gateway.Config
	w := run(t, func(c *gateway.Config) { cfg = c })
	w.topic("T", 1)
	w.fill("T", 5)
	low := 0
	for round := range 3 {
		c := w.dial("broker")
		a := c.ask(req(remoting.RequestQueryConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0"))
		if round > 0 {
			require.Equal(t, fmt.Sprint(low), ext(a, "offset"))
		}
		low = round + 3
		a = c.ask(req(remoting.RequestUpdateConsumerOffset, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", fmt.Sprint(low)))
		require.Equal(t, remoting.ResponseSuccess, a.Code)
		require.Equal(t, "5", ext(c.ask(req(remoting.RequestGetMaxOffset, "topic", "T", "queueId", "0")), "offset"))
		require.NoError(t, w.node.Stop(t.Context()))
		again := actorSystem()
		var err error
		w.node, err = gateway.Start(again.Root, *cfg)
		require.NoError(t, err)
		t.Cleanup(again.Shutdown)
	}
}
