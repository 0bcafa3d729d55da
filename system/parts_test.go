package system_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/extension"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/dispatching"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
	"github.com/actormq/actormq/testkit/probe"
)

// keyIndex is an index builder: it knows the places of each key, in memory.
type keyIndex struct {
	places map[string][]messages.PhysicalOffset
}

func indexed() system.Replacement {
	return system.Replacement{
		Part: system.PartIndex, Actor: actor.PropsFromProducer(func() actor.Actor { return &keyIndex{places: map[string][]messages.PhysicalOffset{}} }),
		// What it knows is in memory: it is read from the log at each start.
		Load: func(*system.Store) (system.Position, bool, error) { return system.Position{}, false, nil },
	}
}

// Receive implements actor.Actor.
func (k *keyIndex) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *system.Dispatch:
		for i := range m.Requests {
			r := &m.Requests[i]
			key := r.Queue.Topic + " " + string(r.Keys)
			if list := k.places[key]; len(list) == 0 || list[0] < r.PhysicalOffset {
				k.places[key] = append([]messages.PhysicalOffset{r.PhysicalOffset}, list...)
			}
		}
		m.Done(nil)
	case *system.IndexQuery:
		m.Found(k.places[m.Topic+" "+m.Key], nil)
	}
}

func byKey(t testing.TB, s *system.Store, key string) []messages.StoredMessage {
	found, err := s.Query(context.Background(), messages.QueryMessage{Topic: "T", Key: key, MaxMessages: 10, EndMs: math.MaxInt64})
	require.NoError(t, err)
	return found
}

func keyed(i int) *messages.Message {
	m := message("T", 0, fmt.Sprint("body ", i))
	m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyKeys: fmt.Sprint("k", i)})
	return m
}

// TestContractOfAnIndexBuilder: each key that was acknowledged is found, whatever happens.
func TestContractOfAnIndexBuilder(t *testing.T) {
	one := &keyIndex{places: map[string][]messages.PhysicalOffset{}}
	dispatching.Contract(t, dispatching.Subject{
		Plug: func(opt *system.Options) dispatching.Check {
			index := indexed()
			one = &keyIndex{places: map[string][]messages.PhysicalOffset{}}
			mine := one
			index.Actor = actor.PropsFromProducer(func() actor.Actor { return mine }) // a panic costs it nothing
			opt.Replacements = append(opt.Replacements, index)
			return func(t testing.TB, s *system.Store, acked int) {
				for i := range acked {
					found := byKey(t, s, fmt.Sprint("k", i))
					require.NotEmpty(t, found)
					require.Equal(t, fmt.Sprint("body ", i), string(found[0].Body))
				}
			}
		},
		Put: func(ctx context.Context, s *system.Store, i int) error {
			_, err := s.Put(ctx, keyed(i))
			return err
		},
	})
}

func TestAnIndexBuilderInThePlaceOfTheStoresOwn(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := small(memfs.New())
		opt.Replacements = []system.Replacement{indexed()}
		s := openIn(t, opt)
		for i := range 100 {
			_, err := s.Put(t.Context(), keyed(i))
			require.NoError(t, err)
		}
		require.NoError(t, s.AwaitExtension(t.Context(), "index-builder"))
		require.Len(t, byKey(t, s, "k7"), 1)
		require.Empty(t, byKey(t, s, "k100"))
		require.Equal(t, extension.KindDispatcher, status(t, s, "index-builder").Kind)
		require.Empty(t, s.Options().Dispatchers, "the options are as they were given")
		require.NoError(t, s.Close(t.Context()))
		_, err := s.Query(t.Context(), messages.QueryMessage{Topic: "T", Key: "k7"})
		require.Error(t, err)
	})
}

// ownScheduler delivers delayed messages, each level's queue from its beginning on: that of the test is short.
type ownScheduler struct {
	on   bool
	next map[int32]messages.QueueOffset
}

type lookAgain struct{}

// Receive implements actor.Actor.
func (o *ownScheduler) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.DeliverDelayed:
		o.on = m.On
		o.deliver(ctx)
		m.Answer.Complete(struct{}{}, nil)
	case messages.MessagesArrived, lookAgain:
		o.deliver(ctx)
	}
}

func (o *ownScheduler) deliver(ctx actor.Context) {
	s, root, self := system.StoreOf(ctx.ActorSystem()), ctx.ActorSystem().Root, ctx.Self()
	levels, err := messages.ParseDelayLevels(s.Options().DelayLevels)
	if err != nil || !o.on {
		return
	}
	s.EachQueue(func(key messages.QueueKey, _, end messages.QueueOffset) {
		for key.Topic == messages.TopicSchedule && o.next[key.QueueID] < end {
			r, err := s.Get(context.Background(), messages.GetMessage{Queue: key, Offset: o.next[key.QueueID], MaxMessages: 1})
			if err != nil || len(r.Records) == 0 {
				return
			}
			rec, _, err := record.Parse(r.Records[0], true)
			if err != nil {
				return
			}
			m := rec.Stored()
			r.Release()
			ms, _ := levels.Millis(int(key.QueueID) + 1)
			if wait := time.Until(time.UnixMilli(m.StoreTimestampMs + ms)); wait > 0 {
				time.AfterFunc(wait, func() { root.Send(self, lookAgain{}) })
				return
			}
			m.Message.Topic, _ = m.Properties.Get(messages.PropertyRealTopic)
			m.Message.QueueID = 0
			m.Message.Properties = m.Properties.Without(messages.PropertyDelay, messages.PropertyRealTopic, messages.PropertyRealQueueID)
			s.PutDueAsync(&m.Message, time.Time{}, func(messages.PutResult, error) {})
			o.next[key.QueueID]++
		}
	})
}

func scheduled(opt *system.Options) {
	opt.DelayLevels = "1s 5s 10s"
	opt.Replacements = append(opt.Replacements, system.Replacement{
		Part: system.PartScheduler, Actor: actor.PropsFromProducer(func() actor.Actor { return &ownScheduler{next: map[int32]messages.QueueOffset{}} }),
	})
}

func delayedPut(ctx context.Context, s *system.Store, i int) error {
	m := message("T", 0, fmt.Sprint("body ", i))
	m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyDelay: strconv.Itoa(i%3 + 1)})
	_, err := s.Put(ctx, m)
	return err
}

// TestContractOfAScheduler: what was acknowledged is delivered, whatever happens.
func TestContractOfAScheduler(t *testing.T) {
	dispatching.Contract(t, dispatching.Subject{
		Plug: func(opt *system.Options) dispatching.Check {
			scheduled(opt)
			return func(t testing.TB, s *system.Store, acked int) {
				there := probe.Follow(t, s, "T", 0).All(context.Background())
				for i := range acked {
					require.Contains(t, there, fmt.Sprint("body ", i))
				}
			}
		},
		Put: delayedPut, Settle: 15 * time.Second, Messages: 12,
	})
}

func TestASchedulerInThePlaceOfTheStoresOwnIsToldToBeginAndToEnd(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := small(memfs.New())
		scheduled(&opt)
		s := openIn(t, opt)
		key := messages.QueueKey{Topic: "T"}
		for i := range 3 {
			require.NoError(t, delayedPut(t.Context(), s, i))
		}
		sleep(5500 * time.Millisecond)
		require.Equal(t, []string{"body 0", "body 1"}, readable(t, s, key))
		require.NoError(t, s.DeliverDelayed(t.Context(), false))
		sleep(time.Minute)
		require.Len(t, readable(t, s, key), 2)
		require.NoError(t, s.DeliverDelayed(t.Context(), true))
		sleep(time.Second)
		require.Len(t, readable(t, s, key), 3)
		require.NoError(t, s.Close(t.Context()))
	})
}

// fewSegments is a cleaner that keeps two segments; fault says what else it does.
func fewSegments(fault func()) system.Replacement {
	return system.Replacement{Part: system.PartCleaner, Actor: actor.PropsFromFunc(func(ctx actor.Context) {
		if r, ok := ctx.Message().(*system.CleanRound); ok {
			fault()
			r.Delete(len(r.Segments) - 2)
		}
	})}
}

func TestContractOfACleaner(t *testing.T) {
	for name, tt := range map[string]struct {
		fault func()
		want  messages.PhysicalOffset // where the log begins after two rounds
	}{
		"decides what is deleted":              {func() {}, 3},
		"panics: the retention decides":        {func() { panic("always") }, 0},
		"does not answer: the retention does":  {func() { <-time.After(time.Hour) }, 0},
		"is slow: its answer comes too late":   {func() { <-time.After(6 * time.Second) }, 0},
		"is not so slow: its answer is waited": {func() { <-time.After(4 * time.Second) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			fixture.Bubble(t, func(t *testing.T) {
				opt := small(memfs.New())
				opt.Replacements = []system.Replacement{fewSegments(tt.fault)}
				s := openIn(t, opt)
				key := messages.QueueKey{Topic: "T"}
				segment := messages.PhysicalOffset(s.Options().SegmentBytes)
				fillTo(t, s, key, 5*segment)
				sleep(90 * time.Second)
				first, _ := s.LogRange()
				require.Equal(t, tt.want*segment, first)
				if tt.want == 0 {
					require.NoError(t, s.SetRetention(messages.Retention{FileReservedTime: time.Second}))
					require.NoError(t, s.DeleteExpiredFiles())
					sleep(time.Minute)
					first, _ = s.LogRange()
					require.Positive(t, first, "by the retention")
				}
				require.Greater(t, int64(s.MinOffset(key)), int64(0), "queues too")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, s.Close(ctx))
				sleep(2 * time.Hour) // the actor that did not answer is left behind
			})
		})
	}
}

func TestAllProblemsOfReplacementsAreNamed(t *testing.T) {
	opt := small(memfs.New())
	props := actor.PropsFromFunc(func(actor.Context) {})
	load := func(*system.Store) (system.Position, bool, error) { return system.Position{}, false, nil }
	opt.Replacements = []system.Replacement{
		{Part: "writer", Actor: props}, {Part: system.PartCleaner}, {Part: system.PartIndex, Actor: props}, {Part: system.PartIndex, Actor: props},
		{Part: system.PartScheduler, Actor: props, Load: load},
	}
	_, err := system.Open(opt)
	for _, want := range []string{`"writer" can't be replaced`, `"cleaner" needs exactly one`, `two extensions are named "index-builder"`, "has no position"} {
		require.ErrorContains(t, err, want)
	}
}
