package messages

// Failed tells every storage actor, and the store, that one of them has failed for good: nothing more is acknowledged.
type Failed struct {
	Role  string
	Cause error
}
