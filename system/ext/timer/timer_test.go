package timer_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/ext/timer"
	"github.com/actormq/actormq/testkit/dispatching"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
	"github.com/actormq/actormq/testkit/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(disk vfs.Disk) system.Options {
	return system.Options{
		Dir: "store", Disk: disk, SegmentBytes: 64 << 10, ConsumeQueueFileBytes: 2000, IndexSlots: 50, IndexEntries: 200,
		WindowBytes: 8 << 10,
	}
}

// open plugs a timer into the options and opens a store.
func open(t *testing.T, opt *system.Options, cfg timer.Config) (*timer.Timer, *system.Store) {
	t.Helper()
	x := timer.New(cfg)
	x.Plug(opt)
	s, err := system.Open(*opt)
	require.NoError(t, err)
	return x, s
}

// later is a message that is due in so long.
func later(body string, d time.Duration, more ...string) *messages.Message {
	p := messages.PropertiesOf(map[string]string{"TAGS": "a"}).With(timer.DeliverMs, strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10))
	for i := 0; i < len(more); i += 2 {
		p = p.With(more[i], more[i+1])
	}
	return &messages.Message{Topic: "Orders", QueueID: 2, Body: []byte(body), Properties: p}
}

func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestMessagesComeWhenTheyAreDueAndNotWhenTheyAreCancelled(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := options(memfs.New())
		x, s := open(t, &opt, timer.Config{MaxPending: 5})
		ctx := t.Context()
		put := func(m *messages.Message) error { _, err := s.Put(ctx, m); return err }
		orders := probe.Follow(t, s, "Orders", 2)
		require.NoError(t, put(later("third", time.Hour)))
		require.NoError(t, put(later("first", time.Minute)))
		require.NoError(t, put(later("never", 2*time.Minute, timer.ID, "order-7")))
		require.NoError(t, put(later("second", 10*time.Minute)))
		require.NoError(t, put(later("at once", -time.Minute)))
		require.ErrorIs(t, put(later("too late", 367*24*time.Hour)), timer.ErrTime)
		require.ErrorIs(t, put(&messages.Message{Topic: "Orders", Properties: "TIMER_DELIVER_MS\x01soon"}), timer.ErrTime)
		require.NoError(t, x.Cancel(ctx, s, "order-7"))
		require.ErrorIs(t, x.Cancel(ctx, s, "order-7"), timer.ErrNotWaiting)
		require.ErrorIs(t, x.Cancel(ctx, s, "unknown"), timer.ErrNotWaiting)
		sleep(time.Second)
		orders.Expect(ctx, "at once")
		require.Equal(t, 3, x.Pending())
		sleep(58 * time.Second)
		require.Empty(t, orders.All(ctx))
		sleep(time.Second)
		m := orders.Next(ctx)
		require.Equal(t, "first", string(m.Body))
		require.Equal(t, messages.Properties("TAGS\x01a"), m.Properties, "as it was put")

		require.NoError(t, s.Close(ctx))
		sleep(30 * time.Minute)
		s, err := system.Open(opt) // the same, and a start
		require.NoError(t, err)
		orders = probe.Follow(t, s, "Orders", 2)
		orders.Expect(ctx, "at once", "first", "second")
		require.Empty(t, orders.All(ctx))
		for i := range 4 {
			require.NoError(t, put(later(fmt.Sprint("more ", i), time.Hour)))
		}
		sleep(time.Second)
		require.ErrorIs(t, put(later("one too many", time.Hour)), timer.ErrFull)
		sleep(2 * time.Hour)
		orders.Expect(ctx, "third", "more 0", "more 1", "more 2", "more 3")
		require.Zero(t, x.Pending())
		require.NoError(t, s.Close(ctx))
	})
}

// A message that is due long after its file has been deleted comes once; a cancelled one does not come.
func TestMessagesOutliveTheFilesThatTheyWerePutTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := options(memfs.New())
		opt.FileReservedTime, opt.CleanInterval, opt.DeleteWhen = 8*time.Minute, time.Minute, "00;01;02;03;04;05;06;07;08;09;10;11;12;13;14;15;16;17;18;19;20;21;22;23"
		x, s := open(t, &opt, timer.Config{SaveInterval: time.Minute})
		ctx := t.Context()
		_, err := s.Put(ctx, later("much later", 160*time.Minute))
		require.NoError(t, err)
		_, err = s.Put(ctx, later("never", 160*time.Minute, timer.ID, "order-7"))
		require.NoError(t, err)
		for i := range 159 {
			for range 40 { // a segment every two minutes
				_, err := s.Put(ctx, &messages.Message{Topic: "Other", Body: make([]byte, 900)})
				require.NoError(t, err)
			}
			sleep(time.Minute)
			switch i {
			case 60:
				require.NoError(t, s.Close(ctx))
				s, err = system.Open(opt)
				require.NoError(t, err)
			case 70:
				require.NoError(t, x.Cancel(ctx, s, "order-7"))
			}
		}
		first, _ := s.LogRange()
		require.Greater(t, int64(first), int64(50*opt.SegmentBytes), "what was put first has long been deleted")
		require.Equal(t, 1, x.Pending())
		orders := probe.Follow(t, s, "Orders", 2)
		require.Empty(t, orders.All(ctx))
		sleep(2 * time.Minute)
		m := orders.Next(ctx)
		require.Equal(t, "much later", string(m.Body))
		require.Equal(t, messages.Properties("TAGS\x01a"), m.Properties)
		require.Empty(t, orders.All(ctx))
		require.Zero(t, x.Pending())
		require.NoError(t, s.Close(ctx))
		sleep(time.Second)
	})
}

// TestMessagesOutliveFilesThatAFullDiskDeletes: long before they expire.
func TestMessagesOutliveFilesThatAFullDiskDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New()
		opt := options(disk)
		opt.CleanInterval, opt.BallastBytes, opt.NoIndex = 10*time.Second, -1, true
		x, s := open(t, &opt, timer.Config{})
		disk.SetCapacity(40 * opt.SegmentBytes)
		const many = 20
		for i := range many {
			_, err := s.Put(t.Context(), later(fmt.Sprint(i), 3*time.Hour))
			require.NoError(t, err)
		}
		for range 100 {
			for range 70 { // a segment a minute
				_, err := s.Put(t.Context(), &messages.Message{Topic: "Other", Body: make([]byte, 900)})
				require.NoError(t, err)
			}
			sleep(time.Minute)
		}
		first, _ := s.LogRange()
		require.Greater(t, int64(first), 20*opt.SegmentBytes, "the disk has no room for all")
		require.Equal(t, many, x.Pending())
		sleep(2 * time.Hour)
		require.Len(t, probe.Follow(t, s, "Orders", 2).All(t.Context()), many)
		require.NoError(t, s.Close(t.Context()))
		sleep(time.Second)
	})
}

// TestCancelTellsTheTruth: it is called just before, at and after the time at which a message is due.
func TestCancelTellsTheTruth(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := options(memfs.New())
		x, s := open(t, &opt, timer.Config{})
		came := map[string]int{}
		want := map[string]int{}
		var put, cancelled int
		for at := -3; at <= 3; at++ {
			for i := range 20 {
				id := fmt.Sprint(at, " ", i)
				_, err := s.Put(t.Context(), later(id, 10*time.Millisecond, messages.PropertyUniqKey, id))
				require.NoError(t, err)
				put++
				<-time.After(10*time.Millisecond + time.Duration(at)*time.Microsecond)
				switch err := x.Cancel(t.Context(), s, id); {
				case err == nil:
					cancelled++
				default:
					require.ErrorIs(t, err, timer.ErrNotWaiting)
					want[id] = 1
				}
			}
		}
		require.NotZero(t, cancelled)
		require.NotEqual(t, put, cancelled)
		sleep(time.Second)
		for _, body := range probe.Follow(t, s, "Orders", 2).All(t.Context()) {
			came[body]++
		}
		require.Equal(t, want, came)
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestClientsCancelByAMessage: to any topic, with the message id that they know.
func TestClientsCancelByAMessage(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := options(memfs.New())
		x, s := open(t, &opt, timer.Config{})
		_, err := s.Put(t.Context(), later("never", time.Minute, messages.PropertyUniqKey, "U7"))
		require.NoError(t, err)
		_, err = s.Put(t.Context(), &messages.Message{Topic: "Orders", QueueID: 2, Properties: messages.PropertiesOf(
			map[string]string{timer.CancelID: "U7", messages.PropertyUniqKey: "U8", messages.PropertyDelay: "3"})})
		require.NoError(t, err)
		sleep(time.Second)
		require.Zero(t, x.Pending())
		sleep(time.Hour)
		require.Empty(t, probe.Follow(t, s, "Orders", 2).All(t.Context()))
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestATimedMessageIsNeitherDelayedNorOfATransaction: of time and delay level the time counts, and halves are refused.
func TestATimedMessageIsNeitherDelayedNorOfATransaction(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		opt := options(memfs.New())
		_, s := open(t, &opt, timer.Config{})
		_, err := s.Put(t.Context(), later("both", time.Minute, messages.PropertyDelay, "1"))
		require.NoError(t, err)
		half := later("half", time.Minute)
		half.Topic = messages.TopicTransactionHalf
		_, err = s.Put(t.Context(), half)
		require.ErrorIs(t, err, timer.ErrTransaction)
		sleep(2 * time.Minute)
		m := probe.Follow(t, s, "Orders", 2).Next(t.Context())
		require.Equal(t, "both", string(m.Body))
		require.Equal(t, messages.Properties("TAGS\x01a"), m.Properties)
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestOneMessageHoldsNobodyUp: one that is damaged, or that will never be taken, is left out; the others are on time.
func TestOneMessageHoldsNobodyUp(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := options(disk)
		x, s := open(t, &opt, timer.Config{})
		bad, err := s.Put(t.Context(), later("damaged", time.Minute))
		require.NoError(t, err)
		nowhere := later("without a topic of its own", time.Minute)
		nowhere.Topic = timer.Topic
		_, err = s.Put(t.Context(), nowhere)
		require.NoError(t, err)
		for i := range 3 {
			_, err = s.Put(t.Context(), later(fmt.Sprint("whole ", i), time.Duration(i+1)*time.Minute))
			require.NoError(t, err)
		}
		sleep(time.Second)
		require.Equal(t, 5, x.Pending())
		f, err := disk.Open("store/commitlog/00000000000000000000", true)
		require.NoError(t, err)
		const body = 88 // of a record, behind what has a fixed length
		_, err = f.WriteAt([]byte{0xff}, int64(bad.PhysicalOffset)+body)
		require.NoError(t, err)
		require.NoError(t, f.Close())

		orders := probe.Follow(t, s, "Orders", 2)
		for i := range 3 {
			sleep(time.Minute)
			require.Equal(t, []string{fmt.Sprint("whole ", i)}, orders.All(t.Context()))
		}
		require.Zero(t, x.Pending())
		require.NoError(t, s.Close(t.Context()))
	})
}

// TestMessagesDoNotWaitForTheSyncsOfThoseBefore: with a synchronous flush that takes 200 ms, each is in its queue in its millisecond.
func TestMessagesDoNotWaitForTheSyncsOfThoseBefore(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		opt := options(disk)
		opt.FlushDiskType = system.SyncFlush
		_, s := open(t, &opt, timer.Config{})
		var due []int64
		for i := range 50 {
			m := later(fmt.Sprint(i), time.Minute+time.Duration(i)*10*time.Millisecond)
			at, err := strconv.ParseInt(property(m.Properties, timer.DeliverMs), 10, 64)
			require.NoError(t, err)
			due = append(due, at)
			_, err = s.Put(t.Context(), m)
			require.NoError(t, err)
		}
		disk.Inject(func(op memfs.Op) error {
			if op.Kind == memfs.KindDataSync && strings.HasPrefix(op.Name, "store/prepare/") { // as the log's files are called when they are made
				<-time.After(200 * time.Millisecond)
			}
			return nil
		})
		sleep(2 * time.Minute)
		disk.Inject(nil)
		orders := probe.Follow(t, s, "Orders", 2)
		for i, at := range due {
			m := orders.Next(t.Context())
			require.Equal(t, strconv.Itoa(i), string(m.Body))
			require.Equal(t, at, m.StoreTimestampMs)
		}
		require.NoError(t, s.Close(t.Context()))
	})
}

func property(p messages.Properties, name string) string {
	value, _ := p.Get(name)
	return value
}

// TestContract: what was acknowledged comes, and nothing twice, whatever happens.
func TestContract(t *testing.T) {
	dispatching.Contract(t, dispatching.Subject{
		Plug: func(opt *system.Options) dispatching.Check {
			x := timer.New(timer.Config{SaveInterval: 500 * time.Millisecond})
			x.Plug(opt)
			return func(t testing.TB, s *system.Store, acked int) {
				there := probe.Follow(t, s, "Orders", 2).All(context.Background())
				for i := range acked {
					require.Contains(t, there, fmt.Sprint("body ", i))
				}
				slices.Sort(there)
				require.Equal(t, slices.Compact(slices.Clone(there)), there)
			}
		},
		Put: func(ctx context.Context, s *system.Store, i int) error {
			_, err := s.Put(ctx, later(fmt.Sprint("body ", i), time.Duration(i%7)*time.Second))
			<-time.After(200 * time.Millisecond)
			return err
		},
		Settle: 20 * time.Second, Messages: 12,
	})
}

func Example() {
	opt := options(memfs.New()) // a real store names a folder: system.Options{Dir: "/var/lib/orders"}
	x := timer.New(timer.Config{})
	x.Plug(&opt)
	store, err := system.Open(opt)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	due := time.Now().Add(20 * time.Millisecond)
	result, err := store.Put(ctx, &messages.Message{Topic: "Orders", Body: []byte("remind me"), Properties: messages.PropertiesOf(
		map[string]string{timer.DeliverMs: strconv.FormatInt(due.UnixMilli(), 10), timer.ID: "order-7"})})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Status)
	got, err := store.GetWait(ctx, messages.GetMessage{Queue: messages.QueueKey{Topic: "Orders"}, MaxMessages: 1})
	if err != nil {
		panic(err)
	}
	fmt.Println(len(got.Records), "message, in time:", !time.Now().Before(due.Truncate(time.Millisecond)))
	got.Release()
	if err := store.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// PUT_OK
	// 1 message, in time: true
}
