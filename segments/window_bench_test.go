package segments_test

import (
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

const (
	windowBytes  = 32 << 20
	windowFile   = 512 << 20
	windowRecord = 1116
)

// BenchmarkWindow compares the ways to get records of 1,116 bytes into the log's file (docs/adr/0001): what one costs the
// one who appends, in ns, and the longest stall, in ms, while a flusher syncs the file every 100 ms or not at all.
//
//	map        a map, nothing prepared: each first touch of a page faults
//	populated  a map whose pages another goroutine populates, one window of 32 MiB ahead
//	zeroed     a map over a window that was written with zeros and synced before
//	write1     one pwrite a record
//	write16    one pwrite for 16 records
func BenchmarkWindow(b *testing.B) {
	for _, syncing := range []bool{false, true} {
		for _, way := range []string{"map", "populated", "zeroed", "write1", "write16"} {
			b.Run(fmt.Sprintf("way=%s/syncing=%v", way, syncing), func(b *testing.B) { benchmarkWindow(b, way, syncing) })
		}
	}
}

func benchmarkWindow(b *testing.B, way string, syncing bool) {
	disk, dir := vfs.New(), b.TempDir()
	var longest time.Duration
	left := b.N
	for n := 0; left > 0; n++ {
		b.StopTimer()
		f, err := disk.Create(path.Join(dir, segments.Name(int64(n))))
		require.NoError(b, err)
		require.NoError(b, f.Allocate(0, windowFile))
		m, err := f.Map(windowFile, vfs.MapShared)
		require.NoError(b, err)
		a := &windowAppender{b: b, f: f, m: m, way: way, record: make([]byte, 16*windowRecord)}
		stop := a.background(syncing)
		a.prepare(0)
		b.StartTimer()
		count := min(left, windowFile/windowRecord-16)
		longest = max(longest, a.append(count))
		left -= count
		b.StopTimer()
		stop()
		require.NoError(b, m.Unmap())
		require.NoError(b, f.Close())
		require.NoError(b, disk.Remove(f.Name()))
		b.StartTimer()
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest")
}

type windowAppender struct {
	b      *testing.B
	f      vfs.File
	m      vfs.Mapping
	way    string
	record []byte
	wanted chan int64
	ready  int64
}

// background starts the one who prepares windows and the one who syncs.
func (a *windowAppender) background(syncing bool) (stop func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	a.wanted = make(chan int64, windowFile/windowBytes)
	wg.Go(func() {
		for off := range a.wanted {
			a.populate(off)
		}
	})
	if syncing {
		wg.Go(func() {
			for tick := time.NewTicker(100 * time.Millisecond); ; {
				select {
				case <-tick.C:
					if err := a.f.DataSync(); err != nil {
						panic(err)
					}
				case <-done:
					tick.Stop()
					return
				}
			}
		})
	}
	return func() { close(done); close(a.wanted); wg.Wait() }
}

func (a *windowAppender) populate(off int64) {
	var err error
	switch a.way {
	case "populated":
		err = a.m.Populate(off, min(windowBytes, windowFile-off))
	case "zeroed":
		zeros := make([]byte, 1<<20)
		for end := off + windowBytes; off < end && err == nil; off += int64(len(zeros)) {
			_, err = a.f.WriteAt(zeros, off)
		}
		if err == nil {
			err = a.f.DataSync()
		}
	}
	if err != nil {
		panic(err)
	}
}

// prepare makes the first window ready; append asks for the next one when half of it is used.
func (a *windowAppender) prepare(off int64) {
	a.populate(off)
	a.ready = off + windowBytes
}

func (a *windowAppender) append(count int) (longest time.Duration) {
	group := 1
	if a.way == "write16" {
		group = 16
	}
	pos := int64(0)
	data := a.m.Bytes()
	last := time.Now()
	for done := 0; done < count; done += group {
		n := group * windowRecord
		if a.ready-pos < windowBytes/2 && a.ready < windowFile {
			a.wanted <- a.ready
			a.ready += windowBytes
		}
		if a.way == "write1" || a.way == "write16" {
			if _, err := a.f.WriteAt(a.record[:n], pos); err != nil {
				panic(err)
			}
		} else {
			copy(data[pos:], a.record[:n])
		}
		pos += int64(n)
		now := time.Now()
		longest = max(longest, now.Sub(last))
		last = now
	}
	return longest
}
