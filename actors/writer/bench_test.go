package writer

import (
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/commitlog"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
)

const (
	benchSegment = 256 << 20
	benchBuffers = 64 // each sender rotates over as many encoded records, so that they are not cache-hot
	benchRounds  = 21 // alternations of the two sides in one benchmark
)

// BenchmarkPut compares the writer behind its mailbox with the same append behind a mutex: alternating rounds in one run,
// each sender waits for its put (or its group of 16). x-mutex is mutex time ÷ mailbox time, the median over the rounds.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{220, 1116} {
		for _, senders := range []int{1, 4, 16, 64} {
			for _, group := range []int{1, 16} {
				b.Run(fmt.Sprintf("record=%d/senders=%d/group=%d", size, senders, group), func(b *testing.B) {
					benchmarkPut(b, size, senders, group)
				})
			}
		}
	}
}

func benchmarkPut(b *testing.B, size, senders, group int) {
	log := benchLog(b)
	mu := &locked{tail: newAppender(log, nil)}
	port := startWriter(b, log)
	load := newLoad(b, size, senders, group)
	per := max(b.N/(2*benchRounds*senders*group), 1)
	load.run(per, mu.put) // warm both sides up
	load.run(per, port.put)
	b.ReportAllocs()
	b.ResetTimer()
	var mutex, inMailbox, ratio []float64
	puts := float64(per * senders * group)
	for range benchRounds {
		m, w := load.run(per, mu.put), load.run(per, port.put)
		mutex = append(mutex, float64(m.Nanoseconds())/puts)
		inMailbox = append(inMailbox, float64(w.Nanoseconds())/puts)
		ratio = append(ratio, float64(m)/float64(w))
	}
	b.StopTimer()
	b.ReportMetric(median(mutex), "ns/put-mutex")
	b.ReportMetric(median(inMailbox), "ns/put-mailbox")
	b.ReportMetric(median(ratio), "x-mutex")
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

func benchLog(b *testing.B) *commitlog.Log {
	b.Helper()
	disk, dir := vfs.New(), b.TempDir()
	log, _, err := commitlog.Open(disk, dir, benchSegment)
	require.NoError(b, err)
	seg, err := segments.Create(disk, path.Join(dir, segments.Name(0)), 0, benchSegment)
	require.NoError(b, err)
	require.NoError(b, seg.Populate(0, benchSegment))
	log.Add(seg)
	log.Publish(seg, 0, 0)
	b.Cleanup(func() { require.NoError(b, log.Close()) })
	return log
}

// wrap starts over at the beginning of the segment when it is full: the benchmark measures appends, not rolls.
func (a *appender) wrap(room int) {
	if a.pos+int64(room)+record.BlankBytes > int64(len(a.data)) {
		a.pos = 0
	}
}

// locked is the other side: the same append, publication and fault guard behind a mutex.
type locked struct {
	mu    sync.Mutex
	tail  *appender
	clock clock
}

func (l *locked) put(g *messages.PutGroup) {
	for _, p := range g.Puts {
		l.mu.Lock()
		l.tail.tick(l.clock.nowMs())
		if err := guardedAppend(l.tail, p); err != nil {
			l.tail.wrap(len(p.Records))
			if err := guardedAppend(l.tail, p); err != nil {
				panic(err)
			}
		}
		_ = l.tail.publish() // through the map: it can't fail
		l.mu.Unlock()
	}
}

type port struct {
	mb *mailbox.Combining
}

func (w port) put(g *messages.PutGroup) {
	if len(g.Puts) == 1 {
		p := g.Puts[0]
		if err := w.mb.PostWaiting(p); err != nil {
			panic(err)
		}
		p.Wait()
		p.Reopen()
		return
	}
	g.Next = 0
	if err := w.mb.Post(g.MailboxLink()); err != nil {
		panic(err)
	}
	g.Lead.Wait()
	g.Lead.Reopen()
}

type load struct {
	groups [][]*messages.PutGroup // by sender
}

func newLoad(b *testing.B, size, senders, group int) *load {
	b.Helper()
	l := &load{}
	for s := range senders {
		var groups []*messages.PutGroup
		for len(groups)*group < benchBuffers {
			g := messages.NewPutGroup()
			for range group {
				g.Add(benchPut(b, size, s))
			}
			groups = append(groups, g)
		}
		l.groups = append(l.groups, groups)
	}
	return l
}

func (l *load) run(per int, put func(*messages.PutGroup)) time.Duration {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, groups := range l.groups {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-start
			for i := range per {
				put(groups[i%len(groups)])
			}
		}()
	}
	began := time.Now()
	close(start)
	wg.Wait()
	return time.Since(began)
}

func benchPut(b *testing.B, size, sender int) *messages.PutMessage {
	b.Helper()
	m := messages.Message{Topic: "BenchTopic", QueueID: int32(sender % 4), Properties: "TAGS\x01a"}
	base, err := record.Size(&m)
	require.NoError(b, err)
	m.Body = make([]byte, size-base)
	p := messages.NewPutMessage()
	p.Records, err = record.Append(nil, &m)
	require.NoError(b, err)
	require.Len(b, p.Records, size)
	p.Count, p.Queue = 1, m.Queue()
	return p
}

var benchSystems atomic.Int32

func startWriter(b *testing.B, log *commitlog.Log) port {
	b.Helper()
	system := actor.NewActorSystem(fixture.Quiet)
	w := &wrapping{Actor: New(Config{Log: log})}
	mb := mailbox.New(mailbox.Options{InlineBatches: 16, Receiver: w, OnPanic: w.Panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return w }, actor.WithMailbox(mb.Producer()))
	_, err := system.Root.SpawnNamed(props, fmt.Sprintf("writer-%d", benchSystems.Add(1)))
	require.NoError(b, err)
	b.Cleanup(func() { system.Shutdown() })
	return port{mb: mb}
}

// wrapping starts over in the segment between batches; a put alone that does not fit comes as a batch.
type wrapping struct{ *Actor }

func (w *wrapping) ReceiveBatch(b *mailbox.Batch) {
	w.tail.wrap(64 * 16 * 2048)
	w.Actor.ReceiveBatch(b)
}

func guardedAppend(a *appender, p *messages.PutMessage) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return a.append(p)
}
