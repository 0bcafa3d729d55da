package cleaner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// maxRound is how many segments go in one round at most (spec/store.md §4.4).
const maxRound = 10

// neededWhenShort is how many segments are enough for the allocator: the next one, and the one behind it.
const neededWhenShort = 2

// Policy says what expires, and how full a file system may be. Names in parentheses are RocketMQ's options; percentages are
// of what a file system holds, its reserve left out.
type Policy struct {
	Reserved      time.Duration            // fileReservedTime
	Hours         []int                    // deleteWhen: hours of the day, local time
	MaxUsed       int                      // diskMaxUsedSpaceRatio, 10 to 95
	CleanForcibly int                      // diskSpaceCleanForciblyRatio
	Warning       int                      // diskSpaceWarningLevelRatio
	Forced        bool                     // cleanFileForciblyEnable: what has not expired may go too
	Topics        map[string]time.Duration // topicRetention
	KeepUnread    bool                     // keepUnreadMessages
	UnreadMaxUsed int                      // keepUnreadMaxUsedSpaceRatio: above it what is unread goes as what is read
	GroupTimeout  time.Duration            // keepUnreadGroupTimeout
	SegmentBytes  int64
}

// PolicyOf is the policy of a retention whose hours can be read.
func PolicyOf(r messages.Retention, segmentBytes int64) Policy {
	hours, _ := ParseHours(r.DeleteWhen)
	return Policy{
		Reserved: r.FileReservedTime, Hours: hours, MaxUsed: r.MaxUsedPercent, CleanForcibly: r.CleanForcibly,
		Warning: r.WarningPercent, Forced: !r.NoForcedCleaning, SegmentBytes: segmentBytes,
		Topics: r.Topics, KeepUnread: r.KeepUnread, UnreadMaxUsed: r.UnreadMaxUsed, GroupTimeout: r.UnreadGroupTimeout,
	}
}

// DiskUse is how full the file system of one folder is.
type DiskUse struct {
	What, Dir string
	Log       bool // the commit log is on it
	Usage     vfs.Usage
	Err       error // not nil: it is unknown
}

// percent is how full the file system is, -1 when that is unknown.
func (d DiskUse) percent() int {
	if d.Err != nil {
		return -1
	}
	return d.Usage.UsedPercent()
}

// OldSegment is one of the oldest segments of the log.
type OldSegment struct {
	End      messages.PhysicalOffset
	NewestMs int64 // nothing in it was stored later
	Kept     bool  // it has messages of a topic that keeps them longer, and they have not expired
	Unread   bool  // a consumer group has still to read some of it; only with KeepUnread
}

// Situation is what a round is planned from.
type Situation struct {
	Now      time.Time
	Disks    []DiskUse
	Segments []OldSegment            // oldest first; the log's last one is not among them
	Safe     messages.PhysicalOffset // what is below is dispatched and durable
	Asked    bool                    // somebody wants expired files gone now
	Short    bool                    // a part of the store has no room for what it must write
	Leaving  int                     // segments that are out of the log already, but still take room
	Reserved int64                   // bytes that must stay free beside a new segment
}

// Plan is what a round does.
type Plan struct {
	Delete    int    // of the oldest segments
	Unexpired int    // how many of them have not expired
	Unread    int    // how many of them have expired, and have not been read
	Why       string // for the log
}

// Plan decides how many segments go.
func (p Policy) Plan(s Situation) Plan {
	why := p.due(s)
	if why == "" {
		return Plan{}
	}
	keep := !p.pressed(s)
	expired, allowed, unread := 0, 0, 0
	for _, seg := range s.Segments[:min(len(s.Segments), maxRound)] {
		if seg.End > s.Safe {
			break
		}
		if allowed == expired && p.expired(seg, s.Now) && !(seg.Unread && keep) {
			expired++
			if seg.Unread {
				unread++
			}
		}
		allowed++
	}
	plan := Plan{Delete: expired, Unread: unread, Why: why}
	if forced := min(p.needed(s), allowed); p.Forced && forced > expired {
		plan.Delete, plan.Unexpired = forced, forced-expired
	}
	return plan
}

// due says why this is the time to delete, empty when it is not.
func (p Policy) due(s Situation) string {
	switch {
	case s.Short:
		return "there is no room on the disk"
	case s.Asked:
		return "it was asked for"
	}
	for _, d := range s.Disks {
		if used := d.percent(); used > p.MaxUsed {
			return fmt.Sprintf("%s is %d%% full, diskMaxUsedSpaceRatio is %d", d.Dir, used, p.MaxUsed)
		}
	}
	if slices.Contains(p.Hours, s.Now.Hour()) {
		return "it is the hour of deleteWhen"
	}
	return ""
}

// tight tells whether a file system is so full that files go before they expire.
func (p Policy) tight(disks []DiskUse) bool {
	return p.Forced && slices.ContainsFunc(disks, func(d DiskUse) bool { return d.percent() > max(p.MaxUsed, p.CleanForcibly) })
}

// expired tells whether all of a segment has.
func (p Policy) expired(seg OldSegment, now time.Time) bool {
	return now.Sub(time.UnixMilli(seg.NewestMs)) >= p.Reserved && !seg.Kept
}

// pressed tells whether the disk is too full to keep what has expired because it is unread.
func (p Policy) pressed(s Situation) bool {
	return s.Short && p.tooSmall(s.Disks, s.Reserved) ||
		slices.ContainsFunc(s.Disks, func(d DiskUse) bool { return d.percent() > p.UnreadMaxUsed })
}

// needed is how many segments have to go, expired or not, so that the file systems are no longer too full.
func (p Policy) needed(s Situation) int {
	n := 0
	for _, d := range s.Disks {
		if d.percent() <= p.CleanForcibly {
			continue
		}
		if !d.Log { // what the log's segments have in the queues and in the index cannot be known: a little at a time
			n = max(n, 1)
			continue
		}
		const percent = 100
		room := d.Usage.UsedBytes + d.Usage.FreeBytes
		excess := d.Usage.UsedBytes - room/percent*int64(p.CleanForcibly)
		n = max(n, int((excess+p.SegmentBytes-1)/p.SegmentBytes)-s.Leaving)
	}
	if s.Short && p.tooSmall(s.Disks, s.Reserved) {
		n = max(n, neededWhenShort-s.Leaving)
	}
	return min(n, maxRound)
}

// tooSmall tells whether the log's file system has, by its own account, no room for the next segment. What is short of room
// although there is some (a quota, no inode left) is not cured by deletions, and lasts: it would eat the log.
func (p Policy) tooSmall(disks []DiskUse, reserved int64) bool {
	return slices.ContainsFunc(disks, func(d DiskUse) bool {
		return d.Log && d.Err == nil && d.Usage.FreeBytes < p.SegmentBytes+reserved
	})
}

// unexplained says that something finds no room although no file system is full by its own account; empty when one is, or
// when that is unknown.
func (p Policy) unexplained(disks []DiskUse, reserved int64) string {
	if len(disks) == 0 || p.tooSmall(disks, reserved) {
		return ""
	}
	most := -1
	for _, d := range disks {
		if d.Err != nil || d.percent() > p.CleanForcibly {
			return ""
		}
		most = max(most, d.percent())
	}
	return fmt.Sprintf(" (the file systems are %d%% used: is it a quota, or are there no inodes left? nothing goes before it expires)", most)
}

// Full says why puts must be refused, nil when they need not be. Of a file system whose usage is unknown the last word
// stands: before holds those that were too full, by folder, and is brought up to date.
func (p Policy) Full(disks []DiskUse, before map[string]error) error {
	var errs []error
	for i, d := range disks {
		switch used := d.percent(); {
		case used > p.Warning:
			before[d.Dir] = fmt.Errorf("%w: the file system of the %s, %s, is %d%% used, %d bytes are free, limit %d%% (diskSpaceWarningLevelRatio)",
				messages.ErrDiskFull, d.What, d.Dir, used, d.Usage.FreeBytes, p.Warning)
		case used >= 0:
			delete(before, d.Dir)
		}
		same := slices.ContainsFunc(disks[:i], func(o DiskUse) bool { return o.Err == nil && d.Err == nil && o.Usage == d.Usage })
		if err := before[d.Dir]; err != nil && !same { // it is one file system: once is enough
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ParseHours reads deleteWhen: hours of the day, separated by semicolons.
func ParseHours(text string) ([]int, error) {
	var hours []int
	for _, part := range strings.Split(text, ";") {
		at, err := time.Parse("15", strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q is no hour of the day: 00 to 23, separated by semicolons", part)
		}
		hours = append(hours, at.Hour())
	}
	return hours, nil
}
