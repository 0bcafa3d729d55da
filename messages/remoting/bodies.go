package remoting

// JSON bodies of clients, name server and replication. Members are in alphabetical order, as the original writes them.

// MessageQueue names a queue of a broker. It is used as a map key: strict JSON has it as a string, the dialect as an object.
type MessageQueue struct {
	BrokerName string `json:"brokerName"`
	QueueID    int32  `json:"queueId"`
	Topic      string `json:"topic"`
}

// TopicRouteData is the answer to 105 (spec/remoting.md §5.1). Go clients need it compact, as EncodeBody writes it.
type TopicRouteData struct {
	BrokerDatas       []BrokerData        `json:"brokerDatas"`
	FilterServerTable map[string][]string `json:"filterServerTable"`
	OrderTopicConf    string              `json:"orderTopicConf,omitempty"`
	QueueDatas        []QueueData         `json:"queueDatas"`
}

// BrokerData is where a broker name is reached.
type BrokerData struct {
	BrokerAddrs map[int64]string `json:"brokerAddrs"` // broker id to host:port; 0 is the master
	BrokerName  string           `json:"brokerName"`
	Cluster     string           `json:"cluster"`
}

// QueueData is what a broker name has of a topic.
type QueueData struct {
	BrokerName     string `json:"brokerName"`
	Perm           int32  `json:"perm"`
	ReadQueueNums  int32  `json:"readQueueNums"`
	TopicSysFlag   int32  `json:"topicSysFlag"`
	WriteQueueNums int32  `json:"writeQueueNums"`
}

// ClusterInfo is the answer to 106.
type ClusterInfo struct {
	BrokerAddrTable  map[string]BrokerData `json:"brokerAddrTable"`
	ClusterAddrTable map[string][]string   `json:"clusterAddrTable"`
}

// TopicList is the answer to 206, 224, 304, 305 and 311 to 313.
type TopicList struct {
	BrokerAddr string   `json:"brokerAddr,omitempty"` // 304 only: where to ask 305
	TopicList  []string `json:"topicList"`
}

// KVTable is the answer to 219, 28 (runtime info) and 103 (order topics).
type KVTable struct {
	Table map[string]string `json:"table"`
}

// DataVersion is the version of a configuration table; equal when both are equal.
type DataVersion struct {
	Counter     int64 `json:"counter"`
	TimestampMs int64 `json:"timestamp"`
}

// TopicConfig is the configuration of one topic (spec/remoting.md §15.2).
type TopicConfig struct {
	Order           bool   `json:"order"`
	Perm            int32  `json:"perm"`
	ReadQueueNums   int32  `json:"readQueueNums"`
	TopicFilterType string `json:"topicFilterType"`
	TopicName       string `json:"topicName"`
	TopicSysFlag    int32  `json:"topicSysFlag"`
	WriteQueueNums  int32  `json:"writeQueueNums"`
}

// TopicConfigTable is the answer to 21 and part of [RegisterBrokerBody].
type TopicConfigTable struct {
	DataVersion      DataVersion            `json:"dataVersion"`
	TopicConfigTable map[string]TopicConfig `json:"topicConfigTable"`
}

// SubscriptionGroupConfig is the body of 200 (spec/remoting.md §15.4). Members that are missing keep what they had before
// decoding.
type SubscriptionGroupConfig struct {
	BrokerID                       int64  `json:"brokerId"`
	ConsumeBroadcastEnable         bool   `json:"consumeBroadcastEnable"`
	ConsumeEnable                  bool   `json:"consumeEnable"`
	ConsumeFromMinEnable           bool   `json:"consumeFromMinEnable"`
	GroupName                      string `json:"groupName"`
	NotifyConsumerIdsChangedEnable bool   `json:"notifyConsumerIdsChangedEnable"`
	RetryMaxTimes                  int32  `json:"retryMaxTimes"`
	RetryQueueNums                 int32  `json:"retryQueueNums"`
	WhichBrokerWhenConsumeSlowly   int64  `json:"whichBrokerWhenConsumeSlowly"`
}

// SubscriptionGroupTable is the answer to 201.
type SubscriptionGroupTable struct {
	DataVersion            DataVersion                        `json:"dataVersion"`
	SubscriptionGroupTable map[string]SubscriptionGroupConfig `json:"subscriptionGroupTable"`
}

// ConsumerOffsetTable is the answer to 43: "topic@group" to queue id to offset.
type ConsumerOffsetTable struct {
	OffsetTable map[string]map[int32]int64 `json:"offsetTable"`
}

// DelayOffsetTable is the answer to 45: delay level to queue offset.
type DelayOffsetTable struct {
	OffsetTable map[int32]int64 `json:"offsetTable"`
}

// HeartbeatData is the body of 34 (spec/remoting.md §7.1).
type HeartbeatData struct {
	ClientID        string         `json:"clientID"`
	ConsumerDataSet []ConsumerData `json:"consumerDataSet"`
	ProducerDataSet []ProducerData `json:"producerDataSet"`
}

// ConsumerData is one consumer group in a heartbeat.
type ConsumerData struct {
	ConsumeFromWhere    string             `json:"consumeFromWhere"`
	ConsumeType         string             `json:"consumeType"`
	GroupName           string             `json:"groupName"`
	MessageModel        string             `json:"messageModel"`
	SubscriptionDataSet []SubscriptionData `json:"subscriptionDataSet"`
	UnitMode            bool               `json:"unitMode"`
}

// ProducerData is one producer group in a heartbeat.
type ProducerData struct {
	GroupName string `json:"groupName"`
}

// SubscriptionData is what a consumer wants of a topic.
type SubscriptionData struct {
	ClassFilterMode bool     `json:"classFilterMode"`
	CodeSet         []int32  `json:"codeSet"`        // hashes of the tags; strings on the wire from Go
	ExpressionType  string   `json:"expressionType"` // TAG or SQL92; empty is TAG
	SubString       string   `json:"subString"`      // the expression; * for all
	SubVersion      int64    `json:"subVersion"`     // milliseconds from Java, nanoseconds from Go
	TagsSet         []string `json:"tagsSet"`
	Topic           string   `json:"topic"`
}

// ConsumerList is the answer to 38.
type ConsumerList struct {
	ConsumerIDList []string `json:"consumerIdList"`
}

// CheckClientConfig is the body of 46.
type CheckClientConfig struct {
	ClientID         string           `json:"clientId"`
	Group            string           `json:"group"`
	SubscriptionData SubscriptionData `json:"subscriptionData"`
}

// LockBatch is the body of 41 and 42 (spec/remoting.md §11.2).
type LockBatch struct {
	ClientID      string         `json:"clientId"`
	ConsumerGroup string         `json:"consumerGroup"`
	MQSet         []MessageQueue `json:"mqSet"`
}

// LockBatchAnswer is the answer to 41.
type LockBatchAnswer struct {
	LockOKMQSet []MessageQueue `json:"lockOKMQSet"`
}

// OffsetMovedEvent is the body of a message in OFFSET_MOVED_EVENT (spec/remoting.md §9.3).
type OffsetMovedEvent struct {
	ConsumerGroup string       `json:"consumerGroup"`
	MessageQueue  MessageQueue `json:"messageQueue"`
	OffsetNew     int64        `json:"offsetNew"`
	OffsetRequest int64        `json:"offsetRequest"`
}

// JSON bodies of tools (spec/remoting.md §17).

// TopicStats is the answer to 202.
type TopicStats struct {
	OffsetTable map[MessageQueue]TopicOffset `json:"offsetTable"`
}

// TopicOffset is the state of one queue.
type TopicOffset struct {
	LastUpdateTimestampMs int64 `json:"lastUpdateTimestamp"` // store time of the last message, 0 if none
	MaxOffset             int64 `json:"maxOffset"`
	MinOffset             int64 `json:"minOffset"`
}

// ConsumeStats is the answer to 208.
type ConsumeStats struct {
	ConsumeTPS  float64                        `json:"consumeTps"`
	OffsetTable map[MessageQueue]ConsumeOffset `json:"offsetTable"`
}

// ConsumeOffset is the progress in one queue.
type ConsumeOffset struct {
	BrokerOffset    int64 `json:"brokerOffset"` // the end of the queue
	ConsumerOffset  int64 `json:"consumerOffset"`
	LastTimestampMs int64 `json:"lastTimestamp"` // store time of the message before ConsumerOffset
}

// BrokerConsumeStats is the answer to 317.
type BrokerConsumeStats struct {
	BrokerAddr       string                      `json:"brokerAddr"`
	ConsumeStatsList []map[string][]ConsumeStats `json:"consumeStatsList"`
	TotalDiff        int64                       `json:"totalDiff"`
}

// Connection is one client of a group.
type Connection struct {
	ClientAddr string `json:"clientAddr"`
	ClientID   string `json:"clientId"`
	Language   string `json:"language"`
	Version    int    `json:"version"`
}

// ConsumerConnection is the answer to 203.
type ConsumerConnection struct {
	ConnectionSet     []Connection                `json:"connectionSet"`
	ConsumeFromWhere  string                      `json:"consumeFromWhere"`
	ConsumeType       string                      `json:"consumeType"`
	MessageModel      string                      `json:"messageModel"`
	SubscriptionTable map[string]SubscriptionData `json:"subscriptionTable"`
}

// ProducerConnection is the answer to 204.
type ProducerConnection struct {
	ConnectionSet []Connection `json:"connectionSet"`
}

// ProducerTable is the answer to 328: group to its producers.
type ProducerTable struct {
	Data map[string][]ProducerInfo `json:"data"`
}

// ProducerInfo is one producer in a [ProducerTable].
type ProducerInfo struct {
	ClientID              string `json:"clientId"`
	Language              string `json:"language"`
	LastUpdateTimestampMs int64  `json:"lastUpdateTimestamp"`
	RemoteIP              string `json:"remoteIP"` // "/host:port"
	Version               int    `json:"version"`
}

// GroupList is the answer to 300.
type GroupList struct {
	GroupList []string `json:"groupList"`
}

// ResetOffsets is the body of 220, for which it must be written by fastjson.MarshalRawKeys, and of the answer to 222.
type ResetOffsets struct {
	OffsetTable map[MessageQueue]int64 `json:"offsetTable"`
}

// ConsumerStatus is the answer to 221 and, with ConsumerTable, to 223: client id to queue to offset.
type ConsumerStatus struct {
	ConsumerTable     map[string]map[MessageQueue]int64 `json:"consumerTable,omitempty"`
	MessageQueueTable map[MessageQueue]int64            `json:"messageQueueTable"`
}

// ConsumeDirectlyResult is the answer to 309.
type ConsumeDirectlyResult struct {
	AutoCommit    bool   `json:"autoCommit"`
	ConsumeResult string `json:"consumeResult"`
	Order         bool   `json:"order"`
	Remark        string `json:"remark,omitempty"`
	SpentTimeMs   int64  `json:"spentTimeMills"`
}

// ConsumeTimeSpans is the answer to 303.
type ConsumeTimeSpans struct {
	ConsumeTimeSpanSet []ConsumeTimeSpan `json:"consumeTimeSpanSet"`
}

// ConsumeTimeSpan is the time range of one queue; Str members are "yyyy-MM-dd#HH:mm:ss:SSS".
type ConsumeTimeSpan struct {
	ConsumeTimestampMs  int64        `json:"consumeTimeStamp"`
	ConsumeTimestampStr string       `json:"consumeTimeStampStr"`
	DelayMs             int64        `json:"delayTime"`
	MaxTimestampMs      int64        `json:"maxTimeStamp"`
	MaxTimestampStr     string       `json:"maxTimeStampStr"`
	MessageQueue        MessageQueue `json:"messageQueue"`
	MinTimestampMs      int64        `json:"minTimeStamp"`
	MinTimestampStr     string       `json:"minTimeStampStr"`
}

// CorrectionOffsets is the answer to 308: queue id to offset.
type CorrectionOffsets struct {
	CorrectionOffsets map[int32]int64 `json:"correctionOffsets"`
}

// StatsData is the answer to 315.
type StatsData struct {
	StatsDay    StatsSnapshot `json:"statsDay"`
	StatsHour   StatsSnapshot `json:"statsHour"`
	StatsMinute StatsSnapshot `json:"statsMinute"`
}

// StatsSnapshot is one window of a statistics item.
type StatsSnapshot struct {
	AveragePerTime float64 `json:"avgpt"`
	Sum            int64   `json:"sum"`
	TPS            float64 `json:"tps"`
}

// ConsumeQueueData is the answer to 321.
type ConsumeQueueData struct {
	FilterData       string             `json:"filterData,omitempty"`
	MaxQueueIndex    int64              `json:"maxQueueIndex"`
	MinQueueIndex    int64              `json:"minQueueIndex"`
	QueueData        []ConsumeQueueUnit `json:"queueData"`
	SubscriptionData *SubscriptionData  `json:"subscriptionData,omitempty"`
}

// ConsumeQueueUnit is one unit in a [ConsumeQueueData].
type ConsumeQueueUnit struct {
	BitMap         string `json:"bitMap,omitempty"`
	Eval           bool   `json:"eval"`
	ExtendDataJSON string `json:"extendDataJson,omitempty"`
	Msg            string `json:"msg,omitempty"`
	PhysicOffset   int64  `json:"physicOffset"`
	PhysicSize     int32  `json:"physicSize"`
	TagsCode       int64  `json:"tagsCode"`
}

// ACLConfig is the answer to 54.
type ACLConfig struct {
	GlobalWhiteAddrs   []string            `json:"globalWhiteAddrs"`
	PlainAccessConfigs []PlainAccessConfig `json:"plainAccessConfigs"`
}

// PlainAccessConfig is one account in an [ACLConfig].
type PlainAccessConfig struct {
	AccessKey          string   `json:"accessKey"`
	Admin              bool     `json:"admin"`
	DefaultGroupPerm   string   `json:"defaultGroupPerm,omitempty"`
	DefaultTopicPerm   string   `json:"defaultTopicPerm,omitempty"`
	GroupPerms         []string `json:"groupPerms"`
	SecretKey          string   `json:"secretKey"`
	TopicPerms         []string `json:"topicPerms"`
	WhiteRemoteAddress string   `json:"whiteRemoteAddress,omitempty"`
}
