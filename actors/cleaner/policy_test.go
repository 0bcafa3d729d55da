package cleaner_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/cleaner"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

var (
	noon   = time.Date(2026, 7, 1, 12, 30, 0, 0, time.Local)
	policy = cleaner.Policy{
		Reserved: 72 * time.Hour, Hours: []int{4, 23}, MaxUsed: 75, CleanForcibly: 85, Warning: 90, Forced: true, SegmentBytes: 100, UnreadMaxUsed: 80,
	}
)

// disk is a file system of 10,000 bytes, so many percent of which are used.
func disk(percent int64) cleaner.DiskUse {
	return cleaner.DiskUse{
		What: "commit log", Dir: "log", Log: true, Usage: vfs.Usage{TotalBytes: 10_000, UsedBytes: percent * 100, FreeBytes: (100 - percent) * 100},
	}
}

func other(percent int64) cleaner.DiskUse {
	d := disk(percent)
	d.What, d.Dir, d.Log = "consume queues", "queues", false
	return d
}

// tiny is the log's file system of so many bytes, so many of which are free.
func tiny(total, free int64) cleaner.DiskUse {
	return cleaner.DiskUse{
		What: "commit log", Dir: "log", Log: true, Usage: vfs.Usage{TotalBytes: total, UsedBytes: total - free, FreeBytes: free},
	}
}

func unknown() cleaner.DiskUse {
	d := disk(99)
	d.Err = errors.New("no answer")
	return d
}

// segments are so many of 100 bytes, the first of which are four days old, the others one hour.
func segments(old, young int) []cleaner.OldSegment {
	var all []cleaner.OldSegment
	for i := range old + young {
		age := time.Hour
		if i < old {
			age = 96 * time.Hour
		}
		all = append(all, cleaner.OldSegment{
			End: messages.PhysicalOffset(100 * (i + 1)), NewestMs: noon.Add(-age).UnixMilli(),
		})
	}
	return all
}

func TestPlan(t *testing.T) {
	four := noon.Add(-8 * time.Hour)
	for _, c := range []struct {
		name              string
		now               time.Time
		disks             []cleaner.DiskUse
		segments          []cleaner.OldSegment
		safe              messages.PhysicalOffset
		asked, short      bool
		leaving           int
		reserved          int64
		unforced          bool
		delete, unexpired int
	}{
		{name: "nothing is due", disks: []cleaner.DiskUse{disk(10)}, segments: segments(5, 5)},
		{name: "the hour", now: four, segments: segments(0, 3)},
		{name: "the hour and expired", now: four.Add(time.Minute), segments: segments(3, 5), delete: 3},
		{name: "another hour", now: noon.Add(11 * time.Hour), segments: segments(2, 0), delete: 2},
		{name: "asked for", segments: segments(3, 5), asked: true, delete: 3},
		{name: "ten a round", segments: segments(30, 0), asked: true, delete: 10},
		{name: "nothing there", asked: true},
		{name: "at the ratio", disks: []cleaner.DiskUse{disk(75)}, segments: segments(3, 5)},
		{name: "above the ratio", disks: []cleaner.DiskUse{disk(76)}, segments: segments(3, 5), delete: 3},
		{name: "above the ratio, none expired", disks: []cleaner.DiskUse{disk(85)}, segments: segments(0, 9)},
		{name: "another folder above the ratio", disks: []cleaner.DiskUse{disk(10), other(80)}, segments: segments(3, 5), delete: 3},
		{name: "unknown is not full", disks: []cleaner.DiskUse{unknown()}, segments: segments(3, 5)},
		{name: "forced, no more than needed", disks: []cleaner.DiskUse{disk(88)}, segments: segments(0, 9), delete: 3, unexpired: 3},
		{name: "forced, expired first", disks: []cleaner.DiskUse{disk(88)}, segments: segments(2, 9), delete: 3, unexpired: 1},
		{name: "forced, enough are expired", disks: []cleaner.DiskUse{disk(88)}, segments: segments(5, 9), delete: 5},
		{name: "forced, ten a round", disks: []cleaner.DiskUse{disk(99)}, segments: segments(0, 20), delete: 10, unexpired: 10},
		{name: "forced, some still take room", disks: []cleaner.DiskUse{disk(88)}, segments: segments(0, 9), leaving: 2, delete: 1, unexpired: 1},
		{name: "forced, enough still take room", disks: []cleaner.DiskUse{disk(88)}, segments: segments(0, 9), leaving: 3},
		{name: "forced is off", disks: []cleaner.DiskUse{disk(99)}, segments: segments(1, 9), unforced: true, delete: 1},
		{name: "another folder is full", disks: []cleaner.DiskUse{disk(10), other(95)}, segments: segments(0, 9), delete: 1, unexpired: 1},
		{name: "no room at all", disks: []cleaner.DiskUse{tiny(250, 99)}, segments: segments(0, 9), short: true, delete: 2, unexpired: 2},
		{name: "no room beside the reserve", disks: []cleaner.DiskUse{tiny(250, 120)}, reserved: 21, segments: segments(0, 9), short: true, delete: 2, unexpired: 2},
		{name: "no room, some still take it", disks: []cleaner.DiskUse{tiny(250, 99)}, segments: segments(0, 9), short: true, leaving: 1, delete: 1, unexpired: 1},
		{name: "no room, all but one are there", disks: []cleaner.DiskUse{tiny(250, 99)}, segments: segments(0, 1), short: true, delete: 1, unexpired: 1},
		{name: "a small disk, but nobody is short", disks: []cleaner.DiskUse{tiny(250, 99)}, segments: segments(0, 9)},
		{name: "no room, and yet there is: a quota", disks: []cleaner.DiskUse{disk(10), other(10)}, segments: segments(0, 9), short: true},
		{name: "a quota, and something has expired", disks: []cleaner.DiskUse{disk(10)}, segments: segments(3, 9), short: true, delete: 3},
		{name: "no room, as far as is known", disks: []cleaner.DiskUse{unknown()}, segments: segments(0, 9), short: true},
		{name: "not dispatched yet", segments: segments(5, 0), asked: true, safe: 250, delete: 2},
		{name: "no room, not dispatched yet", disks: []cleaner.DiskUse{tiny(250, 99)}, segments: segments(0, 5), short: true, safe: 100, delete: 1, unexpired: 1},
		{name: "nothing is safe", segments: segments(5, 0), short: true, safe: 99},
		{
			name: "an old one behind a young one", asked: true, delete: 1,
			segments: append(segments(1, 1), cleaner.OldSegment{End: 300, NewestMs: 1}),
		},
	} {
		s := cleaner.Situation{
			Now: noon, Disks: c.disks, Segments: c.segments, Safe: 1 << 40, Asked: c.asked, Short: c.short, Leaving: c.leaving,
			Reserved: c.reserved,
		}
		if !c.now.IsZero() {
			s.Now = c.now
		}
		if c.safe > 0 {
			s.Safe = c.safe
		}
		p := policy
		p.Forced = !c.unforced
		got := p.Plan(s)
		require.Equal(t, c.delete, got.Delete, c.name)
		require.Equal(t, c.unexpired, got.Unexpired, c.name)
		if c.delete > 0 {
			require.NotEmpty(t, got.Why, c.name)
		}
	}
}

// What a group has not read stays though it has expired, until there is no room for it.
func TestPlanOfUnreadFiles(t *testing.T) {
	for _, c := range []struct {
		name                      string
		disks                     []cleaner.DiskUse
		segments                  []cleaner.OldSegment
		asked, short, unforced    bool
		unread                    int // from this one on, counted from 1
		delete, unexpired, counts int
	}{
		{name: "the third is unread", segments: segments(5, 5), asked: true, unread: 3, delete: 2},
		{name: "unread, at the ratio", disks: []cleaner.DiskUse{disk(80)}, segments: segments(5, 5), unread: 1},
		{name: "unread, above the ratio", disks: []cleaner.DiskUse{disk(10), other(81)}, segments: segments(5, 5), unread: 3, delete: 5, counts: 3},
		{name: "unread, no room at all", disks: []cleaner.DiskUse{tiny(1000, 99)}, segments: segments(1, 5), short: true, unread: 1, delete: 2, unexpired: 1, counts: 1},
		{name: "unread, a quota", disks: []cleaner.DiskUse{disk(10)}, segments: segments(5, 5), short: true, unread: 2, delete: 1},
		{name: "unread, forced", disks: []cleaner.DiskUse{disk(88)}, segments: segments(1, 5), unread: 1, delete: 3, unexpired: 2, counts: 1},
		{name: "unread, forced is off", disks: []cleaner.DiskUse{disk(99)}, segments: segments(2, 5), unforced: true, unread: 1, delete: 2, counts: 2},
	} {
		s := cleaner.Situation{Now: noon, Disks: c.disks, Segments: c.segments, Safe: 1 << 40, Asked: c.asked, Short: c.short}
		for i := range s.Segments {
			s.Segments[i].Unread = i+1 >= c.unread
		}
		p := policy
		p.Forced = !c.unforced
		got := p.Plan(s)
		require.Equal(t, []int{c.delete, c.unexpired, c.counts}, []int{got.Delete, got.Unexpired, got.Unread}, c.name)
	}
}

// W15: one evaluator over all file systems, so that no check clears what another one has found; and what is unknown changes nothing.
func TestFullDisksAreJudgedTogether(t *testing.T) {
	before := map[string]error{}
	require.NoError(t, policy.Full([]cleaner.DiskUse{disk(90), other(90)}, before))
	err := policy.Full([]cleaner.DiskUse{disk(20), other(91)}, before)
	require.ErrorIs(t, err, messages.ErrDiskFull)
	for _, part := range []string{"consume queues", "queues", "91%", "900 bytes", "limit 90%", "diskSpaceWarningLevelRatio"} {
		require.ErrorContains(t, err, part, "L47: the refusal says all of it")
	}
	blind := other(20)
	blind.Err = errors.New("no answer")
	require.ErrorIs(t, policy.Full([]cleaner.DiskUse{disk(20), blind}, before), messages.ErrDiskFull)
	require.NoError(t, policy.Full([]cleaner.DiskUse{unknown(), other(90)}, before))
	require.NoError(t, policy.Full([]cleaner.DiskUse{unknown(), blind}, before))
}

func TestParseHours(t *testing.T) {
	for text, want := range map[string][]int{"04": {4}, "4": {4}, "04;16;00": {4, 16, 0}, " 23 ; 01": {23, 1}} {
		got, err := cleaner.ParseHours(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "24", "-1", "4,5", "4;", "four"} {
		_, err := cleaner.ParseHours(text)
		require.Error(t, err, text)
	}
}
