package main

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system/client"
)

// numbers are the texts from a number up to another, the last one not included.
func numbers(from, to int) []string {
	all := []string{}
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestConsumeAllQueuesInTheOrderOfTheLog(t *testing.T) {
	n := serve(t)
	want := numbers(0, 200) // 50 for each queue: more than one pull
	n.produce("orders", want...)
	all := n.consume("--topic", "orders")
	require.Equal(t, want, bodies(t, all))
	next := map[int32]int64{}
	for _, m := range all {
		require.Equal(t, next[m.Queue], m.Offset)
		next[m.Queue]++
		_, at, err := messages.ParseOffsetMessageID(m.ID)
		require.NoError(t, err)
		stored, err := n.store.MessageAt(at)
		require.NoError(t, err)
		require.Equal(t, *m.Body, string(stored.Body))
		when, err := time.Parse(time.RFC3339, m.StoreTime)
		require.NoError(t, err)
		require.Equal(t, stored.StoreTimestampMs, when.UnixMilli())
	}
	require.Len(t, next, client.NewTopicQueues)
}

func TestConsumeAsText(t *testing.T) {
	n := serve(t)
	n.produce("orders", "--queue", "1", "--tag", "new", "--key", "4711", "two coffees")
	n.produce("orders", "--queue", "1", "--key", "a b", "\x1b[2Jone\ttea")
	stdout, stderr, err := run("consume", "--namesrv", n.names, "--topic", "orders")
	require.NoError(t, err)
	require.Empty(t, stderr)
	const when = `time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
	require.Regexp(t, `^broker=broker-a queue=1 offset=0 `+when+` tag=new keys=4711 body=two coffees
broker=broker-a queue=1 offset=1 `+when+` tag= keys="a b" body="\\x1b\[2Jone\\ttea"
$`, stdout)
}

func TestConsumeAPart(t *testing.T) {
	n := serve(t)
	n.produce("orders", append([]string{"--queue", "0"}, numbers(0, 10)...)...)
	n.produce("orders", append([]string{"--queue", "3"}, numbers(10, 20)...)...)
	tests := map[string]struct {
		args string
		want []string
	}{
		"everything":             {"", numbers(0, 20)},
		"from the first":         {"--from first", numbers(0, 20)},
		"from an offset":         {"--from 8", []string{"8", "9", "18", "19"}},
		"from behind the end":    {"--from 1000", nil},
		"from the end":           {"--from last", nil},
		"a queue":                {"--queue 3", numbers(10, 20)},
		"a queue without any":    {"--queue 2", nil},
		"at most":                {"--max 13", numbers(0, 13)},
		"at most, of a queue":    {"--max 2 --queue 3 --from 5", numbers(15, 17)},
		"at most, as many":       {"--max 20", numbers(0, 20)},
		"at most, and following": {"--max 20 --follow", numbers(0, 20)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all := n.consume(append([]string{"--topic", "orders"}, strings.Fields(tt.args)...)...)
			require.Equal(t, append([]string{}, tt.want...), bodies(t, all))
		})
	}
	table, err := n.client().HasGroupOffset(t.Context(), n.queue("orders", 0), consumerGroup)
	require.NoError(t, err)
	require.False(t, table, "something was committed without a group")
}

func TestConsumeFromATime(t *testing.T) {
	n := serve(t)
	n.produce("orders", numbers(0, 9)...)
	first := n.consume("--topic", "orders")[0].StoreTime
	all := []tools.Line{{StoreTime: first}}
	for i := 9; all[len(all)-1].StoreTime == first; i++ { // until the clock has moved
		n.produce("orders", fmt.Sprint(i))
		all = n.consume("--topic", "orders")
	}
	last := all[len(all)-1].StoreTime
	var want []tools.Line
	for _, m := range all {
		if m.StoreTime >= last {
			want = append(want, m)
		}
	}
	require.NotEqual(t, all, want)
	require.Equal(t, want, n.consume("--topic", "orders", "--from", last))
	require.Equal(t, all, n.consume("--topic", "orders", "--from", first))
	require.Equal(t, all, n.consume("--topic", "orders", "--from", "2001-01-01T00:00:00+01:00"))
	require.Empty(t, n.consume("--topic", "orders", "--from", "2999-01-01T00:00:00Z"))
}

func TestConsumeByTags(t *testing.T) {
	n := serve(t)
	require.Equal(t, messages.JavaHash("Aa"), messages.JavaHash("BB"))
	for _, tag := range []string{"Aa", "BB", "C", ""} {
		n.produce("orders", "--queue", "0", "--tag", tag, "tag "+tag)
	}
	for expression, want := range map[string][]string{
		"*":               {"tag Aa", "tag BB", "tag C", "tag "},
		"":                {"tag Aa", "tag BB", "tag C", "tag "},
		"Aa":              {"tag Aa"}, // the broker can't tell it from BB
		" BB||C || ":      {"tag BB", "tag C"},
		"nothing":         {},
		"Aa || * || BBBB": {"tag Aa", "tag BB", "tag C", "tag "},
	} {
		require.Equal(t, want, bodies(t, n.consume("--topic", "orders", "--tag", expression)), "%q", expression)
	}
}

func TestConsumeForAGroup(t *testing.T) {
	n := serve(t)
	c := n.client()
	offset := func(group string, id int32) int64 {
		at, err := c.GroupOffset(t.Context(), n.queue("orders", id), group)
		require.NoError(t, err)
		return at
	}
	n.produce("orders", append([]string{"--queue", "0"}, numbers(0, 50)...)...)
	args := []string{"--topic", "orders", "--group", "billing"}
	require.Equal(t, numbers(0, 7), bodies(t, n.consume(append(args, "--max", "7")...)))
	require.Equal(t, int64(7), offset("billing", 0), "in the middle of what was pulled")
	require.Equal(t, numbers(7, 50), bodies(t, n.consume(args...)))
	require.Equal(t, int64(50), offset("billing", 0))
	require.Empty(t, n.consume(args...))
	require.Equal(t, numbers(0, 50), bodies(t, n.consume("--topic", "orders", "--group", "shipping")))

	n.produce("orders", "--queue", "1", "x")
	require.Equal(t, []string{"x"}, bodies(t, n.consume(append(args, "--from", "last")...)), "a group that is known goes on")

	require.NoError(t, c.Commit(t.Context(), n.queue("orders", 0), "billing", 1000))
	stdout, stderr, err := run(append([]string{"consume", "--namesrv", n.names}, args...)...)
	require.NoError(t, err)
	require.Empty(t, stdout)
	require.Equal(t, "actormq: broker-a queue 0: the group's offset 1000 is not there, going on from 50\n", stderr)
	require.Equal(t, int64(50), offset("billing", 0))
}

// A broker tells 0 of a group that it does not know, in a queue that has lost no message: that is no offset to go on from.
func TestConsumeForANewGroup(t *testing.T) {
	n := serve(t)
	n.produce("orders", append([]string{"--queue", "0"}, numbers(0, 5)...)...)
	args := []string{"--topic", "orders", "--group", "new", "--from", "last"}
	require.Empty(t, n.consume(args...))
	n.produce("orders", "--queue", "0", "after")
	n.produce("orders", "--queue", "1", "into an empty queue")
	require.Equal(t, []string{"after", "into an empty queue"}, bodies(t, n.consume(args...)), "the end was not kept")
	require.Equal(t, numbers(3, 5), bodies(t, n.consume("--topic", "orders", "--group", "other", "--from", "3", "--max", "2")))
}

func TestConsumeDoesNotCommitWhatWasNotPrinted(t *testing.T) {
	n := serve(t)
	n.produce("orders", append([]string{"--queue", "0"}, numbers(0, 5)...)...)
	for _, format := range []string{"--json", "--json=false"} {
		root := newRootCommand()
		root.SetOut(brokenWriter{})
		root.SetArgs([]string{"consume", "--namesrv", n.names, "--topic", "orders", "--group", "g", format})
		require.EqualError(t, root.Execute(), "broken pipe")
	}
	require.Equal(t, numbers(0, 5), bodies(t, n.consume("--topic", "orders", "--group", "g")))
}

func TestConsumeBodies(t *testing.T) {
	n := serve(t)
	n.produce("orders", "--queue", "0", "plain")
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write([]byte("packed"))
	require.NoError(t, errors.Join(err, z.Close()))
	c := n.client()
	for _, m := range []struct {
		sysFlag int32
		body    []byte
	}{
		{messages.SysFlagCompressed, packed.Bytes()},
		{messages.SysFlagCompressed | messages.SysFlagCompressionZLIB, packed.Bytes()},
		{messages.SysFlagCompressed | messages.SysFlagCompressionZLIB, packed.Bytes()[:8]},
		{messages.SysFlagCompressed | messages.SysFlagCompressionLZ4, []byte("lz4")},
		{messages.SysFlagCompressed | messages.SysFlagCompressionZSTD, []byte("zstd")},
		{messages.SysFlagCompressed | 0x500, []byte("?")},
		{0, []byte{0xFF, 0}},
	} {
		h := (&producer{}).header(n.queue("orders", 0))
		h.SysFlag = m.sysFlag
		sent, err := c.Send(t.Context(), n.broker, h, m.body)
		require.NoError(t, err)
		n.await("orders", []sentLine{{Queue: &sent.QueueID, Offset: &sent.QueueOffset}})
	}
	all := n.consume("--topic", "orders")
	require.Equal(t, []string{"plain", "packed", "packed"}, bodies(t, all[:3]))
	require.Equal(t, []tools.Line{
		{Compression: "ZLIB", Error: "unexpected EOF", BodyBytes: packed.Bytes()[:8]}, {Compression: "LZ4", BodyBytes: []byte("lz4")},
		{Compression: "ZSTD", BodyBytes: []byte("zstd")}, {Compression: "unknown type 0x500", BodyBytes: []byte("?")}, {BodyBytes: []byte{0xFF, 0}},
	}, contents(all[3:]))

	stdout, _, err := run("consume", "--namesrv", n.names, "--topic", "orders", "--from", "2")
	require.NoError(t, err)
	var ends []string
	for line := range strings.Lines(stdout) {
		_, end, _ := strings.Cut(line, " keys= ")
		ends = append(ends, end)
	}
	require.Equal(t, []string{
		"body=packed\n", "bytes=8 compression=\"ZLIB\" error=\"unexpected EOF\"\n", "bytes=3 compression=\"LZ4\"\n",
		"bytes=4 compression=\"ZSTD\"\n", "bytes=1 compression=\"unknown type 0x500\"\n", `body="\xff\x00"` + "\n",
	}, ends)
}

// contents leaves only what is told of the bodies.
func contents(all []tools.Line) []tools.Line {
	var some []tools.Line
	for _, m := range all {
		some = append(some, tools.Line{Body: m.Body, BodyBytes: m.BodyBytes, Compression: m.Compression, Error: m.Error})
	}
	return some
}

func TestConsumeRefuses(t *testing.T) {
	n := serve(t)
	n.produce("orders", "x")
	tests := map[string]struct {
		args []string
		want string
	}{
		"no topic":         {nil, `required flag(s) "topic"`},
		"an argument":      {[]string{"--topic", "orders", "x"}, "unknown command"},
		"an unknown topic": {[]string{"--topic", "nothing"}, "topic nothing does not exist"},
		"no such queue":    {[]string{"--topic", "orders", "--queue", "4"}, "topic orders has no queue 4, only 0 to 3"},
		"no node":          {[]string{"--topic", "orders", "--namesrv", freePort(t)}, "no connection"},
		"a bad start":      {[]string{"--topic", "orders", "--from", "yesterday"}, "--from yesterday: want first, last, an offset, or a time"},
		"a negative start": {[]string{"--topic", "orders", "--from", "-1"}, "--from -1"},
		"an old start":     {[]string{"--topic", "orders", "--from", "1969-01-01T00:00:00Z"}, "--from 1969"},
		"no time":          {[]string{"--topic", "orders", "--timeout", "-1s"}, "--timeout -1s: want more than 0"},
		"less than none":   {[]string{"--topic", "orders", "--max", "-1"}, "--max -1: want 0 or more"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := run(append([]string{"consume", "--namesrv", n.names}, tt.args...)...)
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, stdout)
			require.Equal(t, name == "an unknown topic", exitStatus(err) == statusNotFound)
		})
	}
}

// TestAMissingFlagSaysTheUsage: as an unknown flag and a wrong number of arguments do.
func TestAMissingFlagSaysTheUsage(t *testing.T) {
	for _, args := range [][]string{{"consume"}, {"produce", "x"}, {"offset", "show", "billing"}} {
		_, _, err := run(args...)
		require.ErrorContains(t, err, "required flag(s) \"topic\" not set\nusage: actormq "+args[0])
	}
}

func TestFollowEndsBySignal(t *testing.T) {
	n := serve(t)
	n.produce("orders", numbers(0, 5)...)
	r := launch(t.Context(), t, "consume", "--namesrv", n.names, "--topic", "orders", "--follow", "--group", "g")
	for _, body := range numbers(0, 5) {
		require.Contains(t, r.line(), "body="+body+"\n")
	}
	for _, body := range numbers(5, 15) { // one after the other: each finds the reader waiting, or about to
		n.produce("orders", body)
		require.Contains(t, r.line(), "body="+body+"\n")
	}
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM)) // it is taken care of since before the first line
	require.NoError(t, <-r.ended)
	require.Empty(t, n.consume("--topic", "orders", "--group", "g"), "what was printed is committed")
}

func TestFollowFromTheEnd(t *testing.T) {
	n := serve(t)
	n.produce("orders", "--tag", "new", "before")
	r := launch(t.Context(), t, "consume", "--namesrv", n.names, "--topic", "orders", "--follow", "--from", "last",
		"--tag", "new", "--max", "2", "--group", "g")
	awaitGroup(t, n, "g")
	n.produce("orders", "--tag", "old", "other")
	n.produce("orders", "--tag", "new", "one")
	require.Contains(t, r.line(), "body=one\n")
	n.produce("orders", "--tag", "new", "two")
	require.Contains(t, r.line(), "body=two\n")
	require.NoError(t, <-r.ended)
}

// awaitGroup returns when all queues of the topic orders have an offset of the group: the reader has begun.
func awaitGroup(t *testing.T, n *testNode, group string) {
	t.Helper()
	c := n.client()
	for id := int32(0); id < client.NewTopicQueues; {
		has, err := c.HasGroupOffset(t.Context(), n.queue("orders", id), group)
		require.NoError(t, err)
		if has {
			id++
		}
	}
}

func TestFollowSurvivesARestartOfTheNode(t *testing.T) {
	n := serve(t)
	n.produce("orders", "--queue", "0", "before")
	r := launch(t.Context(), t, "consume", "--namesrv", n.names, "--topic", "orders", "--queue", "0", "--follow")
	require.Contains(t, r.line(), "body=before\n")
	n.end()
	require.Regexp(t, "^actormq: broker-a queue 0: broker-a queue 0, offset 1: .*; trying again\n$", r.note())
	require.NoError(t, n.start())
	n.produce("orders", "--queue", "0", "after")
	require.Contains(t, r.line(), "body=after\n")
}

// readable is a broker's script: queues from min to max, an unknown group, and what it says to pulls.
func readable(least, most int64, pull script) script {
	return func(r *remoting.Command) *remoting.Command {
		switch r.Code {
		case remoting.RequestGetMinOffset:
			return with(r, 0, &remoting.OffsetAnswer{Offset: least})
		case remoting.RequestGetMaxOffset:
			return with(r, 0, &remoting.OffsetAnswer{Offset: most})
		case remoting.RequestPullMessage:
			return pull(r)
		case remoting.RequestQueryConsumerOffset:
			return r.Answer(remoting.ResponseQueryNotFound, "Not found")
		}
		return r.Answer(0, "")
	}
}

// next answers a pull with the offset to go on from.
func next(r *remoting.Command, code int, at int64) *remoting.Command {
	return with(r, code, &remoting.PullMessageAnswer{NextBeginOffset: at})
}

func TestConsumeGoesWhereTheBrokerSays(t *testing.T) {
	tests := map[string]struct {
		pull     func(r *remoting.Command, at int64) *remoting.Command
		pulls    []int64 // the offsets that are asked for
		note     string
		err      string
		commitAt int64
	}{
		"through what is filtered": {func(r *remoting.Command, at int64) *remoting.Command { return next(r, 20, at+3) }, []int64{10, 13, 16, 19}, "", "", 22},
		"up to the real end":       {func(r *remoting.Command, at int64) *remoting.Command { return next(r, 19, 10) }, []int64{10}, "", "", 10},
		"over a gap":               {func(r *remoting.Command, at int64) *remoting.Command { return next(r, 19, 30) }, []int64{10}, "", "", 30},
		"to what is not cleaned yet": {func(r *remoting.Command, at int64) *remoting.Command { return next(r, 21, 20) }, []int64{10},
			"actormq: a queue 1: offset 10 is not there, going on from 20\n", "", 20},
		"not in circles": {func(r *remoting.Command, at int64) *remoting.Command { return next(r, 20, at) }, []int64{10},
			"", "a queue 1: the broker sends the reader from offset 10 to 10", 10},
		"not backwards": {func(r *remoting.Command, at int64) *remoting.Command { return next(r, 0, at-1) }, []int64{10},
			"", "a queue 1: the broker sends the reader from offset 10 to 9", 10},
		"nowhere after a refusal": {func(r *remoting.Command, at int64) *remoting.Command { return r.Answer(16, "no") }, []int64{10},
			"", "a queue 1, offset 10: PULL_MESSAGE at ", 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake(t, map[string]script{"a": readable(10, 20, func(r *remoting.Command) *remoting.Command { return tt.pull(r, field(t, r, "queueOffset")) })})
			stdout, stderr, err := run("consume", "--namesrv", c.names, "--topic", "T", "--queue", "1", "--from", "3", "--group", "g")
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.err)
			}
			require.Empty(t, stdout)
			require.Equal(t, tt.note, stderr)
			var pulls []int64
			for _, r := range c.requests(remoting.RequestPullMessage) {
				pulls = append(pulls, field(t, r, "queueOffset"))
			}
			require.Equal(t, tt.pulls, pulls)
			commits := c.requests(remoting.RequestUpdateConsumerOffset)
			require.Equal(t, int64(10), field(t, commits[0], "commitOffset"), "where it begins")
			require.Equal(t, tt.commitAt, field(t, commits[len(commits)-1], "commitOffset"))
		})
	}
}

func TestConsumeTellsOfTrouble(t *testing.T) {
	empty := func(r *remoting.Command) *remoting.Command { return next(r, 19, 0) }
	refuses := func(code int) script {
		return func(r *remoting.Command) *remoting.Command {
			if r.Code == code {
				return r.Answer(1, "no")
			}
			if r.Code == remoting.RequestQueryConsumerOffset {
				return with(r, 0, &remoting.OffsetAnswer{})
			}
			return readable(0, 0, empty)(r)
		}
	}
	for code, want := range map[int]string{
		remoting.RequestGetMinOffset:            "GET_MIN_OFFSET at",
		remoting.RequestGetMaxOffset:            "GET_MAX_OFFSET at",
		remoting.RequestQueryConsumerOffset:     "QUERY_CONSUMER_OFFSET at",
		remoting.RequestGetAllConsumerOffset:    "GET_ALL_CONSUMER_OFFSET at",
		remoting.RequestSearchOffsetByTimestamp: "SEARCH_OFFSET_BY_TIMESTAMP at",
		remoting.RequestUpdateConsumerOffset:    "commit: UPDATE_CONSUMER_OFFSET at",
	} {
		c := fake(t, map[string]script{"a": func(r *remoting.Command) *remoting.Command {
			a := refuses(code)(r)
			if r.Code == remoting.RequestGetAllConsumerOffset && a.Code == 0 {
				a.Body = []byte(`{"offsetTable":{}}`)
			}
			if r.Code == remoting.RequestSearchOffsetByTimestamp && a.Code == 0 {
				a = with(r, 0, &remoting.OffsetAnswer{})
			}
			return a
		}})
		_, _, err := run("consume", "--namesrv", c.names, "--topic", "T", "--queue", "0", "--group", "g", "--from", "2026-01-01T00:00:00Z")
		require.ErrorContains(t, err, want)
		if code != remoting.RequestUpdateConsumerOffset {
			require.Empty(t, c.requests(remoting.RequestUpdateConsumerOffset), "committed although it did not begin")
		}
	}
}

func TestConsumeIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan struct{})
	c := fake(t, map[string]script{"a": readable(0, 5, func(*remoting.Command) *remoting.Command {
		cancel()
		<-end
		return nil
	})})
	t.Cleanup(func() { close(end) })
	r := launch(ctx, t, "consume", "--namesrv", c.names, "--topic", "T")
	require.ErrorIs(t, <-r.ended, errInterrupted)
}

// oneRecord is the body of an answer with one message.
func oneRecord(t *testing.T, body string, at messages.QueueOffset) []byte {
	t.Helper()
	b, err := record.Append(nil, &messages.Message{Topic: "T", Body: []byte(body)})
	require.NoError(t, err)
	record.SetPlace(b, at, 0, 1_700_000_000_000)
	return b
}

func TestFollowGoesOnUntilItCanNot(t *testing.T) {
	var c *cluster
	c = fake(t, map[string]script{"a": func(r *remoting.Command) *remoting.Command {
		if r.Code == remoting.RequestUpdateConsumerOffset && len(c.requests(r.Code)) == 2 {
			return r.Answer(remoting.ResponseSystemBusy, "later")
		}
		return readable(5, 5, func(r *remoting.Command) *remoting.Command {
			switch at := field(t, r, "queueOffset"); len(c.requests(r.Code)) {
			case 1: // nothing came in time
				return next(r, 19, at)
			case 2:
				a := next(r, 0, at+1)
				a.Body = oneRecord(t, "came", messages.QueueOffset(at))
				return a
			case 3:
				return next(r, 21, 2)
			default:
				return r.Answer(remoting.ResponseTopicNotExist, "it is gone")
			}
		})(r)
	}})
	r := launch(t.Context(), t, "consume", "--namesrv", c.names, "--topic", "T", "--queue", "0", "--follow", "--group", "g")
	require.Equal(t, "broker=a queue=0 offset=5 time=2023-11-14T22:13:20.000Z tag= keys= body=came\n", r.line())
	require.Regexp(t, `^actormq: a queue 0: commit: UPDATE_CONSUMER_OFFSET at .*: SYSTEM_BUSY \(2\): later`, r.note())
	require.Equal(t, "actormq: a queue 0: offset 6 is not there, going on from 2\n", r.note())
	require.ErrorContains(t, <-r.ended, "a queue 0, offset 2: PULL_MESSAGE at")

	pulls := c.requests(remoting.RequestPullMessage)
	require.Len(t, pulls, 4)
	for _, p := range pulls {
		require.Equal(t, int64(remoting.PullFlagSuspend|remoting.PullFlagSubscription), field(t, p, "sysFlag"))
		require.Equal(t, holdTime.Milliseconds(), field(t, p, "suspendTimeoutMillis"))
	}
	var commits []int64
	for _, r := range c.requests(remoting.RequestUpdateConsumerOffset) {
		commits = append(commits, field(t, r, "commitOffset"))
	}
	require.Equal(t, []int64{5, 6, 2}, slices.Compact(commits), "the last one may have been cut off, and said again at the end")
}

func TestStartOfReading(t *testing.T) {
	for text, want := range map[string]start{
		"first": {}, "last": {last: true}, "0": {}, "17": {offset: 17},
		"2026-01-31T13:00:00Z": {timeMs: 1769864400000}, "2026-01-31T13:00:00.5+01:00": {timeMs: 1769860800500},
	} {
		got, err := parseStart(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-1", "2026-01-31", "9223372036854775808", "LAST", "1970-01-01T00:00:00Z"} {
		_, err := parseStart(text)
		require.Error(t, err, text)
	}
}
