package messages

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of topic requests; test them with errors.Is.
var (
	// ErrTopicNotExist: the topic is not there, and may not be made by the request.
	ErrTopicNotExist = errors.New("topic does not exist")
	// ErrTopicName: the name can't be one of a topic; the error is a *TopicNameError.
	ErrTopicName = errors.New("bad topic name")
	// ErrSystemTopic: the topic belongs to the broker; tools may neither change nor delete it.
	ErrSystemTopic = errors.New("topic is a system topic")
	// ErrTopicConfig: a number or word of a topic's configuration is out of range.
	ErrTopicConfig = errors.New("bad topic configuration")
)

// TopicNameError says why a name can't be one of a topic. It is an ErrTopicName.
type TopicNameError struct {
	Topic  string
	Remark string // what RocketMQ answers its clients (spec/remoting.md §8.2)
}

func (e *TopicNameError) Error() string {
	return fmt.Sprintf("topic %.200q: %s", e.Topic, e.Remark)
}

// Unwrap returns ErrTopicName.
func (e *TopicNameError) Unwrap() error { return ErrTopicName }

// CheckTopicName returns nil, or a *TopicNameError (spec/remoting.md §8.2 and §15.5).
func CheckTopicName(topic string) error {
	switch {
	case strings.TrimSpace(topic) == "":
		return &TopicNameError{topic, "The specified topic is blank."}
	case !legalName(topic):
		return &TopicNameError{topic, "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"}
	case len(topic) > MaxTopicBytes:
		return &TopicNameError{topic, "The specified topic is longer than topic max length."}
	}
	return nil
}

// legalName tells whether a name of a topic or group has no other characters than %, |, a-z, A-Z, 0-9, _ and -.
func legalName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '%', c == '|', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// Bits of a topic's topicSysFlag.
const (
	TopicSysFlagUnit    = 1 // made by a producer in unit mode
	TopicSysFlagUnitSub = 2 // made for a consumer in unit mode
)

// UpdateTopic makes a topic, or replaces its configuration (UPDATE_AND_CREATE_TOPIC, spec/remoting.md §17.2). Whether the
// topic is an order topic stays as it is: only OrderTopics decides that. The answer comes once the change is durable and
// published: nil, ErrTopicName, ErrSystemTopic, ErrTopicConfig, or why it could not be saved (then nothing has changed).
//
// Sender: the gateway, tools. Receiver: the topic keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type UpdateTopic struct {
	link Link

	Topic       string
	ReadQueues  int
	WriteQueues int
	Perm        int    // bits: 4 read, 2 write, 1 inherit
	FilterType  string // SINGLE_TAG or MULTI_TAG; empty is SINGLE_TAG
	SysFlag     int    // TopicSysFlag bits
	Answer      *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *UpdateTopic) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *UpdateTopic) Refuse(cause error) { m.Answer.Refuse(cause) }

// DeleteTopic removes a topic's configuration; one that is not there is no error. What is told by TopicsChanged then
// removes queues and offsets. The answer comes once the change is durable and published: nil, ErrSystemTopic, or why it
// could not be saved.
//
// Sender: the gateway, tools. Receiver: the topic keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type DeleteTopic struct {
	link Link

	Topic  string
	Answer *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *DeleteTopic) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *DeleteTopic) Refuse(cause error) { m.Answer.Refuse(cause) }

// EnsureTopicForSend makes the topic of a send when it is not there yet and the default topic that the producer names
// allows it (spec/remoting.md §8.3). The answer comes once the topic is durable and published: nil, ErrTopicNotExist,
// ErrTopicName, or why it could not be saved.
//
// Sender: the gateway, an embedder's put. Receiver: the topic keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type EnsureTopicForSend struct {
	link Link

	Topic         string
	DefaultTopic  string // the template
	DefaultQueues int    // what the producer wants at most
	Unit          bool
	Answer        *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *EnsureTopicForSend) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *EnsureTopicForSend) Refuse(cause error) { m.Answer.Refuse(cause) }

// EnsureTopic makes a topic of the broker's own (retry, dead letters, transactions) when it is not there yet; one that is
// there stays as it is. The answer comes once the topic is durable and published: nil, ErrTopicName, ErrTopicConfig, or
// why it could not be saved.
//
// Sender: the gateway, the transaction actors. Receiver: the topic keeper. Bound: the keeper's mailbox, ErrBusy beyond.
type EnsureTopic struct {
	link Link

	Topic   string
	Queues  int // for reading and for writing
	Perm    int // bits: 4 read, 2 write, 1 inherit
	SysFlag int // TopicSysFlag bits
	Answer  *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *EnsureTopic) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *EnsureTopic) Refuse(cause error) { m.Answer.Refuse(cause) }

// ReplaceTopics makes the table that of the master, when its data version differs (spec/store.md §12.7). JSON is the body
// of GET_ALL_TOPIC_CONFIG. The answer tells, once it is durable and published, whether anything was replaced.
//
// Sender: the slave's synchronisation. Receiver: the topic keeper. Bound: one at a time.
type ReplaceTopics struct {
	link Link

	JSON   []byte
	Answer *Answer[bool]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *ReplaceTopics) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *ReplaceTopics) Refuse(cause error) { m.Answer.Refuse(cause) }

// OrderTopics says which topics are order topics; all others are none (spec/remoting.md §6.1). Names that are not there are
// ignored. The answer comes once the change is durable and published.
//
// Sender: the registration at the name servers. Receiver: the topic keeper. Bound: one at a time.
type OrderTopics struct {
	link Link

	Topics []string
	Answer *Answer[struct{}]
}

// MailboxLink returns the link by which a mailbox chains the message.
func (m *OrderTopics) MailboxLink() *Link { m.link.Bind(m); return &m.link }

// Refuse answers with an error.
func (m *OrderTopics) Refuse(cause error) { m.Answer.Refuse(cause) }

// TopicsChanged tells that topic configurations have changed; they are durable and published. It is sent before the
// requests that it comes from are answered. The receiver must not change the slices.
//
// Sender: the topic keeper. Receiver: the listener that it was given (routes, registration at name servers, deletion of
// queues and offsets). No answer. Bound: one for each write of topics.json.
type TopicsChanged struct {
	Changed []string // made or changed, sorted
	Removed []string // sorted
}
