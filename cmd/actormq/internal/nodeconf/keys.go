package nodeconf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
)

// keyDef is one key: its name, its default as text, what it means, and what it does.
type keyDef struct {
	name, byDefault, help string
	apply                 func(c *Config, value string) error
}

// keys are the known keys, in the order in which they are printed.
var keys = slices.Concat([]keyDef{
	{"brokerClusterName", "DefaultCluster", "name of the cluster", name(func(c *Config) *string { return &c.Gateway.Broker.ClusterName })},
	{"brokerName", "broker-a", "name of the broker", name(func(c *Config) *string { return &c.Gateway.Broker.BrokerName })},
	{"brokerId", "0", "above 0 for a slave; a master always has 0",
		number(func(c *Config) *int64 { return &c.Gateway.Broker.BrokerID }, 0, math.MaxInt32)},
	{"brokerIP1", "bindAddress", "address by which clients reach the broker", text(func(c *Config) *string { return &c.AdvertisedIP })},
	{"bindAddress", "127.0.0.1", "address on which the ports listen", text(func(c *Config) *string { return &c.ListenIP })},
	{"listenPort", "10911", "port of the broker", integer(func(c *Config) *int { return &c.ListenPort }, 1, math.MaxUint16)},
	{"namesrvListen", "127.0.0.1:9876", "host:port of the node's own name server, empty for none",
		text(func(c *Config) *string { return &c.NameServer })},
	{"vipChannel", "true", "serve listenPort - 2 too", boolean(func(c *Config) *bool { return &c.VIPChannel })},

	{"storePathRootDir", "store", "folder of the store", text(func(c *Config) *string { return &c.Store.Dir })},
	{"storePathCommitLog", "storePathRootDir/commitlog", "folder of the commit log",
		text(func(c *Config) *string { return &c.Store.CommitLogDir })},
	{"mappedFileSizeCommitLog", "1073741824", "bytes of a commit-log file",
		number(func(c *Config) *int64 { return &c.Store.SegmentBytes }, 4096, math.MaxInt32)},
	{"mapedFileSizeCommitLog", "1073741824", "the same, in RocketMQ's old spelling",
		number(func(c *Config) *int64 { return &c.Store.SegmentBytes }, 4096, math.MaxInt32)},
	{"mappedFileSizeConsumeQueue", "6000000", "bytes of a consume-queue file",
		number(func(c *Config) *int64 { return &c.Store.ConsumeQueueFileBytes }, 20, math.MaxInt32)},
	{"mapedFileSizeConsumeQueue", "6000000", "the same, in RocketMQ's old spelling",
		number(func(c *Config) *int64 { return &c.Store.ConsumeQueueFileBytes }, 20, math.MaxInt32)},
	{"scrubBytesPerSecond", "1048576", "bytes of old messages that are compared with their checksums in a second, in the background; 0: none",
		number(func(c *Config) *int64 { return &c.ScrubRate }, 0, 1<<40)},
	{"timedMessages", "false", "deliver messages with the property TIMER_DELIVER_MS at that time, ms since 1970, up to a year ahead (system/ext/timer)",
		boolean(func(c *Config) *bool { return &c.Timed })},
	{"maxHashSlotNum", "5000000", "slots of an index file", short(func(c *Config) *int32 { return &c.Store.IndexSlots })},
	{"maxIndexNum", "20000000", "entries of an index file", short(func(c *Config) *int32 { return &c.Store.IndexEntries })},
	{"messageIndexEnable", "true", "build the index", negated(func(c *Config) *bool { return &c.Store.NoIndex })},
	{"checkCRCOnRecover", "true", "compare bodies with their checksums in recovery",
		negated(func(c *Config) *bool { return &c.Store.SkipRecoveryCRC })},
	{"warmMapedFileEnable", "false", "make all pages of a new commit-log file present, and lock them in memory",
		boolean(func(c *Config) *bool { return &c.Store.WarmSegments })},
	{"flushLeastPagesWhenWarmMapedFile", "4096", "after how many pages the disk is given them meanwhile, with SYNC_FLUSH",
		integer(func(c *Config) *int { return &c.Store.WarmSyncPages }, 1, math.MaxInt32)},
	{"osPageCacheBusyTimeOutMills", "1000", "ms that puts wait for their turn before more are refused",
		millis(func(c *Config) *time.Duration { return &c.Store.BusyTimeout })},
	{"flushDiskType", "ASYNC_FLUSH", "ASYNC_FLUSH or SYNC_FLUSH", flushType},
	{"flushIntervalCommitLog", "500", "ms between asynchronous flushes",
		millis(func(c *Config) *time.Duration { return &c.Store.FlushInterval })},
	{"flushCommitLogTimed", "true", "flush by the timer only; false: as soon as enough pages are dirty",
		negated(func(c *Config) *bool { return &c.Store.FlushAtOnce })},
	{"flushCommitLogLeastPages", "4", "dirty pages for an asynchronous flush, 0: whatever is dirty",
		pages(func(c *Config) *int { return &c.Store.FlushLeastPages })},
	{"flushCommitLogThoroughInterval", "10000", "ms until a flush regardless of pages",
		millis(func(c *Config) *time.Duration { return &c.Store.FlushThorough })},
	{"syncFlushTimeout", "5000", "ms that a put waits for its flush",
		millis(func(c *Config) *time.Duration { return &c.Store.SyncFlushTimeout })},
	{"flushIntervalConsumeQueue", "1000", "ms between flushes of the consume queues",
		millis(func(c *Config) *time.Duration { return &c.Store.QueueFlushInterval })},
	{"flushConsumeQueueLeastPages", "2", "dirty pages for a flush of a consume queue, 0: whatever is dirty",
		pages(func(c *Config) *int { return &c.Store.QueueFlushLeastPages })},
	{"flushConsumeQueueThoroughInterval", "60000", "ms until every consume queue is flushed",
		millis(func(c *Config) *time.Duration { return &c.Store.QueueFlushThorough })},
	{"messageDelayLevel", "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h", "delay levels",
		text(func(c *Config) *string { return &c.Store.DelayLevels })},
	{"flushDelayOffsetInterval", "10000", "ms between writes of the delay offsets",
		millis(func(c *Config) *time.Duration { return &c.Store.DelayOffsetInterval })},
	{"maxMessageSize", "4194304", "largest body in bytes",
		integer(func(c *Config) *int { return &c.Store.MaxMessageBytes }, 10, math.MaxInt32)},
	{"maxTransferBytesOnMessageInMemory", "262144", "bytes of a pull",
		integer(func(c *Config) *int { return &c.Store.MaxTransferBytes }, 1, math.MaxInt32)},
	{"maxTransferCountOnMessageInMemory", "32", "messages of a pull",
		integer(func(c *Config) *int { return &c.Store.MaxTransferMessages }, 1, math.MaxInt32)},
	{"maxTransferBytesOnMessageInDisk", "65536", "bytes of a pull far behind the end",
		integer(func(c *Config) *int { return &c.Store.DiskTransferBytes }, 1, math.MaxInt32)},
	{"maxTransferCountOnMessageInDisk", "8", "messages of a pull far behind the end",
		integer(func(c *Config) *int { return &c.Store.DiskTransferMessages }, 1, math.MaxInt32)},
	{"accessMessageInMemoryMaxRatio", "40", "percent of the memory that the log's tail is taken to fill",
		integer(func(c *Config) *int { return &c.Store.MemoryRatioPercent }, 1, 100)},

	{"offsetCheckInSlave", "false", "a slave corrects the offsets of its readers",
		boolean(func(c *Config) *bool { return &c.Store.CheckOffsetsInSlave })},

	{"autoCreateTopicEnable", "true", "make a topic at the first send", negated(func(c *Config) *bool { return &c.Gateway.NoAutoCreateTopic })},
	{"autoCreateSubscriptionGroup", "true", "make a group at its first use", negated(func(c *Config) *bool { return &c.Gateway.NoAutoCreateGroup })},
	{"defaultTopicQueueNums", "8", "queues of a topic made at the first send",
		integer(func(c *Config) *int { return &c.Gateway.DefaultQueues }, 1, 1<<16)},
	{"clusterTopicEnable", "true", "make the topic that is named like the cluster", negated(func(c *Config) *bool { return &c.Gateway.NoClusterTopic })},
	{"brokerTopicEnable", "true", "make the topic that is named like the broker", negated(func(c *Config) *bool { return &c.Gateway.NoBrokerTopic })},
	{"brokerPermission", "6", "2 write, 4 read", integer(func(c *Config) *int { return &c.Gateway.Broker.Policy.Perm }, 2, 6)},
	{"flushConsumerOffsetInterval", "5000", "ms between writes of the consumer offsets",
		millis(func(c *Config) *time.Duration { return &c.Gateway.OffsetInterval })},
	{"longPollingEnable", "true", "hold pulls that find nothing", negated(func(c *Config) *bool { return &c.Gateway.Broker.Policy.LongPollingOff })},
	{"notifyConsumerIdsChangedEnable", "true", "tell a group's members of changes", negated(func(c *Config) *bool { return &c.Gateway.Broker.Policy.NotifyOff })},
	{"enablePropertyFilter", "false", "serve subscriptions by SQL92", boolean(func(c *Config) *bool { return &c.Gateway.Broker.Policy.FilterByProperty })},
	{"filterSupportRetry", "false", "filter retried messages as those of their first topic",
		boolean(func(c *Config) *bool { return &c.Gateway.Broker.Policy.FilterRetries })},
	{"topicLimits", "", "messages and bytes that may be sent to a topic in a second, and messages it keeps: TOPIC=MESSAGES,BYTES,KEPT with ; between them, * for each other",
		topicLimits},
	{"rejectTransactionMessage", "false", "refuse half messages", boolean(func(c *Config) *bool { return &c.Gateway.Broker.Policy.RejectHalf })},
	{"transactionTimeOut", "6000", "ms until an undecided transaction may be checked",
		millis(func(c *Config) *time.Duration { return &c.Gateway.TransactionTimeout })},
	{"transactionCheckInterval", "60000", "ms between checks",
		millis(func(c *Config) *time.Duration { return &c.Gateway.TransactionInterval })},
	{"transactionCheckMax", "15", "checks until a transaction is given up",
		integer(func(c *Config) *int { return &c.Gateway.TransactionMaxCheck }, 1, math.MaxInt32)},
	{"searchOffsetNearest", "true", "a search by time answers the nearer message, as RocketMQ 4.x; false: the first one not older",
		nearestByTime},
	{"storeReplyMessageEnable", "true", "keep replies in the topic of replies",
		negated(func(c *Config) *bool { return &c.Gateway.Broker.Policy.DropReplies })},
	{"startAcceptSendRequestTimeStamp", "0", "ms since 1970 before which sends are refused",
		number(func(c *Config) *int64 { return &c.Gateway.Broker.Policy.AcceptFromMs }, 0, math.MaxInt64)},
	{"strictPermission", "false", "refuse sends without write permission, which RocketMQ 4.x does not",
		boolean(func(c *Config) *bool { return &c.Gateway.Broker.Policy.CheckWrites })},
	{"refuseBackwardOffsets", "false", "refuse commits of lower offsets, unless the group has just been reset; RocketMQ 4.x does not",
		boolean(func(c *Config) *bool { return &c.Gateway.RefuseBackward })},
	{"traceOn", "true", "let clients send traces", negated(func(c *Config) *bool { return &c.Gateway.Broker.Policy.TraceOff })},
	{"traceTopicEnable", "false", "make the topic of traces at the start", negated(func(c *Config) *bool { return &c.NoTraceTopic })},
	{"msgTraceTopicName", messages.TopicTrace, "the topic of traces", name(func(c *Config) *string { return &c.traceTopic })},
	{"slaveReadEnable", "false", "send slow readers to a slave", boolean(func(c *Config) *bool { return &c.Gateway.Broker.Policy.SlaveReads })},
	{"shortPollingTimeMills", "1000", "ms that a pull is held without long polling",
		millis(func(c *Config) *time.Duration { return &c.Gateway.Broker.Policy.ShortPolling })},
	{"defaultQueryMaxNum", "32", "messages of a query by unique key",
		integer(func(c *Config) *int { return &c.Gateway.Broker.Policy.DefaultQueryMax }, 1, 1<<16)},
	{"regionId", "DefaultRegion", "region that answers and traces name", name(func(c *Config) *string { return &c.Gateway.Broker.Region })},
}, replicationKeys, diskKeys, edgeKeys, poolKeys, lightKeys, extKeys, remoteKeys, bridgeKeys, traceKeys)

// fixed are keys of RocketMQ that tools read, with the only value that they have here.
var fixed = map[string]string{
	"filterServerNums": "0", "enableDLegerCommitLog": "false", "messageStorePlugIn": "",
	"readOnlyCommitLogStorePaths": "",
}

// withoutEffect are keys of RocketMQ's broker.conf that are accepted and do nothing here yet, or never will.
var withoutEffect = []string{
	"useReentrantLockWhenPutMessage", "sendMessageThreadPoolNums", "pullMessageThreadPoolNums", "queryMessageThreadPoolNums",
	"adminBrokerThreadPoolNums", "clientManageThreadPoolNums", "consumerManageThreadPoolNums", "heartbeatThreadPoolNums",
	"endTransactionThreadPoolNums", "sendThreadPoolQueueCapacity", "pullThreadPoolQueueCapacity",
	"waitTimeMillsInSendQueue", "transferMsgByHeap",
	"fetchNamesrvAddrByAddressServer", "rocketmqHome",
	"diskFallRecorded",
	"duplicationEnable", "messageIndexSafe", "maxMsgsNumBatch",
	"enableScheduleMessageStats", "enableScheduleAsyncDeliver",
	"scheduleAsyncDeliverMaxPendingLimit", "scheduleAsyncDeliverMaxResendNum2Blocked",
	"brokerFastFailureEnable",
	"highSpeedMode", "commercialEnable", "serverWorkerThreads", "serverSelectorThreads",
	"serverSocketSndBufSize", "serverSocketRcvBufSize", "useEpollNativeSelector",
	"autoDeleteUnusedStats", "bitMapLengthConsumeQueueExt", "channelNotActiveInterval", "clientAsyncSemaphoreValue",
	"clientCallbackExecutorThreads", "clientChannelMaxIdleTimeSeconds", "clientCloseSocketIfTimeout",
	"clientManagerThreadPoolQueueCapacity", "clientOnewaySemaphoreValue", "clientPooledByteBufAllocatorEnable",
	"clientSocketRcvBufSize", "clientSocketSndBufSize", "clientWorkerThreads", "commercialBaseCount",
	"commercialBigCount", "commercialTimerCount", "commercialTransCount", "connectTimeoutMillis",
	"consumerFallbehindThreshold", "consumerManagerThreadPoolQueueCapacity", "dLegerGroup", "dLegerPeers",
	"dLegerSelfId", "debugLockEnable", "disableConsumeIfConsumerReadSlowly", "enableCalcFilterBitMap",
	"enableDetailStat", "endTransactionPoolQueueCapacity", "expectConsumerNumUseFilter", "filterDataCleanTimeSpan",
	"flushConsumerOffsetHistoryInterval", "heartbeatThreadPoolQueueCapacity", "isEnableBatchPush", "isolateLogEnable",
	"maxDelayTime", "maxErrorRateOfBloomFilter", "preferredLeaderId",
	"processReplyMessageThreadPoolNums", "putMessageFutureThreadPoolNums", "putMsgIndexHightWater",
	"putThreadPoolQueueCapacity", "queryThreadPoolQueueCapacity", "replyThreadPoolQueueCapacity",
	"serverAsyncSemaphoreValue", "serverCallbackExecutorThreads", "serverChannelMaxIdleTimeSeconds",
	"serverOnewaySemaphoreValue", "serverPooledByteBufAllocatorEnable", "serverSocketBacklog",
	"storePathDLedgerCommitLog", "waitTimeMillsInHeartbeatQueue", "waitTimeMillsInPullQueue",
	"waitTimeMillsInTransactionQueue", "writeBufferHighWaterMark", "writeBufferLowWaterMark",
	// No options of 4.9.7, which passes over them without a word; but many a broker.conf has them:
	"storePathConsumeQueue", "storePathIndex", "storeCheckpoint", "abortFile", "checkTransactionMessageEnable",
}

type applier = func(c *Config, value string) error

func text(field func(*Config) *string) applier {
	return func(c *Config, value string) error {
		*field(c) = value
		return nil
	}
}

// name is text that stands in topics and routes: not empty, and of the characters of a topic.
func name(field func(*Config) *string) applier {
	return func(c *Config, value string) error {
		if err := messages.CheckTopicName(value); err != nil {
			return err
		}
		*field(c) = value
		return nil
	}
}

func number(field func(*Config) *int64, least, most int64) applier {
	return func(c *Config, value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("not a whole number")
		}
		if n < least || n > most {
			return fmt.Errorf("allowed is %d to %d", least, most)
		}
		*field(c) = n
		return nil
	}
}

func integer(field func(*Config) *int, least, most int) applier {
	return func(c *Config, value string) error {
		var n int64
		if err := number(func(*Config) *int64 { return &n }, int64(least), int64(most))(c, value); err != nil {
			return err
		}
		*field(c) = int(n)
		return nil
	}
}

// pages is a number of pages; 0, which means any here, is -1 in the options, whose 0 is the default.
func pages(field func(*Config) *int) applier {
	return func(c *Config, value string) error {
		if err := integer(field, 0, math.MaxInt32)(c, value); err != nil {
			return err
		}
		if *field(c) == 0 {
			*field(c) = -1
		}
		return nil
	}
}

func short(field func(*Config) *int32) applier {
	return func(c *Config, value string) error {
		var n int64
		if err := number(func(*Config) *int64 { return &n }, 1, math.MaxInt32)(c, value); err != nil {
			return err
		}
		*field(c) = int32(n)
		return nil
	}
}

func millis(field func(*Config) *time.Duration) applier {
	return unit(field, time.Millisecond, math.MaxInt32)
}

// unit is a time as a whole number of some unit.
func unit(field func(*Config) *time.Duration, unit time.Duration, most int64) applier {
	return func(c *Config, value string) error {
		var n int64
		if err := number(func(*Config) *int64 { return &n }, 1, most)(c, value); err != nil {
			return err
		}
		*field(c) = time.Duration(n) * unit
		return nil
	}
}

func boolean(field func(*Config) *bool) applier {
	return func(c *Config, value string) error {
		b, err := strconv.ParseBool(strings.ToLower(value))
		if err != nil {
			return fmt.Errorf("true or false")
		}
		*field(c) = b
		return nil
	}
}

// negated is for an option whose field says the opposite.
func negated(field func(*Config) *bool) applier {
	return func(c *Config, value string) error {
		var b bool
		if err := boolean(func(*Config) *bool { return &b })(c, value); err != nil {
			return err
		}
		*field(c) = !b
		return nil
	}
}

func nearestByTime(c *Config, value string) error {
	var b bool
	if err := boolean(func(*Config) *bool { return &b })(c, value); err != nil {
		return err
	}
	c.Gateway.Broker.Policy.SearchBoundary = messages.TimeLower
	if b {
		c.Gateway.Broker.Policy.SearchBoundary = messages.TimeNearest
	}
	return nil
}

func flushType(c *Config, value string) error {
	for _, t := range []system.FlushDiskType{system.AsyncFlush, system.SyncFlush} {
		if t.String() == value {
			c.Store.FlushDiskType = t
			return nil
		}
	}
	return fmt.Errorf("ASYNC_FLUSH or SYNC_FLUSH")
}
