package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/actormq/actormq/messages/remoting"
)

// entry is one acknowledged message.
type entry struct {
	Topic       string `json:"topic"`
	QueueID     int32  `json:"queueId"`
	QueueOffset int64  `json:"queueOffset"`
	MsgID       string `json:"msgId"` // store host and physical offset
	Body        string `json:"body"`
}

type ledger struct {
	mu sync.Mutex
	w  *bufio.Writer
	n  int
}

func (l *ledger) add(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line, _ := json.Marshal(e)
	l.n++
	_, _ = l.w.Write(append(line, '\n'))
}

func main() {
	broker := flag.String("broker", "127.0.0.1:10911", "HOST:PORT of the broker")
	topic := flag.String("topic", "PeerLoad", "topic, made at the first send")
	file := flag.String("ledger", "", "file for what was acknowledged")
	connections := flag.Int("connections", 8, "connections that send at once")
	seconds := flag.Int("seconds", 5, "how long")
	flag.Parse()
	out, err := os.Create(*file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	l := &ledger{w: bufio.NewWriter(out)}
	end := time.Now().Add(time.Duration(*seconds) * time.Second)
	var wg sync.WaitGroup
	for c := range *connections {
		wg.Go(func() {
			if err := send(*broker, *topic, c, end, l); err != nil {
				fmt.Fprintf(os.Stderr, "load: connection %d: %v\n", c, err)
			}
		})
	}
	wg.Wait()
	if err := l.w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	fmt.Printf("%d acknowledged\n", l.n)
}

// send sends one message at a time until the end; an error is the broker's end.
func send(broker, topic string, c int, end time.Time, l *ledger) error {
	conn, err := net.DialTimeout("tcp", broker, 3*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for i := 0; time.Now().Before(end); i++ {
		queue := int32(i % 4)
		body := fmt.Sprintf("%d/%d %s", c, i, strings.Repeat("x", i%700))
		m := remoting.NewRequest(remoting.RequestSendMessageV2, &remoting.SendMessageV2Header{
			ProducerGroup: "load", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, QueueID: queue,
			BornTimestampMs: time.Now().UnixMilli(), Properties: fmt.Sprintf("KEYS\x01c%di%d\x02TAGS\x01t%d", c, i, i%3),
		})
		m.Opaque, m.Body = int32(i), []byte(body)
		frame, err := m.Append(nil)
		if err != nil {
			return err
		}
		if _, err := conn.Write(frame); err != nil {
			return err
		}
		answer, err := remoting.ReadCommand(r, remoting.Limits{})
		if err != nil {
			return err
		}
		if answer.Code != remoting.ResponseSuccess {
			return fmt.Errorf("answer %d: %s", answer.Code, answer.Remark)
		}
		var h remoting.SendMessageAnswer
		if err := remoting.FromExt(answer.ExtFields, &h); err != nil {
			return err
		}
		l.add(entry{Topic: topic, QueueID: h.QueueID, QueueOffset: h.QueueOffset, MsgID: h.MsgID, Body: body})
	}
	return nil
}
