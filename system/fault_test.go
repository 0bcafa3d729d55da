package system_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
)

// TestAFaultInTheMapIsAnErrorNotTheEnd takes the file away under the map, as a failing disk does: the writer fails as after
// a failed sync, a read gets an error, and the process goes on.
func TestAFaultInTheMapIsAnErrorNotTheEnd(t *testing.T) {
	opt := small(vfs.New())
	opt.Dir, opt.SegmentBytes = t.TempDir(), 1<<20
	s, err := system.Open(opt)
	require.NoError(t, err)
	for range 10 {
		_, err = s.Put(t.Context(), message("T", 0, "good"))
		require.NoError(t, err)
	}
	read(t, s, messages.QueueKey{Topic: "T"}, 0, 10)
	require.NoError(t, os.Truncate(filepath.Join(opt.Dir, "commitlog", segments.Name(0)), 0))

	r, err := s.Put(t.Context(), message("T", 0, "into nothing"))
	require.ErrorIs(t, err, vfs.ErrFault)
	require.ErrorIs(t, err, messages.ErrFailed)
	require.False(t, r.Status.Stored())
	_, err = s.Put(t.Context(), message("T", 0, "late"))
	require.ErrorIs(t, err, messages.ErrFailed)
	_, err = s.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "T"}, MaxMessages: 1})
	require.ErrorIs(t, err, vfs.ErrFault)
	_, err = s.MessageAt(0)
	require.ErrorIs(t, err, vfs.ErrFault)
	require.Error(t, s.Close(t.Context()))
}
