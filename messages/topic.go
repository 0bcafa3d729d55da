package messages

import "strings"

// Limits of the record format (spec/store.md §2.1).
const (
	MaxTopicBytes      = 127
	MaxPropertiesBytes = 32767
)

// System topics and prefixes that the store itself must know (spec/store.md §1.4).
const (
	TopicSchedule          = "SCHEDULE_TOPIC_XXXX"
	TopicTransactionHalf   = "RMQ_SYS_TRANS_HALF_TOPIC"
	TopicTransactionOp     = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	TopicTransCheckMaxTime = "TRANS_CHECK_MAX_TIME_TOPIC"
	TopicOffsetMovedEvent  = "OFFSET_MOVED_EVENT"
	TopicAutoCreateKey     = "TBW102"
	TopicBenchmark         = "BenchmarkTest"
	TopicSelfTest          = "SELF_TEST_TOPIC"
	TopicClusterState      = "ACTORMQ_CLUSTER_STATE" // a replica group's configuration, as of its place in the log
	TopicTrace             = "RMQ_SYS_TRACE_TOPIC"
	TopicTimer             = "ACTORMQ_TIMER" // where messages wait for a time of their own

	RetryTopicPrefix = "%RETRY%"
	DLQTopicPrefix   = "%DLQ%"
	LMQTopicPrefix   = "%LMQ%"
)

// IsGroupTopic tells whether a topic is a consumer group's own: of its retries, or of its dead letters.
func IsGroupTopic(topic string) bool {
	return strings.HasPrefix(topic, RetryTopicPrefix) || strings.HasPrefix(topic, DLQTopicPrefix)
}

// IsWaitingTopic tells whether messages wait in a topic for their time or the end of their transaction. REAL_TOPIC says where they are sent.
func IsWaitingTopic(topic string) bool {
	return topic == TopicSchedule || topic == TopicTransactionHalf || topic == TopicTimer
}

// IsReservedTopic tells whether nobody may send to a topic (spec/remoting.md §8.2, 4).
func IsReservedTopic(topic string) bool {
	switch topic {
	case TopicSchedule, TopicTransactionHalf, TopicTransactionOp, TopicTransCheckMaxTime, TopicSelfTest, TopicOffsetMovedEvent, TopicTimer:
		return true
	}
	return false
}
