package system_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestAGetKeepsItsLimitsInMemory(t *testing.T) {
	const body = 1000
	for name, c := range map[string]struct {
		change func(*system.Options)
		want   int
	}{
		"maxTransferCountOnMessageInMemory":  {func(o *system.Options) { o.MaxTransferMessages = 5 }, 5},
		"maxTransferBytesOnMessageInMemory":  {func(o *system.Options) { o.MaxTransferBytes = 4 * body }, 3},
		"in memory, the disk's do not count": {func(o *system.Options) { o.DiskTransferMessages, o.DiskTransferBytes = 1, 1 }, 32},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, got(t, c.change, body)) })
	}
}

// got is how many of 40 messages a get is given.
func got(t *testing.T, change func(*system.Options), body int) int {
	opt := small(memfs.New())
	change(&opt)
	s := open(t, opt)
	for range 40 {
		put(t, s, message("T", 0, strings.Repeat("x", body)))
	}
	key := messages.QueueKey{Topic: "T"}
	read(t, s, key, 0, 40)
	r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, MaxMessages: 100})
	require.NoError(t, err)
	defer r.Release()
	return len(r.Records)
}

func TestFileSizesAreAsConfigured(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	opt.ConsumeQueueFileBytes = 1990
	s := open(t, opt)
	m := message("T", 0, "x")
	m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyKeys: "k"})
	put(t, s, m)
	read(t, s, m.Queue(), 0, 1)
	require.NoError(t, s.Close(t.Context()))
	require.EqualValues(t, 2000, s.Options().ConsumeQueueFileBytes)
	for dir, want := range map[string]int64{
		"store/commitlog": opt.SegmentBytes, "store/consumequeue/T/0": 2000, "store/index": 40 + 4*50 + 20*200,
	} {
		entries, err := disk.List(dir)
		require.NoError(t, err)
		require.NotEmpty(t, entries, dir)
		for _, e := range entries {
			require.Equal(t, want, e.Size, dir)
		}
	}
}

func TestTheIndexIsAnOption(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	opt.NoIndex = true
	s := open(t, opt)
	m := message("T", 0, "x")
	m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyKeys: "k"})
	put(t, s, m)
	read(t, s, m.Queue(), 0, 1)
	require.NoError(t, s.Close(t.Context()))
	entries, _ := disk.List("store/index")
	require.Empty(t, entries)
}

func TestTheLogMayHaveAFolderOfItsOwn(t *testing.T) {
	disk := memfs.New()
	opt := small(disk)
	opt.CommitLogDir = "elsewhere/log"
	s := open(t, opt)
	put(t, s, message("T", 0, "x"))
	_, err := disk.Stat("elsewhere/log/" + segments.Name(0))
	require.NoError(t, err)
	opt.CommitLogDir = "elsewhere/log/"
	require.Equal(t, "elsewhere/log", opt.Defaults().CommitLogDir, "what lies beside it is not in it")
	opt.Dir, opt.CommitLogDir = "other", "elsewhere/log,elsewhere/more"
	_, err = system.Open(opt)
	require.ErrorContains(t, err, "several directories")
}

func TestRecoveryComparesChecksumsUnlessToldNotTo(t *testing.T) {
	for _, skip := range []bool{false, true} {
		disk := memfs.New()
		s, err := system.Open(small(disk))
		require.NoError(t, err)
		put(t, s, message("T", 0, "good"))
		last, err := s.Put(t.Context(), message("T", 0, "spoiled"))
		require.NoError(t, err)
		read(t, s, messages.QueueKey{Topic: "T"}, 0, 2)
		killed := disk.Clone()
		require.NoError(t, s.Close(t.Context()))
		f, err := killed.Open("store/commitlog/"+segments.Name(0), true)
		require.NoError(t, err)
		record := make([]byte, last.Bytes)
		_, err = f.ReadAt(record, int64(last.PhysicalOffset))
		require.NoError(t, err)
		at := strings.Index(string(record), "spoiled")
		_, err = f.WriteAt([]byte("S"), int64(last.PhysicalOffset)+int64(at))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		opt := small(killed)
		opt.SkipRecoveryCRC = skip
		s = open(t, opt)
		want := map[bool]messages.PhysicalOffset{false: last.PhysicalOffset, true: last.End()}[skip]
		_, end := s.LogRange()
		require.Equal(t, want, end)
	}
}
