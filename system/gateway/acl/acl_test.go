package acl

import (
	"bufio"
	"bytes"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/testkit/frames"
)

const demo = `
globalWhiteRemoteAddresses:
- 10.10.103.*
- 192.168.0.{1,2}
accounts:
- accessKey: DemoUser01
  secretKey: DemoSecret01
  whiteRemoteAddress: 192.168.1.*
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - topicA=PUB|SUB
  - topicB=SUB
  - DemoAuto=PUB
  groupPerms:
  - groupB=DENY
- accessKey: DemoAdmin01
  secretKey: DemoSecret99
  admin: true
  topicPerms: [closed=DENY]
dataVersion:
- counter: 1
  timestamp: 1795966609205
`

func rules(t *testing.T, content string) *Rules {
	t.Helper()
	r, err := rulesOf([]text{{name: "plain_acl.yml", content: []byte(content)}})
	require.NoError(t, err)
	return r
}

var elsewhere = netip.MustParseAddr("203.0.113.9")

// signed is a request of an account, with ext fields given as name, value.
func signed(user string, code int, pairs ...string) *remoting.Command {
	c := &remoting.Command{Code: code}
	for i := 0; i < len(pairs); i += 2 {
		c.ExtFields = c.ExtFields.Set(pairs[i], pairs[i+1])
	}
	switch user {
	case "DemoUser01":
		c.Sign(user, "DemoSecret01")
	case "DemoAdmin01":
		c.Sign(user, "DemoSecret99")
	}
	return c
}

func TestDecision(t *testing.T) {
	r := rules(t, demo)
	for _, c := range []struct {
		name  string
		user  string
		code  int
		pairs []string
		want  string // part of the refusal; "" is allowed
	}{
		{"no key", "", remoting.RequestSendMessageV2, []string{"b", "topicA"}, "No accessKey is configured"},
		{"explicit", "DemoUser01", remoting.RequestSendMessageV2, []string{"b", "topicA"}, ""},
		{"explicit, the other bit", "DemoUser01", remoting.RequestSendMessageV2, []string{"b", "topicB"}, "No default permission for topic:topicB"},
		{"by default", "DemoUser01", remoting.RequestSendMessage, []string{"topic", "other"}, "No default permission for topic:other"},
		{"a batch as a single message", "DemoUser01", remoting.RequestSendBatchMessage, []string{"b", "other"}, "topic:other"},
		{"a reply as a single message", "DemoUser01", remoting.RequestSendReplyMessageV2, []string{"b", "other"}, "topic:other"},
		{"no topic named", "DemoUser01", remoting.RequestSendMessageV2, nil, "names no topic"},
		{"trace", "DemoUser01", remoting.RequestSendMessageV2, []string{"b", "RMQ_SYS_TRACE_TOPIC"}, ""},
		{"reading the trace", "DemoUser01", remoting.RequestQueryMessage, []string{"topic", "RMQ_SYS_TRACE_TOPIC"}, "topic:RMQ_SYS"},
		{"pull", "DemoUser01", remoting.RequestPullMessage, []string{"topic", "topicB", "consumerGroup", "g"}, ""},
		{"pull, group denied", "DemoUser01", remoting.RequestPullMessage, []string{"topic", "topicB", "consumerGroup", "groupB"}, "group:groupB"},
		{"retry topic of the group", "DemoUser01", remoting.RequestPullMessage, []string{"topic", "%RETRY%g", "consumerGroup", "g"}, ""},
		{"retry topic of a denied group", "DemoUser01", remoting.RequestSendMessageV2, []string{"b", "%RETRY%groupB"}, "group:groupB"},
		{"send back", "DemoUser01", remoting.RequestConsumerSendMsgBack, []string{"group", "groupB"}, "group:groupB"},
		{"a producer unregisters", "DemoUser01", remoting.RequestUnregisterClient, []string{"producerGroup", "p"}, ""},
		{"signature only", "DemoUser01", remoting.RequestGetMaxOffset, []string{"topic", "other"}, ""},
		{"admin's", "DemoUser01", remoting.RequestUpdateAndCreateTopic, []string{"topic", "x"}, "Need admin permission for request code=17"},
		{"accounts are the admin's: L98", "DemoUser01", remoting.RequestUpdateAndCreateACLConfig, nil, "Need admin permission"},
		{"secrets are the admin's", "DemoUser01", remoting.RequestGetBrokerClusterACLConfig, nil, "Need admin permission"},
		{"admin", "DemoAdmin01", remoting.RequestUpdateAndCreateTopic, []string{"topic", "x"}, ""},
		{"admin may all", "DemoAdmin01", remoting.RequestSendMessageV2, []string{"b", "other"}, ""},
		{"but what is denied", "DemoAdmin01", remoting.RequestSendMessageV2, []string{"b", "closed"}, "topic:closed"},
	} {
		err := r.CheckBroker(signed(c.user, c.code, c.pairs...), elsewhere)
		if c.want == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorContains(t, err, c.want, c.name)
		require.ErrorContains(t, err, "org.apache.rocketmq.acl.common.AclException: ", c.name)
	}
	stranger := signed("", remoting.RequestGetMaxOffset)
	stranger.Sign("Unknown01", "DemoSecret01")
	require.ErrorContains(t, r.CheckBroker(stranger, elsewhere), "No acl config for Unknown01")
	forged := signed("DemoUser01", remoting.RequestSendMessageV2, "b", "topicA")
	forged.Body = []byte("another body")
	require.ErrorContains(t, r.CheckBroker(forged, elsewhere), "Check signature failed for accessKey=DemoUser01")
	require.NoError(t, r.CheckBroker(forged, netip.MustParseAddr("192.168.1.77")), "the account's own addresses")
	require.NoError(t, r.CheckBroker(&remoting.Command{Code: 17}, netip.MustParseAddr("::ffff:10.10.103.4")), "global white list")
}

func TestHeartbeatNeedsEveryGroupAndTopic(t *testing.T) {
	r := rules(t, demo)
	beat := func(group, topic string) error {
		c := &remoting.Command{Code: remoting.RequestHeartbeat}
		require.NoError(t, c.EncodeBody(&remoting.HeartbeatData{ConsumerDataSet: []remoting.ConsumerData{{
			GroupName: group, SubscriptionDataSet: []remoting.SubscriptionData{{Topic: "%RETRY%" + group}, {Topic: topic}},
		}}}))
		c.Sign("DemoUser01", "DemoSecret01")
		return r.CheckBroker(c, elsewhere)
	}
	require.NoError(t, beat("g", "topicB"))
	require.ErrorContains(t, beat("groupB", "topicB"), "group:groupB")
	require.ErrorContains(t, beat("g", "DemoAuto"), "topic:DemoAuto")
	c := &remoting.Command{Code: remoting.RequestHeartbeat, Body: []byte("{")}
	c.Sign("DemoUser01", "DemoSecret01")
	require.Error(t, r.CheckBroker(c, elsewhere))
}

func TestNameServerIsChangedByAdministratorsOnly(t *testing.T) {
	r := rules(t, demo)
	require.NoError(t, r.CheckNames(&remoting.Command{Code: remoting.RequestGetRouteInfoByTopic}, elsewhere))
	for _, code := range adminOnlyNames {
		require.Error(t, r.CheckNames(&remoting.Command{Code: code}, elsewhere))
		require.ErrorContains(t, r.CheckNames(signed("DemoUser01", code), elsewhere), "Need admin")
		require.NoError(t, r.CheckNames(signed("DemoAdmin01", code), elsewhere))
		require.NoError(t, r.CheckNames(&remoting.Command{Code: code}, netip.MustParseAddr("192.168.0.2")))
	}
}

// The recorded requests are those of the Java client and the tools. L101: the third one, which RocketMQ's own broker refuses, is
// allowed; the last one, by which it lets an account make others, is not.
func TestRecordedSignatures(t *testing.T) {
	r := rules(t, "accounts: [{accessKey: DemoUser01, secretKey: DemoSecret01, defaultTopicPerm: PUB|SUB, defaultGroupPerm: SUB}]")
	for name, want := range map[string]string{
		"acl-signed-send": "", "acl-signed-route": "", "acl-query-message-mismatch": "",
		"acl-bad-signature": "Check signature failed", "acl-no-key": "No accessKey is configured",
		"acl-need-admin":          "Need admin permission for request code=17, but accessKey=DemoUser01 is not",
		"acl-update-by-non-admin": "Need admin permission for request code=50",
	} {
		c, err := remoting.ReadCommand(bufio.NewReader(bytes.NewReader(frames.Get(name).Request.Bytes)), remoting.Limits{})
		require.NoError(t, err)
		err = r.CheckBroker(c, elsewhere)
		if want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, want, name)
		}
	}
}

func TestAddressPatterns(t *testing.T) {
	for _, c := range []struct {
		list, in, out string
	}{
		{"", "", "1.2.3.4"},
		{"*", "1.2.3.4", ""},
		{"*.*.*.*", "::1", ""},
		{"*:*:*:*:*:*:*:*", "1.2.3.4", ""},
		{"1.2.3.4", "1.2.3.4", "1.2.3.5"},
		{"1.2.3.4, 1.2.3.6", "1.2.3.6", "1.2.3.5"},
		{"192.168.0.{1,2}", "192.168.0.2", "192.168.0.3"},
		{"10.10.103.*", "10.10.103.255", "10.10.104.0"},
		{"10.10.1-9.*", "10.10.9.7", "10.10.10.7"},
		{"::1", "::1", "::2"},
		{"fe80::1:*", "fe80::1:ffff", "fe80::2:0"},
		{"1:2:3:4:5:6:7:{8,a}", "1:2:3:4:5:6:7:a", "1:2:3:4:5:6:7:9"},
		{"1.2.3.*", "1.2.3.4", "::ffff:102:304:1"},
	} {
		p, err := parsePatterns(c.list)
		require.NoError(t, err, c.list)
		if c.in != "" {
			require.True(t, matches(p, netip.MustParseAddr(c.in)), "%s %s", c.list, c.in)
		}
		if c.out != "" {
			require.False(t, matches(p, netip.MustParseAddr(c.out)), "%s %s", c.list, c.out)
		}
	}
	for _, bad := range []string{"1.2.3", "1.2.3.256", "1.2.9-3.*", "a.b.c.d", "1.2.3.{1,2", "1:2:3", "1.2.3.-", "::1::2:*"} {
		_, err := parsePatterns(bad)
		require.Error(t, err, bad)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	for text, why := range map[string]string{
		"accounts: [{accessKey: short, secretKey: LongEnough}]":                                    "more than 6",
		"accounts: [{accessKey: LongEnough, secretKey: LongEnough, topicPerms: [a=PUBB]}]":         "PUBB",
		"accounts: [{accessKey: LongEnough, secretKey: LongEnough, topicPerms: [a]}]":              "NAME=PERMISSION",
		"accounts: [{accessKey: LongEnough, secretKey: LongEnough, defaultTopicPerms: PUB}]":       "defaultTopicPerms",
		"accounts: [{accessKey: LongEnough, secretKey: LongEnough, whiteRemoteAddress: 1.2}]":      "fields",
		"accounts: [{accessKey: LongEnough, secretKey: LongEnough, groupPerms: [\"g=DENY|SUB\"]}]": "stand alone",
		"accounts: {":   "plain_acl.yml",
		"":              "is empty",
		"# accounts:\n": "is empty",
		"accounts:\n":   "nobody could do anything",
		"globalWhiteRemoteAddresses: [1.2.3.4]\n---\naccounts: []": "more than one document",
		"globalWhiteRemoteAddresses: [1.2.3.x]":                    "1.2.3.x",
	} {
		_, err := rulesOf([]fileText{{name: "plain_acl.yml", content: []byte(text)}})
		require.ErrorIs(t, err, ErrRules, text)
		require.ErrorContains(t, err, why, text)
	}
}

type fileText = text

func FuzzRules(f *testing.F) {
	f.Add([]byte(demo))
	f.Add([]byte("accounts: [{accessKey: LongEnough, secretKey: LongEnough, whiteRemoteAddress: '1::{1,2}'}]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := rulesOf([]text{{name: "f", content: content}})
		if err != nil {
			require.ErrorIs(t, err, ErrRules)
			return
		}
		_ = r.CheckBroker(signed("DemoUser01", remoting.RequestSendMessageV2, "b", "topicA"), elsewhere)
	})
}
