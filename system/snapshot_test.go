package system_test

import (
	"context"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// onlyRead is a disk that nobody may change.
type onlyRead struct {
	vfs.Disk
	t *testing.T
}

func (d onlyRead) Open(name string, writable bool) (vfs.File, error) {
	require.False(d.t, writable, name)
	return d.Disk.Open(name, writable)
}

func (d onlyRead) Create(name string) (vfs.File, error) { return nil, d.refuse(name) }
func (d onlyRead) Remove(name string) error             { return d.refuse(name) }
func (d onlyRead) Rename(name, _ string) error          { return d.refuse(name) }
func (d onlyRead) Mkdir(name string) error              { return d.refuse(name) }
func (d onlyRead) MkdirAll(name string) error           { return d.refuse(name) }
func (d onlyRead) Lock(name string) (io.Closer, error)  { return nil, d.refuse(name) }

func (d onlyRead) refuse(name string) error {
	d.t.Error("changed: ", name)
	return fs.ErrPermission
}

func TestASnapshotIsReadBesideARunningStoreAndChangesNothing(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	s := open(t, opt)
	want := fillBodies(t, s, 0, 900)
	m := message("T", 0, "with a key")
	m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyKeys: "order-7"})
	_, err := s.Put(t.Context(), m)
	require.NoError(t, err)
	require.NoError(t, s.AwaitDispatched(t.Context()))

	opt.Disk = onlyRead{disk, t}
	view, err := system.OpenReadOnly(opt)
	require.NoError(t, err)
	fillBodies(t, s, 900, 1000)
	count := 0
	view.EachQueue(func(key messages.QueueKey, first, end messages.QueueOffset) {
		for at := first; at < end; {
			r, err := view.Get(t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32})
			require.NoError(t, err)
			for _, raw := range r.Records {
				rec, _, err := record.Parse(raw, true)
				require.NoError(t, err)
				if string(rec.Body) != "with a key" {
					require.Contains(t, want, string(rec.Body))
				}
				count++
			}
			at = r.NextOffset
			r.Release()
		}
	})
	require.Equal(t, 901, count)
	found, err := view.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: "order-7", MaxMessages: 1, EndMs: 1 << 60})
	require.NoError(t, err)
	require.Len(t, found, 1)
	at, err := view.MessageAt(found[0].PhysicalOffset)
	require.NoError(t, err)
	require.Equal(t, "with a key", string(at.Body))
	first, end := view.LogRange()
	require.Zero(t, first)
	require.Greater(t, end, at.PhysicalOffset)
	require.NoError(t, view.Close())
	require.NoError(t, view.Close())
	_, err = view.Get(context.Background(), messages.GetMessage{Queue: messages.QueueKey{Topic: "T"}})
	require.ErrorIs(t, err, system.ErrStopped)
	require.Len(t, readable(t, s, messages.QueueKey{Topic: "T"}), 335, "the store goes on")
}
