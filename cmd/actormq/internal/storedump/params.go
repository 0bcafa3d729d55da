package storedump

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// Params are the sizes and switches of a store, as in the params.json of a golden store.
type Params struct {
	CommitLogSize    int64  `json:"commitLogSize"`
	ConsumeQueueSize int64  `json:"consumeQueueSize"`
	HashSlots        int32  `json:"hashSlots"`
	IndexNum         int32  `json:"indexNum"`
	LMQ              bool   `json:"lmq"`
	ConsumeQueueExt  bool   `json:"consumeQueueExt"`
	SyncFlush        bool   `json:"syncFlush"`
	DelayLevels      string `json:"delayLevels"`
}

// Sizes of a store in production (RocketMQ's defaults).
const (
	defaultCommitLogSize    = 1 << 30
	defaultConsumeQueueSize = 6_000_000
	defaultHashSlots        = 5_000_000
	defaultIndexNum         = 20_000_000
)

// ReadParams reads a params.json.
func ReadParams(name string) (Params, error) {
	var p Params
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return Params{}, fmt.Errorf("parameters %s: %w", name, err)
	}
	return p, nil
}

// Detect takes the sizes from the lengths of the first files under dir. The length of an index file does not tell slots and
// entries apart: slots, if not 0, is what the caller knows.
func Detect(disk vfs.Disk, dir string, slots int32) (Params, error) {
	p := Params{CommitLogSize: defaultCommitLogSize, ConsumeQueueSize: defaultConsumeQueueSize, HashSlots: slots}
	if p.HashSlots == 0 {
		p.HashSlots = defaultHashSlots
	}
	p.IndexNum = defaultIndexNum
	for _, find := range []struct {
		dir   string
		depth int
		set   func(name string, n int64) error
	}{
		{"commitlog", 0, func(_ string, n int64) error { p.CommitLogSize = n; return nil }},
		{"consumequeue", 2, func(_ string, n int64) error { p.ConsumeQueueSize = n; return nil }},
		{"index", 0, func(name string, n int64) error {
			return p.detectIndex(disk, name, n, slots)
		}},
	} {
		name, n, err := firstFile(disk, path.Join(dir, find.dir), find.depth)
		if err == nil && n > 0 {
			err = find.set(name, n)
		}
		if err != nil {
			return Params{}, fmt.Errorf("detect file sizes: %w", err)
		}
	}
	return p, nil
}

// HasFurtherQueues tells whether a store has, or has had, queues of INNER_MULTI_DISPATCH: by its marker, or by a light queue, as a start finds it out. It
// may be a backup whose run has ended half-way through putting the queues in their place. A recovery that does not know of them builds nothing of theirs.
func HasFurtherQueues(disk vfs.Disk, dir string) (bool, error) {
	if e, err := disk.Stat(dir); err != nil || !e.Dir {
		return false, nil //nolint:nilerr // whoever opens it says so
	}
	is := func(e vfs.Entry) bool { return e.Dir && strings.HasPrefix(e.Name, messages.LMQTopicPrefix) }
	for _, at := range []string{dir, path.Join(dir, "backup.next")} {
		p := store.Params{Dir: at}
		_, err := disk.Stat(p.FurtherPath())
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("detect further queues: %w", err)
		}
		topics, err := vfs.ListIfThere(disk, p.ConsumeQueueDir())
		if err != nil {
			return false, fmt.Errorf("detect further queues: %w", err)
		}
		if slices.ContainsFunc(topics, is) {
			return true, nil
		}
	}
	return false, nil
}

// candidates are the slots that stores have: in production, and in tests.
var candidates = []int32{defaultHashSlots, 500}

var errSlots = errors.New("cannot tell slots and entries of an index file")

// detectIndex finds slots and entries for an index file of so many bytes; known are the slots, 0: nobody knows.
func (p *Params) detectIndex(disk vfs.Disk, name string, n int64, known int32) error {
	if known == 0 && n == indexBytes(defaultHashSlots, defaultIndexNum) {
		return nil
	}
	list := candidates
	if known != 0 {
		list = []int32{known}
	}
	for _, slots := range list {
		entries := (n - indexBytes(slots, 0)) / 20
		if entries <= 0 || indexBytes(slots, entries) != n {
			continue
		}
		p.HashSlots, p.IndexNum = slots, int32(entries)
		fits := true
		if known == 0 {
			var err error
			if fits, err = p.fits(disk, name); err != nil {
				return err
			}
		}
		if fits {
			return nil
		}
	}
	return fmt.Errorf("%w, %s of %d bytes; give --slots or --params", errSlots, name, n)
}

// indexBytes is how long an index file is.
func indexBytes(slots int32, entries int64) int64 { return 40 + 4*int64(slots) + 20*entries }

// fits compares slots that were guessed with an index file: its header names the places in the log of the first and
// the last entry. With wrong slots a sound index looks damaged, and a repair would spoil it.
func (p *Params) fits(disk vfs.Disk, name string) (bool, error) {
	f, err := disk.Open(name, false)
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	number := func(at int64, b []byte) uint64 {
		if _, readErr := f.ReadAt(b, at); readErr != nil {
			err = readErr
		}
		return binary.BigEndian.Uint64(append(make([]byte, 8-len(b)), b...))
	}
	place := func(entry int64) uint64 { return number(indexBytes(p.HashSlots, entry)+4, make([]byte, 8)) }
	begin, end, count := number(16, make([]byte, 8)), number(24, make([]byte, 8)), int64(number(36, make([]byte, 4)))
	if err != nil || count <= 1 {
		return err == nil, err
	}
	if count > int64(p.IndexNum) {
		return false, nil
	}
	fits := place(count-1) == end || begin > 0 && place(1) == begin
	return fits, err
}

// firstFile is the first file some folders below dir, and its length, 0 when there is none.
func firstFile(disk vfs.Disk, dir string, depth int) (string, int64, error) {
	entries, err := vfs.ListIfThere(disk, dir)
	if err != nil {
		return "", 0, err
	}
	for _, e := range entries {
		if depth == 0 && !e.Dir {
			return path.Join(dir, e.Name), e.Size, nil
		}
		if depth > 0 && e.Dir {
			if name, n, err := firstFile(disk, path.Join(dir, e.Name), depth-1); n > 0 || err != nil {
				return name, n, err
			}
		}
	}
	return "", 0, nil
}

// StoreParams are the parameters with which the store in dir is opened.
func (p Params) StoreParams(dir string) store.Params {
	s := store.Params{
		Dir: dir, SegmentBytes: p.CommitLogSize, ConsumeQueueFileBytes: p.ConsumeQueueSize, IndexSlots: p.HashSlots,
		IndexEntries: p.IndexNum, CheckCRC: true, MessageIndex: true, MultiDispatch: p.LMQ, DelayLevels: p.DelayLevels,
	}
	return s
}

func (p Params) object() object {
	o := object{
		{"commitLogSize", p.CommitLogSize}, {"consumeQueueSize", p.ConsumeQueueSize}, {"hashSlots", p.HashSlots},
		{"indexNum", p.IndexNum},
	}
	for _, s := range []struct {
		name string
		on   bool
	}{{"lmq", p.LMQ}, {"consumeQueueExt", p.ConsumeQueueExt}, {"syncFlush", p.SyncFlush}} {
		if s.on {
			o = append(o, field{s.name, true})
		}
	}
	if p.DelayLevels != "" {
		o = append(o, field{"delayLevels", p.DelayLevels})
	}
	return o
}
