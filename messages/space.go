package messages

import "time"

// Retention says when commit-log files are deleted (spec/store.md §9.2). As a message it tells the cleaner a new one. Names in
// parentheses are RocketMQ's options.
type Retention struct {
	FileReservedTime time.Duration // fileReservedTime; default 72 h
	DeleteWhen       string        // deleteWhen: hours of the day in which expired files go, local time; default "04"
	MaxUsedPercent   int           // diskMaxUsedSpaceRatio: above it expired files go at any hour; default 75, 10 to 95
	CleanForcibly    int           // diskSpaceCleanForciblyRatio, %: above it files go before they expire; default 85
	WarningPercent   int           // diskSpaceWarningLevelRatio, %: above it puts are refused; default 90
	NoForcedCleaning bool          // cleanFileForciblyEnable=false: files never go before they expire

	// Topics (topicRetention) is how long messages of topics are kept, where that is not FileReservedTime. Those that are older are no
	// longer in their queues; files with younger ones do not expire. The map never changes.
	Topics map[string]time.Duration

	// KeepUnread (keepUnreadMessages) keeps an expired file while a consumer group has not read all of it, if the group was seen in
	// UnreadGroupTimeout (keepUnreadGroupTimeout; default 168 h), up to UnreadMaxUsed (keepUnreadMaxUsedSpaceRatio, %; default 80).
	KeepUnread         bool
	UnreadGroupTimeout time.Duration
	UnreadMaxUsed      int
}

// Reader is a consumer group, and the queue offset up to which it has read a queue.
type Reader struct {
	Group string
	Next  QueueOffset
}

// Readers tells how far the slowest consumer group that was seen within a time has read each queue. A queue that no group reads, or
// that all have read to its end, need not be in the answer.
type Readers func(seen time.Duration) map[QueueKey]Reader

// SpaceProblem tells the cleaner that a part of the store finds no room on the disk, or has found it again.
type SpaceProblem struct {
	Part   string // names the part in the status and the log; a part has one problem at a time
	Err    error  // nil: there is room again
	Refuse bool   // puts are refused while it lasts; otherwise it is only a reason to clean
}

// SpaceFreed tells the segment allocator that files have been deleted: what failed for want of room is tried again at once.
type SpaceFreed struct{}

// CleanNow asks the cleaner to delete expired commit-log files now, and in the rounds that follow, whatever the hour
// (spec/store.md §9.2).
type CleanNow struct{}

// ExpireIndex asks the index builder to delete the index files that name only records in front of a physical offset.
type ExpireIndex struct {
	Below PhysicalOffset
}

// LeaveIndex tells the index builder that the store is being stopped: what it has no room for is left to the next start, which makes
// the index complete, so that nobody waits for it any more.
type LeaveIndex struct{}

// ForgetTopic asks the writer to forget the queue offsets of a topic's queues: the next message of each gets offset 0. The
// answer is the end of the log at that moment: records of the topic in front of it belong to queues that are gone.
type ForgetTopic struct {
	Topic  string
	Answer *Answer[PhysicalOffset]
}

// Refuse answers with an error.
func (m ForgetTopic) Refuse(cause error) { m.Answer.Refuse(cause) }
