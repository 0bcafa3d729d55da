package system_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/memfs"
)

// A slave tells those who follow its log behind its acknowledgements, and not for each of them: the last of a run is told of too, and so
// is what had come when the connection ended.
func TestWhatASlaveAcknowledgesIsReadable(t *testing.T) {
	m := open(t, master(memfs.New(), messages.SyncMaster))
	s := open(t, slaveOf(memfs.New(), m.HAAddress()))
	follows(t, m)
	for i := range 50 {
		putMany(t, m, i, i+1+i%3, 100) // acknowledged one by one
		caughtUp(t, m, s)
	}
	putMany(t, m, 0, 5, 100)
	end := m.Status().WrittenTo
	require.NoError(t, m.Close(t.Context()))
	until(t, "everything is dispatched", func() bool { return s.Status().DispatchedTo >= end })
}
