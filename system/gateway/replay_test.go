package gateway_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/fastjson"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
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
	{name: "route-go-unquoted-keys", port: "namesrv"}, {name: "route-master-slave", port: "namesrv"},
	{name: "cluster-info", port: "namesrv"}, {name: "system-topic-list-ns", port: "namesrv"}, {name: "system-topic-list-broker"},
	{name: "kv-put", port: "namesrv"}, {name: "kv-get", port: "namesrv"}, {name: "kv-get-missing", port: "namesrv"},
	{name: "kv-list", port: "namesrv"}, {name: "wipe-write-perm", port: "namesrv"}, {name: "add-write-perm", port: "namesrv"},
	{name: "unknown-code"}, {name: "pull-on-vip", port: "vip"}, {name: "consumer-list-none"},
	{name: "pull-group-unknown", fix: set("topic", "TBW102")}, {name: "pull-topic-unknown"},
	{name: "check-client-config-ok"}, {name: "check-client-config-bad"},
	{name: "send-forbidden-topic"}, {name: "send-topic-not-exist"},
	{name: "heartbeat-producer-java", on: "producer"}, {name: "heartbeat-consumer-java", on: "java"}, {name: "heartbeat-consumer-go", on: "go"}, {name: "heartbeat-lite-java", on: "lite"},
	{name: "consumer-list"},
	{name: "send-v2"}, {name: "send-v2-oneway"}, {name: "send-v2-delay"}, {name: "send-v2-compressed"}, {name: "send-batch-java"},
	{name: "send-v2-vip", port: "vip"}, {name: "send-v2-binary"}, {name: "send-v1-go"}, {name: "send-batch-go"},
	{name: "send-oneway-go"}, {name: "send-trace"}, {name: "acl-signed-send"}, {name: "tx-half-send"},
	{name: "route-binary", port: "namesrv"}, {name: "acl-signed-route", port: "namesrv"}, {name: "topic-list-all", port: "namesrv"},
	{name: "pull-found", fix: set("subVersion", "0")}, {name: "pull-go"}, {name: "pull-lite"}, {name: "pull-offset-moved"},
	{name: "pull-no-matched", fix: set("sysFlag", "6", "subscription", "none", "expressionType", "TAG")},
	{name: "pull-subscription-not-latest", fix: set("consumerGroup", "cg_demo", "subVersion", "9223372036854775807")},
	{name: "pull-long-poll-timeout", fix: set("subVersion", "0", "topic", "%RETRY%cg_demo", "queueOffset", "0", "suspendTimeoutMillis", "50")},
	{name: "update-offset-oneway"}, {name: "query-offset"}, {name: "update-offset-go"}, {name: "max-offset"}, {name: "min-offset"},
	{name: "earliest-storetime"}, {name: "search-offset"}, {name: "lock-batch-mq"}, {name: "unlock-batch-mq"},
	{name: "view-message"}, {name: "query-message"}, {name: "query-message-none"},
	{name: "reply-send-no-client"}, {name: "send-back", fix: set("offset", "0")},
	{name: "create-topic"}, {name: "create-topic-system"}, {name: "delete-topic-broker"}, {name: "delete-topic-ns", port: "namesrv"},
	{name: "create-sub-group"}, {name: "delete-sub-group"}, {name: "topic-stats"},
	{name: "consume-stats", fix: set("consumerGroup", "cg_demo")},
	{name: "consumer-connection", fix: set("consumerGroup", "cg_demo")}, {name: "consumer-connection-offline"},
	{name: "producer-connection", fix: set("producerGroup", "pg_demo")}, {name: "all-producer-info"},
	{name: "topic-consume-by-who", fix: set("topic", "DemoAuto")}, {name: "stats-data"},
	{name: "query-cq", fix: set("consumerGroup", "cg_demo")}, {name: "consume-time-span", fix: set("group", "cg_demo")},
	{name: "correction-offset", fix: set("compareGroup", "cg_demo")},
	{name: "slave-all-consumer-offset"}, {name: "slave-all-delay-offset"}, {name: "update-broker-config"},
	{name: "reset-offset-offline", fix: set("group", "cg_offline")},
	{name: "unregister-client", on: "producer"},
}

// unplayed says why the other recorded exchanges are not in the script.
var unplayed = map[string]string{
	"register-broker-json": "remote brokers do not register here", "register-broker-oneway": "likewise",
	"register-broker-slave": "likewise", "register-broker-compressed": "likewise", "query-data-version": "likewise",
	"unregister-broker":           "likewise",
	"notify-consumer-ids-changed": "to clients: TestGroupMembersAreTold", "reply-push": "to clients: TestRequestReply",
	"reset-offset-client": "to clients: TestResetOffsetOnline", "tx-check": "to clients: transactions",
	"tx-end-commit": "transactions", "tx-end-rollback": "transactions", "tx-end-after-check": "transactions", "tx-end-go": "transactions",
	"reply-send": "needs a requester: TestRequestReply", "consumer-running-info": "needs a client that answers: TestRelays",
	"consume-directly": "likewise", "reset-offset-admin": "needs a client: TestResetOffsetOnline",
	"pull-filter-data-not-exist": "needs a filter expression: TestPullChecks",
	"pull-retry-record":          "needs the delay to be over",
	"acl-bad-signature":          "access control", "acl-no-key": "access control", "acl-query-message-mismatch": "access control",
	"acl-need-admin": "access control", "acl-update-by-non-admin": "access control",
}

func TestEveryRecordedExchangeIsAccountedFor(t *testing.T) {
	played := map[string]bool{}
	for _, s := range script {
		require.False(t, played[s.name], s.name)
		played[s.name] = true
		require.Empty(t, unplayed[s.name], s.name)
	}
	for _, c := range frames.All() {
		require.True(t, played[c.Name] || unplayed[c.Name] != "", c.Name)
	}
}

func TestReplayOfRecordedExchanges(t *testing.T) {
	w := run(t, func(c *gateway.Config) {
		c.Broker.Policy.FilterByProperty = true
		c.Tools.DelayOffsets = func() map[int32]int64 { return map[int32]int64{2: 3, 3: 6} }
		c.Tools.SetOptions = func(*broker.Broker, map[string]string) error { return nil }
	})
	for id := range int32(4) {
		q := messages.QueueKey{Topic: "DemoAuto", QueueID: id}
		require.NoError(t, w.node.Broker().Offsets.CommitWait(t.Context(), "cg_offline", q, 0))
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
			compare(t, recorded.Response, answer, request)
			w.settle(answer)
		})
		require.True(t, ok, "the script goes on with the state that %s leaves", s.name)
	}
}

// compare holds an answer against the recorded one: code, codec, ext fields' names, and the shape of the body.
func compare(t *testing.T, want *frames.Frame, got, request *remoting.Command) {
	t.Helper()
	require.Equal(t, want.Header.Code, got.Code, got.Remark)
	require.Equal(t, request.Opaque, got.Opaque)
	require.Equal(t, request.Binary, got.Binary)
	require.Equal(t, remoting.Version, got.Version)
	names := []string{}
	for name := range want.Header.ExtFields {
		names = append(names, name)
	}
	gotNames := []string{}
	for _, pair := range got.ExtFields {
		gotNames = append(gotNames, pair.Name)
	}
	slices.Sort(names)
	slices.Sort(gotNames)
	require.Equal(t, names, gotNames)
	switch {
	case len(want.BodyRecords) > 0:
		list, err := record.DecodeAll(got.Body)
		require.NoError(t, err)
		require.NotEmpty(t, list)
	case want.BodyText == "":
		require.Empty(t, got.Body)
	default:
		require.Equal(t, members(t, []byte(want.BodyText)), members(t, got.Body), "%s", got.Body)
	}
}

var memberName = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// members are the names of a JSON text's members, at any depth; keys that are data are left out.
func members(t *testing.T, text []byte) []string {
	t.Helper()
	strict, err := fastjson.Relax(text)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(strict, &v), "%s", text)
	names := map[string]struct{}{}
	collect(v, names)
	list := []string{}
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func collect(v any, into map[string]struct{}) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collect(e, into)
		}
	case map[string]any:
		for name, e := range v {
			var key any
			if memberName.MatchString(name) {
				into[name] = struct{}{}
			} else if json.Unmarshal([]byte(name), &key) == nil {
				collect(key, into) // an object as a key
			}
			collect(e, into)
		}
	}
}
