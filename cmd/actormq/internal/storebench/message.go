package storebench

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// producer makes the messages of one thread: the body is the same, the unique key counts.
type producer struct {
	topics []string
	queues int
	props  bool
	m      messages.Message
	text   []byte // properties, with the key to be patched
	batch  []byte
	keys   []int // where the unique keys stand in batch
}

const (
	keyPrefix = "UNIQ_KEY\x01"
	keyFixed  = "7F00000100A518B4" // the first half of a unique key; the other half counts
	hexDigits = "0123456789ABCDEF"
)

func newProducer(o *Options) *producer {
	p := &producer{topics: topicNames(o.Topics), queues: o.Queues, props: o.Props == "client"}
	p.m.Body = make([]byte, o.Body)
	for i := range p.m.Body {
		p.m.Body[i] = byte(rand.Uint32())
	}
	if p.props {
		p.text = []byte(keyPrefix + keyFixed + keyFixed + "\x02CLUSTER\x01DefaultCluster\x02TAGS\x01TagA\x02")
	}
	return p
}

func topicNames(n int) []string {
	if n == 1 {
		return []string{"BenchTopic"}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("BenchTopic%05d", i)
	}
	return names
}

// count writes a number as the second half of a unique key.
func count(key []byte, n int64) {
	for i := len(key) - 1; i >= 0; i-- {
		key[i] = hexDigits[n&15]
		n >>= 4
	}
}

func uniqueKey(n int64) string {
	key := []byte(keyFixed + keyFixed)
	count(key[16:], n)
	return string(key)
}

func (p *producer) aim(n int64) {
	p.m.Topic = p.topics[int(n%int64(len(p.topics)))]
	p.m.QueueID = int32(n / int64(len(p.topics)) % int64(p.queues))
	p.m.BornTimestampMs = time.Now().UnixMilli()
}

// message returns the n-th message; it is valid until the next call.
func (p *producer) message(n int64) *messages.Message {
	p.aim(n)
	if p.props {
		count(p.text[len(keyPrefix)+16:len(keyPrefix)+32], n)
		p.m.Properties = messages.Properties(p.text)
	}
	return &p.m
}

// envelope returns the n-th batch of so many messages, as a stock client encodes it; it is valid until the next call.
func (p *producer) envelope(n int64, size int) (*messages.Message, error) {
	if p.batch == nil {
		if err := p.encode(size); err != nil {
			return nil, err
		}
	}
	for k, at := range p.keys {
		count(p.batch[at+16:at+32], n*int64(size)+int64(k))
	}
	p.aim(n)
	p.m.Body = p.batch
	return &p.m, nil
}

func (p *producer) encode(size int) error {
	one := messages.Message{Body: p.m.Body, Properties: messages.Properties(p.text)}
	for range size {
		var err error
		if p.batch, err = record.EncodeBatchBody(p.batch, []messages.Message{one}); err != nil {
			return fmt.Errorf("encode a batch: %w", err)
		}
		if p.props {
			p.keys = append(p.keys, len(p.batch)-len(p.text)+len(keyPrefix))
		}
	}
	return nil
}
