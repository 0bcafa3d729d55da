package strain_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
)

// A quiet topic wakes its consumer: messages come one by one, some while the next pull is on its way or is being parked, most when it
// has been held for some time. The times are from before the send to behind the pull. Asked for with STRAIN_SECONDS, on a machine
// that does nothing else, the median is below 5 ms and none above 100 ms; otherwise each message has only to arrive.
//
//	STRAIN_SECONDS=60 go test -v -run TestAQuietTopic ./testkit/strain
func TestAQuietTopicWakesItsConsumer(t *testing.T) {
	n, rnd := start(t), random(t)()
	producer, consumer := n.client(t), n.client(t)
	const queue = 1
	times := []time.Duration{}
	for end := time.Now().Add(span(t, 1)); time.Now().Before(end); {
		at := int64(len(times))
		received := make(chan time.Time, 1)
		failed := make(chan error, 1)
		go func() {
			got, err := n.pull(t.Context(), consumer, queue, at)
			if err == nil && len(got.Messages) == 1 {
				received <- time.Now()
			} else {
				t.Logf("pull from %d: %+v", at, got)
				failed <- err
			}
		}()
		quiet := time.Duration(rnd.IntN(500)) * time.Microsecond // the pull may be anywhere
		if rnd.IntN(2) == 0 {
			quiet = time.Duration(rnd.IntN(20)) * time.Millisecond
		}
		<-time.After(quiet)
		began := time.Now()
		_, err := producer.Send(t.Context(), n.broker, remoting.SendMessageHeader{
			ProducerGroup: "strain", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: queues, QueueID: queue,
		}, []byte("news"))
		require.NoError(t, err)
		select {
		case then := <-received:
			times = append(times, then.Sub(began))
		case err := <-failed:
			require.FailNow(t, "a pull came back without the message", "%v", err)
		}
	}
	slices.Sort(times)
	median, slowest := times[len(times)/2], times[len(times)-1]
	t.Logf("%d messages: median %v, 99 %% %v, slowest %v", len(times), median, times[len(times)*99/100], slowest)
	if os.Getenv("STRAIN_SECONDS") != "" {
		require.Less(t, median, 5*time.Millisecond)
		require.LessOrEqual(t, slowest, 100*time.Millisecond)
	}
}
