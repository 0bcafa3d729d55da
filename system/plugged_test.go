package system_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/extension"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func hooked(hooks ...system.PutHook) system.Options {
	opt := small(memfs.New())
	opt.PutHooks = hooks
	return opt
}

func TestPutHooksLookChangeAndRefuseInOrder(t *testing.T) {
	refusal := errors.New("no shouting")
	s := open(t, hooked(
		system.PutHook{Name: "change", Func: func(m *messages.Message) error {
			m.Topic = strings.ToLower(m.Topic)
			m.Body = append([]byte("changed "), m.Body...)
			return nil
		}},
		system.PutHook{Name: "refuse", Func: func(m *messages.Message) error {
			if strings.HasSuffix(string(m.Body), "!") {
				return refusal
			}
			return nil
		}},
	))
	mine := message("UPPER", 0, "body")
	r, err := s.Put(t.Context(), mine)
	require.NoError(t, err)
	require.Equal(t, messages.PutOK, r.Status)
	require.Equal(t, "UPPER", mine.Topic, "the caller's message stays as it is")
	require.Equal(t, []string{"changed body"}, readable(t, s, messages.QueueKey{Topic: "upper"}))

	r, err = s.Put(t.Context(), message("UPPER", 0, "body!"))
	require.ErrorIs(t, err, system.ErrRefused)
	require.ErrorIs(t, err, refusal)
	require.Equal(t, messages.MessageIllegal, r.Status)
	done := make(chan error, 1)
	s.PutAsync(message("UPPER", 0, "body!"), true, time.Time{}, func(_ messages.PutResult, err error) { done <- err })
	require.ErrorIs(t, <-done, refusal)
	_, err = s.PutMessages(t.Context(), []messages.Message{*message("UPPER", 0, "a"), *message("UPPER", 0, "b")})
	require.Error(t, err, "the first hook has spoilt the batch, and that is found")
	require.EqualValues(t, 4, status(t, s, "refuse").Handled)
}

func TestAHookSeesTheHalfMessageAndNotWhatEndsTheTransaction(t *testing.T) {
	var topics []string
	s := open(t, hooked(system.PutHook{Name: "see", Func: func(m *messages.Message) error {
		topics = append(topics, m.Topic)
		return nil
	}}))
	tx := begin(t, s, system.TransactionOptions{})
	_, err := tx.Commit(t.Context(), prepare(t, tx, draft("one")))
	require.NoError(t, err)
	require.Equal(t, []string{messages.TopicTransactionHalf}, topics)
}

func TestAPutHookThatPanicsIsPassedByOrRefuses(t *testing.T) {
	for _, kind := range []struct{ refuse, inline bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		refuse := kind.refuse
		fixture.Bubble(t, func(t *testing.T) {
			s := openIn(t, hooked(system.PutHook{Name: "bad", Refuse: refuse, Inline: kind.inline, Func: func(m *messages.Message) error {
				m.Body = nil
				panic("always")
			}}))
			for range 20 {
				r, err := s.Put(t.Context(), message("T", 0, "whole"))
				if refuse {
					require.ErrorIs(t, err, extension.ErrHook)
					require.Equal(t, messages.ServiceNotAvailable, r.Status)
				} else {
					require.NoError(t, err)
				}
			}
			st := status(t, s, "bad")
			require.Equal(t, extension.Parked, st.State)
			require.EqualValues(t, 5, st.Failures, "then it is left out")
			require.ErrorIs(t, st.LastError, messages.ErrPanicked)
			if !refuse {
				require.Equal(t, "whole", readable(t, s, messages.QueueKey{Topic: "T"})[19])
			}
			sleep(11 * time.Second)
			require.Equal(t, extension.Running, status(t, s, "bad").State, "and tried again after a while")
			_, _ = s.Put(t.Context(), message("T", 0, "whole"))
			require.EqualValues(t, 6, status(t, s, "bad").Failures)
			require.NoError(t, s.ResumeExtension("bad"))
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

func TestAPutGoesOnWithoutAHookThatDoesNotComeBack(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		seen := make(chan string, 50)
		s := openIn(t, hooked(system.PutHook{Name: "stuck", Func: func(m *messages.Message) error {
			<-release
			seen <- string(m.Body)
			m.Body = []byte("spoilt")
			return nil
		}}))
		began := time.Now()
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				m := message("T", 0, "whole")
				_, err := s.Put(t.Context(), m)
				require.NoError(t, err)
				copy(m.Body, "mine!") // the bytes are the caller's again
			})
		}
		callers.Wait()
		require.Equal(t, 100*time.Millisecond, time.Since(began), "each caller waits for the budget, and no longer")
		for range 100 {
			_, err := s.Put(t.Context(), message("T", 0, "whole"))
			require.NoError(t, err)
		}
		require.Equal(t, 100*time.Millisecond, time.Since(began), "those that follow do not wait")
		require.ErrorIs(t, status(t, s, "stuck").LastError, extension.ErrStalled)
		sleep(time.Minute)
		require.Equal(t, extension.Stalled, status(t, s, "stuck").State)
		close(release)
		sleep(0)
		require.Equal(t, "whole", <-seen, "what it sees is its own")
		require.Equal(t, extension.Running, status(t, s, "stuck").State)
		for _, body := range readable(t, s, messages.QueueKey{Topic: "T"}) {
			require.Equal(t, "whole", body)
		}
		_, err := s.Put(t.Context(), message("T", 0, "whole"))
		require.NoError(t, err)
		require.Equal(t, "spoilt", readable(t, s, messages.QueueKey{Topic: "T"})[150], "it takes part again")
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestAHookThatTakesMoreTimeThanPutsCanSpareIsLeftOut(t *testing.T) {
	for _, inline := range []bool{false, true} {
		fixture.Bubble(t, func(t *testing.T) {
			s := openIn(t, hooked(system.PutHook{Name: "slow", Inline: inline, Func: func(*messages.Message) error {
				<-time.After(time.Millisecond) // a thousand times what a put takes
				return nil
			}}))
			for range 600 { // seldom: it takes a hundredth of the time
				_, err := s.Put(t.Context(), message("T", 0, "x"))
				require.NoError(t, err)
				sleep(99 * time.Millisecond)
			}
			require.EqualValues(t, 600, status(t, s, "slow").Handled)
			require.Equal(t, extension.Running, status(t, s, "slow").State)
			require.Equal(t, time.Millisecond, status(t, s, "slow").LastTook)
			began := time.Now()
			for range 20_000 { // one after the other
				_, err := s.Put(t.Context(), message("T", 0, "x"))
				require.NoError(t, err)
			}
			require.Less(t, time.Since(began), 250*time.Millisecond)
			st := status(t, s, "slow")
			require.Equal(t, extension.Parked, st.State)
			require.ErrorContains(t, st.LastError, "more time than puts can spare")
			require.EqualValues(t, 1, st.Failures)
			sleep(11 * time.Second)
			require.Equal(t, extension.Running, status(t, s, "slow").State)
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

func TestAListenerIsToldWhichQueuesHaveGrown(t *testing.T) {
	var mu sync.Mutex
	ends := map[messages.QueueKey]messages.QueueOffset{}
	calls, wanted := 0, make(chan struct{})
	opt := small(memfs.New())
	opt.Listeners = []system.Listener{{
		Name: "ears", Topics: []string{"T"},
		Handle: func(_ context.Context, grown map[messages.QueueKey]messages.QueueOffset) error {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == 1 {
				return errors.New("the first call fails, and loses nothing")
			}
			for key, end := range grown {
				ends[key] = end
			}
			if ends[messages.QueueKey{Topic: "T"}] == 100 && ends[messages.QueueKey{Topic: "T", QueueID: 1}] == 100 {
				close(wanted)
			}
			return nil
		},
	}}
	s := open(t, opt)
	for i := range 200 {
		_, err := s.Put(t.Context(), message("T", int32(i%2), "x"))
		require.NoError(t, err)
		_, err = s.Put(t.Context(), message("Other", 0, "x"))
		require.NoError(t, err)
	}
	<-wanted
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, ends, 2)
	require.EqualValues(t, 1, status(t, s, "ears").Failures)
}

func TestAServiceRunsBesideTheStoreAndIsStartedAgain(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := small(memfs.New())
		var runs atomic.Int64
		ended := false
		opt.Services = []system.Service{
			{Name: "heart", Run: func(ctx context.Context, s *system.Store) error {
				if runs.Add(1) < 3 {
					panic("not yet")
				}
				_, err := s.Put(ctx, message("Heart", 0, "beat"))
				<-ctx.Done()
				ended = true
				return err
			}},
			{Name: "once", Run: func(context.Context, *system.Store) error { return nil }},
		}
		s := openIn(t, opt)
		sleep(time.Minute)
		require.Equal(t, []string{"beat"}, readable(t, s, messages.QueueKey{Topic: "Heart"}))
		require.EqualValues(t, 2, status(t, s, "heart").Restarts)
		require.Equal(t, extension.Stopped, status(t, s, "once").State)
		require.NoError(t, s.Close(t.Context()))
		require.True(t, ended)
	})
}

// TestAServiceThatHasRunForLongIsStartedAgainSoon: the pauses grow with failures one after the other, not over the days.
func TestAServiceThatHasRunForLongIsStartedAgainSoon(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := small(memfs.New())
		var runs atomic.Int64
		opt.Services = []system.Service{{Name: "restless", Run: func(ctx context.Context, _ *system.Store) error {
			runs.Add(1)
			select {
			case <-time.After(2 * time.Minute):
				return errors.New("as every time")
			case <-ctx.Done():
				return nil
			}
		}}}
		s := openIn(t, opt)
		for i := range 4 {
			sleep(2*time.Minute + 100*time.Millisecond)
			require.EqualValues(t, i+2, runs.Load())
		}
		require.NoError(t, s.Close(t.Context()))
	})
}

// counter is a user's actor: it counts the batches' messages and puts the sum where it is asked to.
type counter struct {
	total int
	ends  int
	lives *atomic.Int64
}

func (c *counter) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.lives.Add(1)
	case *actor.Stopped:
		c.ends++
	case *system.Dispatch:
		if c.lives.Load() == 1 {
			panic("in its first life")
		}
		for m, err := range m.Messages() {
			if err == nil && m.Topic == "T" {
				c.total++
			}
		}
		m.Done(nil)
	case string:
		s := system.StoreOf(ctx.ActorSystem())
		if m == "panic" {
			panic(m)
		}
		s.PutAsync(message("Echo", 0, m), true, time.Time{}, func(messages.PutResult, error) {})
	}
}

func TestCustomActorsDispatchServeAndComeBackAfterAPanic(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		lives, served := &atomic.Int64{}, &atomic.Int64{}
		c := &counter{lives: lives}
		opt := following(memfs.New(), system.Dispatcher{Actor: actor.PropsFromProducer(func() actor.Actor { return c })})
		var root *actor.RootContext
		opt.Services = []system.Service{
			{Name: "echo", Actor: actor.PropsFromProducer(func() actor.Actor { return &counter{lives: served} })},
			{Name: "caller", Actor: actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					root = ctx.ActorSystem().Root
				}
			})},
		}
		s := openIn(t, opt)
		fillBodies(t, s, 0, 700)
		require.NoError(t, s.AwaitExtension(t.Context(), "mine"))
		sleep(0)
		require.Equal(t, 700, c.total)
		require.EqualValues(t, 2, lives.Load())
		require.ErrorIs(t, status(t, s, "mine").LastError, messages.ErrPanicked)

		echo := actor.NewPID(root.ActorSystem().Address(), "store/service/echo")
		root.Send(echo, "panic")
		sleep(time.Second)
		root.Send(echo, "hello")
		sleep(time.Second)
		require.Equal(t, []string{"hello"}, readable(t, s, messages.QueueKey{Topic: "Echo"}))
		require.EqualValues(t, 2, served.Load())
		require.EqualValues(t, 1, status(t, s, "echo").Restarts)
		require.NoError(t, s.Close(t.Context()))
		require.Equal(t, 2, c.ends, "after the panic, and when the store closed")

	})
}

func TestABrokenExtensionIsReportedAndPutsGoOn(t *testing.T) {
	want := map[string]map[string]extension.State{
		"hook":       {"panics": extension.Parked, "blocks": extension.Stalled, "slow": extension.Parked},
		"dispatcher": {"panics": extension.Parked, "blocks": extension.Stalled, "slow": extension.Running},
		"listener":   {"panics": extension.Parked, "blocks": extension.Stalled, "slow": extension.Running},
		"service":    {"panics": extension.Parked, "blocks": extension.Running, "slow": extension.Running},
	}
	for kind, plug := range breakers {
		for _, fault := range []string{"panics", "blocks", "slow"} {
			t.Run(kind+" "+fault, func(t *testing.T) {
				fixture.Bubble(t, func(t *testing.T) {
					release := make(chan struct{})
					opt := small(memfs.New())
					plug(&opt, faults(release)[fault])
					s := openIn(t, opt)
					began := time.Now()
					for range 1000 {
						_, err := s.Put(t.Context(), message("T", 0, "x"))
						require.NoError(t, err)
					}
					require.Less(t, time.Since(began), 200*time.Millisecond, "of virtual time: what puts have waited")
					if fault == "slow" && kind != "hook" {
						sleep(10*time.Millisecond + time.Microsecond)
					} else {
						sleep(40 * time.Second)
					}
					if kind == "hook" && fault != "blocks" { // it has been tried again meanwhile
						for range 1000 {
							_, err := s.Put(t.Context(), message("T", 0, "x"))
							require.NoError(t, err)
						}
					}
					st := status(t, s, "broken")
					require.Equal(t, want[kind][fault], st.State)
					switch {
					case fault == "panics":
						require.ErrorIs(t, st.LastError, messages.ErrPanicked)
					case fault == "slow" && kind == "dispatcher":
						require.Positive(t, st.LagBytes)
					case fault == "slow" && kind == "listener":
						require.Equal(t, time.Millisecond, st.LastTook)
					case kind == "service":
						require.Equal(t, began, st.CallSince)
					default:
						require.Error(t, st.LastError)
					}
					close(release)
					require.NoError(t, s.Close(t.Context()))
				})
			})
		}
	}
}

// A listener that is behind hears nothing more, and yet misses nothing: the ends of the queues tell.
func TestAListenerThatIsBehindMissesNothing(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		release, ends := make(chan struct{}), map[messages.QueueKey]messages.QueueOffset{}
		var calls atomic.Int64
		opt := small(memfs.New())
		opt.Listeners = []system.Listener{{
			Name: "ears", Topics: []string{"T", "U"},
			Handle: func(_ context.Context, grown map[messages.QueueKey]messages.QueueOffset) error {
				if calls.Add(1) == 1 {
					<-release
				}
				for key, end := range grown {
					ends[key] = end
				}
				return nil
			},
		}}
		s := openIn(t, opt)
		put := func(topic string, queueID int32, n int) {
			for range n {
				_, err := s.Put(t.Context(), message(topic, queueID, "x"))
				require.NoError(t, err)
			}
			sleep(time.Millisecond)
		}
		put("T", 0, 1) // it hangs in this one
		put("T", 0, 1000)
		put("T", 1, 700) // not heard
		put("U", 0, 300)
		put("V", 0, 300) // not wanted
		require.EqualValues(t, 1, calls.Load())
		close(release)
		sleep(0)
		require.EqualValues(t, 2, calls.Load())
		want := map[messages.QueueKey]messages.QueueOffset{{Topic: "T"}: 1001, {Topic: "T", QueueID: 1}: 700, {Topic: "U"}: 300}
		require.Equal(t, want, ends)
		put("T", 1, 1)
		want[messages.QueueKey{Topic: "T", QueueID: 1}] = 701
		require.Equal(t, want, ends, "and hears again")
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestAStoreThatCannotStartEndsItsListeners: they are there before what fails, an address that is taken, and need not be waited for.
func TestAStoreThatCannotStartEndsItsListeners(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	var said fixture.Said
	opt := small(memfs.New())
	opt.Logger = zerolog.New(&said)
	opt.HAListen = taken.Addr().String()
	opt.Listeners = []system.Listener{{Name: "hears", Handle: func(context.Context, map[messages.QueueKey]messages.QueueOffset) error { return nil }}}
	_, err = system.Open(opt)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NotContains(t, said.String(), "left behind")
	opt.HAListen = "127.0.0.1:0"
	open(t, opt)
}
