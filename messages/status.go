package messages

// PutStatus is the outcome of a put, in RocketMQ's order (spec/store.md §3.3).
type PutStatus int32

// The spelling CREATE_MAPEDFILE_FAILED is the original's.
const (
	PutOK PutStatus = iota
	FlushDiskTimeout
	FlushSlaveTimeout
	SlaveNotAvailable
	ServiceNotAvailable
	CreateMapedFileFailed
	MessageIllegal
	PropertiesSizeExceeded
	OSPageCacheBusy
	UnknownError
	LMQConsumeQueueNumExceeded
)

var putStatusNames = [...]string{
	"PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE", "SERVICE_NOT_AVAILABLE",
	"CREATE_MAPEDFILE_FAILED", "MESSAGE_ILLEGAL", "PROPERTIES_SIZE_EXCEEDED", "OS_PAGECACHE_BUSY", "UNKNOWN_ERROR",
	"LMQ_CONSUME_QUEUE_NUM_EXCEEDED",
}

func (s PutStatus) String() string { return name(putStatusNames[:], int(s)) }

// Stored tells whether the message is in the log: true for PUT_OK and for the three statuses that say "stored, but a
// promise beyond that was not met in time".
func (s PutStatus) Stored() bool { return s >= PutOK && s <= SlaveNotAvailable }

// GetStatus is the outcome of a get, in RocketMQ's order (spec/store.md §7.1).
type GetStatus int32

// In RocketMQ's order.
const (
	Found GetStatus = iota
	NoMatchedMessage
	MessageWasRemoving
	OffsetFoundNull
	OffsetOverflowBadly
	OffsetOverflowOne
	OffsetTooSmall
	NoMatchedLogicQueue
	NoMessageInQueue
)

var getStatusNames = [...]string{
	"FOUND", "NO_MATCHED_MESSAGE", "MESSAGE_WAS_REMOVING", "OFFSET_FOUND_NULL", "OFFSET_OVERFLOW_BADLY",
	"OFFSET_OVERFLOW_ONE", "OFFSET_TOO_SMALL", "NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE",
}

func (s GetStatus) String() string { return name(getStatusNames[:], int(s)) }

func name(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "UNKNOWN"
	}
	return names[i]
}
