package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/ext/projection"
	"github.com/actormq/actormq/testkit/dispatching"
	"github.com/actormq/actormq/testkit/memfs"
)

func options(disk vfs.Disk) system.Options {
	return system.Options{
		Dir: "store", Disk: disk, SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200,
		WindowBytes: 8 << 10, FlushDiskType: system.SyncFlush,
	}
}

func database(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "counts.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func start(t testing.TB, db *sql.DB, disk vfs.Disk, change func(*system.Options)) (*system.Store, *projection.Projection) {
	t.Helper()
	opt := options(disk)
	p, err := projection.New(db)
	require.NoError(t, err)
	p.Plug(&opt)
	if change != nil {
		change(&opt)
	}
	s, err := system.Open(opt)
	require.NoError(t, err)
	return s, p
}

func put(t testing.TB, s *system.Store, topic, tag string, n int) {
	t.Helper()
	for range n {
		m := &messages.Message{Topic: topic, Body: []byte("0123456789"), Properties: messages.PropertiesOf(map[string]string{"TAGS": tag})}
		_, err := s.Put(context.Background(), m)
		require.NoError(t, err)
	}
}

func counted(t testing.TB, s *system.Store, p *projection.Projection) string {
	t.Helper()
	require.NoError(t, s.AwaitExtension(context.Background(), "projection"))
	rows, err := p.Rows(context.Background())
	require.NoError(t, err)
	return fmt.Sprint(rows)
}

func TestEachMessageIsCountedOnceAcrossStartsRepetitionsAndAPowerCut(t *testing.T) {
	db, disk := database(t), memfs.New()
	s, p := start(t, db, disk, func(opt *system.Options) {
		next := opt.Dispatchers[0].Handle
		opt.Dispatchers[0].Handle = func(ctx context.Context, b *system.Batch) error { // each batch twice
			return errors.Join(next(ctx, b), next(ctx, b))
		}
	})
	put(t, s, "Orders", "new", 700)
	put(t, s, "Orders", "paid", 30)
	put(t, s, "Bills", "", 5)
	require.Equal(t, "[{Bills  5 50} {Orders new 700 7000} {Orders paid 30 300}]", counted(t, s, p))
	put(t, s, "Bills", "", 5)
	left := disk.Crash(1)
	require.NoError(t, s.Close(t.Context()))

	s, p = start(t, db, left, nil)
	put(t, s, "Bills", "", 1)
	require.Equal(t, "[{Bills  11 110} {Orders new 700 7000} {Orders paid 30 300}]", counted(t, s, p))
	require.NoError(t, s.Close(t.Context()))

	other := memfs.New() // the database is of another log: it is filled anew
	s, p = start(t, db, other, nil)
	put(t, s, "Bills", "x", 3)
	require.Equal(t, "[{Bills x 3 30}]", counted(t, s, p))
	require.NoError(t, s.Close(t.Context()))
}

// TestContract: each message that is in the log is counted once, whatever happens to the store. The database is on a disk of its own,
// and so it is often ahead of what a crash has left, and is filled anew then.
func TestContract(t *testing.T) {
	db := database(t)
	dispatching.Contract(t, dispatching.Subject{
		Plug: func(opt *system.Options) dispatching.Check {
			p, err := projection.New(db)
			require.NoError(t, err)
			p.Plug(opt)
			return func(t testing.TB, s *system.Store, acked int) {
				rows, err := p.Rows(context.Background())
				require.NoError(t, err)
				there := s.MaxOffset(messages.QueueKey{Topic: "Orders"})
				require.GreaterOrEqual(t, there, messages.QueueOffset(acked))
				if there > 0 {
					require.Equal(t, []projection.Row{{Topic: "Orders", Tag: "new", Messages: int64(there), Bytes: 10 * int64(there)}}, rows)
				}
			}
		},
		Put: func(ctx context.Context, s *system.Store, _ int) error {
			_, err := s.Put(ctx, &messages.Message{Topic: "Orders", Body: []byte("0123456789"), Properties: "TAGS\x01new"})
			return err
		},
		Settle: 5 * time.Second,
	})
}

func Example() {
	db, err := sql.Open("sqlite", ":memory:") // a real one is a file, and outlives the program
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // each connection would have a memory of its own
	p, err := projection.New(db)
	if err != nil {
		panic(err)
	}
	opt := options(memfs.New()) // a real store names a folder: system.Options{Dir: "/var/lib/orders"}
	p.Plug(&opt)
	store, err := system.Open(opt)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, body := range []string{"two coffees", "one tea"} {
		if _, err := store.Put(ctx, &messages.Message{Topic: "Orders", Body: []byte(body), Properties: "TAGS\x01new"}); err != nil {
			panic(err)
		}
	}
	if err := store.AwaitExtension(ctx, "projection"); err != nil {
		panic(err)
	}
	rows, err := p.Rows(ctx)
	fmt.Println(rows, err)
	if err := errors.Join(store.Close(ctx), db.Close()); err != nil {
		panic(err)
	}
	// Output: [{Orders new 2 18}] <nil>
}
