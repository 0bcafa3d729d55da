package remoting

// Typed headers of the name server and of what tools ask a broker. A Header struct is a request.

// RouteHeader asks for the route of a topic (105, spec/remoting.md §5).
type RouteHeader struct {
	Topic                  string
	AcceptStandardJSONOnly bool
}

// Fields implements [Header].
func (h *RouteHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.OptionalBool("acceptStandardJsonOnly", &h.AcceptStandardJSONOnly)
}

// ClusterHeader asks for the topics of a cluster (224).
type ClusterHeader struct {
	Cluster string
}

// Fields implements [Header].
func (h *ClusterHeader) Fields(f *Fields) {
	f.Text("cluster", &h.Cluster)
}

// DeleteTopicInNamesrvHeader takes a topic out of the route tables (216).
type DeleteTopicInNamesrvHeader struct {
	Topic       string
	ClusterName string // only of this cluster's brokers
}

// Fields implements [Header].
func (h *DeleteTopicInNamesrvHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.OptionalText("clusterName", &h.ClusterName)
}

// BrokerNameHeader names a broker: WIPE_WRITE_PERM_OF_BROKER 205, ADD_WRITE_PERM_OF_BROKER 327.
type BrokerNameHeader struct {
	BrokerName string
}

// Fields implements [Header].
func (h *BrokerNameHeader) Fields(f *Fields) {
	f.Text("brokerName", &h.BrokerName)
}

// WipeWritePermAnswer answers 205.
type WipeWritePermAnswer struct {
	WipeTopicCount int32
}

// Fields implements [Header].
func (h *WipeWritePermAnswer) Fields(f *Fields) {
	f.Int32("wipeTopicCount", &h.WipeTopicCount)
}

// AddWritePermAnswer answers 327.
type AddWritePermAnswer struct {
	AddTopicCount int32
}

// Fields implements [Header].
func (h *AddWritePermAnswer) Fields(f *Fields) {
	f.Int32("addTopicCount", &h.AddTopicCount)
}

// PutKVHeader sets a value (100).
type PutKVHeader struct {
	Namespace string
	Key       string
	Value     string
}

// Fields implements [Header].
func (h *PutKVHeader) Fields(f *Fields) {
	f.Text("namespace", &h.Namespace)
	f.Text("key", &h.Key)
	f.Text("value", &h.Value)
}

// KVKeyHeader names a value: GET_KV_CONFIG 101, DELETE_KV_CONFIG 102.
type KVKeyHeader struct {
	Namespace string
	Key       string
}

// Fields implements [Header].
func (h *KVKeyHeader) Fields(f *Fields) {
	f.Text("namespace", &h.Namespace)
	f.Text("key", &h.Key)
}

// KVNamespaceHeader asks for a whole namespace (219).
type KVNamespaceHeader struct {
	Namespace string
}

// Fields implements [Header].
func (h *KVNamespaceHeader) Fields(f *Fields) {
	f.Text("namespace", &h.Namespace)
}

// KVValueAnswer answers 101.
type KVValueAnswer struct {
	Value string
}

// Fields implements [Header].
func (h *KVValueAnswer) Fields(f *Fields) {
	f.OptionalText("value", &h.Value)
}

// BrokerHeader names a broker and its address: UNREGISTER_BROKER 104, QUERY_DATA_VERSION 322 (spec/remoting.md §6).
type BrokerHeader struct {
	BrokerName  string
	BrokerAddr  string
	ClusterName string
	BrokerID    int64 // 0: master
}

// Fields implements [Header].
func (h *BrokerHeader) Fields(f *Fields) {
	f.Text("brokerName", &h.BrokerName)
	f.Text("brokerAddr", &h.BrokerAddr)
	f.Text("clusterName", &h.ClusterName)
	f.Int64("brokerId", &h.BrokerID)
}

// RegisterBrokerHeader registers a broker (103, spec/remoting.md §6.1); see [DecodeRegisterBody].
type RegisterBrokerHeader struct {
	BrokerName   string
	BrokerAddr   string
	ClusterName  string
	HAServerAddr string
	BrokerID     int64 // 0: master
	Compressed   bool
	BodyCRC32    int32 // 0: not checked
}

// Fields implements [Header].
func (h *RegisterBrokerHeader) Fields(f *Fields) {
	f.Text("brokerName", &h.BrokerName)
	f.Text("brokerAddr", &h.BrokerAddr)
	f.Text("clusterName", &h.ClusterName)
	f.Text("haServerAddr", &h.HAServerAddr)
	f.Int64("brokerId", &h.BrokerID)
	f.OptionalBool("compressed", &h.Compressed)
	f.OptionalInt32("bodyCrc32", &h.BodyCRC32, 0)
}

// RegisterBrokerAnswer answers 103; both are empty for a master.
type RegisterBrokerAnswer struct {
	MasterAddr   string
	HAServerAddr string
}

// Fields implements [Header].
func (h *RegisterBrokerAnswer) Fields(f *Fields) {
	f.OptionalText("masterAddr", &h.MasterAddr)
	f.OptionalText("haServerAddr", &h.HAServerAddr)
}

// DataVersionAnswer answers 322.
type DataVersionAnswer struct {
	Changed bool
}

// Fields implements [Header].
func (h *DataVersionAnswer) Fields(f *Fields) {
	f.Bool("changed", &h.Changed)
}

// PromoteHeader asks a slave of ours to become the master once its log ends at an offset or behind it ([RequestPromoteBroker]).
type PromoteHeader struct {
	ExpectOffset int64
	TimeoutMs    int64 // how long it may wait for the offset
}

// Fields implements Header.
func (h *PromoteHeader) Fields(f *Fields) {
	f.Int64("expectOffset", &h.ExpectOffset)
	f.Int64("timeoutMillis", &h.TimeoutMs)
}

// PromotedAnswer says where the log of the new master begins to be its own.
type PromotedAnswer struct{ Offset int64 }

// Fields implements Header.
func (h *PromotedAnswer) Fields(f *Fields) { f.Int64("offset", &h.Offset) }

// DrainHeader asks a broker of ours to stop, and to send producers to others first ([RequestDrainBroker]).
type DrainHeader struct {
	GraceMs int64 // how long it serves on meanwhile
}

// Fields implements [Header].
func (h *DrainHeader) Fields(f *Fields) { f.Int64("graceMillis", &h.GraceMs) }

// RelayHeader says that what comes on a connection is relayed for a client ([RequestRelayBroker]).
type RelayHeader struct {
	Vouch bool // whoever relays can prove for which client
}

// Fields implements [Header].
func (h *RelayHeader) Fields(f *Fields) { f.OptionalBool("vouch", &h.Vouch) }

// RelayAnswer asks for the proof ([RequestRelayHello], [RequestNodeHello]).
type RelayAnswer struct {
	Nonce string // hexadecimal digits; empty: nothing is asked
	Epoch int64  // of the leader; 0: whoever asks is not asked as one
}

// Fields implements [Header].
func (h *RelayAnswer) Fields(f *Fields) {
	f.OptionalText("nonce", &h.Nonce)
	f.OptionalInt64("epoch", &h.Epoch, 0)
}

// CreateTopicHeader creates or changes a topic (17, spec/remoting.md §17.2).
type CreateTopicHeader struct {
	Topic           string
	DefaultTopic    string
	ReadQueueNums   int32
	WriteQueueNums  int32
	Perm            int32
	TopicFilterType string
	TopicSysFlag    int32
	Order           bool // never taken over from this request
}

// Fields implements [Header].
func (h *CreateTopicHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.Text("defaultTopic", &h.DefaultTopic)
	f.Int32("readQueueNums", &h.ReadQueueNums)
	f.Int32("writeQueueNums", &h.WriteQueueNums)
	f.Int32("perm", &h.Perm)
	f.Text("topicFilterType", &h.TopicFilterType)
	f.OptionalInt32("topicSysFlag", &h.TopicSysFlag, 0)
	f.OptionalBool("order", &h.Order)
}

// TopicHeader names a topic: DELETE_TOPIC_IN_BROKER 215, GET_TOPIC_STATS_INFO 202, QUERY_TOPIC_CONSUME_BY_WHO 300.
type TopicHeader struct {
	Topic string
}

// Fields implements [Header].
func (h *TopicHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
}

// DeleteGroupHeader deletes a group's configuration (207).
type DeleteGroupHeader struct {
	GroupName    string
	RemoveOffset bool
}

// Fields implements [Header].
func (h *DeleteGroupHeader) Fields(f *Fields) {
	f.Text("groupName", &h.GroupName)
	f.OptionalBool("removeOffset", &h.RemoveOffset)
}

// VersionAnswer answers GET_BROKER_CONFIG 26.
type VersionAnswer struct {
	Version string // DataVersion as JSON
}

// Fields implements [Header].
func (h *VersionAnswer) Fields(f *Fields) {
	f.Text("version", &h.Version)
}

// ConsumeStatsHeader asks for a group's progress (208).
type ConsumeStatsHeader struct {
	ConsumerGroup string
	Topic         string
}

// Fields implements [Header].
func (h *ConsumeStatsHeader) Fields(f *Fields) {
	f.Text("consumerGroup", &h.ConsumerGroup)
	f.OptionalText("topic", &h.Topic)
}

// ProducerGroupHeader asks for a group's producers (204).
type ProducerGroupHeader struct {
	ProducerGroup string
}

// Fields implements [Header].
func (h *ProducerGroupHeader) Fields(f *Fields) {
	f.Text("producerGroup", &h.ProducerGroup)
}

// RunningInfoHeader asks a client about itself (307, relayed).
type RunningInfoHeader struct {
	ConsumerGroup string
	ClientID      string
	JstackEnable  bool
}

// Fields implements [Header].
func (h *RunningInfoHeader) Fields(f *Fields) {
	f.Text("consumerGroup", &h.ConsumerGroup)
	f.Text("clientId", &h.ClientID)
	f.OptionalBool("jstackEnable", &h.JstackEnable)
}

// ConsumeDirectlyHeader lets a client consume one message (309, relayed).
type ConsumeDirectlyHeader struct {
	ConsumerGroup string
	ClientID      string
	MsgID         string // offset id
	BrokerName    string
}

// Fields implements [Header].
func (h *ConsumeDirectlyHeader) Fields(f *Fields) {
	f.Text("consumerGroup", &h.ConsumerGroup)
	f.OptionalText("clientId", &h.ClientID)
	f.OptionalText("msgId", &h.MsgID)
	f.OptionalText("brokerName", &h.BrokerName)
}

// ResetOffsetHeader moves a group's offsets: 222 to the broker, 220 to its clients.
type ResetOffsetHeader struct {
	Topic       string
	Group       string
	TimestampMs int64 // -1: the end
	IsForce     bool
}

// Fields implements [Header].
func (h *ResetOffsetHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.Text("group", &h.Group)
	f.Int64("timestamp", &h.TimestampMs)
	f.Bool("isForce", &h.IsForce)
}

// ConsumerStatusHeader asks for a group's positions: 223 to the broker, 221 to its clients.
type ConsumerStatusHeader struct {
	Topic      string
	Group      string
	ClientAddr string
}

// Fields implements [Header].
func (h *ConsumerStatusHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.Text("group", &h.Group)
	f.OptionalText("clientAddr", &h.ClientAddr)
}

// TopicGroupHeader names both: QUERY_CONSUME_TIME_SPAN 303.
type TopicGroupHeader struct {
	Topic string
	Group string
}

// Fields implements [Header].
func (h *TopicGroupHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.Text("group", &h.Group)
}

// CorrectionOffsetHeader asks for the least offsets of all groups (308).
type CorrectionOffsetHeader struct {
	Topic        string
	CompareGroup string
	FilterGroups string // comma list
}

// Fields implements [Header].
func (h *CorrectionOffsetHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.Text("compareGroup", &h.CompareGroup)
	f.OptionalText("filterGroups", &h.FilterGroups)
}

// CloneOffsetHeader copies a group's offsets (314).
type CloneOffsetHeader struct {
	SrcGroup  string
	DestGroup string
	Topic     string
	Offline   bool
}

// Fields implements [Header].
func (h *CloneOffsetHeader) Fields(f *Fields) {
	f.Text("srcGroup", &h.SrcGroup)
	f.Text("destGroup", &h.DestGroup)
	f.OptionalText("topic", &h.Topic)
	f.OptionalBool("offline", &h.Offline)
}

// StatsHeader asks for one statistics item (315).
type StatsHeader struct {
	StatsName string
	StatsKey  string
}

// Fields implements [Header].
func (h *StatsHeader) Fields(f *Fields) {
	f.Text("statsName", &h.StatsName)
	f.Text("statsKey", &h.StatsKey)
}

// BrokerConsumeStatsHeader asks for the progress of all groups (317).
type BrokerConsumeStatsHeader struct {
	IsOrder bool
}

// Fields implements [Header].
func (h *BrokerConsumeStatsHeader) Fields(f *Fields) {
	f.Bool("isOrder", &h.IsOrder)
}

// QueryConsumeQueueHeader asks for units of a consume queue (321).
type QueryConsumeQueueHeader struct {
	Topic         string
	QueueID       int32
	Index         int64
	Count         int32
	ConsumerGroup string
}

// Fields implements [Header].
func (h *QueryConsumeQueueHeader) Fields(f *Fields) {
	f.OptionalText("topic", &h.Topic)
	f.OptionalInt32("queueId", &h.QueueID, 0)
	f.OptionalInt64("index", &h.Index, 0)
	f.OptionalInt32("count", &h.Count, 0)
	f.OptionalText("consumerGroup", &h.ConsumerGroup)
}

// ResumeHalfHeader puts a half message back (323).
type ResumeHalfHeader struct {
	MsgID string // offset id
}

// Fields implements [Header].
func (h *ResumeHalfHeader) Fields(f *Fields) {
	f.OptionalText("msgId", &h.MsgID)
}

// UpdateACLHeader creates or changes an account (50, spec/remoting.md §16.5).
type UpdateACLHeader struct {
	AccessKey          string
	SecretKey          string
	WhiteRemoteAddress string
	Admin              bool
	DefaultTopicPerm   string
	DefaultGroupPerm   string
	TopicPerms         string // comma list
	GroupPerms         string // comma list
}

// Fields implements [Header].
func (h *UpdateACLHeader) Fields(f *Fields) {
	f.Text("accessKey", &h.AccessKey)
	f.OptionalText("secretKey", &h.SecretKey)
	f.OptionalText("whiteRemoteAddress", &h.WhiteRemoteAddress)
	f.OptionalBool("admin", &h.Admin)
	f.OptionalText("defaultTopicPerm", &h.DefaultTopicPerm)
	f.OptionalText("defaultGroupPerm", &h.DefaultGroupPerm)
	f.OptionalText("topicPerms", &h.TopicPerms)
	f.OptionalText("groupPerms", &h.GroupPerms)
}

// DeleteACLHeader deletes an account (51).
type DeleteACLHeader struct {
	AccessKey string
}

// Fields implements [Header].
func (h *DeleteACLHeader) Fields(f *Fields) {
	f.Text("accessKey", &h.AccessKey)
}

// WhiteAddrsHeader sets the global white list (53).
type WhiteAddrsHeader struct {
	GlobalWhiteAddrs string
	ACLFileFullPath  string
}

// Fields implements [Header].
func (h *WhiteAddrsHeader) Fields(f *Fields) {
	f.Text("globalWhiteAddrs", &h.GlobalWhiteAddrs)
	f.OptionalText("aclFileFullPath", &h.ACLFileFullPath)
}

// ACLInfoAnswer answers 52.
type ACLInfoAnswer struct {
	Version           string
	AllACLFileVersion string
	BrokerName        string
	BrokerAddr        string
	ClusterName       string
}

// Fields implements [Header].
func (h *ACLInfoAnswer) Fields(f *Fields) {
	f.Text("version", &h.Version)
	f.OptionalText("allAclFileVersion", &h.AllACLFileVersion)
	f.Text("brokerName", &h.BrokerName)
	f.Text("brokerAddr", &h.BrokerAddr)
	f.Text("clusterName", &h.ClusterName)
}
