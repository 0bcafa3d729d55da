package timer

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestAClockThatIsSetHoldsNobodyUp: what is due by the clock comes within a second of its being set forward, and not before the clock
// says so when it is set back.
func TestAClockThatIsSetHoldsNobodyUp(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		var ahead atomic.Int64
		x := New(Config{})
		x.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		opt := system.Options{Dir: "store", Disk: memfs.New(), SegmentBytes: 64 << 10, WindowBytes: 8 << 10, NoIndex: true}
		x.Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		for _, in := range []time.Duration{time.Hour, 3 * time.Hour} {
			due := messages.PropertiesOf(map[string]string{DeliverMs: strconv.FormatInt(x.now().Add(in).UnixMilli(), 10)})
			_, err := s.Put(t.Context(), &messages.Message{Topic: "Orders", Properties: due})
			require.NoError(t, err)
		}
		there := func(after time.Duration) messages.QueueOffset {
			<-time.After(after)
			return s.MaxOffset(messages.QueueKey{Topic: "Orders"})
		}
		require.EqualValues(t, 0, there(time.Minute))
		ahead.Store(int64(time.Hour))
		require.EqualValues(t, 1, there(1100*time.Millisecond))
		ahead.Store(int64(-time.Hour))
		require.EqualValues(t, 1, there(3*time.Hour))
		require.EqualValues(t, 2, there(time.Hour))
		require.NoError(t, s.Close(t.Context()))
	})
}
