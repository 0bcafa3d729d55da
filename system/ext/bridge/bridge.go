package bridge

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/client"
)

// PropertyOrigin names the sides that a copied message has been at, with spaces between them, its origin first.
const PropertyOrigin = "ACTORMQ_ORIGIN"

// Errors of a bridge; test them with errors.Is.
var (
	// ErrConfig: something is missing in the configuration, or can't be; the message lists every problem.
	ErrConfig = errors.New("bad configuration of a bridge")
	// ErrNoQueue: KeepQueues is set, and the target has no queue of that number.
	ErrNoQueue = errors.New("the target has no queue of this number")
)

// Config is what a bridge is made of. The zero value of a field is its default.
type Config struct {
	// Side is what this side is called, Target what the other side is called: letters, digits, '-', '_' and '.'. Bridges that lead
	// on, or back, use the same names. Required.
	Side, Target string
	// Client says how the target is reached; NameServers is required.
	Client client.Options

	Topics      []string // empty: all, but for those of the broker, of extensions, and of consumer groups (retries, dead letters)
	KeepQueues  bool     // a message goes to the queue with its own number: the target needs as many queues
	OwnOnly     bool     // only what was not copied here by another bridge
	SkipIllegal bool     // what the target refuses as illegal is left out, else the bridge waits for somebody to look
	InFlight    int      // messages being sent at once; default 32
}

// Bridge is the extension. Plug it into the options of one store.
type Bridge struct {
	cfg Config
	// token holds the client from the start of the service to its end; who works with it takes it out.
	token  chan *client.Client
	routes map[string]route // of the handler's goroutine
	sent   map[messages.PhysicalOffset]bool

	copied, unconfirmed, looped, illegal atomic.Int64
}

// Status is what a bridge does and how far it is. LagBytes is how much of the log is not copied yet, LastError why.
type Status struct {
	system.ExtensionStatus
	Copied      int64 // messages that the target has acknowledged since the start
	Unconfirmed int64 // of them: stored, but the target has not confirmed flush or replica
	Looped      int64 // not copied, because of where they have been
	Illegal     int64 // left out, as the target refuses them
}

var sideName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,47}$`)

// validate returns all problems.
func (c Config) validate() error {
	var bad []error
	for name, value := range map[string]string{"Side": c.Side, "Target": c.Target} {
		if !sideName.MatchString(value) {
			bad = append(bad, fmt.Errorf("%s is %q: letters, digits, '-', '_' and '.'", name, value))
		}
	}
	if c.Side == c.Target {
		bad = append(bad, errors.New("the Target is this Side"))
	}
	if len(c.Client.NameServers) == 0 {
		bad = append(bad, errors.New("Client.NameServers is empty"))
	}
	if c.InFlight < 0 {
		bad = append(bad, fmt.Errorf("InFlight is %d", c.InFlight))
	}
	for _, topic := range c.Topics {
		bad = append(bad, messages.CheckTopicName(topic))
	}
	if err := errors.Join(bad...); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// New returns a bridge, or ErrConfig.
func New(cfg Config) (*Bridge, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.InFlight == 0 {
		cfg.InFlight = 32
	}
	if cfg.Client.Timeout <= 0 {
		cfg.Client.Timeout = 3 * time.Second
	}
	return &Bridge{
		cfg: cfg, token: make(chan *client.Client, 1), routes: map[string]route{}, sent: map[messages.PhysicalOffset]bool{},
	}, nil
}

// Name is the name of the bridge's dispatcher, for Store.AwaitExtension and Store.ResumeExtension.
func (b *Bridge) Name() string { return "bridge-" + b.cfg.Target }

// maxBatch is how many messages a batch has at most.
const maxBatch = 512

// Plug adds the bridge to a store's options: a dispatcher, and a service that owns the connections.
func (b *Bridge) Plug(opt *system.Options) {
	opt.Dispatchers = append(opt.Dispatchers, system.Dispatcher{
		Name: b.Name(), Handle: b.handle,
		// Each send ends in time: what takes longer than all of a batch one after the other has stalled.
		Policy: system.ExtensionPolicy{StallAfter: (maxBatch + 1) * b.cfg.Client.Timeout},
	})
	opt.Services = append(opt.Services, system.Service{Name: b.Name() + "-client", Run: func(ctx context.Context, _ *system.Store) error {
		clear(b.routes) // of an earlier start
		clear(b.sent)
		b.token <- client.New(b.cfg.Client)
		<-ctx.Done()
		(<-b.token).Close()
		return nil
	}})
}

// Status tells what the bridge of a store does.
func (b *Bridge) Status(s *system.Store) Status {
	now := Status{
		Copied: b.copied.Load(), Unconfirmed: b.unconfirmed.Load(), Looped: b.looped.Load(), Illegal: b.illegal.Load(),
	}
	for _, e := range s.Extensions() {
		if e.Name == b.Name() {
			now.ExtensionStatus = e
		}
	}
	return now
}

// wants tells whether messages of a topic are copied.
func (b *Bridge) wants(topic string) bool {
	if len(b.cfg.Topics) > 0 {
		return slices.Contains(b.cfg.Topics, topic)
	}
	return !own(topic)
}

// ownTopics and ownPrefixes are what is meant for one broker or cluster alone.
var (
	ownTopics = []string{
		messages.TopicSchedule, messages.TopicTransCheckMaxTime, messages.TopicOffsetMovedEvent, messages.TopicAutoCreateKey,
		messages.TopicSelfTest, messages.TopicBenchmark,
	}
	ownPrefixes = []string{messages.RetryTopicPrefix, messages.DLQTopicPrefix, messages.LMQTopicPrefix, "RMQ_SYS_", "rmq_sys_", "ACTORMQ_"}
)

func own(topic string) bool {
	return slices.Contains(ownTopics, topic) || slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(topic, p) })
}

// path is the property of the copy; false when the message is not to be copied.
func (b *Bridge) path(m *messages.StoredMessage) (string, bool) {
	been, copied := m.Properties.Get(PropertyOrigin)
	if !copied {
		return b.cfg.Side, true
	}
	for side := range strings.FieldsSeq(been) {
		if side == b.cfg.Target || side == b.cfg.Side {
			return "", false
		}
	}
	return been + " " + b.cfg.Side, !b.cfg.OwnOnly
}
