package guard

import (
	"sync"
	"time"
)

// Wrong passwords: so many at once, then one in so long.
const (
	maxTries = 10
	tryEvery = 6 * time.Second
)

// bucket counts wrong passwords, of everybody together.
type bucket struct {
	mu   sync.Mutex
	left int
	at   time.Time // when left was brought up to date
}

// try compares a password if one may be tried now, and counts a wrong one. One at a time: guesses in parallel are no more guesses.
func (b *bucket) try(now time.Time, right func() bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if more := int(now.Sub(b.at) / tryEvery); more > 0 {
		b.left, b.at = min(b.left+more, maxTries), now
	}
	if b.left == 0 {
		return false
	}
	if right() {
		return true
	}
	b.left--
	return false
}
