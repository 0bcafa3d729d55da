package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
	members "github.com/actormq/actormq/system/cluster"
)

// from is a client at an address of this machine.
func from(t *testing.T, host string) *client.Client {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	c := client.New(client.Options{Dial: func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }})
	t.Cleanup(c.Close)
	return c
}

func sendTo(t *testing.T, c *client.Client, address string) (client.Sent, error) {
	return c.Send(t.Context(), address, remoting.SendMessageHeader{
		ProducerGroup: "g", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: 1, BornTimestampMs: time.Now().UnixMilli(),
		MaxReconsumeTimes: remoting.AbsentTimes,
	}, []byte("m"))
}

// In a group whose rules name a client, and no node, it is let in by whichever node it asks, and its messages were born where it is. The nodes
// register at each other, and followers take over what the leader has, all the same.
func TestRulesOfAGroupNameItsClientsAlone(t *testing.T) {
	const inside, outside = "127.0.0.5", "127.0.0.6"
	g := Build(t, 2)
	rules := filepath.Join(t.TempDir(), "plain_acl.yml")
	admit := func(list string) {
		require.NoError(t, os.WriteFile(rules, []byte("globalWhiteRemoteAddresses: ["+list+"]\n"), 0o600))
	}
	admit(inside) // the nodes are at 127.0.0.1
	g.Args = map[string][]string{}
	for _, n := range g.Nodes {
		g.Args[n.ID] = []string{"--set", "aclEnable=true", "--set", "aclFile=" + rules}
	}
	g.Start("1", "2")
	g.Ready("1", "2")
	leader, follower := g.Nodes[0], g.Nodes[1]
	if g.Leader() == "2" {
		leader, follower = follower, leader
	}
	in, out := from(t, inside), from(t, outside)
	g.Until("the topic is made", func() bool {
		_, err := sendTo(t, in, leader.Port(members.PortBroker))
		return err == nil
	})
	node := from(t, "127.0.0.1")
	for _, n := range g.Nodes {
		_, err := node.MaxOffset(t.Context(), client.Queue{Topic: "T", Address: n.Port(members.PortBroker)})
		require.True(t, client.HasCode(err, remoting.ResponseSystemError), "%v", err)
		g.Until("each name server knows both nodes", func() bool {
			var info remoting.ClusterInfo
			err := out.Ask(t.Context(), n.Port(members.PortNameServer), remoting.RequestGetBrokerClusterInfo, nil, &info)
			addresses := 0
			for _, b := range info.BrokerAddrTable {
				addresses += len(b.BrokerAddrs)
			}
			return err == nil && addresses == len(g.Nodes)
		})
	}
	g.Until("the follower has the topic", func() bool {
		var topics remoting.TopicConfigTable
		err := in.Ask(t.Context(), follower.Port(members.PortBroker), remoting.RequestGetAllTopicConfig, nil, &topics)
		_, there := topics.TopicConfigTable["T"]
		return err == nil && there
	})
	sent, err := sendTo(t, in, follower.Port(members.PortBroker))
	require.NoError(t, err)
	_, err = sendTo(t, out, follower.Port(members.PortBroker))
	require.ErrorContains(t, err, "No accessKey is configured")
	pulled, err := in.Pull(t.Context(), leader.Port(members.PortBroker), remoting.PullMessageHeader{
		ConsumerGroup: "g", Topic: "T", QueueID: sent.QueueID, QueueOffset: sent.QueueOffset, MaxMsgNums: 1,
		SysFlag: remoting.PullFlagSubscription, Subscription: "*", ExpressionType: "TAG",
	})
	require.NoError(t, err)
	require.Len(t, pulled.Messages, 1)
	require.Equal(t, inside, pulled.Messages[0].BornHost.Addr().String())
	answer, err := http.Get("http://" + leader.Port(members.PortAdmin) + "/metrics")
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(text), `actormq_relay_hellos_total{outcome="proved"} 1`, "the client's connection by the follower")
	require.Contains(t, string(text), `actormq_relay_hellos_total{outcome="refused"} 0`, fmt.Sprint(g.said[leader.ID]))
}
