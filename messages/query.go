package messages

// QueryMessage asks for messages of a topic by a key: one of KEYS, or UNIQ_KEY (spec/store.md §6.6).
type QueryMessage struct {
	Topic       string
	Key         string
	MaxMessages int   // at most; 0 finds nothing
	BeginMs     int64 // store timestamps, both inclusive
	EndMs       int64 // 0 finds nothing; for no bound: math.MaxInt64
}

// TimeBoundary says which message a search by time finds.
type TimeBoundary int

// Boundaries of a search by time.
const (
	// TimeLower: the first message stored at or after the time; the queue's end when there is none.
	TimeLower TimeBoundary = iota
	// TimeNearest: as RocketMQ 4.x answers (spec/store.md §7.6): the nearer neighbour, the last message when the time is
	// behind it.
	TimeNearest
)
