package broker

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors/clients"
	"github.com/actormq/actormq/actors/groups"
	"github.com/actormq/actormq/actors/locks"
	"github.com/actormq/actormq/actors/offsets"
	"github.com/actormq/actormq/actors/topics"
	"github.com/actormq/actormq/actors/transaction"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/sql92"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway/stats"
)

// Store is what the handlers need of a store; *system.Store is one. See there for what its methods promise.
type Store interface {
	Put(ctx context.Context, m *messages.Message) (messages.PutResult, error)
	PutAsync(m *messages.Message, waitStored bool, deadline time.Time, done func(messages.PutResult, error))
	PutBatchAsync(envelope *messages.Message, waitStored bool, deadline time.Time, done func(messages.PutResult, error))
	Get(ctx context.Context, m messages.GetMessage) (*messages.GetResult, error)
	Park(p *messages.ParkPull)
	Unpark(p *messages.ParkPull)
	MinOffset(q messages.QueueKey) messages.QueueOffset
	MaxOffset(q messages.QueueKey) messages.QueueOffset
	OffsetByTime(
		ctx context.Context, q messages.QueueKey, timestampMs int64, boundary messages.TimeBoundary,
	) (messages.QueueOffset, error)
	EarliestStoreTime(q messages.QueueKey) (int64, bool)
	StoreTime(q messages.QueueKey, at messages.QueueOffset) (int64, error)
	MessageAt(at messages.PhysicalOffset) (messages.StoredMessage, error)
	Query(ctx context.Context, q messages.QueryMessage) ([]messages.StoredMessage, error)
	LogRange() (first, end messages.PhysicalOffset)
	Retention() messages.Retention
	SetReaders(readers messages.Readers)
	HoldsInMemory(q messages.QueueKey, at messages.QueueOffset) bool
	FlushedTo() messages.PhysicalOffset
	AwaitDispatched(ctx context.Context) error
	Writable() error
}

// Config is who a broker is and what it allows. Names in parentheses are RocketMQ's options.
type Config struct {
	ClusterName string         // brokerClusterName; default DefaultCluster
	BrokerName  string         // brokerName; default broker-a
	BrokerID    int64          // brokerId; 0 is the master
	Address     string         // brokerIP1:listenPort, as clients reach it; default StoreHost
	StoreHost   netip.AddrPort // the same as bytes, for records and message ids: the store's own; default 127.0.0.1:10911
	Region      string         // regionId; default DefaultRegion

	PutTimeout    time.Duration // how long a send waits for flush and replicas; default 5 s
	KeeperTimeout time.Duration // how long a request waits for a keeper; default 3 s
	MaxHeldPulls  int           // held pulls a connection; default 16,384

	Policy Policy // at the start; see Broker.Policy

	Delays messages.DelayLevels // messageDelayLevel, as the store has it; default RocketMQ's

	Tracer Tracer // nil: nothing is traced

	Logger zerolog.Logger
}

// Tracer is told of messages on their way; system/ext/tracing is one. Its methods must not block, and must not keep what they are given.
type Tracer interface {
	// Stored tells that a send, which came at a time, is stored: one record, or those of a batch with their sizes.
	Stored(result messages.PutResult, sizes []int32, came time.Time)
	// Pulled tells that a group is given records, whose pull came at a time.
	Pulled(group string, records [][]byte, came time.Time)
}

// Policy is what can be changed while the broker runs.
type Policy struct {
	Perm             int           // brokerPermission; default 6
	TraceOff         bool          // traceOn=false: clients do not trace
	CheckWrites      bool          // strictPermission: sends to a topic, or at a broker, without write permission are refused
	SlaveReads       bool          // slaveReadEnable: slow readers are sent to a slave
	RejectHalf       bool          // rejectTransactionMessage
	AcceptFromMs     int64         // startAcceptSendRequestTimeStamp: sends before that time are refused
	DropReplies      bool          // storeReplyMessageEnable=false: replies are only pushed to their requesters
	LongPollingOff   bool          // longPollingEnable=false: a pull is held for ShortPolling
	ShortPolling     time.Duration // shortPollingTimeMills; default 1 s
	NotifyOff        bool          // notifyConsumerIdsChangedEnable=false
	FilterByProperty bool          // enablePropertyFilter: SQL92
	FilterRetries    bool          // filterSupportRetry: retried messages are filtered as those of their first topic are
	DefaultQueryMax  int           // defaultQueryMaxNum; default 32
	LightTopics      bool          // enableLmq: light topics have one queue and no configuration
	Limits           *Limits       // topicLimits: of sends to topics; nil: none
	// SearchBoundary is which message a search by time finds; the default is the first one not older than the time, and the
	// queue's end when there is none, not RocketMQ's nearest.
	SearchBoundary messages.TimeBoundary
}

func (p Policy) defaults() Policy {
	p.Perm = cmp.Or(p.Perm, metadata.PermRead|metadata.PermWrite)
	p.ShortPolling = cmp.Or(p.ShortPolling, time.Second)
	p.DefaultQueryMax = cmp.Or(p.DefaultQueryMax, 32)
	return p
}

// Readable tells whether brokerPermission has the read bit.
func (p *Policy) Readable() bool { return p.Perm&metadata.PermRead != 0 }

// Writeable tells whether brokerPermission has the write bit.
func (p *Policy) Writeable() bool { return p.Perm&metadata.PermWrite != 0 }

// Defaults returns the configuration with every zero field filled in.
func (c Config) Defaults() Config {
	c.ClusterName = cmp.Or(c.ClusterName, "DefaultCluster")
	c.BrokerName = cmp.Or(c.BrokerName, "broker-a")
	c.StoreHost = cmp.Or(c.StoreHost, netip.MustParseAddrPort("127.0.0.1:10911"))
	c.Address = cmp.Or(c.Address, c.StoreHost.String())
	c.Region = cmp.Or(c.Region, "DefaultRegion")
	c.PutTimeout = cmp.Or(c.PutTimeout, 5*time.Second)
	c.KeeperTimeout = cmp.Or(c.KeeperTimeout, 3*time.Second)
	c.MaxHeldPulls = cmp.Or(c.MaxHeldPulls, 16<<10)
	c.Policy = c.Policy.defaults()
	if c.Delays == nil {
		c.Delays, _ = messages.ParseDelayLevels(messages.DefaultDelayLevels) // it is right
	}
	return c
}

// Broker is what the handlers work with. Safe for concurrent use.
type Broker struct {
	Config
	Noise zerolog.Logger // for what clients can cause at will: a few lines a minute
	// Doubts is the same for whoever does not prove to be a node of the group: what clients do takes none of its lines.
	Doubts zerolog.Logger

	Store   Store
	Topics  *topics.Keeper
	Groups  *groups.Keeper
	Clients *clients.Keeper
	Offsets *offsets.Keeper
	Locks   *locks.Keeper
	Stats   *stats.Set // nil: nothing is counted

	Transactions *transaction.Keeper // nil: a slave has none
	OnPolicy     func()              // nil, or is called after each change of the policy

	// Limited counts the sends that were refused by a limit of their topic.
	Limited struct{ Messages, Bytes, Kept atomic.Int64 }

	// Relayed counts the requests that were to be handed on to whoever leads the group, and those of them that no leader was found for in time;
	// of a leader, the connections of nodes that have proved for which client they relay, and those that were closed as they had not.
	Relayed struct{ All, Failed, Proved, Refused atomic.Int64 }

	policy atomic.Pointer[Policy]
}

// IP is brokerIP1, by which refusals name the broker.
func (b *Broker) IP() string {
	host, _, err := net.SplitHostPort(b.Address)
	if err != nil {
		return b.Address
	}
	return host
}

// Policy is what holds at the moment; whoever needs several of its fields for one decision calls it once.
func (b *Broker) Policy() *Policy { return b.policy.Load() }

// SetPolicy changes what holds from now on.
func (b *Broker) SetPolicy(p Policy) {
	p = p.defaults()
	b.policy.Store(&p)
	if b.OnPolicy != nil {
		b.OnPolicy()
	}
}

// CompileFilter reads the expression of a subscription that is no list of tags. The client keeper's compiled subscriptions
// come from here.
func CompileFilter(expressionType, expression string) (*sql92.Filter, error) {
	if expressionType != messages.ExpressionSQL92 {
		return nil, fmt.Errorf("%w: its type is %.20q, known are TAG and SQL92", sql92.ErrExpression, expressionType)
	}
	return sql92.Compile(expression)
}

// New returns a broker without its keepers; whoever starts them fills them in.
func New(c Config, store Store) *Broker {
	c = c.Defaults()
	const linesAMinute = 10
	few := func() zerolog.Logger {
		return c.Logger.Sample(&zerolog.BurstSampler{Burst: linesAMinute, Period: time.Minute})
	}
	b := &Broker{Config: c, Store: store, Noise: few(), Doubts: few()}
	b.SetPolicy(c.Policy)
	return b
}

// Context bounds the waiting for a keeper.
func (b *Broker) Context() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), b.KeeperTimeout,
		fmt.Errorf("no answer within %v: %w", b.KeeperTimeout, context.DeadlineExceeded))
}

// TopicDeleter is a store that can drop the queues of a topic.
type TopicDeleter interface {
	DeleteTopic(ctx context.Context, topic string) error
}

// Cleaner is a store that deletes what is not needed any more.
type Cleaner interface {
	DeleteExpiredFiles() error
	DeleteExpiredQueues(ctx context.Context) error
	DeleteUnusedTopics(ctx context.Context, used func(topic string) bool) error
	// DiskUse is how full the disks of log and queues are, in percent; -1 is unknown.
	DiskUse() (log, queues int)
}
