package consumequeue

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

const (
	// freshSuffix marks a file that is being made, beside the folder of its queue.
	freshSuffix = ".new"
	// tableShards is so large that copying one for an insert stays cheap with 100,000 queues.
	tableShards = 1024
	// diskWaiters is how many queues are loaded or synced at once; most of them wait for the disk.
	diskWaiters = 16
	// loadAttempts bounds how often a queue is looked at again whose files vanish meanwhile (the reader of a running
	// node's folder sees that).
	loadAttempts = 5
	// minExtFileBytes is a unit and what stays free behind it.
	minExtFileBytes = 64
)

// Options of a table. The zero value of a field stands for its default.
type Options struct {
	FileBytes    int64 // length of a file, a multiple of 20; default 6,000,000 (mappedFileSizeConsumeQueue)
	MaxOpenFiles int   // descriptors kept open for the whole table; default 512

	// ExtDir is the folder of the extension files (consumequeue_ext), empty for none; ExtFileBytes is their length, ExtClean that
	// the last stop was clean. See package ext.
	ExtDir       string
	ExtFileBytes int64
	ExtClean     bool

	// OnUnproven, if not nil, is told of each sync of a queue that has failed: units of records at from and behind may be in memory
	// only, though they can be read. It is called by whoever syncs, before anybody else hears of it, and may wait for the disk.
	OnUnproven func(from messages.PhysicalOffset, cause error)
}

func (o Options) withDefaults() Options {
	if o.FileBytes == 0 {
		o.FileBytes = 300_000 * UnitBytes
	}
	if o.MaxOpenFiles == 0 {
		o.MaxOpenFiles = 512
	}
	return o
}

// Validate reports all problems of the options; the error wraps ErrOptions.
func (o Options) Validate() error {
	var errs []error
	if o = o.withDefaults(); o.FileBytes < UnitBytes || o.FileBytes%UnitBytes != 0 {
		errs = append(errs, fmt.Errorf("%w: FileBytes is %d, must be a positive multiple of %d", ErrOptions, o.FileBytes, UnitBytes))
	}
	if o.ExtDir != "" && o.ExtFileBytes < minExtFileBytes {
		errs = append(errs, fmt.Errorf("%w: ExtFileBytes is %d, must be at least %d", ErrOptions, o.ExtFileBytes, minExtFileBytes))
	}
	if o.MaxOpenFiles < 1 {
		errs = append(errs, fmt.Errorf("%w: MaxOpenFiles is %d, must be at least 1", ErrOptions, o.MaxOpenFiles))
	}
	return errors.Join(errs...)
}

type shard map[messages.QueueKey]*Queue

// Table holds the consume queues of a store. All methods are safe for concurrent use; Lookup takes no lock.
type Table struct {
	disk  vfs.Disk
	dir   string
	units int64 // in a file
	files *fileCache

	opt    Options
	seed   maphash.Seed
	shards [tableShards]atomic.Pointer[shard] // each map is never changed once it is published
	count  atomic.Int64

	onDamage atomic.Pointer[func(messages.QueueKey, error)]

	mu      sync.Mutex // Create and Destroy; not on the way of a put, a read or a look-up
	ignored []string
}

// OpenTable loads the consume queues under dir (consumequeue), several at a time. A missing folder is an empty table.
// Damage is not an error: see Queue.Damaged. What is no folder or file of a queue is left alone: see Ignored. Of the
// files only last ones without a unit are removed, and such that were being made; short ones left by Truncate are mended.
func OpenTable(disk vfs.Disk, dir string, opt Options) (*Table, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt = opt.withDefaults()
	t := &Table{
		disk: disk, dir: dir, units: opt.FileBytes / UnitBytes, files: newFileCache(disk, opt.MaxOpenFiles),
		seed: maphash.MakeSeed(), opt: opt,
	}
	keys, err := t.findQueues()
	if err != nil {
		return nil, fmt.Errorf("open consume queues: %w", err)
	}
	queues, err := t.loadAll(keys)
	if err != nil {
		return nil, fmt.Errorf("open consume queues: %w", err)
	}
	t.publish(queues)
	return t, nil
}

func (t *Table) findQueues() ([]messages.QueueKey, error) {
	topics, err := vfs.ListIfThere(t.disk, t.dir)
	if err != nil {
		return nil, err
	}
	var keys []messages.QueueKey
	for _, topic := range topics {
		if !topic.Dir {
			t.ignore(path.Join(t.dir, topic.Name))
			continue
		}
		if keys, err = t.findQueuesOf(topic.Name, keys); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func (t *Table) findQueuesOf(topic string, keys []messages.QueueKey) ([]messages.QueueKey, error) {
	dir := path.Join(t.dir, topic)
	entries, err := vfs.ListIfThere(t.disk, dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		id, fresh, ok := parseQueueID(e)
		switch {
		case !ok:
			t.ignore(path.Join(dir, e.Name))
		case fresh:
			err = vfs.RemoveIfThere(t.disk, path.Join(dir, e.Name))
		default:
			keys = append(keys, messages.QueueKey{Topic: topic, QueueID: id})
		}
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// parseQueueID tells the queue of an entry in a topic's folder, and whether it is a file that was being made for it.
func parseQueueID(e vfs.Entry) (id int32, fresh, ok bool) {
	name, fresh := strings.CutSuffix(e.Name, freshSuffix)
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || strconv.FormatInt(n, 10) != name || e.Dir == fresh {
		return 0, false, false
	}
	return int32(n), fresh, true
}

// loadAll recovers the queues, several at a time: each waits for the disk a few times.
func (t *Table) loadAll(keys []messages.QueueKey) ([]*Queue, error) {
	queues := make([]*Queue, len(keys))
	return queues, inParallel(len(keys), func(i int) (err error) {
		queues[i], err = t.load(keys[i])
		return err
	})
}

// inParallel is InParallel with as many goroutines as wait for the disk at the most.
func inParallel(n int, fn func(i int) error) error { return InParallel(n, diskWaiters, fn) }

// InParallel calls fn for 0 to n-1 on so many goroutines at the most, and returns all errors joined.
func InParallel(n, goroutines int, fn func(i int) error) error {
	errs := make([]error, min(n, goroutines))
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				errs[w] = errors.Join(errs[w], fn(int(i)))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// load recovers one queue; nil when its folder holds no unit.
func (t *Table) load(key messages.QueueKey) (*Queue, error) {
	var err error
	for range loadAttempts {
		q := newQueue(t, key)
		if err = q.recover(); err == nil {
			if q.first < 0 && q.damaged == nil {
				return nil, nil
			}
			return q, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, fmt.Errorf("recover %s/%d: %w", key.Topic, key.QueueID, err)
}

// publish puts the loaded queues into the shards at once.
func (t *Table) publish(queues []*Queue) {
	for _, q := range queues {
		if q == nil {
			continue
		}
		p := t.shardOf(q.key)
		if p.Load() == nil {
			p.Store(&shard{})
		}
		(*p.Load())[q.key] = q
		t.count.Add(1)
	}
}

// OnDamage has fn told, once a queue, of damage that a reader meets from now on; on the reader's goroutine, before it has the error.
func (t *Table) OnDamage(fn func(messages.QueueKey, error)) { t.onDamage.Store(&fn) }

func (t *Table) ignore(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ignored = append(t.ignored, name)
}

// Ignored returns the paths that OpenTable found under the folder and that belong to no queue. RocketMQ refuses to start
// when such a file lies in the folder of a queue (spec/store.md §1.1).
func (t *Table) Ignored() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.ignored))
}

func (t *Table) shardOf(key messages.QueueKey) *atomic.Pointer[shard] {
	return &t.shards[maphash.Comparable(t.seed, key)%tableShards]
}

// Lookup returns a queue, nil when it is not there: looking never makes one (spec/store.md §16, W24). Lock-free.
func (t *Table) Lookup(key messages.QueueKey) *Queue {
	if m := t.shardOf(key).Load(); m != nil {
		return (*m)[key]
	}
	return nil
}

// Create returns a queue and makes it when it is not there. Nothing is on the disk before its first Write.
func (t *Table) Create(key messages.QueueKey) (*Queue, error) {
	if !FolderName(key.Topic) || key.QueueID < 0 {
		return nil, fmt.Errorf("create consume queue %q/%d: %w", key.Topic, key.QueueID, ErrTopic)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.Lookup(key); q != nil {
		return q, nil
	}
	q := newQueue(t, key)
	t.change(key, q)
	t.count.Add(1)
	return q, nil
}

// FolderName tells whether a topic names a folder of its own below dir and nothing else. Every put asks.
func FolderName(topic string) bool {
	return topic != "" && topic != "." && topic != ".." && len(topic) <= messages.MaxTopicBytes &&
		strings.IndexByte(topic, '/') < 0 && strings.IndexByte(topic, 0) < 0
}

// change publishes a copy of the shard with the queue, or without it when q is nil.
func (t *Table) change(key messages.QueueKey, q *Queue) {
	p := t.shardOf(key)
	next := shard{}
	if old := p.Load(); old != nil {
		for k, v := range *old {
			next[k] = v
		}
	}
	if q == nil {
		delete(next, key)
	} else {
		next[key] = q
	}
	p.Store(&next)
}

// remove takes a destroyed queue out.
func (t *Table) remove(q *Queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Lookup(q.key) == q {
		t.change(q.key, nil)
		t.count.Add(-1)
	}
}

// Each calls fn for every queue, in no particular order. Queues that come or go meanwhile may be seen or not.
func (t *Table) Each(fn func(messages.QueueKey, *Queue)) {
	for i := range t.shards {
		if m := t.shards[i].Load(); m != nil {
			for key, q := range *m {
				fn(key, q)
			}
		}
	}
}

// Len is the number of queues.
func (t *Table) Len() int { return int(t.count.Load()) }

// Sync syncs every queue (see Queue.Sync), several at a time, so that the file system can make many durable at once, and
// returns all errors joined. When it returns nil, every unit that was appended before is durable.
func (t *Table) Sync() error {
	queues := t.InOrder(func(q *Queue) bool { return q.Pending() > 0 || q.unsynced.Load() })
	return inParallel(len(queues), func(i int) error { return queues[i].Sync() })
}

// InOrder returns the queues that are wanted, by name: a run on the simulated disk can be repeated, and neighbours are
// neighbours on a real one.
func (t *Table) InOrder(want func(*Queue) bool) []*Queue {
	var queues []*Queue
	t.Each(func(_ messages.QueueKey, q *Queue) {
		if want(q) {
			queues = append(queues, q)
		}
	})
	slices.SortFunc(queues, func(a, b *Queue) int {
		return cmp.Or(cmp.Compare(a.key.Topic, b.key.Topic), cmp.Compare(a.key.QueueID, b.key.QueueID))
	})
	return queues
}

// fewQueues are synced one by one sooner than with everything else on the file system.
const fewQueues = 64

// SyncAll makes everything in the folder durable, also what an earlier process has written without syncing it: units of records at from and behind. It
// belongs to recovery: nothing else may be using the queues. Many queues are one call where the disk can sync a tree; it may wait for what others have
// written there, so few are synced by themselves. After an error no queue counts as durable that is not known to be.
func (t *Table) SyncAll(from messages.PhysicalOffset) error {
	queues := t.InOrder(func(*Queue) bool { return true })
	if len(queues) == 0 {
		return nil
	}
	for _, q := range queues {
		q.touchAll(from)
	}
	if err := inParallel(len(queues), func(i int) error { return queues[i].Write() }); err != nil {
		return err
	}
	done := false
	if len(queues) > fewQueues {
		var err error
		if done, err = vfs.SyncTree(t.disk, t.dir); err != nil {
			return fmt.Errorf("sync consume queues: %w: %w", ErrUnsynced, err)
		}
	}
	return inParallel(len(queues), func(i int) error {
		if done {
			return queues[i].synced()
		}
		return queues[i].Sync()
	})
}

// Verify verifies every queue, several at a time, and returns those that are not sound, with the reason (see Queue.Verify).
func (t *Table) Verify() map[*Queue]error {
	var queues []*Queue
	t.Each(func(_ messages.QueueKey, q *Queue) { queues = append(queues, q) })
	var mu sync.Mutex
	bad := map[*Queue]error{}
	_ = inParallel(len(queues), func(i int) error {
		if err := queues[i].Verify(); err != nil {
			mu.Lock()
			defer mu.Unlock()
			bad[queues[i]] = err
		}
		return nil
	})
	return bad
}

// Close closes all descriptors. It writes nothing: Sync first.
func (t *Table) Close() error {
	if err := t.files.close(); err != nil {
		return fmt.Errorf("close consume queues: %w", err)
	}
	return nil
}
