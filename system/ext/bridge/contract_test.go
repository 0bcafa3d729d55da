package bridge_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/client"
	"github.com/actormq/actormq/system/ext/bridge"
	"github.com/actormq/actormq/testkit/dispatching"
	"github.com/actormq/actormq/testkit/probe"
)

// TestContract: what was acknowledged at the source arrives, at least once, whatever happens. The target is a store of its own
// on the same disk, behind the wire protocol on pipes: a crash takes the power from both.
func TestContract(t *testing.T) {
	dispatching.Contract(t, dispatching.Subject{
		Plug: func(opt *system.Options) dispatching.Check {
			f := &far{opt: *opt, links: make(chan net.Conn)}
			f.opt.Dir = "target"
			b, err := bridge.New(bridge.Config{
				Side: "here", Target: "there", Client: client.Options{NameServers: []string{"far:1"}, Dial: f.dial},
			})
			require.NoError(t, err)
			b.Plug(opt)
			opt.Dispatchers[0].SaveInterval = 300 * time.Millisecond
			opt.Services = append(opt.Services, system.Service{Name: "far", Run: f.run})
			return func(t testing.TB, _ *system.Store, acked int) {
				there := probe.Follow(t, f.store(), "Orders", 0).All(context.Background())
				for i := range acked {
					require.Contains(t, there, fmt.Sprint("body ", i))
				}
			}
		},
		Put: func(ctx context.Context, s *system.Store, i int) error {
			_, err := s.Put(ctx, &messages.Message{Topic: "Orders", Body: fmt.Append(nil, "body ", i)})
			<-time.After(100 * time.Millisecond)
			return err
		},
		Settle: 15 * time.Second, Messages: 12,
	})
}

// far is a broker and name server as far as a bridge needs one.
type far struct {
	opt   system.Options
	links chan net.Conn
	mu    sync.Mutex
	open  *system.Store
}

func (f *far) store() *system.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

func (f *far) dial(ctx context.Context, _ string) (net.Conn, error) {
	near, there := net.Pipe()
	select {
	case f.links <- there:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run is a service.
func (f *far) run(ctx context.Context, _ *system.Store) error {
	s, err := system.Open(f.opt)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.open = s
	f.mu.Unlock()
	var serving sync.WaitGroup
	for ctx.Err() == nil {
		select {
		case link := <-f.links:
			context.AfterFunc(ctx, func() { _ = link.Close() })
			serving.Go(func() { err = errors.Join(err, serve(link, s)) })
		case <-ctx.Done():
		}
	}
	serving.Wait()
	return errors.Join(err, s.Close(context.Background()))
}

func serve(link net.Conn, s *system.Store) error {
	in := bufio.NewReader(link)
	for {
		request, err := remoting.ReadCommand(in, remoting.Limits{})
		if err != nil {
			return nil // the bridge has gone
		}
		answer := request.Answer(remoting.ResponseSuccess, "")
		if request.Code == remoting.RequestGetRouteInfoByTopic {
			err = answer.EncodeBody(remoting.TopicRouteData{
				BrokerDatas: []remoting.BrokerData{{BrokerAddrs: map[int64]string{0: "far:1"}, BrokerName: "far"}},
				QueueDatas:  []remoting.QueueData{{BrokerName: "far", Perm: 6, ReadQueueNums: 4, WriteQueueNums: 4}},
			})
		} else {
			err = store(request, answer, s)
		}
		if err != nil {
			return err
		}
		frame, err := answer.Append(nil)
		if err != nil {
			return err
		}
		if _, err = link.Write(frame); err != nil {
			return nil
		}
	}
}

func store(request, answer *remoting.Command, s *system.Store) error {
	h, err := remoting.DecodeSend(request)
	if err != nil {
		return err
	}
	r, err := s.Put(context.Background(), &messages.Message{
		Topic: h.Topic, QueueID: h.QueueID, Body: request.Body, Properties: messages.Properties(h.Properties),
	})
	if err != nil {
		answer.Code, answer.Remark = remoting.ResponseServiceNotAvailable, err.Error()
	}
	answer.ExtFields = remoting.ToExt(&remoting.SendMessageAnswer{QueueID: h.QueueID, QueueOffset: int64(r.QueueOffset)})
	return nil
}
