package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/wire"
)

// Client reaches stores of other processes. Safe for concurrent use, by actors too: then by the methods that do not wait.
type Client struct {
	opt     Options
	id      uint64
	keys    keys
	host    *remote.Host
	root    *actor.RootContext
	pid     *actor.PID
	room    chan struct{}   // a token for each request under way
	alive   context.Context //nolint:containedctx // ends with Close
	end     context.CancelFunc
	unwatch func()
	closing sync.Once

	mu       sync.RWMutex // held for reading by who begins something, so that Close comes before or after it
	closed   bool
	handlers sync.WaitGroup // goroutines of subscriptions

	resolving sync.WaitGroup // goroutines that the core starts
}

// Dial makes a client. Nodes are connected to when they are needed first. It is closed with Close.
func Dial(opt Options) (*Client, error) {
	opt = opt.defaults()
	if err := opt.validate(); err != nil {
		return nil, err
	}
	c := &Client{opt: opt, id: rand.Uint64(), keys: newKeys(), room: make(chan struct{}, opt.MaxInFlight)}
	c.alive, c.end = context.WithCancel(context.Background())
	name := "store-client-" + strconv.FormatUint(c.id, 16)
	cfg := remote.Config{Listen: opt.Listen, Advertise: opt.Advertise, Open: []string{name}, Logger: opt.Logger}
	if opt.Server != nil || opt.Client != nil {
		cfg.TLS = func() (server, client *tls.Config) { return opt.Server, opt.Client }
	}
	var err error
	c.host, err = remote.Start(cfg)
	if err != nil {
		return nil, err
	}
	c.root = c.host.System.Root
	k := newCore(c)
	if c.pid, err = c.root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return k }), name); err != nil {
		c.host.Stop()
		return nil, fmt.Errorf("spawn the store's client: %w", err)
	}
	c.unwatch = c.host.Watch(func(address string, connected bool) {
		if !connected {
			c.root.Send(c.pid, lost{address})
		}
	})
	return c, nil
}

// Close ends the subscriptions and fails what is under way with ErrClosed. It waits for the handlers that are running. Only the first call
// does something.
func (c *Client) Close() error {
	var err error
	c.closing.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.end()
		c.handlers.Wait()
		bye := messages.NewAnswer[struct{}]()
		c.root.Send(c.pid, &farewell{bye})
		_, err = bye.Wait(context.Background())
		c.unwatch()
		if stop := c.root.StopFuture(c.pid).Wait(); stop != nil {
			err = errors.Join(err, fmt.Errorf("stop the store's client: %w", stop))
		}
		c.resolving.Wait()
		c.host.Stop()
	})
	return err
}

// Placed tells what became of a put.
type Placed struct {
	messages.PutResult
	QueueID   int32
	MessageID string // the offset message id
}

// Put stores a message and returns when the node has answered; the message is the caller's then. A QueueID below 0 lets the node choose.
// Properties get a UNIQ_KEY, unless they have one: it must not be that of another message. The status of a put that is stored but not
// confirmed (FLUSH_DISK_TIMEOUT and the like) comes with a StatusError.
func (c *Client) Put(ctx context.Context, m *messages.Message) (Placed, error) {
	p := c.putting(m)
	r, err := wait(ctx, c, p.call(), func(e *wire.Envelope) (*wire.PutResult, error) { return unpack(e, &wire.PutResult{}) })
	if err != nil {
		return Placed{}, err
	}
	return placed(r)
}

// PutAsync is Put that does not wait. Done is called once, on the client's actor, or on the caller's goroutine before PutAsync returns: it
// must not block. ErrBusy comes at once. Everything is copied when PutAsync returns. A deadline that is zero is Options.Timeout from now.
func (c *Client) PutAsync(m *messages.Message, deadline time.Time, done func(Placed, error)) {
	p := c.putting(m)
	p.message.Body = append([]byte(nil), p.message.GetBody()...)
	k := p.call()
	k.deadline = deadline
	k.done = func(e *wire.Envelope, err error) {
		var r *wire.PutResult
		if err == nil {
			r, err = unpack(e, &wire.PutResult{})
		}
		if err != nil {
			done(Placed{}, err)
			return
		}
		done(placed(r))
	}
	select {
	case c.room <- struct{}{}:
		c.begin(k)
	default:
		done(Placed{}, ErrBusy)
	}
}

// putting is a put that may be sent several times.
type putting struct {
	message *wire.Message
	began   time.Time
}

func (c *Client) putting(m *messages.Message) *putting {
	properties := m.Properties
	if _, has := properties.Get(messages.PropertyUniqKey); !has {
		properties = properties.With(messages.PropertyUniqKey, c.keys.next())
	}
	now := time.Now()
	born := m.BornTimestampMs
	if born == 0 {
		born = now.UnixMilli()
	}
	return &putting{began: now, message: &wire.Message{
		Topic: m.Topic, QueueId: m.QueueID, Flag: m.Flag, BornMs: born, Body: m.Body, Properties: string(properties),
	}}
}

// call is the request: each time that it is sent it says how long there is left, and whether it was sent before.
func (p *putting) call() *call {
	return &call{topic: p.message.GetTopic(), kind: wire.KindPut, want: wire.KindPutResult, bytes: len(p.message.GetBody()),
		payload: func(k *call, now time.Time) proto.Message {
			return &wire.Put{
				Message: p.message, TimeoutMs: uint32(max(k.deadline.Sub(now).Milliseconds(), 1)), Retry: k.unanswered > 0,
				AgeMs: uint32(max(now.Sub(p.began).Milliseconds(), 0)),
			}
		}}
}

func placed(r *wire.PutResult) (Placed, error) {
	p := Placed{QueueID: r.GetQueueId(), MessageID: r.GetMessageId(), PutResult: messages.PutResult{
		Status: messages.PutStatus(r.GetStatus()), PhysicalOffset: messages.PhysicalOffset(r.GetPhysicalOffset()),
		QueueOffset: messages.QueueOffset(r.GetQueueOffset()), Bytes: r.GetBytes(), Count: 1, StoreTimestampMs: r.GetStoreMs(),
	}}
	if p.Status != messages.PutOK {
		return p, &StatusError{Status: p.Status.String(), Text: r.GetText()}
	}
	return p, nil
}

// Read asks for messages of a queue.
type Read struct {
	Queue       messages.QueueKey
	Offset      messages.QueueOffset
	MaxMessages int      // at most; the node's own limits apply too
	MaxBytes    int      // 0: the node's limit
	Tags        []string // empty: all
}

// Found is what a read has found; see messages.GetResult.
type Found struct {
	Status               messages.GetStatus
	Messages             []messages.StoredMessage
	Next                 messages.QueueOffset // where to go on
	MinOffset, MaxOffset messages.QueueOffset
}

// Get reads messages of a queue from an offset on. It does not wait for messages to come: Subscribe does.
func (c *Client) Get(ctx context.Context, r Read) (Found, error) {
	request := &wire.Get{
		Topic: r.Queue.Topic, QueueId: r.Queue.QueueID, Offset: int64(r.Offset), MaxMessages: uint32(max(r.MaxMessages, 0)),
		MaxBytes: uint32(max(r.MaxBytes, 0)), Tags: r.Tags,
	}
	return wait(ctx, c, asking(r.Queue.Topic, wire.KindGet, wire.KindGetResult, request), func(e *wire.Envelope) (Found, error) {
		a, err := unpack(e, &wire.GetResult{})
		if err != nil {
			return Found{}, err
		}
		all, err := decode(a.GetRecords())
		f := Found{
			Status: messages.GetStatus(a.GetStatus()), Next: messages.QueueOffset(a.GetNextOffset()),
			MinOffset: messages.QueueOffset(a.GetMinOffset()), MaxOffset: messages.QueueOffset(a.GetMaxOffset()),
		}
		for _, m := range all {
			if wire.HasTag(m.Properties, r.Tags) {
				f.Messages = append(f.Messages, m)
			}
		}
		return f, err
	})
}

// Query finds messages of a topic by a key, the newest first.
func (c *Client) Query(ctx context.Context, q messages.QueryMessage) ([]messages.StoredMessage, error) {
	request := &wire.Query{Topic: q.Topic, Key: q.Key, MaxMessages: uint32(max(q.MaxMessages, 0)), BeginMs: q.BeginMs, EndMs: q.EndMs}
	return wait(ctx, c, asking(q.Topic, wire.KindQuery, wire.KindQueryResult, request), func(e *wire.Envelope) ([]messages.StoredMessage, error) {
		a, err := unpack(e, &wire.QueryResult{})
		if err != nil {
			return nil, err
		}
		return decode(a.GetRecords())
	})
}

// Ask asks for offsets of the queues of a topic.
type Ask struct {
	Topic    string
	Queues   []int32   // empty: all
	Group    string    // whose committed offsets; empty: nobody's
	At       time.Time // zero: no search by time
	Boundary messages.TimeBoundary
}

// QueueOffsets are the offsets of one queue.
type QueueOffsets struct {
	QueueID   int32
	Min, Max  messages.QueueOffset
	Committed messages.QueueOffset // by the group; NoOffset: nothing
	ByTime    messages.QueueOffset // as Ask.At and Ask.Boundary say
}

// Offsets tells the range of each queue, what a group has committed, and what was stored at a time.
func (c *Client) Offsets(ctx context.Context, a Ask) ([]QueueOffsets, error) {
	request := &wire.Offsets{
		Topic: a.Topic, QueueIds: a.Queues, Group: a.Group, ByTime: !a.At.IsZero(), TimeMs: a.At.UnixMilli(), Boundary: int32(a.Boundary),
	}
	return wait(ctx, c, asking(a.Topic, wire.KindOffsets, wire.KindOffsetsResult, request), func(e *wire.Envelope) ([]QueueOffsets, error) {
		r, err := unpack(e, &wire.OffsetsResult{})
		var all []QueueOffsets
		for _, q := range r.GetQueues() {
			all = append(all, QueueOffsets{
				QueueID: q.GetQueueId(), Min: messages.QueueOffset(q.GetMin()), Max: messages.QueueOffset(q.GetMax()),
				Committed: messages.QueueOffset(q.GetCommitted()), ByTime: messages.QueueOffset(q.GetByTime()),
			})
		}
		return all, err
	})
}

// asking is a request that may be carried out any number of times.
func asking(topic, kind, want string, payload proto.Message) *call {
	return &call{topic: topic, kind: kind, want: want, payload: func(*call, time.Time) proto.Message { return payload }}
}

func unpack[P proto.Message](e *wire.Envelope, into P) (P, error) {
	if err := wire.Unpack(e, into); err != nil {
		return into, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return into, nil
}

func decode(records []byte) ([]messages.StoredMessage, error) {
	all, err := record.DecodeAll(records)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return all, nil
}
