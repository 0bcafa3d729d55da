package system

import (
	"context"
	"fmt"
	"sync"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// Snapshot is a store as it was when it was opened for reading: recovered in memory, while the directory is neither changed
// nor locked, so that a node may run on it. What the node adds later is not seen. Every method is safe for concurrent use.
type Snapshot struct {
	store *Store
	once  sync.Once
	err   error
}

// OpenReadOnly looks at a store's directory, also while a node runs on it; the sizes in the options are those that it was
// written with. Of a running node's last moments a part may be missing, and files that it deletes meanwhile may be an error
// for the read that needs them.
func OpenReadOnly(opt Options) (*Snapshot, error) {
	opt = opt.Defaults()
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	files, err := openFiles(opt, store.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("open read-only: %w", err)
	}
	s := &Store{
		opt: opt, files: files, log: files.Log, queues: files.Queues, index: files.Index, closed: make(chan struct{}),
		memoryBytes: vfs.PhysicalMemory() / 100 * int64(opt.MemoryRatioPercent),
	}
	return &Snapshot{store: s}, nil
}

// Get reads messages of a queue; see [Store.Get]. Release its result before Close.
func (v *Snapshot) Get(ctx context.Context, m messages.GetMessage) (*messages.GetResult, error) {
	return v.store.Get(ctx, m)
}

// MessageAt reads the message at a physical offset; see [Store.MessageAt].
func (v *Snapshot) MessageAt(off messages.PhysicalOffset) (messages.StoredMessage, error) {
	return v.store.MessageAt(off)
}

// Query finds messages by key; see [Store.Query].
func (v *Snapshot) Query(ctx context.Context, q messages.QueryMessage) ([]messages.StoredMessage, error) {
	return v.store.Query(ctx, q)
}

// EachQueue calls fn for every consume queue with its range of offsets.
func (v *Snapshot) EachQueue(fn func(key messages.QueueKey, first, end messages.QueueOffset)) {
	v.store.EachQueue(fn)
}

// LogRange is the range of the commit log.
func (v *Snapshot) LogRange() (first, end messages.PhysicalOffset) { return v.store.LogRange() }

// Close gives the memory back. Only the first call does something, all return the same.
func (v *Snapshot) Close() error {
	v.once.Do(func() {
		close(v.store.closed)
		v.err = v.store.files.Close()
	})
	return v.err
}
