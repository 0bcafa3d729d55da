package storebackup

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestACopyOfQueuesThatAreNotToBeBelievedSaysSo, whether that was known before they were copied, or is while they are.
func TestACopyOfQueuesThatAreNotToBeBelievedSaysSo(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	queue := filepath.Join("consumequeue", "T", "0", "00000000000000000000")
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(from, queue)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(from, queue), make([]byte, 20), 0o600))
	marker := filepath.Join(from, "unprovenqueues")
	require.NoError(t, os.WriteFile(marker, []byte("7\n"), 0o600))
	require.NoError(t, copyAround(t.Context(), from, to))
	text, err := os.ReadFile(filepath.Join(to, "unprovenqueues"))
	require.NoError(t, err)
	require.Equal(t, "7\n", string(text))
	require.FileExists(t, filepath.Join(to, queue))

	require.NoError(t, os.Remove(marker))
	require.NoError(t, copyAround(t.Context(), from, to))
	require.NoFileExists(t, filepath.Join(to, "unprovenqueues"), "of the copy before")
}

// asked is a context that has something done when it is asked for the first time once there is a file.
type asked struct {
	context.Context
	file string
	then *func()
}

func (a asked) Err() error {
	if _, err := os.Stat(a.file); err == nil && *a.then != nil {
		(*a.then)()
		*a.then = nil
	}
	return a.Context.Err()
}

// TestWhereAQueueGoesOnThatGoesWhileOthersAreCopied is in the copy: the store notes it before it deletes the queue.
func TestWhereAQueueGoesOnThatGoesWhileOthersAreCopied(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	name := func(dir, topic string) string {
		return filepath.Join(dir, "consumequeue", topic, "0", "00000000000000000000")
	}
	for _, topic := range []string{"A", "B", "C"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name(from, topic)), 0o700))
		require.NoError(t, os.WriteFile(name(from, topic), make([]byte, 20), 0o600))
	}
	floors := "queuefloors.json"
	then := func() {
		require.NoError(t, os.WriteFile(filepath.Join(from, floors), []byte(`{"queues":{"C":{"0":7}}}`), 0o600))
		require.NoError(t, os.RemoveAll(filepath.Join(from, "consumequeue", "C")))
	}
	require.NoError(t, copyAround(asked{t.Context(), name(to, "A"), &then}, from, to))
	require.Nil(t, then)
	require.FileExists(t, name(to, "B"))
	require.NoFileExists(t, name(to, "C"))
	require.FileExists(t, filepath.Join(to, floors))
}

// TestATopicThatIsDeletedWhileQueuesAreCopied has no offsets in the copy whose floors say that it was: they would be those of its next life.
func TestATopicThatIsDeletedWhileQueuesAreCopied(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	queue, next := filepath.Join("consumequeue", "A", "0", "00000000000000000000"), filepath.Join("consumequeue", "B", "0", "00000000000000000000")
	offsets := filepath.Join("config", "consumerOffset.json")
	for _, name := range []string{queue, next, offsets} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(from, queue), make([]byte, 20), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(from, next), make([]byte, 20), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(from, offsets), []byte(`{"offsetTable":{"T@g":{0:100}}}`), 0o600))
	then := func() {
		require.NoError(t, os.WriteFile(filepath.Join(from, offsets), []byte(`{"offsetTable":{}}`), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(from, "queuefloors.json"), []byte(`{"topics":{"T":{"below":7}}}`), 0o600))
	}
	require.NoError(t, copyAround(asked{t.Context(), filepath.Join(to, queue), &then}, from, to))
	require.Nil(t, then)
	require.FileExists(t, filepath.Join(to, "queuefloors.json"))
	text, err := os.ReadFile(filepath.Join(to, offsets))
	require.NoError(t, err)
	require.Equal(t, `{"offsetTable":{}}`, string(text))
}

// TestABackupOfAFileGoesWhereTheFileGoes: it is read when the file is missing or damaged.
func TestABackupOfAFileGoesWhereTheFileGoes(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"queuefloors.json.bak", "promoted.json.bak"} {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte("{}"), 0o600))
		require.NoError(t, copyAround(t.Context(), from, to))
		require.FileExists(t, filepath.Join(to, name))
		require.NoError(t, os.Remove(filepath.Join(from, name)))
		require.NoError(t, copyAround(t.Context(), from, to))
		require.NoFileExists(t, filepath.Join(to, name), "of the copy before")
	}
}
