package delay_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/delay"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// within runs a test with a rig on a clock that jumps.
func within(t *testing.T, levels string, change func(*delay.Config), test func(t *testing.T, r *rig)) {
	t.Helper()
	fixture.Bubble(t, func(t *testing.T) {
		r := newRig(t, levels, change)
		test(t, r)
		r.close()
	})
}

// TestAClockThatJumpsHoldsNobodyUp: L59. Forward: early by the step at most; back: no longer than the level's delay.
func TestAClockThatJumpsHoldsNobodyUp(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour, "hardly": -900 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			o, stepped := &outlet{}, atomic.Int64{}
			within(t, "1s 10s 1m", func(c *delay.Config) {
				c.Put, c.Now = o.put, func() time.Time { return time.Now().Add(time.Duration(stepped.Load())) }
			}, func(t *testing.T, r *rig) {
				require.NoError(t, r.turn(true))
				for i := range 30 {
					r.add(1+i%3, fmt.Sprint(i))
				}
				synctest.Wait()
				stepped.Store(int64(step))
				<-time.After(900 * time.Millisecond)
				synctest.Wait()
				require.Empty(t, o.stored(), "the timers that are set go on")
				<-time.After(time.Minute - 900*time.Millisecond + max(-step, 0)%time.Minute)
				synctest.Wait()
				require.Len(t, o.stored(), 30)
			})
		})
	}
}

func TestAClockThatIsSetForwardIsNoticed(t *testing.T) {
	o, stepped := &outlet{}, atomic.Int64{}
	within(t, "2h", func(c *delay.Config) {
		c.Put, c.Now = o.put, func() time.Time { return time.Now().Add(time.Duration(stepped.Load())) }
	}, func(t *testing.T, r *rig) {
		require.NoError(t, r.turn(true))
		r.add(1, "x")
		synctest.Wait()
		stepped.Store(int64(2 * time.Hour))
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"x"}, o.stored())
	})
}

// TestFiftyThousandOnOneLevelAreDeliveredABatchAtATime: the store sees a bounded number of puts, and the level keeps no more
// in memory than those.
func TestFiftyThousandOnOneLevelAreDeliveredABatchAtATime(t *testing.T) {
	o := &outlet{}
	o.answers(func(_ string, done func(messages.PutResult, error)) { go done(messages.PutResult{}, nil) })
	within(t, "1s 5s", func(c *delay.Config) { c.Put = o.put }, func(t *testing.T, r *rig) {
		const count = 50_000
		for i := range count {
			r.add(1, fmt.Sprint(i))
		}
		require.NoError(t, r.turn(true))
		r.add(2, "another level")
		<-time.After(5 * time.Second)
		synctest.Wait()
		require.Len(t, o.stored(), count+1)
		require.LessOrEqual(t, o.most, 256)
		require.NoError(t, r.turn(false))
		require.Equal(t, map[int]int64{1: count, 2: 1}, r.saved())
	})
}

// TestLargeMessagesAreBoundedByTheirBytes: at least one is always in flight.
func TestLargeMessagesAreBoundedByTheirBytes(t *testing.T) {
	o := &outlet{}
	o.answers(func(_ string, done func(messages.PutResult, error)) { go done(messages.PutResult{}, nil) })
	within(t, "1s", func(c *delay.Config) { c.Put, c.MaxBatchBytes = o.put, 10_000 }, func(t *testing.T, r *rig) {
		for range 20 {
			r.add(1, string(make([]byte, 4000)))
			r.add(1, string(make([]byte, 20_000)))
		}
		require.NoError(t, r.turn(true))
		<-time.After(time.Second)
		synctest.Wait()
		require.Len(t, o.stored(), 40)
		require.LessOrEqual(t, o.most, 2)
	})
}

// TestNothingGoesOverAMessageThatIsNotStored: not the offset, not the file, not the messages behind the batch.
func TestNothingGoesOverAMessageThatIsNotStored(t *testing.T) {
	for name, status := range map[string]messages.PutStatus{
		"busy": messages.OSPageCacheBusy, "not writeable": messages.ServiceNotAvailable, "no segment": messages.CreateMapedFileFailed,
		"unknown": messages.UnknownError,
	} {
		for _, inline := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", inline ", inline), func(t *testing.T) {
				o := &outlet{}
				o.answers(func(body string, done func(messages.PutResult, error)) {
					result, err := messages.PutResult{}, error(nil)
					if body == "3" {
						result.Status, err = status, errors.New("not now")
					}
					if inline {
						done(result, err)
					} else {
						go done(result, err)
					}
				})
				within(t, "1s", func(c *delay.Config) { c.Put, c.MaxBatch = o.put, 8 }, func(t *testing.T, r *rig) {
					for _, body := range numbers(20) {
						r.add(1, body)
					}
					require.NoError(t, r.turn(true))
					<-time.After(time.Minute)
					synctest.Wait()
					require.EqualValues(t, 3, r.scheduler.Offsets()[1])
					require.NotContains(t, o.stored(), "8", "behind the batch")
					if inline {
						require.Equal(t, numbers(3), o.stored(), "what is refused at once lets nothing pass")
					}
					require.NoError(t, r.turn(false))
					require.Equal(t, map[int]int64{1: 3}, r.saved())
					require.NoError(t, r.turn(true))
					o.answers(nil)
					<-time.After(time.Minute)
					synctest.Wait()
					require.Subset(t, o.stored(), numbers(20))
					require.EqualValues(t, 20, r.scheduler.Offsets()[1])
				})
			})
		}
	}
}

func TestStatusesThatSayStoredAreNotPutAgain(t *testing.T) { // W21
	o := &outlet{}
	o.answers(func(_ string, done func(messages.PutResult, error)) {
		done(messages.PutResult{Status: messages.FlushSlaveTimeout}, nil)
	})
	within(t, "1s", func(c *delay.Config) { c.Put = o.put }, func(t *testing.T, r *rig) {
		require.NoError(t, r.turn(true))
		for _, body := range numbers(10) {
			r.add(1, body)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, numbers(10), o.stored())
	})
}

func TestWhatWillNeverBeTakenIsLeftOut(t *testing.T) {
	o := &outlet{}
	o.answers(func(body string, done func(messages.PutResult, error)) {
		result := messages.PutResult{}
		switch body {
		case "2":
			result.Status = messages.MessageIllegal
		case "5":
			result.Status = messages.PropertiesSizeExceeded
		case "7":
			panic("a bug")
		}
		done(result, nil)
	})
	within(t, "1s", func(c *delay.Config) { c.Put = o.put }, func(t *testing.T, r *rig) {
		require.NoError(t, r.turn(true))
		for _, body := range numbers(10) {
			r.add(1, body)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"0", "1", "3", "4", "6", "8", "9"}, o.stored())
		require.EqualValues(t, 10, r.scheduler.Offsets()[1])
		require.Contains(t, r.lines.String(), `"queue_offset":2`)
		require.Contains(t, r.lines.String(), `"queue_offset":5`)
		require.Contains(t, r.lines.String(), `"queue_offset":7`)
	})
}

// TestADamagedRecordHoldsNobodyUp: it is left out, with a line that names it.
func TestADamagedRecordHoldsNobodyUp(t *testing.T) {
	o := &outlet{}
	within(t, "1s", func(c *delay.Config) { c.Put = o.put }, func(t *testing.T, r *rig) {
		for _, body := range numbers(6) {
			u := r.add(1, body)
			switch body {
			case "1":
				r.seg.Data()[int(u.PhysicalOffset)+90] ^= 1 // in the body, or near it
			case "2":
				clear(r.seg.Data()[u.PhysicalOffset:u.End()])
			case "4":
				r.seg.Data()[u.PhysicalOffset+35] ^= 1 // says that it stands elsewhere
			}
		}
		require.NoError(t, r.turn(true))
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"0", "3", "5"}, o.stored())
		require.EqualValues(t, 6, r.scheduler.Offsets()[1])
		for _, at := range []string{"1", "2", "4"} {
			require.Contains(t, r.lines.String(), `"queue_offset":`+at)
		}
	})
}

func TestAStoreThatHasFailedIsLeftAlone(t *testing.T) {
	o := &outlet{}
	tries := 0
	o.answers(func(_ string, done func(messages.PutResult, error)) {
		tries++
		done(messages.PutResult{Status: messages.ServiceNotAvailable}, fmt.Errorf("disk: %w", messages.ErrFailed))
	})
	within(t, "1s", func(c *delay.Config) { c.Put = o.put }, func(t *testing.T, r *rig) {
		r.add(1, "x")
		require.NoError(t, r.turn(true))
		<-time.After(time.Hour)
		synctest.Wait()
		require.Equal(t, 1, tries)
		require.NoError(t, r.turn(false))
		require.Empty(t, r.saved())
	})
}

// TestSwitchingOffWaitsForWhatIsInFlight: and saves what became of it.
func TestSwitchingOffWaitsForWhatIsInFlight(t *testing.T) {
	o := &outlet{}
	held := make(chan func(), 100)
	o.answers(func(_ string, done func(messages.PutResult, error)) {
		held <- func() { done(messages.PutResult{}, nil) }
	})
	within(t, "1s", func(c *delay.Config) { c.Put = o.put }, func(t *testing.T, r *rig) {
		for _, body := range numbers(10) {
			r.add(1, body)
		}
		require.NoError(t, r.turn(true))
		<-time.After(time.Second)
		synctest.Wait()
		off := make(chan error, 1)
		go func() { off <- r.turn(false) }()
		synctest.Wait()
		require.Empty(t, off)
		for range 10 {
			(<-held)()
		}
		require.NoError(t, <-off)
		require.Equal(t, map[int]int64{1: 10}, r.saved())
	})
}

func TestASaveThatFailsIsMadeAgain(t *testing.T) {
	o := &outlet{}
	within(t, "1s", func(c *delay.Config) { c.Put, c.Interval = o.put, 2*time.Second }, func(t *testing.T, r *rig) {
		require.NoError(t, r.turn(true))
		fail := errors.New("no room")
		r.disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindRename {
				return fail
			}
			return nil
		})
		r.add(1, "x")
		<-time.After(10 * time.Second)
		synctest.Wait()
		require.Contains(t, r.lines.String(), "no room")
		require.ErrorIs(t, r.turn(false), fail)
		require.NoError(t, r.turn(true), "it goes on all the same")
		r.disk.Inject(nil)
		<-time.After(10 * time.Second)
		synctest.Wait()
		require.Equal(t, map[int]int64{1: 1}, r.saved())
	})
}

func TestOffsetsThatCantBeReadAtAllKeepDeliveryOff(t *testing.T) {
	o := &outlet{}
	within(t, "1s", func(c *delay.Config) { c.Put = o.put }, func(t *testing.T, r *rig) {
		fail := errors.New("bad sector")
		r.add(1, "x")
		r.disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindOpen && op.Name == offsetsPath {
				return fail
			}
			return nil
		})
		require.ErrorIs(t, r.turn(true), fail)
		<-time.After(time.Hour)
		require.Empty(t, o.stored())
		r.disk.Inject(nil)
		require.NoError(t, r.turn(true))
		synctest.Wait()
		require.Equal(t, []string{"x"}, o.stored())
	})
}

// TestNoArrivalIsMissed: messages come just when the level has found nothing more and becomes idle.
func TestNoArrivalIsMissed(t *testing.T) {
	o, arrived := &outlet{}, make(chan struct{}, 1)
	o.answers(func(_ string, done func(messages.PutResult, error)) {
		done(messages.PutResult{}, nil)
		arrived <- struct{}{}
	})
	r := newRig(t, "0s", func(c *delay.Config) { c.Put = o.put })
	defer r.close()
	require.NoError(t, r.turn(true))
	for i := range 20_000 {
		r.add(1, fmt.Sprint(i))
		select {
		case <-arrived:
		case <-time.After(10 * time.Second):
			require.FailNow(t, "a message lies there and nobody knows", "message %d", i)
		}
	}
}

// TestAStopDoesNotWaitForAFlushThatNeverEnds: and nothing is written after it.
func TestAStopDoesNotWaitForAFlushThatNeverEnds(t *testing.T) {
	o := &outlet{}
	o.answers(func(_ string, done func(messages.PutResult, error)) {
		done(messages.PutResult{PhysicalOffset: 1000, Bytes: 100}, nil)
	})
	within(t, "1s", func(c *delay.Config) { c.Put, c.Flusher = o.put, actors.Peer{} }, func(t *testing.T, r *rig) {
		require.NoError(t, r.turn(true))
		r.add(1, "x")
		<-time.After(11500 * time.Millisecond) // the save waits for its flush
		synctest.Wait()
		began := time.Now()
		r.stop(&r.peer)
		require.Less(t, time.Since(began), time.Second)
		<-time.After(time.Minute)
		synctest.Wait()
		require.Empty(t, r.saved())
	})
}

// TestOffsetsAreNotSavedBeforeWhatTheySayIsDurable: a flush that does not reach it is not enough.
func TestOffsetsAreNotSavedBeforeWhatTheySayIsDurable(t *testing.T) {
	o := &outlet{}
	o.answers(func(_ string, done func(messages.PutResult, error)) {
		done(messages.PutResult{PhysicalOffset: 1 << 30, Bytes: 100}, nil) // beyond the end of the log
	})
	within(t, "1s", func(c *delay.Config) { c.Put = o.put }, func(t *testing.T, r *rig) {
		require.NoError(t, r.turn(true))
		r.add(1, "x")
		<-time.After(time.Second)
		synctest.Wait()
		require.Error(t, r.turn(false))
		require.Empty(t, r.saved())
	})
}
