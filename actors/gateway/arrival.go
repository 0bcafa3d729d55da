package gateway

import "time"

// timedAtOnce is how many requests that were read together take their time from one look at the clock: a hook of the user's may make
// each of them wait.
const timedAtOnce = 16

// arrival is when requests were read. Only the connection's reader uses it.
type arrival struct {
	at   time.Time
	left int // requests that take it too; 0: the clock is to be asked
}

// arrived is when the next request was read. Those that were read together have arrived together, unless something was waited for since.
func (c *Conn) arrived() time.Time {
	a := &c.arrival
	if a.left == 0 || c.paced.read {
		c.paced.read = false
		a.at, a.left = time.Now(), timedAtOnce
		c.heard.Store(a.at.UnixNano())
	}
	a.left--
	return a.at
}
