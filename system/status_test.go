package system_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// failOn injects an error into a kind of operation on the log's segments.
func failOn(kind memfs.Kind) func(memfs.Op) error {
	return func(op memfs.Op) error {
		if op.Kind == kind && (strings.Contains(op.Name, "/commitlog/") || strings.Contains(op.Name, "/prepare/")) {
			return errDisk
		}
		return nil
	}
}

// putSetup is what a put meets.
type putSetup struct {
	change func(*system.Options)
	inject func(memfs.Op) error // once the store is open
	before func(*system.Store)
	m      *messages.Message
	cause  error
	broken bool // Close cannot succeed
}

// TestEveryPutStatus shows each status of a put with its cause. FLUSH_SLAVE_TIMEOUT needs a replica that is late
// (TestEachWaitingPutHasItsOwnDeadline), LMQ_CONSUME_QUEUE_NUM_EXCEEDED light queues (TestFurtherQueuesThatCannotBe), and
// CREATE_MAPEDFILE_FAILED a segment that can't be made (TestSegmentsWithoutABuffer).
func TestEveryPutStatus(t *testing.T) {
	sync := func(o *system.Options) { o.FlushDiskType = system.SyncFlush }
	long := message(strings.Repeat("t", 128), 0, "x")
	properties := message("T", 0, "x")
	properties.Properties = messages.PropertiesOf(map[string]string{"k": strings.Repeat("\u00e4", 20_000)})
	delayed := message("T", 0, "x")
	delayed.Properties = messages.PropertiesOf(map[string]string{messages.PropertyDelay: "soon"})
	flag := func(f messages.RunningFlags) func(*system.Store) {
		return func(s *system.Store) { s.SetFlag(f, errDisk) }
	}
	for name, c := range map[string]struct {
		want messages.PutStatus
		putSetup
	}{
		"stored":                    {messages.PutOK, putSetup{}},
		"flushed":                   {messages.PutOK, putSetup{change: sync}},
		"slow disk":                 {messages.FlushDiskTimeout, putSetup{change: sync, inject: slowSync}},
		"no slave":                  {messages.SlaveNotAvailable, putSetup{change: func(o *system.Options) { o.Role = messages.SyncMaster }}},
		"no slave and a slow disk":  {messages.SlaveNotAvailable, putSetup{change: func(o *system.Options) { sync(o); o.Role = messages.SyncMaster }, inject: slowSync}},
		"slave":                     {messages.ServiceNotAvailable, putSetup{change: func(o *system.Options) { o.Role = messages.Slave }, cause: system.ErrSlave}},
		"NOT_WRITEABLE":             {messages.ServiceNotAvailable, putSetup{before: flag(messages.FlagNotWriteable), cause: system.ErrFlagged}},
		"WRITE_LOGICS_QUEUE_ERROR":  {messages.ServiceNotAvailable, putSetup{before: flag(messages.FlagQueueError), cause: errDisk}},
		"DISK_FULL":                 {messages.ServiceNotAvailable, putSetup{before: flag(messages.FlagDiskFull), cause: errDisk}},
		"WRITE_INDEX_FILE_ERROR":    {messages.ServiceNotAvailable, putSetup{before: flag(messages.FlagIndexError), cause: errDisk}},
		"closed":                    {messages.ServiceNotAvailable, putSetup{before: closeNow, cause: system.ErrStopped}},
		"long topic":                {messages.MessageIllegal, putSetup{m: long, cause: record.ErrTopicLength}},
		"long body":                 {messages.MessageIllegal, putSetup{change: func(o *system.Options) { o.MaxMessageBytes = 10 }, m: message("T", 0, "eleven bytes"), cause: system.ErrBodyTooLarge}},
		"record beyond the segment": {messages.MessageIllegal, putSetup{m: page(8), cause: system.ErrBodyTooLarge}},
		"delay that is no number":   {messages.MessageIllegal, putSetup{m: delayed}},
		"long properties":           {messages.PropertiesSizeExceeded, putSetup{m: properties, cause: record.ErrPropertiesTooLong}},
		"failed sync":               {messages.UnknownError, putSetup{change: sync, inject: failOn(memfs.KindDataSync), cause: messages.ErrFailed, broken: true}},
	} {
		t.Run(name, func(t *testing.T) { fixture.Bubble(t, func(t *testing.T) { c.run(t, c.want) }) })
	}
}

// run puts one message and looks at its status.
func (c *putSetup) run(t *testing.T, want messages.PutStatus) {
	disk := memfs.New()
	opt := small(disk)
	if c.change != nil {
		c.change(&opt)
	}
	s, err := system.Open(opt)
	require.NoError(t, err)
	settle()
	disk.Inject(c.inject)
	if c.before != nil {
		c.before(s)
	}
	m := c.m
	if m == nil {
		m = message("T", 0, "x")
	}
	r, err := s.Put(t.Context(), m)
	require.Equal(t, want, r.Status, "%v", err)
	if c.cause != nil {
		require.ErrorIs(t, err, c.cause)
	}
	if want == messages.ServiceNotAvailable {
		require.ErrorIs(t, s.Status().Cause, c.cause)
	}
	pass(2 * time.Minute)
	disk.Inject(nil)
	if err := s.Close(t.Context()); !c.broken {
		require.NoError(t, err)
	}
	pass(time.Second)
}

func slowSync(op memfs.Op) error {
	if op.Kind == memfs.KindDataSync && (firstSegment(op.Name) || strings.HasSuffix(op.Name, "/checkpoint")) {
		<-time.After(time.Minute)
	}
	return nil
}

func closeNow(s *system.Store) {
	if err := s.Close(context.Background()); err != nil {
		panic(err)
	}
}

// TestPutsAreRefusedWhileOthersWait shows the statuses that a put gets because of others.
func TestPutsAreRefusedWhileOthersWait(t *testing.T) { // W14, L95
	for name, c := range map[string]struct {
		change func(*system.Options)
		wait   time.Duration
		want   messages.PutStatus
		cause  error
	}{
		"no segment":                  {func(*system.Options) {}, 0, messages.CreateMapedFileFailed, errDisk},
		"osPageCacheBusyTimeOutMills": {func(o *system.Options) { o.BusyTimeout = 300 * time.Millisecond }, 400 * time.Millisecond, messages.OSPageCacheBusy, system.ErrWriterBusy},
		"MaxPendingPuts":              {func(o *system.Options) { o.MaxPendingPuts = 2 }, 0, messages.OSPageCacheBusy, system.ErrTooManyPuts},
		"MaxPendingBytes":             {func(o *system.Options) { o.MaxPendingBytes = 250 }, 0, messages.OSPageCacheBusy, system.ErrTooManyPuts},
	} {
		t.Run(name, func(t *testing.T) {
			fixture.Bubble(t, func(t *testing.T) {
				disk := memfs.New()
				stall := make(chan error)
				disk.Inject(func(op memfs.Op) error {
					if op.Kind == memfs.KindAllocate && strings.Contains(op.Name, "prepare") {
						return <-stall
					}
					return nil
				})
				opt := small(disk)
				c.change(&opt)
				s, err := system.Open(opt)
				require.NoError(t, err)
				answers := make(chan messages.PutStatus, 10)
				put := func(deadline time.Time) {
					s.PutAsync(message("T", 0, "x"), true, deadline, func(r messages.PutResult, _ error) { answers <- r.Status })
				}
				put(time.Now().Add(time.Hour))
				put(time.Now().Add(time.Hour))
				pass(c.wait)
				require.Empty(t, answers, "they wait for the first segment")
				if c.want == messages.CreateMapedFileFailed {
					stall <- errDisk
					settle()
				}
				r, err := s.Put(t.Context(), message("T", 0, "x"))
				require.Equal(t, c.want, r.Status, "%v", err)
				require.ErrorIs(t, err, c.cause)
				disk.Inject(nil)
				if c.want != messages.CreateMapedFileFailed {
					close(stall)
				}
				pass(2 * time.Second)
				require.Equal(t, messages.PutOK, <-answers)
				require.Equal(t, messages.PutOK, <-answers)
				r, err = s.Put(t.Context(), message("T", 0, "x"))
				require.NoError(t, err)
				require.Equal(t, messages.PutOK, r.Status, "it heals by itself")
				require.NoError(t, s.Close(t.Context()))
				pass(time.Second)
			})
		})
	}
}

// TestEveryGetStatus shows each status of a get. OFFSET_FOUND_NULL has a test inside the package; NO_MATCHED_LOGIC_QUEUE is never
// said, by the original neither.
func TestEveryGetStatus(t *testing.T) {
	disk := memfs.New()
	s := open(t, small(disk))
	for i := range 4 {
		m := message("T", 0, fmt.Sprint(i))
		m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyTags: "a"})
		put(t, s, m)
	}
	lost, err := s.Put(t.Context(), message("lost", 0, "x"))
	require.NoError(t, err)
	read(t, s, messages.QueueKey{Topic: "T"}, 0, 4)
	read(t, s, messages.QueueKey{Topic: "lost"}, 0, 1)
	f, err := disk.Open("store/commitlog/"+segments.Name(0), true)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, lost.Bytes), int64(lost.PhysicalOffset))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	none := func(int64) bool { return false }
	for want, c := range map[messages.GetStatus]struct {
		topic string
		at    messages.QueueOffset
		tags  messages.TagFilter
		next  messages.QueueOffset
	}{
		messages.Found: {"T", 1, nil, 4}, messages.NoMatchedMessage: {"T", 0, none, 4}, messages.MessageWasRemoving: {"lost", 0, nil, 1},
		messages.OffsetOverflowBadly: {"T", 9, nil, 4}, messages.OffsetOverflowOne: {"T", 4, nil, 4},
		messages.OffsetTooSmall: {"T", -1, nil, 0}, messages.NoMessageInQueue: {"other", 7, nil, 0},
	} {
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: c.topic}, Offset: c.at, MaxMessages: 32, Tags: c.tags})
		require.NoError(t, err)
		require.Equal(t, want, r.Status)
		require.Equal(t, c.next, r.NextOffset, "%v", want)
		r.Release()
	}
}

func TestASlaveLetsItsReadersOffsetsBe(t *testing.T) {
	disk := memfs.New()
	s, err := system.Open(small(disk))
	require.NoError(t, err)
	put(t, s, message("T", 0, "x"))
	require.NoError(t, s.Close(t.Context()))
	for check, want := range map[bool]messages.QueueOffset{false: 9, true: 1} {
		opt := small(disk)
		opt.Role, opt.CheckOffsetsInSlave = messages.Slave, check
		s, err := system.Open(opt)
		require.NoError(t, err)
		r, err := s.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "T"}, Offset: 9, MaxMessages: 1})
		require.NoError(t, err)
		require.Equal(t, messages.OffsetOverflowBadly, r.Status)
		require.Equal(t, want, r.NextOffset)
		r.Release()
		require.ErrorIs(t, s.Status().Cause, system.ErrSlave)
		require.NoError(t, s.Close(t.Context()))
	}
}

func TestFlagsAreTakenBack(t *testing.T) {
	s := open(t, small(memfs.New()))
	put(t, s, message("T", 0, "x"))
	s.SetFlag(messages.FlagDiskFull, errDisk)
	s.SetFlag(messages.FlagNotReadable, fs.ErrPermission)
	st := s.Status()
	require.Equal(t, messages.FlagDiskFull|messages.FlagNotReadable, st.Flags)
	require.Equal(t, "NOT_READABLE,DISK_FULL", st.Flags.String())
	require.ErrorIs(t, st.Cause, errDisk)
	_, err := s.Get(t.Context(), messages.GetMessage{Queue: messages.QueueKey{Topic: "T"}, MaxMessages: 1})
	require.ErrorIs(t, err, system.ErrFlagged)
	require.ErrorIs(t, err, fs.ErrPermission)
	s.ClearFlag(messages.FlagDiskFull)
	s.ClearFlag(messages.FlagNotReadable)
	require.Zero(t, s.Status().Flags)
	put(t, s, message("T", 0, "y"))
	require.Equal(t, []string{"x", "y"}, read(t, s, messages.QueueKey{Topic: "T"}, 0, 2))
	_, end := s.LogRange()
	require.NoError(t, s.Close(t.Context()))
	st = s.Status()
	require.ErrorIs(t, st.Cause, system.ErrStopped)
	require.Equal(t, []messages.PhysicalOffset{end, end}, []messages.PhysicalOffset{st.FlushedTo, st.DispatchedTo})
}
