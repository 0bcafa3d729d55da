package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The bare loops: the least that anything in Go which writes or reads RocketMQ's files does for a workload, without a store around it:
// no actors, no checks, no limits, no recovery. What such a loop does not reach is out of reach for a store.

// bareBench runs one of them, with the arguments of the store benches.
func bareBench(o *options) error {
	switch o.workload {
	case "put", "put-batch", "put-topics":
		return barePuts(o)
	case "put-sync":
		return bareSync(o)
	case "get":
		return bareGets(o)
	case "index-query":
		return bareQueries(o)
	case "recover":
		return bareOpen(o)
	}
	return fmt.Errorf("bare workload %q", o.workload)
}

// Sizes of the formats: a record is its head, body, topic and properties; a queue unit; an index entry, and the index file's parts.
const (
	bareHead  = 91
	bareTail  = 85
	unitSize  = 20
	entrySize = 20
	slots     = 5_000_000
	entries   = 2_500_000 // of 20,000,000: begins again
)

// bareLog is a log in files of 1 GiB. A goroutine gives the files pages, in steps of 256 KiB of zeros up to 8 MiB ahead of the tail, and makes
// the next file. Positions below done are written; all are file<<32 | offset.
type bareLog struct {
	dir   string
	size  int
	warm  bool // the first file has all its pages before the clock starts
	mu    sync.Mutex
	files [][]byte
	fds   []*os.File
	pos   int // in the last file
	tail  atomic.Int64
	ready atomic.Int64
	done  atomic.Int64
	want  chan struct{}
}

// bareAhead is how far pages are prepared, and bareAgain how much of that is used up when more are asked for.
const (
	bareAhead = 8 << 20
	bareAgain = 1 << 20
)

func (l *bareLog) roll() error {
	m, f, err := mapFile(filepath.Join(l.dir, fmt.Sprint("log", len(l.files))), l.size)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.files, l.fds = append(l.files, m), append(l.fds, f)
	l.mu.Unlock()
	l.pos = 0
	at := int64(len(l.files)-1) << 32
	l.tail.Store(at)
	l.ready.Store(at)
	if l.warm && len(l.files) == 1 {
		return l.prepare(l.size)
	}
	return nil
}

// ahead prepares whenever it is wanted.
func (l *bareLog) ahead() {
	for range l.want {
		if err := l.prepare(int(l.tail.Load()&(1<<32-1)) + bareAhead); err != nil {
			panic(err)
		}
	}
}

// prepare gives the last file pages up to a position.
func (l *bareLog) prepare(to int) error {
	const populateWrite = 23
	l.mu.Lock()
	m, f, from := l.files[len(l.files)-1], l.fds[len(l.fds)-1], l.ready.Load()
	l.mu.Unlock()
	for off := int(from & (1<<32 - 1)); off < min(to, l.size); {
		step := min(rawStep, l.size-off)
		if _, err := f.WriteAt(rawZeros[:step], int64(off)); err != nil {
			return err
		}
		if err := unix.Madvise(m[off:off+step], populateWrite); err != nil {
			return err
		}
		off += step
		if !l.ready.CompareAndSwap(from, from+int64(step)) {
			return nil // there is another file
		}
		from += int64(step)
	}
	return nil
}

// reserve returns where n bytes go. Called under the lock of those who put.
func (l *bareLog) reserve(n int) ([]byte, error) {
	if l.pos+n > l.size {
		l.done.Store(int64(len(l.files)-1)<<32 | int64(l.size))
		if err := l.roll(); err != nil {
			return nil, err
		}
	}
	file := int64(len(l.files)-1) << 32
	for left := l.ready.Load() - (file | int64(l.pos+n)); left < bareAhead-bareAgain; left = l.ready.Load() - (file | int64(l.pos+n)) {
		select {
		case l.want <- struct{}{}:
		default:
		}
		if left >= 0 || l.ready.Load() >= file|int64(l.size) {
			break
		}
		runtime.Gosched()
	}
	at := l.files[len(l.files)-1][l.pos : l.pos+n : l.pos+n]
	l.pos += n
	l.tail.Store(file | int64(l.pos))
	return at, nil
}

func (l *bareLog) publish() { l.done.Store(int64(len(l.files)-1)<<32 | int64(l.pos)) }

// bareRecord is a record with everything that does not change; patch does the rest.
func bareRecord(o *options) []byte {
	b := make([]byte, bareHead+o.body+bareTail)
	for i := range b {
		b[i] = 'a' + byte((i*7+i>>5)%26)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	binary.BigEndian.PutUint32(b[84:], uint32(o.body))
	return b
}

// hex writes the 16 digits by which unique keys differ.
func hex(b []byte, v uint64) {
	for i := 15; i >= 0; i-- {
		b[i] = "0123456789ABCDEF"[v&15]
		v >>= 4
	}
}

// patch writes what is a message's own: key, times and checksum.
func patch(b []byte, o *options, key uint64, now int64) {
	hex(b[len(b)-40:], key)
	binary.BigEndian.PutUint64(b[40:], uint64(now))
	binary.BigEndian.PutUint64(b[56:], uint64(now))
	binary.BigEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[88:88+o.body]))
}

// place writes what the log gives it: both offsets.
func place(b []byte, queue, offset int) {
	binary.BigEndian.PutUint64(b[20:], uint64(queue))
	binary.BigEndian.PutUint64(b[28:], uint64(offset))
}

// bareQueues is what the dispatcher writes: a unit in one of the queues and an index entry for each record.
type bareQueues struct {
	units [][]byte
	at    []int
	index []byte
	next  int
}

func newQueues(dir string, topics, size int) (*bareQueues, error) {
	q := &bareQueues{at: make([]int, topics)}
	for t := range topics {
		m, _, err := mapFile(filepath.Join(dir, fmt.Sprint("queue", t)), size)
		if err != nil {
			return nil, err
		}
		m[0] = 0
		q.units = append(q.units, m)
	}
	var err error
	q.index, err = preparedFile(filepath.Join(dir, "index"), 40+4*slots+entrySize*entries)
	return q, err
}

func hashOf(key []byte) uint32 {
	h := uint32(0)
	for _, c := range key {
		h = h*31 + uint32(c)
	}
	return h &^ (1 << 31)
}

// add dispatches one record.
func (q *bareQueues) add(b []byte, topic, offset int) {
	u := q.units[topic]
	if q.at[topic]+unitSize > len(u) {
		q.at[topic] = 0
	}
	u = u[q.at[topic]:]
	q.at[topic] += unitSize
	binary.BigEndian.PutUint64(u, uint64(offset))
	binary.BigEndian.PutUint32(u[8:], uint32(len(b)))
	binary.BigEndian.PutUint64(u[12:], 12345)
	h := hashOf(b[len(b)-56 : len(b)-8])
	slot := q.index[40+4*(h%slots):]
	e := q.index[40+4*slots+entrySize*(q.next%entries):]
	binary.BigEndian.PutUint32(e, h)
	binary.BigEndian.PutUint64(e[4:], uint64(offset))
	copy(e[16:20], slot[:4])
	binary.BigEndian.PutUint32(slot, uint32(q.next))
	q.next++
}

// follow dispatches what the log has until stop says that no more comes; it sleeps a millisecond when it has caught up, as RocketMQ's does.
func (q *bareQueues) follow(l *bareLog, stop *atomic.Bool) {
	file, pos, topic := 0, 0, 0
	for {
		last := stop.Load()
		for done := l.done.Load(); int64(file)<<32|int64(pos) < done; {
			l.mu.Lock()
			m := l.files[file]
			l.mu.Unlock()
			end := l.size
			if int(done>>32) == file {
				end = int(done & (1<<32 - 1))
			}
			for pos+bareHead <= end {
				n := int(binary.BigEndian.Uint32(m[pos:]))
				if n == 0 {
					break
				}
				q.add(m[pos:pos+n], topic, file*l.size+pos)
				pos += n
				if topic++; topic == len(q.units) {
					topic = 0
				}
			}
			if int(done>>32) > file {
				file, pos = file+1, 0
			} else {
				break
			}
		}
		if last {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// barePuts: encode and checksum a record, take a lock, give it its place, copy it; a second goroutine writes queue and index.
func barePuts(o *options) error {
	l := &bareLog{dir: o.dir, size: o.fileMB << 20, warm: o.burst, want: make(chan struct{}, 1)}
	q, err := newQueues(o.dir, o.topics, 6_000_000)
	if err != nil {
		return err
	}
	if err := l.roll(); err != nil {
		return err
	}
	var mu sync.Mutex
	var stop atomic.Bool
	followed := make(chan struct{})
	go func() { q.follow(l, &stop); close(followed) }()
	go l.ahead()
	limit := int64(o.count)
	if !o.burst {
		limit = 1 << 62
		if _, _, err := bareProduce(o, l, &mu, o.warmup, limit); err != nil {
			return err
		}
	}
	c0, t0 := cpuSeconds(), time.Now()
	n, h, err := bareProduce(o, l, &mu, o.seconds, limit)
	if err != nil {
		return err
	}
	el := time.Since(t0).Seconds()
	stop.Store(true)
	<-followed
	drained := time.Since(t0).Seconds()
	report(o, "bare", o.workload).put("threads", o.threads).put("body", o.body).put("msgs", n).put("seconds", el).put("msgs_per_s", float64(n)/el).
		put("drained_msgs_per_s", float64(n)/drained).lat(h).cpu(cpuSeconds()-c0, n).print()
	return nil
}

func bareProduce(o *options, l *bareLog, mu *sync.Mutex, seconds float64, limit int64) (int64, *hist, error) {
	batch := 1
	if o.workload == "put-batch" {
		batch = o.batch
	}
	var wg sync.WaitGroup
	var all hist
	var failed error
	var sum int64
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for t := range o.threads {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var h hist
			one := bareRecord(o)
			var b []byte
			for range batch {
				b = append(b, one...)
			}
			n, err := int64(0), error(nil)
			for key := uint64(t) << 40; err == nil && n < limit/int64(o.threads); n += int64(batch) {
				began := time.Now()
				if began.After(end) {
					break
				}
				key = barePrepare(b, len(one), o, key, began)
				mu.Lock()
				var at []byte
				if at, err = l.reserve(len(b)); err == nil {
					for i := 0; i < len(b); i += len(one) {
						place(b[i:], int(n), l.pos-len(b)+i)
					}
					copy(at, b)
					l.publish()
				}
				mu.Unlock()
				h.add(time.Since(began).Nanoseconds())
			}
			mu.Lock()
			all.merge(&h)
			sum += n
			if failed == nil {
				failed = err
			}
			mu.Unlock()
		}()
	}
	wg.Wait()
	return sum, &all, failed
}

func barePrepare(b []byte, size int, o *options, key uint64, now time.Time) uint64 {
	for i := 0; i < len(b); i += size {
		key++
		patch(b[i:i+size], o, key, now.UnixMilli())
	}
	return key
}

// preparedFile is a mapped file whose pages are all there, in large pieces.
func preparedFile(name string, size int) ([]byte, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	for at := 0; at < size; at += rawStep {
		if _, err := f.WriteAt(rawZeros[:min(rawStep, size-at)], int64(at)); err != nil {
			return nil, err
		}
	}
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
}

// bareFill writes count records and their queue.
func bareFill(o *options, count int) (log, units []byte, err error) {
	record := bareRecord(o)
	if log, err = preparedFile(filepath.Join(o.dir, "log"), count*len(record)); err != nil {
		return nil, nil, err
	}
	if units, err = preparedFile(filepath.Join(o.dir, "queue"), count*unitSize); err != nil {
		return nil, nil, err
	}
	for i := range count {
		at := i * len(record)
		patch(record, o, uint64(i), 0)
		copy(log[at:], record)
		binary.BigEndian.PutUint64(units[i*unitSize:], uint64(at))
		binary.BigEndian.PutUint32(units[i*unitSize+8:], uint32(len(record)))
	}
	return log, units, nil
}

// bareGets: look at a unit, copy its record (or look at its first word); wraps.
func bareGets(o *options) error {
	log, units, err := bareFill(o, o.count)
	if err != nil {
		return err
	}
	sink := make([]byte, 64*(bareHead+o.body+bareTail))
	var n, sum int64
	c0, t0 := cpuSeconds(), time.Now()
	limit := time.Duration(o.seconds * float64(time.Second))
	for i := 0; time.Since(t0) < limit; n += int64(o.batch) {
		at := 0
		for range o.batch {
			u := units[i*unitSize : i*unitSize+unitSize]
			from, size := int(binary.BigEndian.Uint64(u)), int(binary.BigEndian.Uint32(u[8:]))
			if o.touch == "none" {
				sum += int64(binary.BigEndian.Uint32(log[from:]))
			} else {
				at += copy(sink[at:], log[from:from+size])
			}
			if i++; i == o.count {
				i = 0
			}
		}
	}
	el := time.Since(t0).Seconds()
	report(o, "bare", o.workload).put("body", o.body).put("msgs", n).put("seconds", el).put("msgs_per_s", float64(n)/el).
		put("sum", sum).cpu(cpuSeconds()-c0, n).print()
	return nil
}

// bareQueries: hash a random key, follow slot and entry to the record, compare its key, copy it.
func bareQueries(o *options) error {
	log, _, err := bareFill(o, o.count)
	if err != nil {
		return err
	}
	q, err := newQueues(o.dir, 1, o.count*unitSize)
	if err != nil {
		return err
	}
	size := bareHead + o.body + bareTail
	for i := range o.count {
		q.add(log[i*size:(i+1)*size], 0, i*size)
	}
	key := append([]byte(nil), log[size-56:size-8]...)
	sink := make([]byte, size)
	var n int64
	c0, t0 := cpuSeconds(), time.Now()
	limit := time.Duration(o.seconds * float64(time.Second))
	for r := uint64(1); time.Since(t0) < limit; n++ {
		r = r*6364136223846793005 + 1442695040888963407
		hex(key[16:], (r>>33)%uint64(o.count))
		h := hashOf(key)
		for e := binary.BigEndian.Uint32(q.index[40+4*(h%slots):]); ; {
			entry := q.index[40+4*slots+entrySize*int(e):]
			if at := int(binary.BigEndian.Uint64(entry[4:])); binary.BigEndian.Uint32(entry) == h && string(log[at+size-56:at+size-8]) == string(key) {
				copy(sink, log[at:at+size])
				break
			}
			e = binary.BigEndian.Uint32(entry[16:])
		}
	}
	el := time.Since(t0).Seconds()
	report(o, "bare", o.workload).put("msgs", n).put("seconds", el).put("msgs_per_s", float64(n)/el).cpu(cpuSeconds()-c0, n).print()
	return nil
}

// bareOpen: map a log that is in the page cache and compare the checksums of its records, a part of it on each processor.
func bareOpen(o *options) error {
	size := bareHead + o.body + bareTail
	count := int(o.mb * 1e6 / float64(size))
	if _, _, err := bareFill(o, count); err != nil {
		return err
	}
	parts := runtime.GOMAXPROCS(0)
	var bad atomic.Int64
	c0, t0 := cpuSeconds(), time.Now()
	f, err := os.Open(filepath.Join(o.dir, "log"))
	if err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, count*size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for p := range parts {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := p * count / parts; i < (p+1)*count/parts; i++ {
				b := m[i*size:]
				if crc32.ChecksumIEEE(b[88:88+o.body]) != binary.BigEndian.Uint32(b[8:]) {
					bad.Add(1)
				}
			}
		}()
	}
	wg.Wait()
	if bad.Load() > 0 {
		return fmt.Errorf("%d records with another checksum", bad.Load())
	}
	report(o, "bare", o.workload).put("exit", o.exit).put("mb", o.mb).put("open_ms", time.Since(t0).Seconds()*1e3).cpu(cpuSeconds()-c0, int64(count)).print()
	return nil
}
