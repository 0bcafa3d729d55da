package writer

import "time"

// clock tells the time in milliseconds for each put. Reading wall and monotonic clock together costs 40 ns on some machines, so
// the wall clock is read anew only so often; in between the monotonic clock moves it on. Only the runner uses it.
type clock struct {
	tell   func() int64 // when set, tells the time instead
	read   time.Time    // when the wall clock was last read; zero: never
	wallNs int64        // what it said
}

// wallClockEvery bounds how late a jump of the wall clock is seen.
const wallClockEvery = 20 * time.Millisecond

func (c *clock) nowMs() int64 {
	if c.tell != nil {
		return c.tell()
	}
	since := time.Since(c.read)
	if since >= wallClockEvery {
		c.read = time.Now()
		c.wallNs, since = c.read.UnixNano(), 0
	}
	return (c.wallNs + since.Nanoseconds()) / int64(time.Millisecond)
}
