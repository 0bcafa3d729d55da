package dedupe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/ext/dedupe"
	"github.com/actormq/actormq/testkit/dispatching"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func options(disk vfs.Disk) system.Options {
	return system.Options{
		Dir: "store", Disk: disk, SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200,
		WindowBytes: 8 << 10,
	}
}

func keyed(topic, key string) *messages.Message {
	return &messages.Message{Topic: topic, Properties: messages.PropertiesOf(map[string]string{messages.PropertyUniqKey: key})}
}

func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestTheSecondOfAKeyIsRefusedWithinTheWindowAlsoAfterAStart(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := options(memfs.New())
		w := dedupe.New(dedupe.Config{Window: time.Hour, Topics: []string{"Orders"}})
		w.Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		put := func(topic, key string) error { _, err := s.Put(t.Context(), keyed(topic, key)); return err }
		for i := range 30 { // so that the window's beginning moves
			require.NoError(t, put("Orders", fmt.Sprint("old ", i)))
			sleep(5 * time.Minute)
		}
		require.NoError(t, put("Orders", "a"))
		require.NoError(t, put("Other", "a"))
		require.NoError(t, s.AwaitExtension(t.Context(), "dedupe"))
		require.ErrorIs(t, put("Orders", "a"), dedupe.ErrDuplicate)
		require.NoError(t, put("Orders", "b"))
		require.NoError(t, put("Other", "a"), "a topic that is not watched")
		require.NoError(t, put("Orders", "old 0"), "the window is over")
		require.NoError(t, s.Close(t.Context()))

		s, err = system.Open(opt)
		require.NoError(t, err)
		require.NoError(t, s.AwaitExtension(t.Context(), "dedupe"))
		for _, e := range s.Extensions() {
			if e.Name == "dedupe" {
				require.Less(t, e.Handled, int64(25), "no more of the log is read than it takes")
			}
		}
		require.ErrorIs(t, put("Orders", "a"), dedupe.ErrDuplicate)
		require.ErrorIs(t, put("Orders", "b"), dedupe.ErrDuplicate)
		require.EqualValues(t, 3, w.Counters().Duplicates)
		sleep(61 * time.Minute)
		require.NoError(t, put("Orders", "a"))
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestTheWindowHasARoomAndMayOnlyCount(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := options(memfs.New())
		w := dedupe.New(dedupe.Config{MaxKeys: 10, CountOnly: true})
		w.Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		for i := range 30 {
			_, err := s.Put(t.Context(), keyed("T", fmt.Sprint(i)))
			require.NoError(t, err)
			sleep(time.Millisecond)
		}
		_, err = s.Put(t.Context(), keyed("T", "29"))
		require.NoError(t, err)
		sleep(time.Second)
		require.Equal(t, dedupe.Counters{Passed: 30, Duplicates: 1, Forgotten: 21, Keys: 9}, w.Counters())
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestWhatConsumersSendBackPasses: a retry, a dead letter and what is sent again of it have the key of the message.
func TestWhatConsumersSendBackPasses(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := options(memfs.New())
		dedupe.New(dedupe.Config{}).Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		for _, topic := range []string{"Orders", messages.RetryTopicPrefix + "g", messages.RetryTopicPrefix + "g", messages.DLQTopicPrefix + "g", "Orders"} {
			m := keyed(topic, "a")
			if topic != "Orders" || s.MaxOffset(m.Queue()) > 0 {
				m.Properties = m.Properties.With(messages.PropertyOriginMessageID, "7F000001")
			}
			_, err := s.Put(t.Context(), m)
			require.NoError(t, err, topic)
			require.NoError(t, s.AwaitExtension(t.Context(), "dedupe"))
		}
		_, err = s.Put(t.Context(), keyed("Orders", "a"))
		require.ErrorIs(t, err, dedupe.ErrDuplicate)
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestWhatWaitsCountsForItsOwnTopic: a producer sends a delayed message, and a half message, again.
func TestWhatWaitsCountsForItsOwnTopic(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := options(memfs.New())
		dedupe.New(dedupe.Config{Topics: []string{"Orders"}}).Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		late := keyed("Orders", "late")
		late.Properties = late.Properties.With(messages.PropertyDelay, "5")
		half := keyed(messages.TopicTransactionHalf, "half")
		half.Properties = half.Properties.With(messages.PropertyRealTopic, "Orders")
		for _, m := range []*messages.Message{late, half} {
			_, err := s.Put(t.Context(), m)
			require.NoError(t, err)
			require.NoError(t, s.AwaitExtension(t.Context(), "dedupe"))
			_, err = s.Put(t.Context(), m)
			require.ErrorIs(t, err, dedupe.ErrDuplicate)
		}
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestASlowDiskHoldsNoPutUp: the place of the window is saved while the disk hangs.
func TestASlowDiskHoldsNoPutUp(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := options(disk)
		dedupe.New(dedupe.Config{Window: time.Minute}).Plug(&opt)
		s, err := system.Open(opt)
		require.NoError(t, err)
		saves := 0
		disk.Inject(func(op memfs.Op) error {
			if strings.Contains(op.Name, "dedupe.window") {
				saves++
				<-time.After(10 * time.Second)
			}
			return nil
		})
		for i := range 30 {
			began := time.Now()
			_, err := s.Put(t.Context(), keyed("Orders", fmt.Sprint(i)))
			require.NoError(t, err)
			require.Zero(t, time.Since(began))
			sleep(7 * time.Second)
		}
		require.NotZero(t, saves)
		disk.Inject(nil)
		sleep(time.Minute)
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestContract: what is stored is known, whatever happens.
func TestContract(t *testing.T) {
	dispatching.Contract(t, dispatching.Subject{
		Plug: func(opt *system.Options) dispatching.Check {
			dedupe.New(dedupe.Config{Window: time.Minute}).Plug(opt)
			return func(t testing.TB, s *system.Store, acked int) {
				for i := range acked {
					_, err := s.Put(context.Background(), keyed("T", fmt.Sprint(i)))
					require.ErrorIs(t, err, dedupe.ErrDuplicate)
				}
			}
		},
		Put: func(ctx context.Context, s *system.Store, i int) error {
			_, err := s.Put(ctx, keyed("T", fmt.Sprint(i)))
			return err
		},
	})
}

func Example() {
	opt := options(memfs.New()) // a real store names a folder: system.Options{Dir: "/var/lib/orders"}
	window := dedupe.New(dedupe.Config{Window: time.Hour})
	window.Plug(&opt)
	store, err := system.Open(opt)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	first, err := store.Put(ctx, keyed("Orders", "order-7"))
	fmt.Println(first.Status, err)
	if err := store.AwaitExtension(ctx, "dedupe"); err != nil {
		panic(err)
	}
	second, err := store.Put(ctx, keyed("Orders", "order-7"))
	fmt.Println(second.Status)
	fmt.Println(err)
	if err := store.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// PUT_OK <nil>
	// MESSAGE_ILLEGAL
	// refused by a put hook: a message with this unique key is stored already: topic Orders, key order-7
}
