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

// open tells whether a password may be tried now.
func (b *bucket) open(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if more := int(now.Sub(b.at) / tryEvery); more > 0 {
		b.left, b.at = min(b.left+more, maxTries), now
	}
	return b.left > 0
}

// take counts a wrong one.
func (b *bucket) take() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left--
}
