package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// TestABackupBuildsLightQueues whose units had not been written when it was taken: the next start takes them for complete.
func TestABackupBuildsLightQueues(t *testing.T) {
	folder := t.TempDir()
	opt := system.Options{
		Dir: filepath.Join(folder, "store"), SegmentBytes: 1 << 20, ConsumeQueueFileBytes: 20000, IndexSlots: 500, IndexEntries: 2000,
		LightQueues: system.LightQueues{MultiDispatch: true, LightTopics: true},
	}
	grow := func() {
		s, err := system.Open(opt)
		require.NoError(t, err)
		for range 3 {
			_, err := s.Put(t.Context(), &messages.Message{Topic: "T", Body: []byte("x"),
				Properties: messages.PropertiesOf(map[string]string{messages.PropertyMultiDispatch: "%LMQ%a"})})
			require.NoError(t, err)
		}
		require.NoError(t, s.Close(t.Context()))
	}
	grow()
	queue := filepath.Join(opt.Dir, "consumequeue", "%LMQ%a", "0", "00000000000000000000")
	early, err := os.ReadFile(queue)
	require.NoError(t, err)
	grow()
	require.NoError(t, os.WriteFile(queue, early, 0o600))
	backup := filepath.Join(folder, "backup")
	_, _, err = run("store", "backup", opt.Dir, backup, "--params", smallParams(t))
	require.NoError(t, err)
	opt.Dir = backup
	s, err := system.Open(opt)
	require.NoError(t, err)
	require.EqualValues(t, 6, s.MaxOffset(messages.QueueKey{Topic: "%LMQ%a"}))
	require.NoError(t, s.Close(t.Context()))
}

// TestABackupBuildsFurtherQueuesThatAreNotLight: a message of the queue's own stands behind one that is further there and has no unit yet.
func TestABackupBuildsFurtherQueuesThatAreNotLight(t *testing.T) {
	folder := t.TempDir()
	opt := system.Options{
		Dir: filepath.Join(folder, "store"), SegmentBytes: 1 << 20, ConsumeQueueFileBytes: 20000, IndexSlots: 500, IndexEntries: 2000,
		LightQueues: system.LightQueues{MultiDispatch: true},
	}
	further := messages.PropertiesOf(map[string]string{messages.PropertyMultiDispatch: "B"})
	grow := func(bodies ...string) {
		s, err := system.Open(opt)
		require.NoError(t, err)
		for _, body := range bodies {
			_, err := s.Put(t.Context(), &messages.Message{Topic: "T", Body: []byte(body), Properties: further})
			require.NoError(t, err)
		}
		_, err = s.Put(t.Context(), &messages.Message{Topic: "B", Body: []byte("own")})
		require.NoError(t, err)
		require.NoError(t, s.Close(t.Context()))
	}
	grow("one")
	queue := filepath.Join(opt.Dir, "consumequeue", "B", "0", "00000000000000000000")
	early, err := os.ReadFile(queue)
	require.NoError(t, err)
	grow("two", "three")
	want, err := os.ReadFile(queue)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(queue, early, 0o600))
	backup := filepath.Join(folder, "backup")
	_, _, err = run("store", "backup", opt.Dir, backup, "--params", smallParams(t))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(backup, "consumequeue", "B", "0", "00000000000000000000"))
	require.NoError(t, err)
	require.Equal(t, want, got)
}
