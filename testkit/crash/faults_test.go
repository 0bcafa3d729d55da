package crash_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/crash"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// on matches operations by kind and a part of the file's path; no kind is any.
func on(part string, kinds ...memfs.Kind) func(memfs.Op) bool {
	return func(op memfs.Op) bool {
		match := len(kinds) == 0
		for _, k := range kinds {
			match = match || k == op.Kind
		}
		return match && strings.Contains(op.Name, part)
	}
}

// syncOfLog matches the syncs that make records durable, not that of a segment that is being made. Segments keep the name
// under which they were made.
func syncOfLog() func(memfs.Op) bool {
	drafts := map[string]bool{}
	return func(op memfs.Op) bool {
		switch op.Kind {
		case memfs.KindCreate, memfs.KindRename:
			drafts[op.Name] = op.Kind == memfs.KindCreate
		case memfs.KindDataSync:
			return !drafts[op.Name] && (strings.Contains(op.Name, "/prepare/") || strings.Contains(op.Name, "/commitlog/"))
		}
		return false
	}
}

// once returns the error for the first operation that matches, always for all of them.
func once(match func(memfs.Op) bool, err error) func(memfs.Op) error {
	done := false
	return locked(func(op memfs.Op) error {
		if done || !match(op) {
			return nil
		}
		done = true
		return err
	})
}

// locked makes a hook with a state safe for several actors.
func locked(hook func(memfs.Op) error) func(memfs.Op) error {
	var mu sync.Mutex
	return func(op memfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		return hook(op)
	}
}

func always(match func(memfs.Op) bool, err error) func(memfs.Op) error {
	return locked(func(op memfs.Op) error {
		if match(op) {
			return err
		}
		return nil
	})
}

// counted counts how often a hook has had an effect.
func counted(n *atomic.Int64, hook func(memfs.Op) error) func(memfs.Op) error {
	return func(op memfs.Op) error {
		n.Add(1)
		err := hook(op) // may panic
		if err == nil {
			n.Add(-1)
		}
		return err
	}
}

// faults are what can go wrong with a disk, and whether the store must turn read-only for it.
var faults = map[string]struct {
	hook func() func(memfs.Op) error
	down bool
}{
	"log: one failed sync":     {func() func(memfs.Op) error { return once(syncOfLog(), syscall.EIO) }, true},
	"log: every sync fails":    {func() func(memfs.Op) error { return always(syncOfLog(), syscall.EIO) }, true},
	"queues: one failed sync":  {func() func(memfs.Op) error { return once(on("/consumequeue/", memfs.KindDataSync), syscall.EIO) }, true},
	"queues: every sync fails": {func() func(memfs.Op) error { return always(on("/consumequeue/", memfs.KindDataSync), syscall.EIO) }, true},
	"index: one failed sync":   {func() func(memfs.Op) error { return once(on("/index", memfs.KindDataSync), syscall.EIO) }, false},
	"index: every sync fails":  {func() func(memfs.Op) error { return always(on("/index", memfs.KindDataSync), syscall.EIO) }, false},
	"checkpoint: one sync":     {func() func(memfs.Op) error { return once(on("checkpoint", memfs.KindDataSync), syscall.EIO) }, false},
	"checkpoint: everything":   {func() func(memfs.Op) error { return always(on("checkpoint"), syscall.EIO) }, false},
	"reads fail":               {func() func(memfs.Op) error { return always(on("", memfs.KindRead), syscall.EIO) }, false},
	"one rename fails":         {func() func(memfs.Op) error { return once(on("", memfs.KindRename), syscall.EIO) }, false},
	"every rename fails":       {func() func(memfs.Op) error { return always(on("", memfs.KindRename), syscall.EIO) }, false},
	"one short write":          {func() func(memfs.Op) error { return once(writeBesideLog, memfs.Short(7, syscall.EIO)) }, false},
	"every write is short":     {func() func(memfs.Op) error { return always(writeBesideLog, memfs.Short(7, syscall.EIO)) }, false},
	"log: one folder sync":     {func() func(memfs.Op) error { return once(on("/commitlog", memfs.KindSyncDir), syscall.EIO) }, false},
	"log: every folder sync":   {func() func(memfs.Op) error { return always(on("/commitlog", memfs.KindSyncDir), syscall.EIO) }, false},
	"every folder sync fails":  {func() func(memfs.Op) error { return always(on("", memfs.KindSyncDir), syscall.EIO) }, true},
	"no segment can be made":   {func() func(memfs.Op) error { return always(on("/prepare/", memfs.KindCreate), syscall.EACCES) }, false},
	"no map":                   {func() func(memfs.Op) error { return always(on("", memfs.KindMap, memfs.KindPopulate), syscall.ENOMEM) }, false},
	"closing fails":            {func() func(memfs.Op) error { return always(on("", memfs.KindClose), syscall.EIO) }, false},
	"everything that takes room": {func() func(memfs.Op) error {
		return always(on("", memfs.KindAllocate, memfs.KindCreate, memfs.KindWrite, memfs.KindMkdir), vfs.ErrNoSpace)
	}, false},
}

// ofLog tells whether a file is one of the log: a segment keeps the name under which it was opened.
func ofLog(op memfs.Op) bool {
	return strings.Contains(op.Name, "/commitlog/") || strings.Contains(op.Name, "/prepare/")
}

func writeBesideLog(op memfs.Op) bool { return op.Kind == memfs.KindWrite && !ofLog(op) }

func writeOfLog(op memfs.Op) bool { return op.Kind == memfs.KindWrite && ofLog(op) }

// With SYNC_FLUSH the log is appended to by writes: one that fails takes the store down, and only want of room does not.
func TestFaultsOfTheLogsWrites(t *testing.T) {
	for name, f := range map[string]struct {
		hook func() func(memfs.Op) error
		down bool
	}{
		"one fails":      {func() func(memfs.Op) error { return once(writeOfLog, syscall.EIO) }, true},
		"all fail":       {func() func(memfs.Op) error { return always(writeOfLog, syscall.EIO) }, true},
		"one is short":   {func() func(memfs.Op) error { return once(writeOfLog, memfs.Short(7, syscall.EIO)) }, true},
		"all are short":  {func() func(memfs.Op) error { return always(writeOfLog, memfs.Short(100, syscall.EIO)) }, true},
		"no room once":   {func() func(memfs.Op) error { return once(writeOfLog, memfs.Short(100, vfs.ErrNoSpace)) }, false},
		"no room at all": {func() func(memfs.Op) error { return always(writeOfLog, vfs.ErrNoSpace) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var hits atomic.Int64
			defer func() { require.Positive(t, hits.Load(), "the fault was not met") }()
			inBubble(t, func(t *testing.T) {
				for i := range slower(4) {
					lift := i%2 == 0
					out, err := trial(uint64(i), system.SyncFlush, counted(&hits, f.hook()), lift).Run()
					require.NoError(t, err, "lifted %v: %v", lift, out)
					if f.down {
						require.ErrorIs(t, out.Down, messages.ErrFailed, "%v", out)
						continue
					}
					goesOn(t, out, lift)
				}
			})
		})
	}
}

// goesOn requires that a store takes puts, or does not because the disk is full, and that only as long as it is.
func goesOn(t *testing.T, out crash.Outcome, lifted bool) {
	t.Helper()
	if !lifted && errors.Is(out.Down, messages.ErrDiskFull) {
		return
	}
	require.NoError(t, out.Down, "%v", out)
	require.NoError(t, out.Healed, "%v", out)
}

var modes = []system.FlushDiskType{system.AsyncFlush, system.SyncFlush}

func trial(seed uint64, mode system.FlushDiskType, fault func(memfs.Op) error, lift bool) crash.Trial {
	return crash.Trial{Config: config(seed), Flush: mode, Fault: fault, Lift: lift}
}

// No fault of the disk makes a false PUT_OK, a panic, a put without an answer, or takes anything away that was acknowledged.
func TestFaultsOfTheDisk(t *testing.T) {
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			var hits atomic.Int64
			defer func() { require.Positive(t, hits.Load(), "the fault was not met") }()
			inBubble(t, func(t *testing.T) {
				for i := range slower(8) {
					mode, lift := modes[i%2], i/2%2 == 0
					out, err := trial(uint64(i), mode, counted(&hits, f.hook()), lift).Run()
					require.NoError(t, err, "%v, lifted %v: %v", mode, lift, out)
					if f.down {
						require.ErrorIs(t, out.Down, messages.ErrFailed, "%v: %v", mode, out)
						require.ErrorIs(t, out.Stopped, messages.ErrFailed)
						continue
					}
					goesOn(t, out, lift)
				}
			})
		})
	}
}

// A disk that stands still is no fault: a put whose deadline passes meanwhile is told that it is stored and not confirmed.
func TestASyncThatTakesFourSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var mu sync.Mutex
		match := syncOfLog()
		stall := func(op memfs.Op) error {
			mu.Lock()
			hit := match(op)
			mu.Unlock()
			if hit {
				<-time.After(4 * time.Second)
			}
			return nil
		}
		for seed := range uint64(4) {
			out, err := trial(seed, system.SyncFlush, stall, true).Run() // its puts have 3 s
			require.NoError(t, err)
			require.NoError(t, out.Down)
			require.NoError(t, out.Healed)
			require.NoError(t, out.Stopped)
			require.Positive(t, out.Puts[messages.FlushDiskTimeout], "%v", out.Puts)
		}
	})
}

// touches are the operations on files and folders; how full the disk is is asked every second.
func touches(op memfs.Op) bool { return op.Kind != memfs.KindUsage }

// One failure at every operation in turn, and a full disk from every operation on.
func TestAFaultAtEveryOperation(t *testing.T) {
	step := 11
	if fixture.Raced {
		step = 37
	}
	for name, f := range map[string]struct {
		err    error
		always bool
		match  func(memfs.Op) bool
	}{
		"one error":     {syscall.EIO, false, touches},
		"a full disk":   {vfs.ErrNoSpace, true, on("", memfs.KindAllocate, memfs.KindCreate, memfs.KindWrite, memfs.KindMkdir, memfs.KindPopulate)},
		"a broken disk": {syscall.EIO, true, touches},
	} {
		for _, mode := range modes {
			t.Run(fmt.Sprint(name, " ", mode), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					for at, reached := 0, true; reached; at += step {
						reached = false
						n := 0
						fault := locked(func(op memfs.Op) error {
							if !f.match(op) {
								return nil
							}
							if n++; n-1 == at || n-1 > at && f.always {
								reached = true
								return f.err
							}
							return nil
						})
						out, err := trial(uint64(at), mode, fault, at%2 == 0).Run()
						require.NoError(t, err, "at operation %d: %v", at, out)
						if f.err == vfs.ErrNoSpace {
							goesOn(t, out, at%2 == 0)
						}
					}
				})
			})
		}
	}
}
