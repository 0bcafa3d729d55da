package writer_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/writer"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// W31: a put that waits for the disk is answered once all of it is durable, however many segments that takes.
func TestPutsFromManyGoroutines(t *testing.T) {
	for name, opt := range map[string]rigOptions{"async": {}, "sync": {sync: true}, "window": {window: 4096}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, opt)
			const senders, each = 8, 100
			var wg sync.WaitGroup
			for s := range senders {
				var puts []*messages.PutMessage
				for n := range each {
					puts = append(puts, r.message(int32(s%4), n*7))
				}
				wg.Add(1)
				go func() {
					defer wg.Done()
					for _, p := range puts {
						r.put(p)
						if p.Result.Status != messages.PutOK || p.Err != nil {
							panic(p.Err)
						}
					}
				}()
			}
			wg.Wait()
			all := r.records()
			require.Len(t, all, senders*each)
			next := map[int32]messages.QueueOffset{}
			last := int64(0)
			for _, m := range all {
				require.Equal(t, next[m.QueueID], m.QueueOffset, "queue %d", m.QueueID)
				next[m.QueueID]++
				require.GreaterOrEqual(t, m.StoreTimestampMs, last)
				last = m.StoreTimestampMs
			}
			require.Greater(t, r.log.View().Len(), 3, "the log has rolled over")
			if opt.sync {
				require.EqualValues(t, r.log.End(), r.flushed.FlushedTo.Load(), "acknowledged means flushed")
			}
		})
	}
}

func TestAGroupIsStoredInOrderWithOneAnswer(t *testing.T) {
	for _, sync := range []bool{false, true} {
		r := newRig(t, rigOptions{sync: sync})
		g := messages.NewPutGroup()
		g.Lead.WaitStored = true
		for i := range 100 {
			g.Add(r.message(int32(i%2), 500)) // more than one segment
		}
		require.NoError(t, r.port.Post(g.MailboxLink()))
		g.Lead.Wait()
		for i, p := range g.Puts {
			require.Equal(t, messages.PutOK, p.Result.Status)
			require.EqualValues(t, i/2, p.Result.QueueOffset)
		}
		require.Len(t, r.records(), 100)
	}
}

// TestEachQueueOfAGroupMayBeAwaited: whoever waits for any of its messages is told at once, not within a millisecond.
func TestEachQueueOfAGroupMayBeAwaited(t *testing.T) {
	for _, sync := range []bool{false, true} {
		fixture.Bubble(t, func(t *testing.T) {
			bell, awaited := actors.NewBell(actors.Peer{}, nil), int32(-1)
			r := newRig(t, rigOptions{sync: sync, readable: bell, awaited: func(key messages.QueueKey) bool {
				return key == messages.QueueKey{Topic: "T", QueueID: awaited}
			}})
			rings := func(who int32) bool {
				awaited = who
				g := messages.NewPutGroup()
				for queue := range int32(3) {
					g.Add(r.message(queue, 10))
				}
				require.NoError(t, r.port.Post(g.MailboxLink()))
				g.Lead.Wait()
				synctest.Wait()
				defer bell.Attend()
				return bell.Pending()
			}
			require.True(t, rings(-1), "the queues begin to be there")
			require.False(t, rings(-1), "but within a millisecond")
			for queue := range int32(3) {
				require.True(t, rings(queue), "queue %d", queue)
			}
		})
	}
}

func TestABatchIsNeverSplit(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.put(r.message(0, segmentBytes-record.MinBytes-800))
	p := r.message(0, 200)
	one := p.Records
	p.Records = append(append(append([]byte{}, one...), one...), one...)
	p.Count = 3
	r.put(p)
	require.Equal(t, messages.PutOK, p.Result.Status)
	require.EqualValues(t, segmentBytes, p.Result.PhysicalOffset, "at the start of the next segment")
	require.EqualValues(t, 3, p.Result.Count)
	require.EqualValues(t, 1, p.Result.QueueOffset)
	all := r.records()
	require.Len(t, all, 4)
	require.EqualValues(t, 3, all[3].QueueOffset)
}

func TestPreparedAndRollbackTakeNoQueueOffset(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, flag := range []int32{0, messages.SysFlagTransactionPrepared, messages.SysFlagTransactionCommit,
		messages.SysFlagTransactionRollback, 0} {
		p := r.message(0, 1)
		p.SysFlag = flag
		r.put(p)
	}
	var got []messages.QueueOffset
	for _, m := range r.records() {
		got = append(got, m.QueueOffset)
	}
	require.Equal(t, []messages.QueueOffset{0, 0, 1, 0, 2}, got)
}

func TestARecordThatFitsNoSegmentIsRefused(t *testing.T) { // W1: the original says PUT_OK and burns a segment
	r := newRig(t, rigOptions{})
	r.put(r.message(0, 1))
	end := r.log.End()
	p := r.put(r.message(0, segmentBytes))
	require.Equal(t, messages.MessageIllegal, p.Result.Status)
	require.ErrorIs(t, p.Err, writer.ErrRecordTooLarge)
	require.Equal(t, end, r.log.End(), "nothing was used up")
	require.EqualValues(t, 1, r.put(r.message(0, 1)).Result.QueueOffset)
}

func TestTheClockGoingBackDoesNotShowInTheLog(t *testing.T) {
	now := int64(1_000_000)
	r := newRig(t, rigOptions{nowMs: func() int64 { return now }})
	r.put(r.message(0, 1))
	now -= 500_000
	p := r.put(r.message(0, 1))
	require.EqualValues(t, 1_000_000, p.Result.StoreTimestampMs)
}

func TestAFullDiskFailsPutsAtTheirDeadlineAndHealsByItself(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		r := newRig(t, rigOptions{disk: disk, retryPause: time.Second})
		r.put(r.message(0, segmentBytes-record.MinBytes-100))
		synctest.Wait()
		disk.Inject(failing(memfs.KindAllocate))
		r.put(r.message(0, segmentBytes-record.MinBytes-100)) // the next segment was ready, the one behind it comes too late
		r.put(r.message(0, segmentBytes-record.MinBytes-100))
		p := r.put(r.message(0, 500))
		require.Equal(t, messages.CreateMapedFileFailed, p.Result.Status)
		require.ErrorIs(t, p.Err, writer.ErrNoSegment)
		require.ErrorIs(t, p.Err, errDisk, "with the cause")

		began := time.Now()
		r.put(r.message(0, 600))
		require.Zero(t, time.Since(began), "once the cause is known nobody waits for it")

		disk.Inject(nil)
		<-time.After(2 * time.Second) // the allocator tries again by itself
		p = r.put(r.message(0, 700))
		require.Equal(t, messages.PutOK, p.Result.Status)
		require.EqualValues(t, 3, p.Result.QueueOffset, "nothing was used up")
		entries, err := disk.List("store/commitlog")
		require.NoError(t, err)
		for _, e := range entries {
			require.EqualValues(t, segmentBytes, e.Size, "whole segments only")
		}
		synctest.Wait()
		r.stopNow()
	})
}

func TestAPanicFailsItsOwnPutOnly(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		rebuilds := 0
		var offsets map[messages.QueueKey]messages.QueueOffset
		r := newRig(t, rigOptions{rebuild: func() (map[messages.QueueKey]messages.QueueOffset, error) {
			rebuilds++
			return offsets, nil
		}})
		broken := func() *messages.PutMessage {
			p := r.message(0, 10)
			p.Records = p.Records[:5]
			return p
		}
		r.put(r.message(0, 10))
		offsets = map[messages.QueueKey]messages.QueueOffset{{Topic: "T"}: 1}
		p := r.put(broken())
		require.Equal(t, messages.UnknownError, p.Result.Status)
		require.ErrorIs(t, p.Err, messages.ErrPanicked)
		p = r.put(r.message(0, 10)) // waits for the rebuild
		require.Equal(t, messages.PutOK, p.Result.Status)
		require.EqualValues(t, 1, p.Result.QueueOffset)
		require.Equal(t, 1, rebuilds)
		require.Len(t, r.records(), 2)

		<-time.After(2 * time.Minute) // of the bubble's clock
		offsets[messages.QueueKey{Topic: "T"}] = 2
		r.put(broken())
		require.EqualValues(t, 2, r.put(r.message(0, 10)).Result.QueueOffset, "one a minute is borne")

		r.put(broken())
		<-r.failure
		p = r.put(r.message(0, 10))
		require.Equal(t, messages.ServiceNotAvailable, p.Result.Status)
		require.ErrorIs(t, p.Err, messages.ErrFailed)
		r.stopNow()
	})
}

// TestAGroupThatPanicsHalfWayIsNotThere, and neither what was appended before it nor what comes behind it suffers.
func TestAGroupThatPanicsHalfWayIsNotThere(t *testing.T) {
	for _, c := range []struct {
		name           string
		byWrite        bool
		parked, before int // puts of the same batch: parked for the first segment, the group too; or in front of the group
	}{
		{"by write", true, 0, 0}, {"by write, behind others", true, 0, 2}, {"by write, parked", true, 2, 0},
		{"through the map", false, 0, 0}, {"through the map, behind others", false, 0, 2}, {"through the map, parked", false, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixture.Bubble(t, func(t *testing.T) { groupThatPanics(t, c.byWrite, c.parked > 0, c.parked+c.before) })
		})
	}
}

func groupThatPanics(t *testing.T, byWrite, parked bool, before int) {
	var meanwhile func() // while a put is appended: comes in the next batch
	var r *rig
	r = newRig(t, rigOptions{
		sync: byWrite, rebuild: func() (map[messages.QueueKey]messages.QueueOffset, error) {
			return map[messages.QueueKey]messages.QueueOffset{{Topic: "T"}: messages.QueueOffset(len(r.records()))}, nil
		},
		nowMs: func() int64 {
			if fn := meanwhile; fn != nil {
				meanwhile = nil
				fn()
			}
			return 1
		},
	})
	stored := 0
	put := func() {
		t.Helper()
		p := r.put(r.message(0, 100))
		require.NoError(t, p.Err)
		require.EqualValues(t, stored, p.Result.QueueOffset)
		stored++
	}
	if !parked {
		put()
	}
	g := messages.NewPutGroup()
	for i := range 5 {
		g.Add(r.message(0, 100))
		if i == 3 {
			g.Puts[i].Records = g.Puts[i].Records[:5]
		}
	}
	var others []*messages.PutMessage
	meanwhile = func() {
		for range before {
			others = append(others, r.message(0, 100))
			require.NoError(t, r.port.Post(others[len(others)-1].MailboxLink()))
		}
		require.NoError(t, r.port.Post(g.MailboxLink()))
	}
	put()
	g.Lead.Wait()
	for _, p := range append(g.Puts, g.Lead) {
		require.Equal(t, messages.UnknownError, p.Result.Status)
		require.ErrorIs(t, p.Err, messages.ErrPanicked)
	}
	for _, p := range others {
		p.Wait()
		require.NoError(t, p.Err)
		stored++
	}
	for range 3 {
		put()
	}
	require.Len(t, r.records(), stored)
	r.stopNow()
}

func TestAFailedSyncEndsAcknowledgingForGood(t *testing.T) { // W5, L13
	r := newRig(t, rigOptions{sync: true})
	require.Equal(t, messages.PutOK, r.put(r.message(0, 10)).Result.Status)
	flushed := r.flushed.FlushedTo.Load()
	r.disk.Inject(failing(memfs.KindDataSync))
	var puts []*messages.PutMessage
	var wg sync.WaitGroup
	for range 16 {
		p := r.message(0, 10)
		puts = append(puts, p)
		wg.Add(1)
		go func() { defer wg.Done(); r.put(p) }()
	}
	wg.Wait()
	<-r.failure
	r.disk.Inject(nil)
	puts = append(puts, r.put(r.message(0, 10)))
	for _, p := range puts {
		require.False(t, p.Result.Status.Stored(), "%v: the client must not take it as sent", p.Result.Status)
		require.ErrorIs(t, p.Err, messages.ErrFailed)
		require.ErrorIs(t, p.Err, errDisk)
	}
	require.Equal(t, flushed, r.flushed.FlushedTo.Load())
}

func TestASlowSyncIsToldAtTheDeadline(t *testing.T) { // L17
	fixture.Bubble(t, func(t *testing.T) {
		r := newRig(t, rigOptions{sync: true})
		r.put(r.message(0, 10))
		stall := make(chan struct{})
		r.disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindDataSync {
				<-stall
			}
			return nil
		})
		began := time.Now()
		p := r.message(0, 10)
		p.Deadline = began.Add(2 * time.Second)
		require.NoError(t, r.port.Post(p.MailboxLink()))
		patient := r.message(0, 10)
		patient.Deadline = began.Add(time.Hour)
		require.NoError(t, r.port.Post(patient.MailboxLink()))
		p.Wait()
		require.Equal(t, messages.FlushDiskTimeout, p.Result.Status)
		require.Equal(t, 2*time.Second, time.Since(began))
		require.True(t, p.Result.Status.Stored())
		close(stall)
		patient.Wait()
		require.Equal(t, messages.PutOK, patient.Result.Status)
		r.stopNow()
	})
}

// The flusher runs on the goroutines of those who put: a checkpoint that takes its time holds nobody up but who has asked for it.
func TestPutsDoNotWaitForTheCheckpoint(t *testing.T) {
	r := newRig(t, rigOptions{sync: true})
	r.put(r.message(0, 10))
	stall, stalled := make(chan struct{}), make(chan struct{}, 1)
	r.disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite && strings.HasPrefix(op.Name, "store/checkpoint") {
			stalled <- struct{}{}
			<-stall
			return errDisk
		}
		return nil
	})
	flush := func() *messages.Answer[messages.PhysicalOffset] {
		answer := messages.NewAnswer[messages.PhysicalOffset]()
		r.system.Root.Send(r.pids["flusher"], messages.FlushNow{Answer: answer})
		return answer
	}
	first := flush()
	<-stalled
	require.Equal(t, messages.PutOK, r.put(r.message(0, 10)).Result.Status)
	second := flush()
	require.Equal(t, messages.PutOK, r.put(r.message(0, 10)).Result.Status)
	r.disk.Inject(nil)
	close(stall)
	_, err := first.Wait(t.Context())
	require.ErrorIs(t, err, errDisk)
	end, err := second.Wait(t.Context())
	require.NoError(t, err, "its own checkpoint is written")
	require.Equal(t, r.log.End(), end)
}

func TestAStoppedWriterRefuses(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.put(r.message(0, 10))
	require.NoError(t, r.system.Root.StopFuture(r.pids["writer"]).Wait())
	delete(r.pids, "writer")
	p := r.put(r.message(0, 10))
	require.Equal(t, messages.ServiceNotAvailable, p.Result.Status)
	require.ErrorIs(t, p.Err, messages.ErrClosed)
}

// stopNow ends the actors inside a bubble, which must not outlive its test function.
func (r *rig) stopNow() {
	r.stop()
	r.pids = nil
	<-time.After(time.Second) // lets the timers of the actor library end
}

func TestPutsWaitInOrderForASegmentThatIsLate(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		stall := make(chan struct{})
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindAllocate {
				<-stall
			}
			return nil
		})
		r := newRig(t, rigOptions{disk: disk})
		began := time.Now()
		hasty := r.message(0, 10)
		hasty.Deadline = began.Add(3 * time.Second)
		waiting := []*messages.PutMessage{r.message(0, 20), r.message(0, 30)}
		for _, p := range append([]*messages.PutMessage{hasty}, waiting...) {
			require.NoError(t, r.port.Post(p.MailboxLink()))
		}
		hasty.Wait()
		require.Equal(t, messages.CreateMapedFileFailed, hasty.Result.Status)
		require.ErrorIs(t, hasty.Err, writer.ErrNoSegment)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.False(t, waiting[0].Done(), "it has the default deadline")
		close(stall)
		for i, p := range waiting {
			p.Wait()
			require.Equal(t, messages.PutOK, p.Result.Status)
			require.EqualValues(t, i, p.Result.QueueOffset)
		}
		synctest.Wait()
		r.stopNow()
	})
}
