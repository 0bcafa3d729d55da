package messages

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Errors of group requests; test them with errors.Is.
var (
	// ErrGroupNotExist: the group has no configuration, and may not be made by the request.
	ErrGroupNotExist = errors.New("subscription group does not exist")
	// ErrGroupName: the name can't be one of a group.
	ErrGroupName = errors.New("bad group name")
	// ErrGroupConfig: a number of a group's configuration is out of range.
	ErrGroupConfig = errors.New("bad group configuration")
	// ErrClientExpired: the client has sent no heartbeat for too long; its connection is closed.
	ErrClientExpired = errors.New("no heartbeat from the client")
	// ErrSubscription: the expression of a subscription has no tag in it.
	ErrSubscription = errors.New("bad subscription expression")
)

// MaxGroupBytes bounds the name of a group (spec/remoting.md §15.5).
const MaxGroupBytes = 255

// CheckGroupName returns nil or an error that is ErrGroupName.
func CheckGroupName(group string) error {
	switch {
	case group == "":
		return fmt.Errorf("%w: it is empty", ErrGroupName)
	case len(group) > MaxGroupBytes:
		return fmt.Errorf("%w: %d bytes, limit %d", ErrGroupName, len(group), MaxGroupBytes)
	case !legalName(group):
		return fmt.Errorf("%w: %.200q has other characters than ^[%%|a-zA-Z0-9_-]+$", ErrGroupName, group)
	}
	return nil
}

// ClientChannel is the connection of a client, as its owner in the gateway hands it out. Two are the same connection exactly
// when they are ==, so the dynamic type is a pointer. Safe for any goroutine.
type ClientChannel interface {
	// ID names the connection; it is never used again in this process.
	ID() string
	// RemoteAddr is the client's address, "host:port".
	RemoteAddr() string
	// Tell hands a message to the connection: ConsumerIDsChanged. It never blocks, and keeps its order with the answers of
	// requests that are completed later. A connection that has ended swallows it.
	Tell(message any)
	// Close asks for the end of the connection. It never blocks.
	Close(cause error)
}

// Client is a member of a group: a connection with what its heartbeat said. It is read only, except for the time of the last
// heartbeat. Safe for concurrent use.
type Client struct {
	Channel  ClientChannel
	ID       string
	Language string
	Version  int

	lastUpdateMs atomic.Int64
}

// LastUpdateMs is the time of the last heartbeat.
func (c *Client) LastUpdateMs() int64 { return c.lastUpdateMs.Load() }

// Seen notes a heartbeat; only the client keeper calls it.
func (c *Client) Seen(at time.Time) { c.lastUpdateMs.Store(at.UnixMilli()) }

// Values of ConsumerRegistration's and ConsumerGroup's members (spec/remoting.md §7.1).
const (
	ConsumeActively  = "CONSUME_ACTIVELY"
	ConsumePassively = "CONSUME_PASSIVELY"
	Clustering       = "CLUSTERING"
	Broadcasting     = "BROADCASTING"
	ExpressionTag    = "TAG"
	ExpressionSQL92  = "SQL92"
	SubscribeAll     = "*"
)

// Heartbeat registers a client's groups, or keeps them registered (HEART_BEAT, spec/remoting.md §7.1). The answer comes once
// the registrations are published and the members of groups that have changed are told.
//
// Sender: the gateway, from the connection, in order with its later pulls. Receiver: the client keeper. Bound: the keeper's
// mailbox, ErrBusy beyond; a connection waits for the answer before it reads on.
type Heartbeat struct {
	link Link

	Channel   ClientChannel
	ClientID  string
	Language  string
	Version   int
	Producers []string // groups
	Consumers []ConsumerRegistration
	// Registered, unless it is nil, is called by the keeper between the two: once the registrations are published, and before
	// anybody is told of them. The gateway answers its client there. It must not block.
	Registered func()
	Answer     *Answer[struct{}]
}

// ConsumerRegistration is one consumer group in a heartbeat.
type ConsumerRegistration struct {
	Group            string
	ConsumeType      string
	MessageModel     string
	ConsumeFromWhere string
	Subscriptions    []Subscription
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *Heartbeat) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *Heartbeat) Refuse(cause error) { m.Answer.Refuse(cause) }

// UnregisterClient takes a connection out of a producer group, a consumer group, or both (UNREGISTER_CLIENT, spec/remoting.md
// §7.3). Groups that it is not in are no error. The answer comes once that is published.
//
// Sender: the gateway. Receiver: the client keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type UnregisterClient struct {
	link Link

	Channel       ClientChannel
	ProducerGroup string // empty: none
	ConsumerGroup string // empty: none
	Answer        *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *UnregisterClient) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *UnregisterClient) Refuse(cause error) { m.Answer.Refuse(cause) }

// ClientGone says that a connection has ended: the client is taken out of all its groups. The connection sends nothing
// after it.
//
// Sender: the gateway. Receiver: the client keeper. No answer. Bound: one a connection; it does not count against the
// mailbox's limit.
type ClientGone struct {
	Channel ClientChannel
}

// ConsumerIDsChanged tells a client that the members of its consumer group have changed, so that it rebalances
// (NOTIFY_CONSUMER_IDS_CHANGED, spec/remoting.md §7.2).
//
// Sender: the client keeper. Receiver: each connection of the group. No answer. Bound: one for each change of the group;
// changes that are handled together make one.
type ConsumerIDsChanged struct {
	Group string
}

// ClientsTick is the client keeper's own timer: it removes clients whose heartbeats have ceased.
type ClientsTick struct{}

// ConsumerGroup is a published picture of an online consumer group. It never changes; its maps and slices must not be changed
// by readers.
type ConsumerGroup struct {
	Name             string
	ConsumeType      string // of the last heartbeat, as the two below
	MessageModel     string
	ConsumeFromWhere string
	Subscriptions    map[string]*TopicSubscription // by topic
	Clients          []*Client                     // in the order in which they came, at least one
}

// ClientIDs returns one id for each connection; two connections can have the same.
func (g *ConsumerGroup) ClientIDs() []string {
	ids := make([]string, len(g.Clients))
	for i, c := range g.Clients {
		ids[i] = c.ID
	}
	return ids
}

// Client returns the member with an id, the newest when there are several, or nil.
func (g *ConsumerGroup) Client(id string) *Client {
	for i := len(g.Clients) - 1; i >= 0; i-- {
		if g.Clients[i].ID == id {
			return g.Clients[i]
		}
	}
	return nil
}

// Subscription is what a consumer wants of a topic, as it stands in heartbeats (spec/remoting.md §7.1).
type Subscription struct {
	ClassFilterMode bool
	CodeSet         []int32 // hashes of the tags
	ExpressionType  string  // ExpressionTag, ExpressionSQL92; empty is ExpressionTag
	SubString       string  // the expression; SubscribeAll or empty for all
	SubVersion      int64   // grows when the subscription changes
	TagsSet         []string
	Topic           string
}

// TopicSubscription is a subscription with what is made of it once, when it is registered.
type TopicSubscription struct {
	Subscription
	Tags       TagFilter // nil: every message
	Compiled   any       // what the client keeper's Compile has made of an expression that is no list of tags
	CompileErr error
}

// ByTag tells whether the expression is a list of tags.
func (s *Subscription) ByTag() bool {
	return s.ExpressionType == "" || s.ExpressionType == ExpressionTag
}

// TagSubscription reads a list of tags, separated by "||" (spec/remoting.md §9.7). An empty one is SubscribeAll; ErrSubscription
// when there is nothing but separators.
func TagSubscription(topic, expression string) (Subscription, error) {
	s := Subscription{Topic: topic, SubString: expression, ExpressionType: ExpressionTag}
	if expression == "" || expression == SubscribeAll {
		s.SubString = SubscribeAll
		return s, nil
	}
	if strings.Trim(expression, "|") == "" && strings.Count(expression, "|")%2 == 0 {
		return Subscription{}, fmt.Errorf("%w: %.200q", ErrSubscription, expression)
	}
	for tag := range strings.SplitSeq(expression, "||") {
		if tag = strings.TrimSpace(tag); tag != "" {
			s.TagsSet = append(s.TagsSet, tag)
			s.CodeSet = append(s.CodeSet, JavaHash(tag))
		}
	}
	return s, nil
}

// TagFilter returns the filter on the hashes of tags; nil for a subscription that takes every tag, or does not go by tags. It
// goes by CodeSet, or by the expression when that is empty.
func (s *Subscription) TagFilter() TagFilter {
	if !s.ByTag() || s.ClassFilterMode || s.SubString == "" || s.SubString == SubscribeAll {
		return nil
	}
	codes := s.CodeSet
	if len(codes) == 0 {
		if again, err := TagSubscription(s.Topic, s.SubString); err == nil {
			codes = again.CodeSet
		}
	}
	return filterOf(codes)
}

// fewCodes is up to where looking through a slice is as fast as a map.
const fewCodes = 8

func filterOf(codes []int32) TagFilter {
	if len(codes) == 1 {
		only := codes[0]
		return func(tagsCode int64) bool { return int32(tagsCode) == only }
	}
	if len(codes) <= fewCodes {
		few := append([]int32(nil), codes...)
		return func(tagsCode int64) bool {
			for _, code := range few {
				if int32(tagsCode) == code {
					return true
				}
			}
			return false
		}
	}
	many := make(map[int32]struct{}, len(codes))
	for _, code := range codes {
		many[code] = struct{}{}
	}
	return func(tagsCode int64) bool {
		_, in := many[int32(tagsCode)]
		return in
	}
}

// UpdateGroup makes a subscription group, or replaces its configuration (spec/remoting.md §15.4, §17.3). The answer comes once
// the change is durable and published: nil, ErrGroupName, ErrGroupConfig, or why it could not be saved (then nothing has
// changed).
//
// Sender: the gateway, tools. Receiver: the group config keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type UpdateGroup struct {
	link Link

	Group                          string
	BrokerID                       int64
	ConsumeBroadcastEnable         bool
	ConsumeEnable                  bool
	ConsumeFromMinEnable           bool
	NotifyConsumerIDsChangedEnable bool
	RetryMaxTimes                  int
	RetryQueueNums                 int
	WhichBrokerWhenConsumeSlowly   int64
	Answer                         *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *UpdateGroup) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *UpdateGroup) Refuse(cause error) { m.Answer.Refuse(cause) }

// EnsureGroup makes the configuration of a group when it is not there yet and groups may be made so (spec/remoting.md §15.4).
// The answer comes once it is durable and published: nil, ErrGroupNotExist, ErrGroupName, or why it could not be saved.
//
// Sender: the gateway (heartbeats, pulls, send-backs). Receiver: the group config keeper. Bound: the keeper's mailbox, ErrBusy
// beyond.
type EnsureGroup struct {
	link Link

	Group  string
	Answer *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *EnsureGroup) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *EnsureGroup) Refuse(cause error) { m.Answer.Refuse(cause) }

// DeleteGroup removes the configuration of a group; one that is not there is no error. The answer comes once that is durable
// and published.
//
// Sender: the gateway, tools. Receiver: the group config keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type DeleteGroup struct {
	link Link

	Group  string
	Answer *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *DeleteGroup) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *DeleteGroup) Refuse(cause error) { m.Answer.Refuse(cause) }

// ReplaceGroups makes the table that of the master, when its data version differs (spec/store.md §12.7). JSON is the body of
// GET_ALL_SUBSCRIPTIONGROUP_CONFIG. The answer tells, once it is durable and published, whether anything was replaced.
//
// Sender: the slave's synchronisation. Receiver: the group config keeper. Bound: one at a time.
type ReplaceGroups struct {
	link Link

	JSON   []byte
	Answer *Answer[bool]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *ReplaceGroups) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *ReplaceGroups) Refuse(cause error) { m.Answer.Refuse(cause) }
