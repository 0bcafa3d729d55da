package gateway_test

import (
	"bufio"
	"bytes"
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/testkit/frames"
)

// step is one recorded exchange that is played again.
type step struct {
	name string
	port string // "" is the broker's
	on   string // a client whose connection it is; "" is common to all others
	fix  func(*remoting.Command)

	remark string // a part of the answer's remark, when it is another one
	shape  bool   // the body tells of other topics, groups or brokers: only its members are compared
}

func set(pairs ...string) func(*remoting.Command) {
	return func(c *remoting.Command) {
		for i := 0; i < len(pairs); i += 2 {
			c.ExtFields = c.ExtFields.Set(pairs[i], pairs[i+1])
		}
	}
}

// script is an order in which the recorded requests meet the state that they were recorded in.
var script = []step{
	{name: "route-missing", port: "namesrv"}, {name: "route-tbw102-standard-json", port: "namesrv"},
	{name: "route-go-unquoted-keys", port: "namesrv"}, {name: "route-master-slave", port: "namesrv", shape: true},
	{name: "cluster-info", port: "namesrv", shape: true}, {name: "system-topic-list-ns", port: "namesrv"}, {name: "system-topic-list-broker"},
	{name: "kv-put", port: "namesrv"}, {name: "kv-get", port: "namesrv"}, {name: "kv-get-missing", port: "namesrv"},
	{name: "kv-list", port: "namesrv"}, {name: "wipe-write-perm", port: "namesrv"}, {name: "add-write-perm", port: "namesrv"},
	{name: "unknown-code"}, {name: "pull-on-vip", port: "vip"}, {name: "consumer-list-none"},
	{name: "pull-group-unknown", fix: set("topic", "TBW102")}, {name: "pull-topic-unknown"},
	{name: "check-client-config-ok"}, {name: "check-client-config-bad", remark: `unexpected "== " at byte 7`},
	{name: "send-forbidden-topic"}, {name: "send-topic-not-exist"},
	{name: "heartbeat-producer-java", on: "producer"}, {name: "heartbeat-consumer-java", on: "java"}, {name: "heartbeat-consumer-go", on: "go"}, {name: "heartbeat-lite-java", on: "lite"},
	{name: "consumer-list"},
	{name: "send-v2"}, {name: "send-v2-oneway"}, {name: "send-v2-delay"}, {name: "send-v2-compressed"}, {name: "send-batch-java"},
	{name: "send-v2-vip", port: "vip"}, {name: "send-v2-binary"}, {name: "send-v1-go"}, {name: "send-batch-go"},
	{name: "send-oneway-go"}, {name: "send-trace"}, {name: "acl-signed-send"}, {name: "tx-half-send"},
	{name: "tx-end-commit"}, {name: "tx-end-go", fix: set("commitOrRollback", "0")},
	{name: "route-binary", port: "namesrv"}, {name: "acl-signed-route", port: "namesrv"}, {name: "topic-list-all", port: "namesrv", shape: true},
	{name: "pull-found", fix: set("subVersion", "0")}, {name: "pull-go"}, {name: "pull-lite"}, {name: "pull-offset-moved"},
	{name: "pull-no-matched", fix: set("sysFlag", "6", "subscription", "none", "expressionType", "TAG")},
	{name: "pull-subscription-not-latest", fix: set("consumerGroup", "cg_demo", "subVersion", "9223372036854775807")},
	{name: "pull-long-poll-timeout", fix: set("subVersion", "0", "queueOffset", "5", "suspendTimeoutMillis", "50")},
	{name: "update-offset-oneway"}, {name: "query-offset"}, {name: "update-offset-go"}, {name: "max-offset"}, {name: "min-offset"},
	{name: "earliest-storetime"}, {name: "search-offset"}, {name: "lock-batch-mq"}, {name: "unlock-batch-mq"},
	{name: "view-message"}, {name: "query-message"}, {name: "query-message-none"},
	{name: "reply-send-no-client"}, {name: "send-back", fix: set("offset", "0")},
	{name: "create-topic"}, {name: "create-topic-system"}, {name: "delete-topic-broker"}, {name: "delete-topic-ns", port: "namesrv"},
	{name: "create-sub-group"}, {name: "delete-sub-group"}, {name: "topic-stats"},
	{name: "slave-all-consumer-offset", shape: true}, {name: "slave-all-delay-offset"}, {name: "update-broker-config"},
	{name: "reset-offset-offline"},
	{name: "unregister-client", on: "producer"},
}

// unplayed says why the other recorded exchanges are not in the script.
var unplayed = map[string]string{
	"acl-query-message-mismatch": "TestReplayOfGuardedRequests", "acl-update-by-non-admin": "likewise",
	"register-broker-json": "TestRegistrationsOfOtherBrokersReplayed", "register-broker-oneway": "likewise",
	"register-broker-slave": "likewise", "register-broker-compressed": "likewise", "query-data-version": "likewise",
	"unregister-broker": "likewise",
	"tx-check":          "to clients: TestTransactionCheckBack",
	"tx-end-rollback":   "its half message has another place here: TestEndTransaction", "tx-end-after-check": "likewise",
	"pull-retry-record": "needs the delay to be over",
}

func TestEveryRecordedExchangeIsAccountedFor(t *testing.T) {
	played := map[string]bool{}
	for _, s := range slices.Concat(script, toolScript, pushScript, aclScript) {
		require.False(t, played[s.name], s.name)
		played[s.name] = true
		require.Empty(t, unplayed[s.name], s.name)
	}
	for _, c := range frames.All() {
		require.True(t, played[c.Name] || unplayed[c.Name] != "", c.Name)
	}
}

// recordedSetup is what the recorded broker was configured with.
func recordedSetup(c *gateway.Config) {
	c.DefaultQueues, c.Broker.Policy.FilterByProperty, c.Broker.Policy.SearchBoundary = 2, true, messages.TimeNearest
}

func TestReplayOfRecordedExchanges(t *testing.T) {
	w := run(t, func(c *gateway.Config) {
		recordedSetup(c)
		c.Tools.DelayOffsets = func() map[int32]int64 { return map[int32]int64{2: 3, 3: 6} }
		c.Tools.SetOptions = func(*broker.Broker, map[string]string) error { return nil }
	})
	for id := range int32(2) {
		q := messages.QueueKey{Topic: "DemoAuto", QueueID: id}
		require.NoError(t, w.node.Broker().Offsets.CommitWait(t.Context(), "cg_long", q, 0))
	}
	clients := map[string]*client{}
	for _, s := range script {
		recorded := frames.Get(s.name)
		ok := t.Run(s.name, func(t *testing.T) {
			c := clients[s.port+s.on]
			if c == nil {
				c = w.dial(cmp.Or(s.port, "broker"))
				clients[s.port+s.on] = c
			}
			c.t = t
			request, err := remoting.ReadCommand(bufio.NewReader(bytes.NewReader(recorded.Request.Bytes)), remoting.Limits{})
			require.NoError(t, err)
			if s.fix != nil {
				s.fix(request)
			}
			c.send(request)
			if recorded.Response == nil {
				return // what follows on the connection shows that nothing was answered
			}
			answer := c.response(request)
			compare(t, recorded.Response, answer, request, s)
			w.settle(answer)
		})
		require.True(t, ok, "the script goes on with the state that %s leaves", s.name)
	}
}
