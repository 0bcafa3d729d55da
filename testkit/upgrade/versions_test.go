package upgrade

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
)

// written is a version of the files, as a program that wrote them then has left them: testdata/<name>-clean.tar.gz after a clean stop,
// <name>-killed.tar.gz killed once 20 more messages had come. docs/COMPATIBILITY.md has a row for each.
type written struct {
	name    string
	gone    messages.QueueOffset // end of the queue of topic Gone, whose last five messages came after it was deleted
	expired messages.QueueOffset // where topic Short begins, of whose 40 messages 30 have expired; 0: there is none
}

var versions = []written{
	{name: "1", gone: 25},             // no queuefloors.json: the deletion was forgotten at the next start
	{name: "2", gone: 5},              // cleanstop.json, queuefloors.json
	{name: "3", gone: 5, expired: 30}, // queuefloors.json knows what has expired of topics
}

func (w written) unpack(t *testing.T, how string) (dir string) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", w.name+"-"+how+".tar.gz"))
	require.NoError(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	require.NoError(t, err)
	dir = t.TempDir()
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(h.Name))
		name := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(name, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, content, 0o600))
	}
}

func openWritten(t *testing.T, dir string) *system.Store {
	t.Helper()
	s, err := system.Open(system.Options{
		Dir: dir, SegmentBytes: 32 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 500, IndexEntries: 1000, WindowBytes: 8 << 10,
	})
	require.NoError(t, err)
	require.NoError(t, s.AwaitDispatched(t.Context()))
	return s
}

// bodies are those of all messages of a queue that are left.
func bodies(t *testing.T, s *system.Store, topic string, queue int32) (all []string) {
	t.Helper()
	key := messages.QueueKey{Topic: topic, QueueID: queue}
	for at := s.MinOffset(key); at < s.MaxOffset(key); {
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32})
		require.NoError(t, err)
		require.Equal(t, messages.Found, r.Status, "%v at %d", key, at)
		for _, b := range r.Records {
			list, err := record.DecodeAll(b)
			require.NoError(t, err)
			for _, m := range list {
				require.Equal(t, at, m.QueueOffset)
				all = append(all, string(m.Body))
				at++
			}
		}
		r.Release()
	}
	return all
}

func texts(format string, from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

// check looks at all that a store of a version holds, of which n are in queue 0 of topic T.
func (w written) check(t *testing.T, s *system.Store, n int) {
	t.Helper()
	require.Equal(t, texts("T %d", 0, n), bodies(t, s, "T", 0))
	require.Equal(t, []string{"the one of queue 1"}, bodies(t, s, "T", 1))
	gone := bodies(t, s, "Gone", 0)
	require.Len(t, gone, int(w.gone))
	require.Equal(t, texts("new %d", 0, 5), gone[len(gone)-5:])
	if w.expired > 0 {
		require.Equal(t, texts("short %d", int(w.expired), 40), bodies(t, s, "Short", 0))
	}
	later := messages.QueueKey{Topic: messages.TopicSchedule, QueueID: 17}
	require.EqualValues(t, 1, s.MaxOffset(later), "the delayed message is there, delivered or not")
	found, err := s.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: "only", MaxMessages: 8, EndMs: 1 << 42})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "tagged", found[0].Properties.Map()["TAGS"])
	var offsets metadata.OffsetTable
	ok, err := metadata.Load(vfs.New(), s.ConfigDir()+"/consumerOffset.json", &offsets)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 50, offsets.Offsets["T@g"][0])
}

// whole requires that nothing is damaged in a store but the files that are named.
func whole(t *testing.T, dir string, but ...string) {
	t.Helper()
	report, err := verify.Run(vfs.New(), store.Params{
		Dir: dir, SegmentBytes: 32 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 500, IndexEntries: 1000, MessageIndex: true, CheckCRC: true,
	}, nil)
	require.NoError(t, err)
	for _, f := range report.Findings {
		require.Contains(t, but, filepath.Base(f.File), "%v", f)
	}
}

// TestStoresOfEveryVersionAreOpened: what an earlier version has written, stopped or killed, is all there, goes on, and is whole.
func TestStoresOfEveryVersionAreOpened(t *testing.T) {
	for _, w := range versions {
		for how, n := range map[string]int{"clean": 200, "killed": 220} {
			t.Run(w.name+" "+how, func(t *testing.T) {
				dir := w.unpack(t, how)
				for range 2 {
					s := openWritten(t, dir)
					w.check(t, s, n)
					r, err := s.Put(t.Context(), &messages.Message{Topic: "T", Body: fmt.Append(nil, "T ", n)})
					require.NoError(t, err)
					require.EqualValues(t, n, r.QueueOffset)
					n++
					require.NoError(t, s.Close(t.Context()))
					whole(t, dir)
				}
			})
		}
	}
}

// ours are the files of our own that say something of the others.
var ours = []string{"cleanstop.json", "queuefloors.json", "queuefloors.json.bak"}

// TestFilesOfOurOwnMayBeNewerUnknownOrDamaged: a newer version may have written more into them; RocketMQ and versions before them do not
// know them. Nothing is lost either way, and what a newer version says that is known counts.
func TestFilesOfOurOwnMayBeNewerUnknownOrDamaged(t *testing.T) {
	newer := func(t *testing.T, name string) {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		more := strings.Replace(string(b), "{", `{"ofANewerVersion": {"a": [1, {"b": null}]}, `, 1)
		require.True(t, json.Valid([]byte(more)), more)
		require.NoError(t, os.WriteFile(name, []byte(more), 0o600))
	}
	damaged := map[string][]string{"damaged": {"queuefloors.json"}}
	for change, do := range map[string]func(t *testing.T, name string){
		"newer":   newer,
		"unknown": func(t *testing.T, name string) { require.NoError(t, os.Remove(name)) },
		"damaged": func(t *testing.T, name string) { require.NoError(t, os.WriteFile(name, []byte(`{"topics": [`), 0o600)) },
	} {
		for how, n := range map[string]int{"clean": 200, "killed": 220} {
			t.Run(change+" "+how, func(t *testing.T) {
				w := versions[len(versions)-1]
				dir := w.unpack(t, how)
				for _, name := range ours {
					name = filepath.Join(dir, name)
					if _, err := os.Stat(name); how == "clean" || err == nil {
						do(t, name)
					}
				}
				s := openWritten(t, dir)
				if change == "newer" {
					w.check(t, s, n)
				} else { // what has expired, and what was deleted, may be back
					require.Equal(t, texts("T %d", 0, n), bodies(t, s, "T", 0))
					short := bodies(t, s, "Short", 0)
					require.Equal(t, texts("short %d", 40-len(short), 40), short)
					gone := bodies(t, s, "Gone", 0)
					require.Equal(t, texts("new %d", 0, 5), gone[len(gone)-5:])
				}
				require.NoError(t, s.Close(t.Context()))
				whole(t, dir, damaged[change]...)
			})
		}
	}
}
