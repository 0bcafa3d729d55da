package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// ask runs a command against the node and returns its JSON objects.
func (n *testNode) tell(args ...string) ([]map[string]any, error) {
	n.t.Helper()
	stdout, stderr, err := run(append(args, "--json", "--namesrv", n.names)...)
	require.Empty(n.t, stderr)
	all := []map[string]any{}
	for line := range strings.Lines(stdout) {
		var m map[string]any
		require.NoError(n.t, json.Unmarshal([]byte(line), &m), line)
		all = append(all, m)
	}
	return all, err
}

// want runs a command and wants no trouble.
func (n *testNode) want(args ...string) []map[string]any {
	n.t.Helper()
	all, err := n.tell(args...)
	require.NoError(n.t, err)
	return all
}

// column is one member of all objects.
func column(rows []map[string]any, name string) []any {
	var all []any
	for _, r := range rows {
		all = append(all, r[name])
	}
	return all
}

func TestTopicCommands(t *testing.T) {
	n := serve(t)
	made := n.want("topic", "create", "orders", "--queues", "3", "--perm", "rw")
	require.Equal(t, []map[string]any{{"broker": "broker-a", "topic": "orders", "readQueues": 3.0, "writeQueues": 3.0, "perm": "rw"}}, made)
	_, err := n.tell("topic", "create", "orders")
	require.ErrorContains(t, err, "is there already")
	n.produce("orders", "--queue", "1", "a", "b")
	shown := n.want("topic", "show", "orders")
	require.Equal(t, []any{0.0, 2.0, 0.0}, column(shown[1:], "next"))
	require.Equal(t, []any{"orders"}, column(n.want("topic", "list"), "topic"))
	require.Contains(t, column(n.want("topic", "list", "--all"), "topic"), "TBW102")
	n.want("topic", "update", "orders", "--perm", "r")
	n.want("topic", "update", "orders", "--write-queues", "1")
	now := n.want("topic", "show", "orders")[0]
	require.Equal(t, []any{"r", 3.0, 1.0}, []any{now["perm"], now["readQueues"], now["writeQueues"]}, "what is not given stays")
	_, err = n.tell("topic", "delete", "orders")
	require.ErrorContains(t, err, "--yes")
	n.want("topic", "delete", "orders", "--yes")
	for _, args := range [][]string{{"topic", "show", "orders"}, {"topic", "update", "orders"}, {"topic", "delete", "orders", "--yes"}} {
		_, err = n.tell(args...)
		require.Equal(t, statusNotFound, exitStatus(err), "%v: %v", args, err)
	}
	n.want("topic", "create", "orders", "--queues", "1")
	require.Equal(t, []any{0.0}, column(n.want("topic", "show", "orders")[1:], "next"), "it begins anew")
}

// TestConfigSetChangesARunningNode: all keys or none, and what can't be changed is told.
func TestConfigSetChangesARunningNode(t *testing.T) {
	n := serve(t)
	n.produce("orders", "--queue", "0", "a", "b")
	_, err := n.tell("config", "set", "topicLimits=orders=1000,,2", "listenPort=1")
	require.ErrorContains(t, err, "listenPort can't be changed while the node runs")
	n.produce("orders", "--queue", "0", "c")
	set := n.want("config", "set", "topicLimits=orders=1000,,3", "traceOn=true")
	require.Equal(t, []any{"topicLimits", "traceOn"}, column(set, "key"))
	require.Equal(t, []any{"orders=1000,,3", "true"}, column(set, "value"))
	_, _, err = run("produce", "--namesrv", n.names, "--topic", "orders", "--queue", "0", "d")
	require.Error(t, err, "the limit of messages kept is reached")
	for arg, want := range map[string]string{
		"x": `"x": want KEY=VALUE`, "=x": "want KEY=VALUE", "fileReservedTime=-1": "allowed is", "fileReserveTime=1": "did you mean fileReservedTime",
	} {
		_, err := n.tell("config", "set", arg)
		require.ErrorContains(t, err, want)
	}
	_, err = n.tell("config", "set", "traceOn=true", "traceOn=false")
	require.ErrorContains(t, err, "twice")
}

func TestOffsetAndGroupCommands(t *testing.T) {
	n := serve(t)
	n.produce("orders", append([]string{"--queue", "0"}, numbers(0, 40)...)...)
	middle := n.consume("--topic", "orders", "--from", "39")[0].StoreTime
	for n.produce("orders", "--queue", "0", "x"); n.last("orders") == middle; n.produce("orders", "--queue", "0", "x") {
		continue
	}
	late := n.consume("--topic", "orders", "--from", middle)
	first := late[0].Offset
	for _, m := range late {
		if m.StoreTime > middle {
			first = m.Offset
			break
		}
	}
	n.consume("--topic", "orders", "--group", "billing", "--max", "5")
	require.Equal(t, 5.0, n.want("offset", "show", "billing", "--topic", "orders")[0]["offset"])

	dry := n.want("offset", "reset", "billing", "--topic", "orders", "--to", "latest", "--dry-run")[0]
	require.Equal(t, dry["next"], dry["newOffset"])
	require.Equal(t, 5.0, n.want("offset", "show", "billing", "--topic", "orders")[0]["offset"], "nothing is changed")
	after := n.consume("--topic", "orders", "--from", middle)[0] // the first of that millisecond
	for to, want := range map[string]any{"latest": dry["next"], "earliest": 0.0, middle: float64(after.Offset), "2001-01-01T00:00:00Z": 0.0, "2999-01-01T00:00:00Z": dry["next"]} {
		require.Equal(t, want, n.want("offset", "reset", "billing", "--topic", "orders", "--to", to)[0]["newOffset"], to)
		require.Equal(t, want, n.want("offset", "show", "billing", "--topic", "orders")[0]["offset"], to)
	}
	at, err := time.Parse(time.RFC3339, middle)
	require.NoError(t, err)
	exact := n.want("offset", "reset", "billing", "--topic", "orders", "--to", at.Add(time.Millisecond).Format(time.RFC3339Nano))
	require.Equal(t, float64(first), exact[0]["newOffset"], "the first that is later")

	lag := n.want("group", "lag", "billing", "--topic", "orders")
	require.Equal(t, dry["next"].(float64)-float64(first), lag[0]["lag"])
	require.Contains(t, column(n.want("group", "list"), "group"), "billing")
	require.Contains(t, column(n.want("group", "lag"), "group"), "billing")
	show := n.want("group", "show", "billing")
	require.Equal(t, true, show[0]["consumeEnable"])

	n.want("offset", "clone", "billing", "billing-2", "--topic", "orders")
	require.Equal(t, float64(first), n.want("offset", "show", "billing-2", "--topic", "orders")[0]["offset"])
	n.want("group", "delete", "billing", "--offsets", "--yes")
	require.NotContains(t, n.want("offset", "show", "billing", "--topic", "orders")[0], "offset")
	_, err = n.tell("group", "show", "billing")
	require.Equal(t, statusNotFound, exitStatus(err))
	_, err = n.tell("offset", "show", "billing", "--topic", "none")
	require.Equal(t, statusNotFound, exitStatus(err))
}

// last is the store time of the topic's newest message.
func (n *testNode) last(topic string) string {
	all := n.consume("--topic", topic)
	return all[len(all)-1].StoreTime
}

// A consumer that is connected would store its own offsets over those that a command sets.
func TestOffsetsOfAGroupThatIsOnlineStay(t *testing.T) {
	n := serve(t)
	n.produce("orders", "x")
	c := n.client()
	beat := remoting.NewRequest(remoting.RequestHeartbeat, nil)
	require.NoError(t, beat.EncodeBody(&remoting.HeartbeatData{ClientID: "me", ConsumerDataSet: []remoting.ConsumerData{{
		GroupName: "billing", ConsumeType: "CONSUME_PASSIVELY", MessageModel: "CLUSTERING", ConsumeFromWhere: "CONSUME_FROM_FIRST_OFFSET",
		SubscriptionDataSet: []remoting.SubscriptionData{{Topic: "orders", SubString: "*", ExpressionType: "TAG"}},
	}}}))
	answer, err := c.Call(t.Context(), n.broker, beat)
	require.NoError(t, err)
	require.Equal(t, remoting.ResponseSuccess, answer.Code, answer.Remark)
	_, err = n.tell("offset", "reset", "billing", "--topic", "orders", "--to", "latest")
	require.ErrorContains(t, err, "is online (1 clients)")
	_, err = n.tell("offset", "clone", "other", "billing", "--topic", "orders")
	require.ErrorContains(t, err, "is online (1 clients)")
	require.Equal(t, []any{"me"}, n.want("group", "show", "billing")[0]["members"])
}

func TestMessageCommands(t *testing.T) {
	n := serve(t)
	sent := n.produce("orders", "--key", "4711", "--property", "UNIQ_KEY=u1", "two coffees")
	n.produce("orders", "--key", "4712", "one tea")
	n.produce("others", "--key", "4711", "x")
	require.NoError(t, n.store.AwaitDispatched(t.Context()))
	got := n.want("message", "show", sent[0].ID)
	require.Equal(t, []any{"two coffees"}, column(got, "body"))
	require.Equal(t, got, n.want("message", "find", "--topic", "orders", "--key", "4711"))
	require.Equal(t, got, n.want("message", "find", "--topic", "orders", "--unique-key", "u1"))
	require.Equal(t, column(got, "msgId"), column(n.want("message", "show", sent[0].ID, "--broker", n.broker), "msgId"))
	require.Len(t, n.want("message", "find", "--topic", "orders", "--from", "2001-01-01T00:00:00Z"), 2)
	require.NoError(t, n.node.gateway.Broker().Offsets.CommitWait(t.Context(), "billing", messages.QueueKey{Topic: "orders", QueueID: *sent[0].Queue}, messages.QueueOffset(*sent[0].Offset+1)))
	way := n.want("message", "trace", sent[0].ID)
	require.Equal(t, []any{"put", "flushed", "dispatched", "consumed"}, column(way, "step"))
	require.Equal(t, true, way[2]["done"])
	require.Equal(t, []any{"billing", true}, []any{way[3]["group"], way[3]["done"]})
	require.Len(t, n.want("message", "find", "--topic", "orders", "--from", got[0]["storeTime"].(string), "--max", "1"), 1)
	for _, args := range [][]string{
		{"find", "--topic", "orders", "--key", "1"}, {"find", "--topic", "orders", "--to", "2001-01-01T00:00:00Z"},
		{"find", "--topic", "none", "--key", "1"}, {"show", sent[0].ID[:31] + "1"},
	} {
		_, err := n.tell(append([]string{"message"}, args...)...)
		require.Equal(t, statusNotFound, exitStatus(err), "%v: %v", args, err)
	}
	_, err := n.tell("message", "find", "--topic", "orders")
	require.Equal(t, 1, exitStatus(err))
}

func TestDeadLettersAreSentAgainToTheirGroupOnce(t *testing.T) {
	n := serve(t)
	n.want("topic", "create", "%DLQ%billing", "--queues", "1")
	n.want("topic", "create", "%RETRY%billing", "--queues", "1")
	c := n.client()
	for i := range 5 {
		h := (&producer{}).header(n.queue("%DLQ%billing", 0))
		h.ProducerGroup = "p"
		h.Properties = string(messages.PropertiesOf(map[string]string{"RETRY_TOPIC": "orders", "RECONSUME_TIME": "16", "KEYS": "k"}))
		sent, err := c.Send(t.Context(), n.broker, h, []byte{'a' + byte(i)})
		require.NoError(t, err)
		n.await("%DLQ%billing", []sentLine{{Queue: &sent.QueueID, Offset: &sent.QueueOffset}})
	}
	count := func() []any { d := n.want("dlq", "list")[0]; return []any{d["group"], d["messages"], d["resent"]} }
	require.Equal(t, []any{"billing", 5.0, 0.0}, count())
	require.Len(t, n.want("dlq", "resend", "billing", "--dry-run"), 5)
	require.Len(t, n.want("dlq", "list", "billing"), 5)
	require.Equal(t, []any{"billing", 5.0, 0.0}, count())
	require.Equal(t, []any{"a", "b"}, column(n.want("dlq", "resend", "billing", "--rate", "1000", "--max", "2"), "body"))
	require.Equal(t, []any{"billing", 5.0, 2.0}, count())
	require.Equal(t, []any{"c", "d", "e"}, column(n.want("dlq", "resend", "billing", "--rate", "1000"), "body"))
	require.Empty(t, n.want("dlq", "resend", "billing"), "each once")
	require.NoError(t, n.store.AwaitDispatched(t.Context()))
	again := n.consume("--topic", "%RETRY%billing")
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, bodies(t, again))
	require.Equal(t, "orders", again[0].Properties["RETRY_TOPIC"])
	require.NotContains(t, again[0].Properties, "RECONSUME_TIME", "it has all its attempts")
	_, err := n.tell("dlq", "resend", "none")
	require.Equal(t, statusNotFound, exitStatus(err))
}

func TestConfigCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broker.conf")
	require.NoError(t, os.WriteFile(file, []byte("brokerName=b\nsendMessageThreadPoolNums=4\nadminListen=0.0.0.0:1\n"), 0o600))
	stdout, _, err := run("config", "check", "-c", file)
	require.NoError(t, err)
	require.Regexp(t, `^warning: sendMessageThreadPoolNums has no effect\nwarning: the admin port 0.0.0.0:1 .*\nok: \d+ keys\n$`, stdout)
	stdout, _, err = run("config", "check", "-c", file, "--json")
	require.NoError(t, err)
	require.Equal(t, "b", jsonLines[configLine](t, stdout)[0].Values["brokerName"])
	require.NoError(t, os.WriteFile(file, []byte("brokerNames=b\n"), 0o600))
	_, _, err = run("config", "check", "-c", file)
	require.ErrorContains(t, err, "did you mean brokerName?")
	require.Equal(t, 1, exitStatus(err))
}

func TestWrongArgumentsAreAnsweredWithTheRightOnes(t *testing.T) {
	for want, args := range map[string][]string{
		"usage: actormq store dump DIR --json FILE [flags]; actormq store dump --help says more": {"store", "dump"},
		"usage: actormq node [flags]":   {"node", "extra"},
		"usage: actormq drain [flags] ": {"drain", "--bogus"},
	} {
		_, _, err := run(args...)
		require.ErrorContains(t, err, want)
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, _, err := run("node", "--store-dir", file)
	require.EqualError(t, err, "the store's folder "+file+": not a directory")
}

func TestExitStatuses(t *testing.T) {
	_, _, err := run("topic", "list", "--namesrv", freePort(t), "--timeout", "1s")
	require.Equal(t, statusUnreached, exitStatus(err))
	require.Equal(t, statusUnreached, exitStatus(client.ErrNoAnswer))
	require.Equal(t, statusNotFound, exitStatus(tools.ErrNotFound))
}

// TestAWordThatIsNoCommand behind one that has commands below it fails; without a word its help is shown.
func TestAWordThatIsNoCommand(t *testing.T) {
	parents := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.HasSubCommands() {
			return
		}
		parents++
		path := strings.Fields(c.CommandPath())[1:]
		stdout, _, err := run(append(path, "frob")...)
		require.ErrorContains(t, err, `unknown command "frob" for "`+c.CommandPath()+`"`)
		require.Equal(t, 1, exitStatus(err))
		require.Empty(t, stdout)
		stdout, _, err = run(path...)
		require.NoError(t, err)
		require.Contains(t, stdout, "Available Commands:")
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(newRootCommand())
	require.Greater(t, parents, 9)
}

// Every command says what it is for, has an example, and stands in docs/CLI.md; those that ask have --json.
func TestEveryCommandIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/CLI.md")
	require.NoError(t, err)
	said := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(actormq [^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		said[row[1]] = true
	}
	have := map[string]bool{"actormq completion": true} // cobra's own
	root := newRootCommand()
	root.InitDefaultCompletionCmd()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, child := range c.Commands() {
			walk(child)
		}
		if c.HasSubCommands() || c.Name() == "help" || c.Parent().Name() == "completion" {
			return
		}
		have[c.CommandPath()] = true
		require.NotEmpty(t, c.Short, c.CommandPath())
		require.Contains(t, c.Example, c.CommandPath())
		for _, no := range []string{"node", "bench"} { // the one has a log in JSON, the other prints nothing else
			if strings.HasPrefix(c.CommandPath(), "actormq "+no) {
				return
			}
		}
		require.NotNil(t, c.Flags().Lookup("json"), c.CommandPath())
	}
	walk(root)
	require.Equal(t, have, said)
}
