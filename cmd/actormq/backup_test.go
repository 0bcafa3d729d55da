package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/storebackup"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/golden"
)

// load puts 3,000 messages in three queues; the returned function waits for it.
func (n *testNode) load(round int, acknowledged *atomic.Int64) (wait func()) {
	var all sync.WaitGroup
	for q := range int32(3) {
		all.Go(func() {
			for i := range 1000 {
				m := &messages.Message{Topic: "orders", QueueID: q, Body: []byte(strings.Repeat(fmt.Sprintf("%d-%d ", q, i), 50)),
					Properties: messages.PropertiesOf(map[string]string{"KEYS": fmt.Sprintf("k%d-%d-%d", round, q, i)})}
				if _, err := n.store.Put(context.Background(), m); err != nil {
					n.t.Error(err)
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	return all.Wait
}

// exported are the messages of a store, by topic, queue and queue offset.
func exported(t *testing.T, dir string, args ...string) map[string]string {
	t.Helper()
	stdout, _, err := run(append([]string{"store", "export", dir}, args...)...)
	require.NoError(t, err)
	found := map[string]string{}
	for _, l := range jsonLines[exportLine](t, stdout) {
		require.NotNil(t, l.Body)
		found[fmt.Sprintf("%s %d %d", l.Topic, l.Queue, l.QueueOffset)] = *l.Body
	}
	return found
}

// smallParams are the sizes of a node's store (serve): its first queue files may not be there yet when it is looked at.
func smallParams(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "params.json")
	require.NoError(t, os.WriteFile(name, []byte(`{"commitLogSize":1048576,"consumeQueueSize":20000,"hashSlots":500,"indexNum":2000}`), 0o600))
	return name
}

func verified(t *testing.T, dir string) {
	t.Helper()
	stdout, _, err := run("store", "verify", dir, "--params", smallParams(t))
	require.NoError(t, err, stdout)
	require.Contains(t, stdout, "closed properly")
}

// restored restores a backup into a new folder and has the copy looked at: by store verify, and by RocketMQ where PEER_JAR names
// testkit/peer's jar.
func restored(t *testing.T, from string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "restored")
	_, _, err := run("store", "restore", from, dir, "--params", smallParams(t))
	require.NoError(t, err)
	verified(t, dir)
	want := exported(t, dir)
	require.Equal(t, want, exported(t, from))
	jar := os.Getenv("PEER_JAR")
	if jar == "" {
		return dir
	}
	ours, theirs := dir+".ours.json", dir+".theirs.json"
	_, _, err = run("store", "dump", dir, "--json", ours, "--params", smallParams(t))
	require.NoError(t, err)
	said, err := exec.CommandContext(t.Context(), "java", "-jar", jar, "dump", dir, theirs, "--params", smallParams(t)).CombinedOutput()
	require.NoError(t, err, "%s", said)
	read := dumped(t, theirs)
	require.Len(t, read, len(want), "RocketMQ reads what was copied")
	require.Equal(t, dumped(t, ours), read)
	return dir
}

// dumped are the messages of a dump: checksums by topic, queue and queue offset.
func dumped(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var dump whatRocketMQRead
	require.NoError(t, json.Unmarshal(text, &dump))
	require.True(t, dump.Loaded)
	found := map[string]string{}
	for _, q := range dump.Queues {
		for _, m := range q.Messages {
			require.NotNil(t, m.Msg, "%s %d %d", q.Topic, q.QueueID, m.Offset)
			found[fmt.Sprintf("%s %d %d", q.Topic, q.QueueID, m.Offset)] = m.Msg.RawSha256
		}
	}
	return found
}

// L92: a copy that is taken while the node works is a whole store.
func TestABackupOfANodeUnderLoadIsAWholeStore(t *testing.T) {
	n := serve(t)
	n.want("topic", "create", "orders", "--queues", "3")
	dest := filepath.Join(t.TempDir(), "copy")
	var acknowledged atomic.Int64
	var copied []storebackup.Done
	n.load(0, &acknowledged)()
	for round := range 3 { // the later ones take what is new
		before := acknowledged.Load()
		wait := n.load(round+1, &acknowledged)
		stdout, _, err := run("store", "backup", n.dir, dest, "--params", smallParams(t), "--json")
		require.NoError(t, err)
		var done storebackup.Done
		require.NoError(t, json.Unmarshal([]byte(stdout), &done))
		copied = append(copied, done)
		verified(t, dest)
		require.GreaterOrEqual(t, len(exported(t, dest)), int(before))
		if round == 1 {
			restored(t, dest)
		}
		wait()
	}
	require.Less(t, copied[2].Copied, copied[2].Segments, "%+v", copied)
	_, _, err := run("store", "backup", n.dir, dest, "--params", smallParams(t))
	require.NoError(t, err)
	n.end()
	want := exported(t, n.dir)
	require.Len(t, want, int(acknowledged.Load()))
	require.Equal(t, want, exported(t, dest))

	back := restored(t, dest)
	other := &testNode{t: t, dir: back, broker: freePort(t), names: freePort(t)}
	require.NoError(t, other.start())
	t.Cleanup(other.end)
	require.Len(t, other.consume("--topic", "orders"), len(want))
	require.NotEmpty(t, other.want("message", "find", "--topic", "orders", "--key", "k1-1-7"), "the index is built")

	_, _, err = run("store", "restore", dest, back, "--params", smallParams(t))
	require.ErrorIs(t, err, storebackup.ErrNotEmpty)
	segments, err := filepath.Glob(filepath.Join(dest, "commitlog", "*"))
	require.NoError(t, err)
	f, err := os.OpenFile(segments[0], os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{1}, 1000)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, err = run("store", "restore", dest, filepath.Join(t.TempDir(), "x"), "--params", smallParams(t))
	require.ErrorIs(t, err, storebackup.ErrChecksum)
	require.NoError(t, os.Remove(segments[0]))
	_, _, err = run("store", "restore", dest, filepath.Join(t.TempDir(), "x"), "--params", smallParams(t))
	require.ErrorIs(t, err, storebackup.ErrChecksum)
	_, _, err = run("store", "backup", back, dest, "--params", smallParams(t))
	require.ErrorContains(t, err, "holds a backup of")
}

func TestWhatIsExportedCanBeImported(t *testing.T) {
	n := serve(t)
	n.produce("orders", append([]string{"--tag", "new", "--key", "k", "--property", "shop=7"}, numbers(0, 20)...)...)
	n.produce("others", "x")
	_, err := n.store.Put(t.Context(), &messages.Message{Topic: "orders", Body: []byte{0xFF, 0}, Properties: messages.PropertiesOf(map[string]string{"DELAY": "18"})})
	require.NoError(t, err)
	require.NoError(t, n.store.AwaitDispatched(t.Context()))
	require.Len(t, n.tellExport(), 22)
	stdout, _, err := run("store", "export", n.dir, "--topic", "orders,SCHEDULE_TOPIC_XXXX")
	require.NoError(t, err)
	before := jsonLines[exportLine](t, stdout)
	require.Len(t, before, 21)

	dir := t.TempDir()
	small := &testNode{t: t, dir: dir, broker: freePort(t), names: freePort(t)}
	require.NoError(t, small.start()) // so that its files are small
	small.end()
	stdout, _, err = runWith(strings.NewReader(stdout), "store", "import", dir, "--json")
	require.NoError(t, err)
	require.Equal(t, []importDone{{Messages: 20, LeftOut: 1}}, jsonLines[importDone](t, stdout))
	stdout, _, err = run("store", "export", dir)
	require.NoError(t, err)
	after := jsonLines[exportLine](t, stdout)
	require.Len(t, after, 20)
	for i := range after {
		require.Equal(t, before[i].BornHost, after[i].BornHost)
		after[i].StoreTimeMs, after[i].Offset = before[i].StoreTimeMs, before[i].Offset
	}
	require.Equal(t, before[:20], after)
	_, _, err = runWith(strings.NewReader("{"), "store", "import", dir)
	require.ErrorContains(t, err, "after 0 messages")
}

// tellExport exports the store of the running node.
func (n *testNode) tellExport() []exportLine {
	n.t.Helper()
	stdout, _, err := run("store", "export", n.dir)
	require.NoError(n.t, err)
	return jsonLines[exportLine](n.t, stdout)
}

func TestABackupTellsHowFarItIs(t *testing.T) {
	dir, params := unpack(t, golden.Load("file-roll"))
	p, err := findStore(vfs.New(), dir, sizeFlags{params: params})
	require.NoError(t, err)
	p.MessageIndex, p.CheckCRC = true, true
	var told []int64
	done, err := storebackup.Backup(t.Context(), vfs.New(), p, filepath.Join(t.TempDir(), "copy"), func(done, total int64) {
		require.Zero(t, total%p.SegmentBytes)
		require.Less(t, done, total)
		told = append(told, done)
	})
	require.NoError(t, err)
	require.Greater(t, done.Segments, 1)
	require.Len(t, told, done.Segments)
	require.Equal(t, p.SegmentBytes, told[1])
}

func TestProgressIsALineASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		tell := tellProgress(&out, "copied")
		for i := range int64(30) { // three seconds
			tell(i<<20, 30<<20)
			<-time.After(100 * time.Millisecond)
		}
		require.Equal(t, "copied 11 of 30 MiB (36 %)\ncopied 22 of 30 MiB (73 %)\n", out.String())
	})
}
