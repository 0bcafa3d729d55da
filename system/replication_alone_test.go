package system_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// told is the answer of a put.
type told struct {
	result messages.PutResult
	err    error
}

// putAlone puts a message without waiting, and returns where its answer comes.
func putAlone(m *system.Store, body string, deadline time.Time) chan told {
	answer := make(chan told, 1)
	m.PutAsync(message("T", 0, body), true, deadline, func(r messages.PutResult, err error) { answer <- told{r, err} })
	return answer
}

// receiver is a fake slave that reads and notes what it is sent, and acknowledges what it is told to.
type receiver struct {
	conn net.Conn
	got  atomic.Int64 // everything below
	done chan struct{}
}

func newReceiver(t *testing.T, m *system.Store) *receiver {
	t.Helper()
	r := &receiver{conn: fake(t, m, int64(m.Status().WrittenTo)), done: make(chan struct{})}
	follows(t, m)
	return r
}

// read takes frames until the connection ends; each begins where the last one has ended.
func (r *receiver) read(t *testing.T) {
	defer close(r.done)
	head, at := make([]byte, 12), int64(-1)
	for {
		if _, err := io.ReadFull(r.conn, head); err != nil {
			return
		}
		from, n := int64(binary.BigEndian.Uint64(head)), int(binary.BigEndian.Uint32(head[8:]))
		if at >= 0 && from != at {
			t.Errorf("a frame at %d, behind %d", from, at)
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r.conn, body); err != nil {
			return
		}
		at = from + int64(n)
		r.got.Store(at)
	}
}

// appended waits until so many messages have been appended, since a put is taken by whoever runs the writer, and returns the log's end.
func appended(t *testing.T, m *system.Store, count messages.QueueOffset) int64 {
	t.Helper()
	until(t, "they are appended", func() bool { return m.MaxOffset(messages.QueueKey{Topic: "T"}) == count })
	return int64(m.Status().WrittenTo)
}

// alone puts messages behind count others, one after the other, until they go the way of one that is alone, and returns how many there are.
func alone(t *testing.T, m *system.Store, r *receiver, count messages.QueueOffset) messages.QueueOffset {
	t.Helper()
	for i := range 100 {
		answer := putAlone(m, fmt.Sprint("one ", i), time.Time{})
		count++
		end := appended(t, m, count)
		until(t, "it is sent", func() bool { return r.got.Load() == end })
		send(t, r.conn, end)
		got := <-answer
		require.NoError(t, got.err)
		require.Equal(t, messages.PutOK, got.result.Status)
		if got.result.Alone {
			return count
		}
	}
	t.Fatal("no put was alone")
	return 0
}

func TestPutsAreAloneUntilThereAreMore(t *testing.T) {
	opt := master(memfs.New(), messages.SyncMaster)
	opt.HAHousekeeping = time.Minute // the receiver says nothing by itself
	m := open(t, opt)
	r := newReceiver(t, m)
	go r.read(t)
	count := messages.QueueOffset(0)
	for range 5 {
		count = alone(t, m, r, count)
		var answers []chan told
		for i := range 20 {
			answers = append(answers, putAlone(m, fmt.Sprint("one of many ", i), time.Time{}))
			count++
		}
		end := appended(t, m, count)
		until(t, "they are sent", func() bool { return r.got.Load() == end })
		for _, answer := range answers {
			require.Empty(t, answer, "nobody has acknowledged")
		}
		send(t, r.conn, end)
		for _, answer := range answers {
			got := <-answer
			require.Equal(t, messages.PutOK, got.result.Status)
			require.False(t, got.result.Alone)
		}
	}
	require.NoError(t, r.conn.Close())
	<-r.done
}

func TestASlaveThatGoesLeavesTheOnePutToItsDeadline(t *testing.T) {
	opt := master(memfs.New(), messages.SyncMaster)
	opt.HAHousekeeping = time.Minute // the receiver says nothing by itself
	m := open(t, opt)
	count := messages.QueueOffset(0)
	for range 3 {
		r := newReceiver(t, m)
		go r.read(t)
		count = alone(t, m, r, count)
		answer := putAlone(m, "unanswered", time.Now().Add(300*time.Millisecond))
		end := appended(t, m, count+1)
		until(t, "it is sent", func() bool { return r.got.Load() == end })
		require.NoError(t, r.conn.Close())
		<-r.done
		require.Equal(t, messages.FlushSlaveTimeout, (<-answer).result.Status)
		until(t, "the slave has gone", func() bool { return len(m.Replicas()) == 0 })
		require.Equal(t, messages.SlaveNotAvailable, (<-putAlone(m, "nobody", time.Time{})).result.Status)
		count += 2
	}
}

func TestManyWhoPutAloneAndTogetherLoseNothing(t *testing.T) {
	md, sd := memfs.New(), memfs.New()
	m := open(t, master(md, messages.SyncMaster))
	s := open(t, slaveOf(sd, m.HAAddress()))
	follows(t, m)
	for round := range 10 {
		putMany(t, m, 0, 30, 200)
		done := make(chan error, 4)
		for g := range 4 {
			go func() {
				for i := range 30 {
					r, err := m.Put(t.Context(), message("T", int32(g), fmt.Sprint(round, g, i)))
					if err == nil && r.Status != messages.PutOK {
						err = fmt.Errorf("put: %v", r.Status)
					}
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 4 {
			require.NoError(t, <-done)
		}
	}
	caughtUp(t, m, s)
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, m.Close(t.Context()))
	sameLog(t, md, sd)
}
