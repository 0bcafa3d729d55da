package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

const (
	testSegment = 4096
	testQueue   = 400 // 20 units a file
	testStartMs = int64(1_700_000_000_000)
)

func testParams() store.Params {
	return store.Params{
		Dir: "s", SegmentBytes: testSegment, ConsumeQueueFileBytes: testQueue, IndexSlots: 20, IndexEntries: 40,
		CheckCRC: true, MessageIndex: true,
	}
}

func testOptions() store.Options {
	return store.Options{Now: func() time.Time { return time.UnixMilli(testStartMs).UTC() }}
}

// put is a record that a logWriter has written.
type put struct {
	key      messages.QueueKey
	at       messages.QueueOffset
	from, to int64 // physical offsets
	keys     []string
	body     string
}

// logWriter writes a commit log as a broker does, and nothing else.
type logWriter struct {
	t    testing.TB
	disk vfs.Disk
	pos  int64
	next map[messages.QueueKey]messages.QueueOffset
	puts []put
	// intervalMs is the time between two records.
	intervalMs int64
}

func newLogWriter(t testing.TB, disk vfs.Disk) *logWriter {
	return &logWriter{t: t, disk: disk, next: map[messages.QueueKey]messages.QueueOffset{}, intervalMs: 1000}
}

// message makes the message number n for a queue.
func (w *logWriter) message(key messages.QueueKey, body string) messages.Message {
	n := len(w.puts)
	return messages.Message{
		Topic: key.Topic, QueueID: key.QueueID, BornTimestampMs: testStartMs, Body: []byte(body),
		BornHost: netip.MustParseAddrPort("192.0.2.1:5"), StoreHost: netip.MustParseAddrPort("192.0.2.2:6"),
		Properties: messages.PropertiesOf(map[string]string{
			messages.PropertyKeys: fmt.Sprintf("k%d all", n), messages.PropertyUniqKey: fmt.Sprintf("u%d", n), messages.PropertyTags: "t",
		}),
	}
}

// put appends a message to a queue.
func (w *logWriter) put(topic string, id int32, body string) put {
	w.t.Helper()
	m := w.message(messages.QueueKey{Topic: topic, QueueID: id}, body)
	return w.append(m)
}

func (w *logWriter) append(m messages.Message) put {
	w.t.Helper()
	raw, err := record.Append(nil, &m)
	require.NoError(w.t, err)
	if rest := testSegment - w.pos%testSegment; int64(len(raw))+record.BlankBytes > rest {
		w.write(record.AppendBlank(nil, int32(rest)))
		w.pos += rest
	}
	n, key := len(w.puts), m.Queue()
	at := w.next[key]
	record.SetPlace(raw, at, messages.PhysicalOffset(w.pos), testStartMs+int64(n)*w.intervalMs)
	w.write(raw)
	p := put{
		key: key, at: at, from: w.pos, to: w.pos + int64(len(raw)), body: string(m.Body),
		keys: []string{fmt.Sprintf("k%d", n), fmt.Sprintf("u%d", n)},
	}
	w.next[key]++
	w.pos = p.to
	w.puts = append(w.puts, p)
	return p
}

// fill puts messages of changing sizes into some queues.
func (w *logWriter) fill(n int) {
	for i := range n {
		w.put([]string{"A", "B", "%RETRY%g"}[i%3], int32(i%2), strings.Repeat(string(rune('a'+i%26)), i*37%90))
	}
}

func (w *logWriter) write(b []byte) {
	w.t.Helper()
	overwrite(w.t, w.disk, segmentPath(w.pos), w.pos%testSegment, b)
}

func segmentPath(at int64) string {
	return path.Join("s/commitlog", segments.Name(at-at%testSegment))
}

// overwrite writes into a file, which is made, as long as a segment, when it is not there.
func overwrite(t testing.TB, disk vfs.Disk, name string, off int64, b []byte) {
	t.Helper()
	require.NoError(t, disk.MkdirAll(path.Dir(name)))
	f, err := disk.Open(name, true)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = disk.Create(name)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(testSegment))
	}
	require.NoError(t, err)
	_, err = f.WriteAt(b, off)
	require.NoError(t, err)
	require.NoError(t, f.DataSync())
	require.NoError(t, f.Close())
	require.NoError(t, disk.SyncDir(path.Dir(name)))
}

// patchLog writes into the commit log at a physical offset.
func patchLog(t testing.TB, disk vfs.Disk, at int64, b []byte) {
	t.Helper()
	overwrite(t, disk, segmentPath(at), at%testSegment, b)
}

func createFile(t testing.TB, disk vfs.Disk, name string, size int64) {
	t.Helper()
	require.NoError(t, disk.MkdirAll(path.Dir(name)))
	f, err := disk.Create(name)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	require.NoError(t, f.DataSync())
	require.NoError(t, f.Close())
	require.NoError(t, disk.SyncDir(path.Dir(name)))
}

func truncateFile(t testing.TB, disk vfs.Disk, name string, size int64) {
	t.Helper()
	f, err := disk.Open(name, true)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	require.NoError(t, f.DataSync())
	require.NoError(t, f.Close())
}

// tree returns the content of all files below dir, but for those whose path has one of the words.
func tree(t testing.TB, disk vfs.Disk, dir string, but ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return all
	}
	require.NoError(t, err)
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case slices.ContainsFunc(but, func(word string) bool { return strings.Contains(name, word) }):
		case e.Dir:
			maps.Copy(all, tree(t, disk, name, but...))
		default:
			all[name] = string(fixture.ReadFile(t, disk, name))
		}
	}
	return all
}

func removeTree(t testing.TB, disk vfs.Disk, dir string) {
	t.Helper()
	entries, err := disk.List(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Dir {
			removeTree(t, disk, path.Join(dir, e.Name))
			continue
		}
		require.NoError(t, disk.Remove(path.Join(dir, e.Name)))
	}
	require.NoError(t, disk.SyncDir(dir))
	require.NoError(t, disk.Remove(dir))
	require.NoError(t, disk.SyncDir(path.Dir(dir)))
}

func open(t testing.TB, disk vfs.Disk) *store.Store {
	t.Helper()
	s, err := store.Open(disk, testParams(), testOptions())
	require.NoError(t, err)
	return s
}

// closed makes a store that was filled and closed properly, by somebody who leaves no clean-stop manifest.
func closed(t testing.TB, n int) (*memfs.Disk, *logWriter) {
	t.Helper()
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.fill(n)
	require.NoError(t, open(t, disk).CloseClean())
	require.NoError(t, disk.Remove("s/cleanstop.json"))
	require.NoError(t, disk.SyncDir("s"))
	return disk, w
}

// killed makes a store that was filled, and whose process was killed.
func killed(t testing.TB, n int) (*memfs.Disk, *logWriter) {
	t.Helper()
	disk, w := closed(t, n)
	createFile(t, disk, "s/abort", 0)
	return disk, w
}

// content is what a store gives to its readers.
type content struct {
	Min, End messages.PhysicalOffset
	Holes    []store.Span // holes, and records that stand for lost ones
	Bodies   map[messages.PhysicalOffset]string
	Queues   map[messages.QueueKey]queueContent
	Next     map[messages.QueueKey]messages.QueueOffset
	Keys     map[string][]messages.PhysicalOffset
}

type queueContent struct {
	Min, Max messages.QueueOffset
	Units    []consumequeue.Unit
}

func contentOf(t testing.TB, s *store.Store) content {
	t.Helper()
	c := content{
		Min: s.Log.Min(), End: s.Log.End(), Bodies: map[messages.PhysicalOffset]string{},
		Queues: map[messages.QueueKey]queueContent{}, Keys: map[string][]messages.PhysicalOffset{}, Next: s.QueueOffsets,
	}
	w := store.Walk{Log: s.Log, Queues: s.Queues, CheckCRC: true}
	end, stop, err := w.Run(max(0, c.Min), func(it *store.Item) error {
		switch it.Kind {
		case store.ItemHole:
			c.Holes = append(c.Holes, store.Span{From: it.From, To: it.To})
		case store.ItemRecord:
			if it.Record.Lost() {
				c.Holes = append(c.Holes, store.Span{From: it.From, To: it.To})
				return nil
			}
			c.Bodies[it.From] = string(it.Record.Body)
			c.addKeys(t, s, &it.Record)
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, stop)
	require.Equal(t, max(c.End, 0), end)
	s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
		require.NoError(t, q.Damaged())
		require.NoError(t, q.Verify())
		qc := queueContent{Min: q.Min(), Max: q.Max(), Units: make([]consumequeue.Unit, q.Max()-q.Min())}
		n, err := q.Read(q.Min(), qc.Units)
		require.NoError(t, err)
		require.Len(t, qc.Units, n)
		c.Queues[key] = qc
	})
	return c
}

func (c *content) addKeys(t testing.TB, s *store.Store, r *record.Record) {
	t.Helper()
	p := messages.ViewProperties(r.Properties)
	keys, _ := p.Get(messages.PropertyKeys)
	uniqKey, _ := p.Get(messages.PropertyUniqKey)
	for _, key := range append(strings.Fields(keys), uniqKey) {
		if _, asked := c.Keys[string(r.Topic)+"#"+key]; asked { // by another record that has it
			continue
		}
		found, err := s.Index.Query(string(r.Topic), key, 1000, 0, 1<<62)
		require.NoError(t, err)
		slices.Sort(found)
		c.Keys[string(r.Topic)+"#"+key] = slices.Compact(found)
	}
}

// requirePuts checks that messages can be read from their queues and found by their keys.
func (c *content) requirePuts(t testing.TB, puts []put) {
	t.Helper()
	for _, p := range puts {
		require.Equal(t, p.body, c.Bodies[messages.PhysicalOffset(p.from)], "record at %d", p.from)
		q := c.Queues[p.key]
		require.True(t, p.at >= q.Min && p.at < q.Max, "%v %d in %d..%d", p.key, p.at, q.Min, q.Max)
		u := q.Units[p.at-q.Min]
		require.Equal(t, [2]int64{p.from, p.to}, [2]int64{int64(u.PhysicalOffset), int64(u.End())}, "unit %d of %v", p.at, p.key)
		for _, key := range p.keys {
			require.Contains(t, c.Keys[p.key.Topic+"#"+key], messages.PhysicalOffset(p.from), "key %s", key)
		}
	}
}

// recovered opens a store, takes its content, and closes it as a kill does.
func recovered(t testing.TB, disk vfs.Disk) (content, store.Report) {
	t.Helper()
	s := open(t, disk)
	c, report := contentOf(t, s), s.Report
	require.NoError(t, s.Close())
	return c, report
}

func events(r store.Report) []store.Finding {
	var all []store.Finding
	for _, e := range r.Events {
		all = append(all, e.What)
	}
	return all
}

// unitBytes is a unit as it lies in a file.
func unitBytes(at, size int64) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(at))
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	return binary.BigEndian.AppendUint64(b, 0)
}

func zeroBytes(n int64) []byte { return bytes.Repeat([]byte{0}, int(n)) }
