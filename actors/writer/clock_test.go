package writer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheWritersClockIsTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		for _, d := range []time.Duration{0, time.Millisecond, 7 * time.Millisecond, wallClockEvery, time.Hour, 900 * time.Microsecond} {
			<-time.After(d)
			require.Equal(t, time.Now().UnixMilli(), c.nowMs())
		}
	})
}
