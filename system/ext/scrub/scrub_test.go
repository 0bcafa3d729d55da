package scrub_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/ext/scrub"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestDamageToOldMessagesIsFound: in the next pass, by place, and the others are compared all the same; the pace is kept.
func TestDamageToOldMessagesIsFound(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		var told atomic.Pointer[scrub.Damage]
		x := scrub.New(scrub.Config{BytesPerSecond: 1000, Pause: time.Minute, OnDamage: func(d scrub.Damage) { told.Store(&d) }})
		disk := memfs.New()
		opt := system.Options{Dir: "store", Disk: disk, SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200, WindowBytes: 8 << 10}
		x.Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		sleep(time.Second)
		require.EqualValues(t, 1, x.Status().Passes, "there was nothing")
		var bad messages.PutResult
		for i := range 40 {
			got, err := s.Put(t.Context(), &messages.Message{Topic: "orders", QueueID: int32(i % 2), Body: make([]byte, 400)})
			require.NoError(t, err)
			if i == 20 {
				bad = got
			}
		}
		require.NoError(t, s.AwaitDispatched(t.Context()))
		f, err := disk.Open("store/commitlog/00000000000000000000", true)
		require.NoError(t, err)
		const body = 88 // of a record, behind what has a fixed length
		_, err = f.WriteAt([]byte{0xff}, int64(bad.PhysicalOffset)+body+100)
		require.NoError(t, err)
		require.NoError(t, f.Close())

		sleep(time.Minute)
		require.EqualValues(t, 1, x.Status().Passes, "20,000 bytes at 1,000 a second")
		sleep(time.Minute)
		st := x.Status()
		require.EqualValues(t, 2, st.Passes)
		require.EqualValues(t, 40, st.Messages)
		require.EqualValues(t, 1, st.Damaged)
		d := told.Load()
		require.NotNil(t, d)
		require.Equal(t, messages.QueueKey{Topic: "orders"}, d.Queue)
		require.EqualValues(t, 10, d.Offset)
		require.ErrorIs(t, d.Err, record.ErrBadCRC)
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestAPlaceBehindALostMessageIsNamedRight: gets leave out places of which it is known that their message is lost.
func TestAPlaceBehindALostMessageIsNamedRight(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		var told []messages.QueueOffset
		x := scrub.New(scrub.Config{Pause: time.Minute, OnDamage: func(d scrub.Damage) { told = append(told, d.Offset) }})
		disk := memfs.New()
		opt := system.Options{Dir: "store", Disk: disk, SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200, WindowBytes: 8 << 10}
		x.Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		sleep(time.Second)
		var at []messages.PhysicalOffset
		for range 10 {
			got, err := s.Put(t.Context(), &messages.Message{Topic: "orders", Body: make([]byte, 400)})
			require.NoError(t, err)
			at = append(at, got.PhysicalOffset)
		}
		require.NoError(t, s.AwaitDispatched(t.Context()))
		f, err := disk.Open("store/commitlog/00000000000000000000", true)
		require.NoError(t, err)
		const place, body = 28, 88 // of a record: its own offset in the log, and what has a fixed length before the body
		_, err = f.WriteAt([]byte{0xff}, int64(at[2])+place+4)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte{0xff}, int64(at[5])+body+100)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		sleep(2 * time.Minute)
		require.Equal(t, []messages.QueueOffset{5}, told[:1])
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestAStoreThatMayNotBeReadHasNoDamage: a running flag says nothing about messages; the pass goes on when it is taken back.
func TestAStoreThatMayNotBeReadHasNoDamage(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		var told atomic.Int64
		x := scrub.New(scrub.Config{Pause: time.Hour, OnDamage: func(scrub.Damage) { told.Add(1) }})
		opt := system.Options{Dir: "store", Disk: memfs.New(), SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200, WindowBytes: 8 << 10}
		x.Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		sleep(time.Second)
		for range 10 {
			_, err := s.Put(t.Context(), &messages.Message{Topic: "orders", Body: []byte("x")})
			require.NoError(t, err)
		}
		require.NoError(t, s.AwaitDispatched(t.Context()))
		s.SetFlag(messages.FlagNotReadable, errors.New("not now"))
		sleep(2 * time.Hour)
		require.EqualValues(t, 1, x.Status().Passes)
		s.ClearFlag(messages.FlagNotReadable)
		sleep(2 * time.Minute)
		require.EqualValues(t, 2, x.Status().Passes)
		require.EqualValues(t, 10, x.Status().Messages)
		require.Zero(t, told.Load())
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestAScrubHoldsNoStopUp, in the middle of a pass.
func TestAScrubHoldsNoStopUp(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		x := scrub.New(scrub.Config{BytesPerSecond: 1, Pause: time.Minute})
		opt := system.Options{Dir: "store", Disk: memfs.New(), SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200, WindowBytes: 8 << 10}
		x.Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		for range 10 {
			_, err := s.Put(t.Context(), &messages.Message{Topic: "orders", Body: []byte("x")})
			require.NoError(t, err)
		}
		require.NoError(t, s.AwaitDispatched(t.Context()))
		sleep(time.Minute + 2*time.Second)
		began := time.Now()
		require.NoError(t, s.Close(t.Context()))
		require.Less(t, time.Since(began), time.Minute)
		require.Positive(t, x.Status().Messages, "it was in the middle of a pass: its first, or the one after an empty one")
	})
}
