package messages

import "strings"

// RunningFlags say what a store cannot do for the time being; the bits are RocketMQ's (spec/store.md §9.5).
type RunningFlags uint32

// The flags.
const (
	FlagNotReadable   RunningFlags = 1 << iota // gets are refused; somebody has asked for it
	FlagNotWriteable                           // puts are refused: somebody has asked for it, or a storage actor has failed
	FlagQueueError                             // consume queues can't be written: puts are refused
	FlagIndexError                             // the index can't be written: puts are refused; somebody has asked for it, the store itself goes on without
	FlagDiskFull                               // puts are refused until there is room
	runningFlagsCount = iota
)

var flagNames = [...]string{"NOT_READABLE", "NOT_WRITEABLE", "WRITE_LOGICS_QUEUE_ERROR", "WRITE_INDEX_FILE_ERROR", "DISK_FULL"}

// RefusingPuts are the flags with which no put is taken.
const RefusingPuts = FlagNotWriteable | FlagQueueError | FlagIndexError | FlagDiskFull

// String names the flags that are set, separated by commas.
func (f RunningFlags) String() string {
	var set []string
	for i := range runningFlagsCount {
		if f&(1<<i) != 0 {
			set = append(set, flagNames[i])
		}
	}
	return strings.Join(set, ",")
}
