package system

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors/cleaner"
	"github.com/actormq/actormq/actors/ha"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// FlushDiskType says when a put is answered (flushDiskType).
type FlushDiskType int

// The two flush modes.
const (
	AsyncFlush FlushDiskType = iota // after the bytes are in the page cache
	SyncFlush                       // after fdatasync
)

func (t FlushDiskType) String() string {
	if t == SyncFlush {
		return "SYNC_FLUSH"
	}
	return "ASYNC_FLUSH"
}

// Options configure a store. The zero value of a field is its default, which Defaults fills in; names in parentheses are
// RocketMQ's options (spec/store.md §1.3).
type Options struct {
	Dir          string   // storePathRootDir; required
	CommitLogDir string   // storePathCommitLog; default Dir/commitlog
	Disk         vfs.Disk // default: the operating system's

	SegmentBytes          int64 // mappedFileSizeCommitLog; default 1 GiB, a multiple of 4096
	ConsumeQueueFileBytes int64 // mappedFileSizeConsumeQueue; default 6,000,000, rounded up to a multiple of 20
	ConsumeQueueExt       bool  // enableConsumeQueueExt: tags codes of new units go to extension files, and are looked up there
	ConsumeQueueExtBytes  int64 // mappedFileSizeConsumeQueueExt: of an extension file; default 48 MiB
	IndexSlots            int32 // maxHashSlotNum; default 5,000,000
	IndexEntries          int32 // maxIndexNum; default 20,000,000
	NoIndex               bool  // messageIndexEnable=false
	SkipRecoveryCRC       bool  // checkCRCOnRecover=false

	Role                messages.BrokerRole // brokerRole; default AsyncMaster
	CheckOffsetsInSlave bool                // offsetCheckInSlave: a slave corrects the offsets of its readers
	WarmSegments        bool                // warmMapedFileEnable: make all pages of a new segment present, and lock them in memory
	WarmSyncPages       int                 // flushLeastPagesWhenWarmMapedFile: with SYNC_FLUSH, after how many pages the disk is given them; default 4096
	BusyTimeout         time.Duration       // osPageCacheBusyTimeOutMills: puts wait so long for their turn, then more are refused; default 1 s

	Replication   // what a role needs beside itself
	TransientPool // write buffers in front of the files
	LightQueues   // messages in further queues

	FlushDiskType        FlushDiskType // flushDiskType; default AsyncFlush
	FlushInterval        time.Duration // flushIntervalCommitLog; default 500 ms
	FlushAtOnce          bool          // flushCommitLogTimed=false: flush as soon as FlushLeastPages are dirty
	FlushLeastPages      int           // flushCommitLogLeastPages; default 4, -1: whatever is dirty
	FlushThorough        time.Duration // flushCommitLogThoroughInterval; default 10 s
	SyncFlushTimeout     time.Duration // syncFlushTimeout; default 5 s
	QueueFlushInterval   time.Duration // flushIntervalConsumeQueue; default 1 s
	QueueFlushLeastPages int           // flushConsumeQueueLeastPages of a queue; default 2, -1: whatever is dirty
	QueueFlushThorough   time.Duration // flushConsumeQueueThoroughInterval; default 60 s
	DelayLevels          string        // messageDelayLevel
	DelayOffsetInterval  time.Duration // flushDelayOffsetInterval; default 10 s
	MaxMessageBytes      int           // maxMessageSize: of a body, or of a batch; default 4 MiB
	MaxTransferBytes     int           // maxTransferBytesOnMessageInMemory; default 256 KiB
	MaxTransferMessages  int           // maxTransferCountOnMessageInMemory; default 32
	DiskTransferBytes    int           // maxTransferBytesOnMessageInDisk; default 64 KiB
	DiskTransferMessages int           // maxTransferCountOnMessageInDisk; default 8
	MemoryRatioPercent   int           // accessMessageInMemoryMaxRatio; default 40

	messages.Retention                // when commit-log files are deleted; Store.SetRetention changes it
	CleanInterval       time.Duration // cleanResourceInterval; default 10 s, the first round after 60 s
	FilePause           time.Duration // deleteCommitLogFilesInterval; default 100 ms
	QueuePause          time.Duration // deleteConsumeQueueFilesInterval; default 100 ms
	DestroyFileForcibly time.Duration // destroyMapedFileIntervalForcibly: then a file goes though it is being read; default 120 s
	RedeleteInterval    time.Duration // redeleteHangedFileInterval; default 120 s
	BallastBytes        int64         // room that is kept for a full disk; default 64 MiB, a segment at most; -1 for none

	MaxPendingPuts  int   // puts in flight; beyond it a put is refused with OS_PAGECACHE_BUSY; default 65,536
	MaxPendingBytes int64 // bytes of them; default 256 MiB
	MaxParkedPulls  int   // pulls held back at once; default 100,000
	WindowBytes     int64 // pages made ready ahead of the tail; default 8 MiB, -1 for none

	StoreHost   netip.AddrPort // brokerIP1:listenPort as stored in each record; default 127.0.0.1:10911
	StopTimeout time.Duration  // for Close without a deadline of its own; default 30 s

	Extensions // code of the user's own

	Logger zerolog.Logger // default: nothing is logged
	// Progress, when set, is told of long work while a store opens: what, how much of how much.
	Progress func(what string, done, total int64)
	// OnFailed, when set, is told once when the store turns read-only because a storage actor failed. It must not block.
	OnFailed func(messages.Failed)
}

// Replication says how a store replicates its log (spec/store.md §12).
type Replication struct {
	HAListen       string         // host:port on which a master serves slaves (haListenPort); empty: none can connect
	HAAllow        []netip.Prefix // haAllow: hosts that may connect to HAListen; empty: all that reach it
	HAMaster       string         // host:port of the master of a slave (haMasterAddress); empty: Store.Follow tells it
	HAFullCopy     bool           // an empty slave copies the master's whole log, not just the last segment
	HAHeartbeat    time.Duration  // haSendHeartbeatInterval; default 5 s
	HAHousekeeping time.Duration  // haHousekeepingInterval: silence that ends a connection; default 20 s
	HABatchBytes   int            // haTransferBatchSize; default 32 KiB
	HAFallbehind   int64          // haSlaveFallbehindMax: a slave that lacks more does not count; default 256 MiB
	HAUnreadMemory int64          // of the end of a slave's log stay in memory while nobody reads there; default 256 MiB, -1: what the system leaves
	SlaveTimeout   time.Duration  // slaveTimeout: the longest that a put of a SyncMaster waits for a slave; default 3 s

	// Group makes the store a replica of a group: a SyncMaster is its leader, a Slave follows it (package system/cluster sees to that).
	// Then records are read and dispatched only once they are confirmed, and delayed messages are delivered when DeliverDelayed says so.
	Group *ha.Group
}

// Defaults returns the options with every zero field filled in.
func (o Options) Defaults() Options {
	o.CommitLogDir = store.Params{Dir: o.Dir, CommitLogDir: o.CommitLogDir}.WithDefaults().CommitLogDir
	if o.Disk == nil {
		o.Disk = vfs.New()
	}
	def(&o.SegmentBytes, 1<<30)
	def(&o.ConsumeQueueFileBytes, 6_000_000)
	if r := o.ConsumeQueueFileBytes % 20; r > 0 {
		o.ConsumeQueueFileBytes += 20 - r
	}
	def(&o.ConsumeQueueExtBytes, 48<<20)
	def(&o.IndexSlots, 5_000_000)
	def(&o.IndexEntries, 20_000_000)
	def(&o.HAHeartbeat, 5*time.Second)
	def(&o.HAHousekeeping, 20*time.Second)
	def(&o.HABatchBytes, 32<<10)
	def(&o.HAFallbehind, 256<<20)
	def(&o.HAUnreadMemory, 256<<20)
	def(&o.SlaveTimeout, 3*time.Second)
	o.TransientPool.defaults()
	def(&o.MaxLightQueues, 20_000)
	def(&o.FlushInterval, 500*time.Millisecond)
	def(&o.FlushLeastPages, 4)
	def(&o.QueueFlushLeastPages, 2)
	def(&o.FlushThorough, 10*time.Second)
	def(&o.SyncFlushTimeout, defaultSyncFlushTimeout)
	def(&o.QueueFlushInterval, time.Second)
	def(&o.QueueFlushThorough, time.Minute)
	def(&o.DelayLevels, messages.DefaultDelayLevels)
	def(&o.DelayOffsetInterval, 10*time.Second)
	def(&o.MaxMessageBytes, 4<<20)
	def(&o.MaxTransferBytes, 256<<10)
	def(&o.MaxTransferMessages, 32)
	def(&o.DiskTransferBytes, 64<<10)
	def(&o.DiskTransferMessages, 8)
	def(&o.MemoryRatioPercent, 40)
	o.Retention = retentionDefaults(o.Retention)
	def(&o.CleanInterval, 10*time.Second)
	def(&o.FilePause, 100*time.Millisecond)
	def(&o.QueuePause, 100*time.Millisecond)
	def(&o.DestroyFileForcibly, 2*time.Minute)
	def(&o.RedeleteInterval, 2*time.Minute)
	def(&o.BallastBytes, min(64<<20, o.SegmentBytes))
	def(&o.WarmSyncPages, 4096)
	def(&o.BusyTimeout, time.Second)
	def(&o.MaxPendingPuts, 1<<16)
	def(&o.MaxPendingBytes, 256<<20)
	def(&o.MaxParkedPulls, 100_000)
	def(&o.WindowBytes, 8<<20)
	def(&o.StoreHost, netip.MustParseAddrPort("127.0.0.1:10911"))
	def(&o.StopTimeout, 30*time.Second)
	return o
}

func retentionDefaults(r messages.Retention) messages.Retention {
	def(&r.FileReservedTime, 72*time.Hour)
	def(&r.DeleteWhen, "04")
	def(&r.MaxUsedPercent, 75)
	r.MaxUsedPercent = min(max(r.MaxUsedPercent, 10), 95) // as RocketMQ does
	def(&r.CleanForcibly, 85)
	def(&r.WarningPercent, 90)
	def(&r.UnreadMaxUsed, 80)
	def(&r.UnreadGroupTimeout, 7*24*time.Hour)
	return r
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// ErrOptions: the options contradict each other or a limit; the message lists every problem.
var ErrOptions = errors.New("bad options")

// Validate returns all problems of filled-in options at once, each with the value and the limit, or nil.
func (o Options) Validate() error {
	var bad []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	check(o.Dir != "", "Dir is empty: name the store's folder")
	check(o.SegmentBytes >= 4096 && o.SegmentBytes <= math.MaxInt32 && o.SegmentBytes%4096 == 0,
		"SegmentBytes is %d: a multiple of 4096 from 4096 to %d", o.SegmentBytes, math.MaxInt32)
	check(o.ConsumeQueueFileBytes >= 20 && o.ConsumeQueueFileBytes <= math.MaxInt32,
		"ConsumeQueueFileBytes is %d: 20 to %d", o.ConsumeQueueFileBytes, math.MaxInt32)
	check(o.ConsumeQueueExtBytes >= 64 && o.ConsumeQueueExtBytes <= math.MaxInt32,
		"ConsumeQueueExtBytes is %d: 64 to %d", o.ConsumeQueueExtBytes, math.MaxInt32)
	check(o.IndexSlots > 0, "IndexSlots is %d: more than 0", o.IndexSlots)
	check(o.IndexEntries > 1, "IndexEntries is %d: more than 1", o.IndexEntries)
	index := 40 + 4*int64(o.IndexSlots) + 20*int64(o.IndexEntries)
	check(index <= math.MaxInt32, "an index file of IndexSlots %d and IndexEntries %d has %d bytes: at most %d",
		o.IndexSlots, o.IndexEntries, index, math.MaxInt32)
	check(o.MaxLightQueues > 0, "MaxLightQueues is %d: more than 0", o.MaxLightQueues)
	check(o.TransientPoolSize > 0, "TransientPoolSize is %d: more than 0", o.TransientPoolSize)
	check(o.WarmSyncPages > 0, "WarmSyncPages is %d: more than 0", o.WarmSyncPages)
	check(o.Role >= messages.AsyncMaster && o.Role <= messages.Slave, "Role is %d", o.Role)
	check(o.FlushDiskType == AsyncFlush || o.FlushDiskType == SyncFlush, "FlushDiskType is %d", o.FlushDiskType)
	for name, d := range map[string]time.Duration{
		"FlushInterval": o.FlushInterval, "FlushThorough": o.FlushThorough, "SyncFlushTimeout": o.SyncFlushTimeout,
		"QueueFlushInterval": o.QueueFlushInterval, "QueueFlushThorough": o.QueueFlushThorough, "StopTimeout": o.StopTimeout,
		"CleanInterval": o.CleanInterval, "FilePause": o.FilePause, "QueuePause": o.QueuePause,
		"DestroyFileForcibly": o.DestroyFileForcibly, "RedeleteInterval": o.RedeleteInterval,
		"DelayOffsetInterval": o.DelayOffsetInterval,
		"BusyTimeout":         o.BusyTimeout,
		"CommitInterval":      o.CommitInterval, "CommitThorough": o.CommitThorough,
		"HAHeartbeat": o.HAHeartbeat, "HAHousekeeping": o.HAHousekeeping, "SlaveTimeout": o.SlaveTimeout,
	} {
		check(d > 0, "%s is %v: more than 0", name, d)
	}
	check(!slices.ContainsFunc(o.HAAllow, func(p netip.Prefix) bool { return !p.IsValid() }), "HAAllow is %v: one is no network", o.HAAllow)
	check(!slices.ContainsFunc(o.HAAllow, func(p netip.Prefix) bool { return p.Addr().Is4In6() }), "HAAllow is %v: want networks of IPv4 as such", o.HAAllow)
	check(o.HABatchBytes > 0 && o.HAFallbehind > 0, "a limit of replication is not above 0")
	check(o.HAUnreadMemory >= -1, "HAUnreadMemory is %d: at least -1", o.HAUnreadMemory)
	check(o.Role == messages.Slave || o.HAMaster == "", "HAMaster is %s, but the role is %v", o.HAMaster, o.Role)
	check(o.Group == nil || o.Role == messages.Slave || o.Role == messages.SyncMaster && o.HAListen != "",
		"a store of a Group is a Slave, or a SyncMaster with HAListen")
	check(o.Role != messages.Slave || o.HAListen == "", "HAListen is %s: a slave has no slaves", o.HAListen)
	check(o.MaxMessageBytes > 0 && int64(o.MaxMessageBytes) <= math.MaxInt32-record.MinBytes-1<<16,
		"MaxMessageBytes is %d", o.MaxMessageBytes)
	check(o.MaxTransferBytes > 0 && o.MaxTransferMessages > 0 && o.DiskTransferBytes > 0 && o.DiskTransferMessages > 0,
		"a transfer limit is not above 0")
	check(o.MemoryRatioPercent > 0 && o.MemoryRatioPercent <= 100, "MemoryRatioPercent is %d: 1 to 100", o.MemoryRatioPercent)
	check(o.MaxPendingPuts > 0 && o.MaxPendingBytes > 0, "a limit of pending puts is not above 0")
	err := validRetention(o.Retention)
	check(err == nil, "%w", err)
	check(o.StoreHost.IsValid(), "StoreHost is no address and port")
	if _, err := messages.ParseDelayLevels(o.DelayLevels); err != nil {
		check(false, "DelayLevels: %w", err)
	}
	err = o.Extensions.validate()
	check(err == nil, "%w", err)
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrOptions, errors.Join(bad...))
}

// atRisk is how old a message may be that was answered with PUT_OK and is lost in a power cut.
func (o Options) atRisk() time.Duration {
	if o.FlushDiskType == SyncFlush {
		return 0
	}
	return o.FlushThorough
}

// validRetention returns all problems of a retention that is filled in, or nil.
func validRetention(r messages.Retention) error {
	var bad []error
	if r.FileReservedTime <= 0 {
		bad = append(bad, fmt.Errorf("FileReservedTime is %v: more than 0", r.FileReservedTime))
	}
	if r.UnreadGroupTimeout <= 0 {
		bad = append(bad, fmt.Errorf("UnreadGroupTimeout is %v: more than 0", r.UnreadGroupTimeout))
	}
	for topic, kept := range r.Topics {
		if err := messages.CheckTopicName(topic); err != nil {
			bad = append(bad, fmt.Errorf("a key of Topics: %w", err))
		}
		if kept <= 0 || ownTopic(topic) {
			bad = append(bad, fmt.Errorf("topic %s of Topics is kept for %v: more than 0, and no topic of the store's own", topic, kept))
		}
	}
	for name, percent := range map[string]int{
		"CleanForcibly": r.CleanForcibly, "WarningPercent": r.WarningPercent, "UnreadMaxUsed": r.UnreadMaxUsed,
	} {
		if percent < 1 || percent > 100 {
			bad = append(bad, fmt.Errorf("%s is %d: 1 to 100 percent", name, percent))
		}
	}
	if _, err := cleaner.ParseHours(r.DeleteWhen); err != nil {
		bad = append(bad, fmt.Errorf("DeleteWhen: %w", err))
	}
	return errors.Join(bad...)
}
