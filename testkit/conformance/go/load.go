package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// underLoad is what the client was told, by body.
type underLoad struct {
	mu       sync.Mutex
	sent     map[string]bool // acknowledged
	received map[string]int
	failed   []error
}

// runLoad sends to a topic and consumes it, with the client's own retries and nothing else, until SIGTERM. The error says what failed
// beyond them, or what was acknowledged and is not consumed a minute after the last send.
func runLoad(namesrv []string, topic string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	l := &underLoad{sent: map[string]bool{}, received: map[string]int{}}
	p, err := rocketmq.NewProducer(producer.WithNsResolver(primitive.NewPassthroughResolver(namesrv)), producer.WithGroupName("load-producers"))
	if err != nil {
		return err
	}
	c, err := rocketmq.NewPushConsumer(consumer.WithNsResolver(primitive.NewPassthroughResolver(namesrv)), consumer.WithGroupName("load-consumers"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return err
	}
	if err := errors.Join(p.Start(), c.Subscribe(topic, everything, l.take), c.Start()); err != nil {
		return err
	}
	var running sync.WaitGroup
	for sender := range 4 {
		running.Add(1)
		go func() {
			defer running.Done()
			l.send(ctx, p, topic, sender)
		}()
	}
	running.Wait()
	for end := time.Now().Add(time.Minute); l.lost() > 0 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	_ = errors.Join(p.Shutdown(), c.Shutdown()) // the process ends
	lost := l.lost()
	l.mu.Lock()
	defer l.mu.Unlock()
	twice := 0
	for _, n := range l.received {
		twice += n - 1
	}
	fmt.Printf("%d sends acknowledged, %d failed; %d messages consumed, %d of them again\n", len(l.sent), len(l.failed), len(l.received), twice)
	if lost > 0 {
		l.failed = append(l.failed, fmt.Errorf("%d messages are acknowledged and not consumed", lost))
	}
	return errors.Join(l.failed...)
}

// send sends one message after the other, some hundred a second.
func (l *underLoad) send(ctx context.Context, p rocketmq.Producer, topic string, sender int) {
	for n := 0; ctx.Err() == nil; n++ {
		body := fmt.Sprintf("%d/%d", sender, n)
		r, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte(body)))
		if err == nil && r.Status != primitive.SendOK {
			err = fmt.Errorf("send status %d", r.Status)
		}
		l.mu.Lock()
		if err == nil {
			l.sent[body] = true
		} else if len(l.failed) < 20 {
			l.failed = append(l.failed, fmt.Errorf("%s at %s: %w", body, time.Now().Format(time.TimeOnly), err))
		}
		l.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
}

func (l *underLoad) take(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range messages {
		l.received[string(m.Body)]++
	}
	return consumer.ConsumeSuccess, nil
}

// lost is how many messages are acknowledged and not consumed yet.
func (l *underLoad) lost() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for body := range l.sent {
		if l.received[body] == 0 {
			n++
		}
	}
	return n
}
