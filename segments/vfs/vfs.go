package vfs

import (
	"errors"
	"io"
	"math"
	"time"
)

// Errors of a disk; test them with errors.Is. A missing file is fs.ErrNotExist, an existing one fs.ErrExist.
var (
	// ErrLocked: another holder, in this or another process, has the lock.
	ErrLocked = errors.New("locked by another holder")
	// ErrNoSpace: the file system has no room (ENOSPC, EDQUOT).
	ErrNoSpace = errors.New("no space left on the disk")
	// ErrFault: an access to a mapping failed (SIGBUS, SIGSEGV): the file shrank or the disk failed.
	ErrFault = errors.New("fault in a file mapping")
)

// Disk is a directory tree. Names are slash-separated paths. All methods are safe for concurrent use. The contract of
// every method that changes something names what is guaranteed when it returns nil.
type Disk interface {
	// Open opens an existing file for reading and, if writable, for writing.
	Open(name string, writable bool) (File, error)
	// Create makes an empty file and opens it for reading and writing; fs.ErrExist when the name is taken. The name
	// survives a power cut only after SyncDir of its folder.
	Create(name string) (File, error)
	// Remove deletes a file or an empty folder; durable after SyncDir of its folder.
	Remove(name string) error
	// Rename moves a file over another atomically, or a folder to a name that is free; durable after SyncDir of the new
	// name's folder.
	Rename(oldName, newName string) error
	// Mkdir makes a folder whose parent is there, fs.ErrExist when the name is taken; durable after SyncDir of the parent.
	Mkdir(dir string) error
	// MkdirAll makes a folder and its missing parents, and makes their names durable.
	MkdirAll(dir string) error
	// List returns the entries of a folder sorted by name.
	List(dir string) ([]Entry, error)
	// Stat describes one file or folder.
	Stat(name string) (Entry, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on byte 0 of the file, creating it when missing, or fails at once with ErrLocked.
	// It excludes other processes (Java's FileChannel.lock too) and other holders in this one. Close releases it.
	// Name may be a folder, for files that must not have another one beside them; where the file system locks no
	// folders only holders in this process are excluded.
	Lock(name string) (io.Closer, error)
	// Usage tells the size of the file system that holds dir.
	Usage(dir string) (Usage, error)
}

// Entry describes a file or folder.
type Entry struct {
	Name    string // last element of the path
	Size    int64  // bytes
	Dir     bool
	Other   bool // neither a folder nor a file that has a content: a pipe, a socket, a device
	ModTime time.Time
}

// Usage is the room on a file system, in bytes. Used is what files take; Free is what an unprivileged process may still
// use: a part of Total that the system reserves is in neither.
type Usage struct {
	TotalBytes, UsedBytes, FreeBytes int64
}

// UsedPercent is how full the file system is, rounded up, as df shows it (spec/store.md §9.3); -1 when that is unknown.
func (u Usage) UsedPercent() int {
	all := u.UsedBytes + u.FreeBytes
	if all <= 0 || u.UsedBytes < 0 || u.FreeBytes < 0 {
		return -1
	}
	const percent = 100
	return int(math.Ceil(percent * float64(u.UsedBytes) / float64(all)))
}

// CopyMode gives the file to the permissions of the file from, when there is one and the disk has any.
func CopyMode(d Disk, from, to string) error {
	if d, ok := d.(osDisk); ok {
		return d.copyMode(from, to)
	}
	return nil
}

// File is an open file. ReadAt and WriteAt follow io.ReaderAt and io.WriterAt: a short write is an error.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name returns the path that the file was opened by.
	Name() string
	// Size returns the length in bytes.
	Size() (int64, error)
	// Truncate sets the length; what is added reads as zeros and may be sparse.
	Truncate(size int64) error
	// Allocate reserves real space for [off, off+n) and extends the file to off+n at least; ErrNoSpace when there is
	// none, and then the length stays. Existing content stays. Where the platform can't reserve, the file is only extended.
	Allocate(off, n int64) error
	// DataSync makes all written data (through WriteAt or a mapping) and the length durable.
	DataSync() error
	// StartWriteback asks the system to begin writing [off, off+n) to the disk; a hint, nothing is guaranteed.
	StartWriteback(off, n int64) error
	// Map maps the first n bytes, 1 to Size (fs.ErrInvalid otherwise); the mapping outlives Close. Changes through a
	// writable mapping are seen by ReadAt, and the reverse. A private mapping may be written; its changes are never seen
	// by the file.
	Map(n int64, mode MapMode) (Mapping, error)
}

// MapMode says what a mapping is for.
type MapMode int

// Modes of a mapping.
const (
	MapRead    MapMode = iota // shared, read only
	MapShared                 // shared, writable
	MapPrivate                // copy on write, not seen by the file
)

// Mapping is a file's content in memory. An access can fault when the disk fails or the file shrinks: see Guard.
type Mapping interface {
	// Bytes is the mapped content; it must not be touched after Unmap.
	Bytes() []byte
	// Populate makes the pages of [off, off+n) present and writable, so that later writes to them do not fault now.
	// Write-back makes a page fault once more, cheaply. Pages of a MapRead mapping are made present only. ErrFault when a
	// page can't be had.
	Populate(off, n int64) error
	// LetGo takes the whole pages within [off, off+n) of a shared mapping out of the process's page table, all in one go; they stay in
	// memory with their content, and come back at the next touch. Before a sync, which would do that page by page, interrupting every
	// processor for each. A hint: systems and locked pages that can't do without it.
	LetGo(off, n int64) error
	// DataSync makes what was written to [off, off+n) of the file durable, through WriteAt or a mapping, and the length; what has changed
	// elsewhere may be left as it is. Not for a private mapping, nor after the file is closed.
	DataSync(off, n int64) error
	// Lock keeps the pages of the mapping in memory until Unlock or Unmap (mlock). It may fail for want of permission
	// (RLIMIT_MEMLOCK).
	Lock() error
	// Unlock lets the pages go again; nothing happens when they are not locked.
	Unlock() error
	// Unmap ends the mapping; the caller makes sure that no reader is left.
	Unmap() error
}
