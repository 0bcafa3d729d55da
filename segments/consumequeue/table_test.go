package consumequeue

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestOptions(t *testing.T) {
	require.NoError(t, Options{}.Validate())
	err := Options{FileBytes: 1001, MaxOpenFiles: -1}.Validate()
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "FileBytes is 1001")
	require.ErrorContains(t, err, "MaxOpenFiles is -1")
	_, err = OpenTable(memfs.New(), dir, Options{FileBytes: -20})
	require.ErrorIs(t, err, ErrOptions)
}

func TestCreateRefusesWhatIsNoFolderName(t *testing.T) {
	_, table, q := newTable(t)
	for _, topic := range []string{"", ".", "..", "a/b", "../x", "/etc", "a\x00b", strings.Repeat("x", 128)} {
		_, err := table.Create(messages.QueueKey{Topic: topic})
		require.ErrorIs(t, err, ErrTopic, topic)
	}
	_, err := table.Create(messages.QueueKey{Topic: "T", QueueID: -1})
	require.ErrorIs(t, err, ErrTopic)
	again, err := table.Create(key)
	require.NoError(t, err)
	require.Same(t, q, again)
	require.Equal(t, 1, table.Len())
	require.Equal(t, key, q.Key())
}

func TestLookupMakesNothing(t *testing.T) {
	disk, table, _ := newTable(t)
	require.Nil(t, table.Lookup(messages.QueueKey{Topic: "GhostTopic"}))
	require.Equal(t, 1, table.Len())
	_, err := disk.Stat(dir)
	require.Error(t, err)
}

func TestManyTopics(t *testing.T) {
	disk := vfs.New()
	root := t.TempDir()
	table, err := OpenTable(disk, root, small)
	require.NoError(t, err)
	for i := range 300 {
		q, err := table.Create(messages.QueueKey{Topic: fmt.Sprintf("%%RETRY%%g-%d", i/3), QueueID: int32(i % 3)})
		require.NoError(t, err)
		appendUnits(t, q, 0, int64(i%25)+1)
		require.NoError(t, q.Write())
	}
	require.NoError(t, table.Close())
	table, err = OpenTable(disk, root, small)
	require.NoError(t, err)
	require.Equal(t, 300, table.Len())
	seen := 0
	table.Each(func(k messages.QueueKey, q *Queue) {
		seen++
		require.Equal(t, k, q.Key())
		require.Same(t, q, table.Lookup(k))
		require.Equal(t, messages.QueueOffset(int(q.PhysicalEnd()/100)), q.Max())
		requireUnits(t, q, 0, int64(q.Max()))
	})
	require.Equal(t, 300, seen)
	require.Empty(t, table.Ignored())
	require.LessOrEqual(t, len(table.files.byKey), small.MaxOpenFiles)
	require.NoError(t, table.Close())
}

func TestDescriptorsAreBounded(t *testing.T) {
	disk, table, q := newTable(t)
	var open, most atomic.Int64
	disk.Inject(func(op memfs.Op) error {
		switch op.Kind {
		case memfs.KindOpen, memfs.KindCreate:
			most.Store(max(most.Load(), open.Add(1)))
		case memfs.KindClose:
			open.Add(-1)
		}
		return nil
	})
	appendUnits(t, q, 0, 200)
	require.NoError(t, q.Sync())
	q.Cool()
	for range 3 {
		requireUnits(t, q, 0, 200)
	}
	require.NoError(t, q.SetMin(10_050))
	_, err := q.DeleteExpired()
	require.NoError(t, err)
	requireUnits(t, q, 101, 200)
	require.LessOrEqual(t, most.Load(), int64(small.MaxOpenFiles+1), "one more while a file is being opened")
	require.NoError(t, table.Close())
	require.Zero(t, open.Load())
	requireUnits(t, q, 101, 200)
	require.Zero(t, open.Load(), "after Close nothing stays open")
}

func TestIdleQueuesAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("needs memory")
	}
	const queues = 80_000
	table := openTable(t, memfs.New(), Options{})
	before := heapBytes()
	for i := range queues {
		q, err := table.Create(messages.QueueKey{Topic: fmt.Sprintf("topic-%d", i/8), QueueID: int32(i % 8)})
		require.NoError(t, err)
		_, err = q.Append(unit(0), 0)
		require.NoError(t, err)
	}
	grown := heapBytes() - before
	t.Logf("%d bytes a queue", grown/queues)
	require.Less(t, grown, int64(100<<20))
	runtime.KeepAlive(table)
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestRace has one builder, a flusher, a cleaner and readers at work on the same queue.
func TestRace(t *testing.T) {
	const units = 6000
	disk := memfs.New()
	table := openTable(t, disk, Options{FileBytes: 500 * UnitBytes, MaxOpenFiles: 2})
	q, err := table.Create(key)
	require.NoError(t, err)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { readAll(t, q, &stop) })
	}
	wg.Go(func() {
		for !stop.Load() {
			require.NoError(t, q.Sync())
		}
	})
	wg.Go(func() {
		for !stop.Load() {
			require.NoError(t, q.SetMin(q.PhysicalEnd()-150_000))
			_, err := q.DeleteExpired()
			require.NoError(t, err)
		}
	})
	cuts := 0
	for at := int64(0); at < units; at++ {
		ok, err := q.Append(unit(at), messages.QueueOffset(at))
		require.NoError(t, err)
		require.True(t, ok)
		switch {
		case at%97 == 0:
			q.Cool()
		case at > int64(cuts)*611:
			cuts++
			least, _ := q.Range()
			at = max(int64(least), at-300) - 1
			require.NoError(t, q.Truncate(messages.QueueOffset(at+1)))
		}
	}
	stop.Store(true)
	wg.Wait()
	require.NoError(t, q.Damaged())
	least, end := q.Range()
	require.Equal(t, messages.QueueOffset(units), end)
	requireUnits(t, q, int64(least), units)
	require.NoError(t, q.Destroy())
}

// readAll reads random places until told to stop: it may get an error or less than it asked for, but never a wrong unit.
func readAll(t *testing.T, q *Queue, stop *atomic.Bool) {
	buf := make([]Unit, 700)
	good := 0
	for at := messages.QueueOffset(0); !stop.Load() || good == 0; {
		least, end := q.Range()
		if at < least || at >= end {
			at = least
		}
		n, err := q.Read(at, buf[:1+int(at)%len(buf)])
		if err != nil {
			require.True(t, isReadError(err), "%v", err)
			continue
		}
		for i, u := range buf[:n] {
			require.Equal(t, unit(int64(at)+int64(i)), u)
		}
		good += n
		at += messages.QueueOffset(n)
	}
}

func TestDestroyUnderReaders(t *testing.T) {
	_, table, q := newTable(t)
	appendUnits(t, q, 0, 200)
	require.NoError(t, q.Write())
	q.Cool()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for buf := make([]Unit, 50); table.Lookup(key) != nil; {
				n, err := q.Read(3, buf)
				if err == nil {
					require.Equal(t, unit(3), buf[0])
					require.LessOrEqual(t, n, 50)
				} else {
					require.True(t, isReadError(err), "%v", err)
				}
			}
		})
	}
	require.NoError(t, q.Destroy())
	wg.Wait()
}

func TestLookupBesideCreate(t *testing.T) {
	table := openTable(t, memfs.New(), small)
	var wg sync.WaitGroup
	var stop atomic.Bool
	for range 3 {
		wg.Go(func() {
			for i := int32(0); !stop.Load(); i++ {
				k := messages.QueueKey{Topic: "T", QueueID: i % 500}
				if q := table.Lookup(k); q != nil {
					require.Equal(t, k, q.Key())
				}
			}
		})
	}
	for i := range int32(500) {
		_, err := table.Create(messages.QueueKey{Topic: "T", QueueID: i})
		require.NoError(t, err)
	}
	for i := range int32(250) {
		require.NoError(t, table.Lookup(messages.QueueKey{Topic: "T", QueueID: i}).Destroy())
	}
	stop.Store(true)
	wg.Wait()
	require.Equal(t, 250, table.Len())
}
