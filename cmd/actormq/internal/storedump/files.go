package storedump

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// maxConfigBytes bounds how much of a configuration file is shown.
const maxConfigBytes = 64 << 20

// state describes the directory: checkpoint, abort marker and the lengths of the files.
func state(disk vfs.Disk, p store.Params, numberIndex bool) (object, error) {
	abort, err := checkpoint.HasAbort(disk, p.AbortPath())
	if err != nil {
		return nil, err
	}
	files, err := files(disk, p, numberIndex)
	if err != nil {
		return nil, err
	}
	return object{{"checkpoint", checkpointOf(disk, p)}, {"abort", abort}, {"files", files}}, nil
}

// checkpointOf shows the checkpoint, nil when there is none that can be read.
func checkpointOf(disk vfs.Disk, p store.Params) any {
	if e, err := disk.Stat(p.CheckpointPath()); err != nil || e.Size == 0 {
		return nil
	}
	v, err := checkpoint.Load(disk, p.CheckpointPath())
	if err != nil {
		return nil
	}
	return object{{"physic", v.PhysicMs}, {"logics", v.LogicsMs}, {"index", v.IndexMs}}
}

// files lists the store's files with their lengths. The names of index files are times: numbers can take their place.
func files(disk vfs.Disk, p store.Params, numberIndex bool) (object, error) {
	var o object
	add := func(depth int) func(name string, e vfs.Entry) {
		return func(name string, e vfs.Entry) {
			if strings.Count(name, "/") == depth {
				o = append(o, field{name, e.Size})
			}
		}
	}
	if err := walk(disk, p.Dir, "commitlog", 1, add(1)); err != nil {
		return nil, err
	}
	if err := walk(disk, p.Dir, "consumequeue", 3, add(3)); err != nil {
		return nil, err
	}
	n := 0
	err := walk(disk, p.Dir, "index", 1, func(name string, e vfs.Entry) {
		if numberIndex {
			name = "index/#" + strconv.Itoa(n)
			n++
		}
		o = append(o, field{name, e.Size})
	})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"checkpoint", "abort", "lock"} {
		e, err := disk.Stat(path.Join(p.Dir, name))
		if err == nil {
			o = append(o, field{name, e.Size})
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	slices.SortFunc(o, func(a, b field) int { return compareUTF16(a.name, b.name) })
	return o, nil
}

// walk calls fn for everything up to depth levels below a folder of the store.
func walk(disk vfs.Disk, root, name string, depth int, fn func(string, vfs.Entry)) error {
	entries, err := vfs.ListIfThere(disk, path.Join(root, name))
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := path.Join(name, e.Name)
		fn(below, e)
		if e.Dir && depth > 1 {
			if err := walk(disk, root, below, depth-1, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// config shows the configuration files as they are.
func config(disk vfs.Disk, p store.Params) (object, error) {
	o := object{}
	entries, err := vfs.ListIfThere(disk, p.ConfigDir())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Dir || !strings.HasSuffix(e.Name, ".json") {
			continue
		}
		text, err := readFile(disk, path.Join(p.ConfigDir(), e.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a running node replaces its files
		}
		if err != nil {
			return nil, err
		}
		o = append(o, field{e.Name, string(text)})
	}
	return o, nil
}

func readFile(disk vfs.Disk, name string) ([]byte, error) {
	f, err := disk.Open(name, false)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxConfigBytes))
	return b, errors.Join(err, f.Close())
}

// indexHeaders shows the headers of the index files (spec/store.md §6.6).
func indexHeaders(disk vfs.Disk, p store.Params) (list, error) {
	l := list{}
	entries, err := vfs.ListIfThere(disk, p.IndexDir())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		f, err := disk.Open(path.Join(p.IndexDir(), e.Name), false)
		if err != nil {
			return nil, err
		}
		var b [40]byte
		_, err = f.ReadAt(b[:], 0)
		short := errors.Is(err, io.EOF)
		if err := errors.Join(f.Close()); err != nil {
			return nil, err
		}
		switch {
		case short:
			l = append(l, object{{"size", e.Size}})
		case err != nil:
			return nil, err
		default:
			l = append(l, header(b[:]))
		}
	}
	return l, nil
}

func header(b []byte) object {
	i64 := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	i32 := func(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }
	return object{
		{"beginTimestamp", i64(0)}, {"endTimestamp", i64(8)}, {"beginPhyOffset", i64(16)}, {"endPhyOffset", i64(24)},
		{"hashSlotCount", i32(32)}, {"indexCount", i32(36)},
	}
}

// compareUTF16 orders strings as Java does.
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}
