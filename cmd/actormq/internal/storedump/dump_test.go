package storedump

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/index"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/golden"
	"github.com/actormq/actormq/testkit/memfs"
)

func written(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	w := newWriter(&out)
	w.value(v, 0)
	require.NoError(t, w.flush())
	require.True(t, json.Valid(out.Bytes()), "%s", out.Bytes())
	return out.String()
}

func TestLayout(t *testing.T) {
	require.Equal(t, "{\n \"a\":1,\n \"b\":{\"c\":null,\"d\":[1,2]},\n \"e\":[]\n}",
		written(t, object{{"a", 1}, {"b", object{{"c", nil}, {"d", list{1, 2}}}}, {"e", list{}}}))
	require.Equal(t, "{\n \"l\":[\n  {\"x\":true},\n  {\"x\":false}\n ]\n}",
		written(t, object{{"l", list{object{{"x", true}}, object{{"x", false}}}}}))
	inner := stream{each: func(yield func(any) error) error { return yield(object{{"y", int64(-1)}}) }}
	require.Equal(t, "{\n \"l\":[\n  {\n   \"m\":[\n    {\"y\":-1}\n   ]\n  }\n ]\n}",
		written(t, object{{"l", list{object{{"m", inner}}}}}))
	require.Equal(t, "{\n \"l\":[]\n}", written(t, object{{"l", stream{none: true, each: list{}.each}}}))
}

func TestQuoting(t *testing.T) {
	require.Equal(t, `"\"\\\u000a\u0001\u007f\u2028é𝄞"`, written(t, "\"\\\n\x01\x7f\u2028é𝄞"))
	require.Equal(t, `"a`+"\ufffd\ufffd"+`b"`, written(t, "a\xff\xfeb"))
}

func TestOrderIsJavas(t *testing.T) {
	// By UTF-16 units a surrogate pair (D834 DD1E) stands in front of U+FF21; by bytes or runes behind it.
	require.Negative(t, compareUTF16("𝄞", "Ａ"))
	require.Negative(t, compareUTF16("a", "aa"))
	require.Zero(t, compareUTF16("", ""))
}

// TestCompressedBodies uses the vectors of spec/store.md §17.12 (the one for ZSTD lacks three bytes of its literals there).
func TestCompressedBodies(t *testing.T) {
	plainText := []byte("aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbb")
	for name, tt := range map[string]struct {
		flag int32
		body string
	}{
		"zlib, no type": {0, "785e4b4c8481243848c422060038210f3d"},
		"zlib":          {messages.SysFlagCompressionZLIB, "785e4b4c8481243848c422060038210f3d"},
		"lz4":           {messages.SysFlagCompressionLZ4, "04224d18607073170000001561010015620100051300b0616262626262626262626200000000"},
		"zstd":          {messages.SysFlagCompressionZSTD, "28b52ffd0058b4000070616162616262626262626262626203100045ca25b0010000"},
	} {
		body, err := hex.DecodeString(tt.body)
		require.NoError(t, err)
		r := &record.Record{SysFlag: messages.SysFlagCompressed | tt.flag, Body: body}
		n, sum, err := uncompress(r)
		require.NoError(t, err, name)
		require.Equal(t, int64(len(plainText)), n, name)
		require.Equal(t, sha(plainText), sum, name)

		r.Body = body[:len(body)/2]
		_, _, err = uncompress(r)
		require.Error(t, err, "%s, cut in the middle", name)
	}
	_, _, err := uncompress(&record.Record{SysFlag: messages.SysFlagCompressed | 0x500})
	require.ErrorContains(t, err, "unknown compression type 0x500")
}

func TestHosts(t *testing.T) {
	require.Equal(t, "10.1.2.3|5678", host(netip.MustParseAddrPort("10.1.2.3:5678")))
	require.Equal(t, "2001:db8:0:0:0:0:0:1|1", host(netip.MustParseAddrPort("[2001:db8::1]:1")))
}

func TestDetect(t *testing.T) {
	file := func(t *testing.T, disk vfs.Disk, dir, name string, size int64) {
		require.NoError(t, disk.MkdirAll(dir))
		f, err := disk.Create(dir + "/" + name)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(size))
		require.NoError(t, f.Close())
	}
	disk := memfs.New()
	p, err := Detect(disk, "store", 0)
	require.NoError(t, err)
	require.Equal(t, Params{CommitLogSize: 1 << 30, ConsumeQueueSize: 6_000_000, HashSlots: 5_000_000, IndexNum: 20_000_000}, p)

	file(t, disk, "store/commitlog", "00000000000000000000", 4096)
	file(t, disk, "store/consumequeue/T/0", "00000000000000000000", 400)
	file(t, disk, "store/index", "20240101000000000", 40+4*500+20*30)
	p, err = Detect(disk, "store", 0)
	require.NoError(t, err)
	require.Equal(t, Params{CommitLogSize: 4096, ConsumeQueueSize: 400, HashSlots: 500, IndexNum: 30}, p)

	p, err = Detect(disk, "store", 505)
	require.NoError(t, err)
	require.Equal(t, [2]int32{505, 29}, [2]int32{p.HashSlots, p.IndexNum})

	disk = memfs.New()
	file(t, disk, "store/index", "20240101000000000", 420_000_040)
	p, err = Detect(disk, "store", 0)
	require.NoError(t, err)
	require.Equal(t, [2]int32{5_000_000, 20_000_000}, [2]int32{p.HashSlots, p.IndexNum})
}

// TestALargeIndexIsNotGuessedWrong: one with fewer slots than in production, and more entries.
func TestALargeIndexIsNotGuessedWrong(t *testing.T) {
	const slots, entries = 500, 1_100_000 // longer than 5,000,000 slots
	disk := memfs.New()
	require.NoError(t, disk.MkdirAll("store/index"))
	set, err := index.Open(disk, "store/index", index.Params{Slots: slots, Entries: entries})
	require.NoError(t, err)
	for i := range messages.PhysicalOffset(20) {
		require.NoError(t, set.BuildFrom(&messages.DispatchRequest{
			Queue: messages.QueueKey{Topic: "T"}, PhysicalOffset: i * 100, SizeBytes: 100, StoreTimestampMs: 1000, Keys: []byte("k"),
		}))
	}
	require.NoError(t, set.Close())
	p, err := Detect(disk, "store", 0)
	require.NoError(t, err)
	require.Equal(t, [2]int32{slots, entries}, [2]int32{p.HashSlots, p.IndexNum})
}

// TestSlotsAreNotGuessedWrong: 1,000 slots and 4,000 entries give a file as long as 500 and 4,100 do. With the wrong ones a
// sound index looks damaged.
func TestSlotsAreNotGuessedWrong(t *testing.T) {
	for slots, fits := range map[int32]bool{500: true, 1000: false} {
		disk := memfs.New()
		require.NoError(t, disk.MkdirAll("store/index"))
		set, err := index.Open(disk, "store/index", index.Params{Slots: slots, Entries: 4100 - (slots-500)/5})
		require.NoError(t, err)
		for i := range messages.PhysicalOffset(20) {
			require.NoError(t, set.BuildFrom(&messages.DispatchRequest{
				Queue: messages.QueueKey{Topic: "T"}, PhysicalOffset: i * 100, SizeBytes: 100, StoreTimestampMs: 1000, Keys: []byte("k"),
			}))
		}
		require.NoError(t, set.Close())
		p, err := Detect(disk, "store", 0)
		if fits {
			require.NoError(t, err)
			require.Equal(t, [2]int32{500, 4100}, [2]int32{p.HashSlots, p.IndexNum})
			continue
		}
		require.ErrorContains(t, err, "give --slots")
		p, err = Detect(disk, "store", slots)
		require.NoError(t, err)
		require.Equal(t, int32(4000), p.IndexNum)
	}
}

func TestDumpTellsHowFarItIs(t *testing.T) {
	g := golden.Load("crash-clean-tail")
	dir, err := g.Unpack(t.TempDir())
	require.NoError(t, err)
	params := filepath.Join(t.TempDir(), "params.json")
	require.NoError(t, os.WriteFile(params, g.Params, 0o600))
	sizes, err := ReadParams(params)
	require.NoError(t, err)
	for _, noIndex := range []bool{false, true} {
		var done []int64
		var total, recovered int64
		err := Dump(io.Discard, vfs.New(), Options{
			Dir: dir, Params: sizes, NoIndex: noIndex,
			Progress:   func(d, of int64) { done, total = append(done, d), of },
			Recovering: func(p store.Progress) { recovered = p.Total },
		})
		require.NoError(t, err)
		require.Positive(t, recovered)
		require.True(t, slices.IsSorted(done))
		require.Greater(t, len(done), 300, "of each record")
		require.Less(t, done[0], total/100)
		require.Equal(t, total, done[len(done)-1])
	}
}
