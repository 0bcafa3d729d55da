package remoting

// Typed headers of what producers and consumers ask. A Header struct is a request unless its name ends in Answer.

// AbsentTimes is MaxReconsumeTimes when the requester sends none.
const AbsentTimes = -1

// Ext fields of a send's answer, also of an error (spec/remoting.md §8.5).
const (
	ExtMsgRegion = "MSG_REGION"
	ExtTraceOn   = "TRACE_ON"
)

// Bits of PullMessageHeader.SysFlag (spec/remoting.md §9.1).
const (
	PullFlagCommitOffset int32 = 1 << iota
	PullFlagSuspend
	PullFlagSubscription
	PullFlagClassFilter
	PullFlagLite
)

// SendMessageHeader is the header of all sends: 10 and 324 have long names, 310, 320 and 325 one letter each
// (spec/remoting.md §8.1). [DecodeSend] knows which.
type SendMessageHeader struct {
	ProducerGroup         string
	Topic                 string
	DefaultTopic          string // template for the creation of the topic
	DefaultTopicQueueNums int32
	QueueID               int32 // -1: the broker chooses
	SysFlag               int32
	BornTimestampMs       int64
	Flag                  int32
	Properties            string // wire form
	ReconsumeTimes        int32
	UnitMode              bool
	MaxReconsumeTimes     int32 // AbsentTimes: not sent
	Batch                 bool  // decides on the batch path, whatever the code
	BrokerName            string
}

type sendNames [14]string

var (
	longSendNames = sendNames{
		"producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag",
		"properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes", "batch", "bname",
	}
	shortSendNames = sendNames{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"}
)

// Fields implements [Header] with the long names.
func (h *SendMessageHeader) Fields(f *Fields) { h.fields(f, &longSendNames) }

func (h *SendMessageHeader) fields(f *Fields, names *sendNames) {
	f.Text(names[0], &h.ProducerGroup)
	f.Text(names[1], &h.Topic)
	f.Text(names[2], &h.DefaultTopic)
	f.Int32(names[3], &h.DefaultTopicQueueNums)
	f.Int32(names[4], &h.QueueID)
	f.Int32(names[5], &h.SysFlag)
	f.Int64(names[6], &h.BornTimestampMs)
	f.Int32(names[7], &h.Flag)
	f.OptionalText(names[8], &h.Properties)
	f.OptionalInt32(names[9], &h.ReconsumeTimes, 0)
	f.OptionalBool(names[10], &h.UnitMode)
	f.OptionalInt32(names[11], &h.MaxReconsumeTimes, AbsentTimes)
	f.OptionalBool(names[12], &h.Batch)
	f.OptionalText(names[13], &h.BrokerName)
}

// SendMessageV2Header is SendMessageHeader in the short form.
type SendMessageV2Header SendMessageHeader

// Fields implements [Header] with the short names.
func (h *SendMessageV2Header) Fields(f *Fields) { (*SendMessageHeader)(h).fields(f, &shortSendNames) }

// DecodeSend reads the header of any send by its code. Errors as [FromExt].
func DecodeSend(c *Command) (SendMessageHeader, error) {
	var h SendMessageHeader
	f := Fields{ext: c.ExtFields}
	switch c.Code {
	case RequestSendMessageV2, RequestSendBatchMessage, RequestSendReplyMessageV2:
		if h.readShort(c.ExtFields) {
			return h, nil
		}
		h = SendMessageHeader{}
		h.fields(&f, &shortSendNames)
	default:
		h.fields(&f, &longSendNames)
	}
	return h, f.err
}

// SendMessageAnswer answers a send whose message is stored (spec/remoting.md §8.5).
type SendMessageAnswer struct {
	MsgID         string // offset id; of a batch all of them with commas
	QueueID       int32
	QueueOffset   int64 // of the first message
	TransactionID string
	MsgRegion     string
	TraceOn       bool
}

// Fields implements [Header].
func (h *SendMessageAnswer) Fields(f *Fields) {
	f.Text("msgId", &h.MsgID)
	f.Int32("queueId", &h.QueueID)
	f.Int64("queueOffset", &h.QueueOffset)
	f.OptionalText("transactionId", &h.TransactionID)
	f.OptionalText(ExtMsgRegion, &h.MsgRegion)
	f.OptionalBool(ExtTraceOn, &h.TraceOn)
}

// PullMessageHeader asks for messages (11, spec/remoting.md §9.1).
type PullMessageHeader struct {
	ConsumerGroup    string
	Topic            string
	QueueID          int32
	QueueOffset      int64
	MaxMsgNums       int32
	SysFlag          int32 // PullFlag bits
	CommitOffset     int64 // valid with PullFlagCommitOffset only
	SuspendTimeoutMs int64
	Subscription     string // meaningful with PullFlagSubscription only
	SubVersion       int64
	ExpressionType   string // TAG, SQL92; empty is TAG
}

// Fields implements [Header].
func (h *PullMessageHeader) Fields(f *Fields) {
	f.Text("consumerGroup", &h.ConsumerGroup)
	f.Text("topic", &h.Topic)
	f.Int32("queueId", &h.QueueID)
	f.Int64("queueOffset", &h.QueueOffset)
	f.Int32("maxMsgNums", &h.MaxMsgNums)
	f.Int32("sysFlag", &h.SysFlag)
	f.Int64("commitOffset", &h.CommitOffset)
	f.Int64("suspendTimeoutMillis", &h.SuspendTimeoutMs)
	f.OptionalText("subscription", &h.Subscription)
	f.Int64("subVersion", &h.SubVersion)
	f.OptionalText("expressionType", &h.ExpressionType)
}

// PullMessageAnswer goes with response codes 0, 19, 20 and 21 of a pull (spec/remoting.md §9.4).
type PullMessageAnswer struct {
	SuggestWhichBrokerID int64
	NextBeginOffset      int64
	MinOffset            int64
	MaxOffset            int64
}

// Fields implements [Header].
func (h *PullMessageAnswer) Fields(f *Fields) {
	f.Int64("suggestWhichBrokerId", &h.SuggestWhichBrokerID)
	f.Int64("nextBeginOffset", &h.NextBeginOffset)
	f.Int64("minOffset", &h.MinOffset)
	f.Int64("maxOffset", &h.MaxOffset)
}

// QueryConsumerOffsetHeader asks for a stored offset (14, spec/remoting.md §11.1).
type QueryConsumerOffsetHeader struct {
	ConsumerGroup string
	Topic         string
	QueueID       int32
}

// Fields implements [Header].
func (h *QueryConsumerOffsetHeader) Fields(f *Fields) {
	f.Text("consumerGroup", &h.ConsumerGroup)
	f.Text("topic", &h.Topic)
	f.Int32("queueId", &h.QueueID)
}

// UpdateConsumerOffsetHeader stores an offset (15, spec/remoting.md §11.1).
type UpdateConsumerOffsetHeader struct {
	ConsumerGroup string
	Topic         string
	QueueID       int32
	CommitOffset  int64
}

// Fields implements [Header].
func (h *UpdateConsumerOffsetHeader) Fields(f *Fields) {
	f.Text("consumerGroup", &h.ConsumerGroup)
	f.Text("topic", &h.Topic)
	f.Int32("queueId", &h.QueueID)
	f.Int64("commitOffset", &h.CommitOffset)
}

// QueueHeader names a queue: GET_MAX_OFFSET 30, GET_MIN_OFFSET 31, GET_EARLIEST_MSG_STORETIME 32.
type QueueHeader struct {
	Topic   string
	QueueID int32
}

// Fields implements [Header].
func (h *QueueHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.Int32("queueId", &h.QueueID)
}

// SearchOffsetHeader asks for the offset by store time (29).
type SearchOffsetHeader struct {
	Topic       string
	QueueID     int32
	TimestampMs int64
}

// Fields implements [Header].
func (h *SearchOffsetHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.Int32("queueId", &h.QueueID)
	f.Int64("timestamp", &h.TimestampMs)
}

// OffsetAnswer answers 14, 29, 30 and 31.
type OffsetAnswer struct {
	Offset int64
}

// Fields implements [Header].
func (h *OffsetAnswer) Fields(f *Fields) {
	f.Int64("offset", &h.Offset)
}

// TimestampAnswer answers 32.
type TimestampAnswer struct {
	TimestampMs int64 // -1: none
}

// Fields implements [Header].
func (h *TimestampAnswer) Fields(f *Fields) {
	f.Int64("timestamp", &h.TimestampMs)
}

// SendBackHeader returns a message for a retry (36, spec/remoting.md §10.1).
type SendBackHeader struct {
	Offset            int64 // physical, of the consumed record
	Group             string
	DelayLevel        int32 // 0: the broker decides, -1: dead letter
	OriginMsgID       string
	OriginTopic       string
	UnitMode          bool
	MaxReconsumeTimes int32 // AbsentTimes: not sent
}

// Fields implements [Header].
func (h *SendBackHeader) Fields(f *Fields) {
	f.Int64("offset", &h.Offset)
	f.Text("group", &h.Group)
	f.Int32("delayLevel", &h.DelayLevel)
	f.OptionalText("originMsgId", &h.OriginMsgID)
	f.OptionalText("originTopic", &h.OriginTopic)
	f.OptionalBool("unitMode", &h.UnitMode)
	f.OptionalInt32("maxReconsumeTimes", &h.MaxReconsumeTimes, AbsentTimes)
}

// UnregisterClientHeader takes the sender out of its groups (35, spec/remoting.md §7.3).
type UnregisterClientHeader struct {
	ClientID      string
	ProducerGroup string
	ConsumerGroup string
}

// Fields implements [Header].
func (h *UnregisterClientHeader) Fields(f *Fields) {
	f.Text("clientID", &h.ClientID)
	f.OptionalText("producerGroup", &h.ProducerGroup)
	f.OptionalText("consumerGroup", &h.ConsumerGroup)
}

// ConsumerGroupHeader names a group: GET_CONSUMER_LIST_BY_GROUP 38, NOTIFY_CONSUMER_IDS_CHANGED 40,
// GET_CONSUMER_CONNECTION_LIST 203.
type ConsumerGroupHeader struct {
	ConsumerGroup string
}

// Fields implements [Header].
func (h *ConsumerGroupHeader) Fields(f *Fields) {
	f.Text("consumerGroup", &h.ConsumerGroup)
}

// EndTransactionHeader commits or rolls back a half message (37, spec/remoting.md §12.1).
type EndTransactionHeader struct {
	ProducerGroup        string
	TranStateTableOffset int64 // queue offset of the half record
	CommitLogOffset      int64 // physical offset of the half record
	CommitOrRollback     int32 // 8 commit, 12 rollback, 0 unknown
	FromTransactionCheck bool
	MsgID                string
	TransactionID        string
}

// Fields implements [Header].
func (h *EndTransactionHeader) Fields(f *Fields) {
	f.Text("producerGroup", &h.ProducerGroup)
	f.Int64("tranStateTableOffset", &h.TranStateTableOffset)
	f.Int64("commitLogOffset", &h.CommitLogOffset)
	f.Int32("commitOrRollback", &h.CommitOrRollback)
	f.OptionalBool("fromTransactionCheck", &h.FromTransactionCheck)
	f.Text("msgId", &h.MsgID)
	f.OptionalText("transactionId", &h.TransactionID)
}

// CheckTransactionHeader asks a producer what became of a half message (39, broker to client, spec/remoting.md §12.2).
type CheckTransactionHeader struct {
	TranStateTableOffset int64
	CommitLogOffset      int64
	MsgID                string
	TransactionID        string
	OffsetMsgID          string
}

// Fields implements [Header].
func (h *CheckTransactionHeader) Fields(f *Fields) {
	f.Int64("tranStateTableOffset", &h.TranStateTableOffset)
	f.Int64("commitLogOffset", &h.CommitLogOffset)
	f.OptionalText("msgId", &h.MsgID)
	f.OptionalText("transactionId", &h.TransactionID)
	f.OptionalText("offsetMsgId", &h.OffsetMsgID)
}

// ReplyPushHeader brings a reply to its requester (326, broker to client, spec/remoting.md §12.3).
type ReplyPushHeader struct {
	ProducerGroup         string
	Topic                 string
	DefaultTopic          string
	DefaultTopicQueueNums int32
	QueueID               int32
	SysFlag               int32
	BornTimestampMs       int64
	Flag                  int32
	Properties            string
	ReconsumeTimes        int32
	UnitMode              bool
	BornHost              string // ip:port
	StoreHost             string // ip:port
	StoreTimestampMs      int64
}

// Fields implements [Header].
func (h *ReplyPushHeader) Fields(f *Fields) {
	f.Text("producerGroup", &h.ProducerGroup)
	f.Text("topic", &h.Topic)
	f.Text("defaultTopic", &h.DefaultTopic)
	f.Int32("defaultTopicQueueNums", &h.DefaultTopicQueueNums)
	f.Int32("queueId", &h.QueueID)
	f.Int32("sysFlag", &h.SysFlag)
	f.Int64("bornTimestamp", &h.BornTimestampMs)
	f.Int32("flag", &h.Flag)
	f.OptionalText("properties", &h.Properties)
	f.OptionalInt32("reconsumeTimes", &h.ReconsumeTimes, AbsentTimes)
	f.OptionalBool("unitMode", &h.UnitMode)
	f.Text("bornHost", &h.BornHost)
	f.Text("storeHost", &h.StoreHost)
	f.Int64("storeTimestamp", &h.StoreTimestampMs)
}

// ViewMessageHeader asks for one record (33, spec/remoting.md §17.5).
type ViewMessageHeader struct {
	Offset int64 // physical
}

// Fields implements [Header].
func (h *ViewMessageHeader) Fields(f *Fields) {
	f.Int64("offset", &h.Offset)
}

// QueryMessageHeader asks the index for records (12, spec/remoting.md §17.5).
type QueryMessageHeader struct {
	Topic            string
	Key              string
	MaxNum           int32
	BeginTimestampMs int64
	EndTimestampMs   int64
	UniqueKey        bool // MaxNum is then the broker's default
}

// Fields implements [Header].
func (h *QueryMessageHeader) Fields(f *Fields) {
	f.Text("topic", &h.Topic)
	f.Text("key", &h.Key)
	f.Int32("maxNum", &h.MaxNum)
	f.Int64("beginTimestamp", &h.BeginTimestampMs)
	f.Int64("endTimestamp", &h.EndTimestampMs)
	f.OptionalBool("_UNIQUE_KEY_QUERY", &h.UniqueKey)
}

// QueryMessageAnswer goes with response codes 0 and 22 of QUERY_MESSAGE.
type QueryMessageAnswer struct {
	IndexLastUpdateTimestampMs int64
	IndexLastUpdatePhyOffset   int64
}

// Fields implements [Header].
func (h *QueryMessageAnswer) Fields(f *Fields) {
	f.Int64("indexLastUpdateTimestamp", &h.IndexLastUpdateTimestampMs)
	f.Int64("indexLastUpdatePhyoffset", &h.IndexLastUpdatePhyOffset)
}
