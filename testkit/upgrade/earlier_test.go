package upgrade

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
	members "github.com/actormq/actormq/system/cluster"
	replicas "github.com/actormq/actormq/testkit/cluster"
)

// mixed is a group of which some nodes are of an earlier program.
type mixed struct {
	*replicas.Group
	t       *testing.T
	client  *client.Client
	earlier string
}

// at is a node's broker.
func (m *mixed) at(id string) string { return m.Nodes[id[0]-'1'].Port(members.PortBroker) }

// sends has the clients of a node, whichever leads, send: none of it fails.
func (m *mixed) sends(id string) {
	m.t.Helper()
	for range 50 {
		sent, err := m.client.Send(m.t.Context(), m.at(id), remoting.SendMessageHeader{
			ProducerGroup: "g", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 1, BornTimestampMs: time.Now().UnixMilli(),
			MaxReconsumeTimes: remoting.AbsentTimes,
		}, []byte("m"))
		require.NoError(m.t, err)
		require.Equal(m.t, remoting.ResponseSuccess, sent.Code)
	}
}

// again stops a node and starts it as this program, or as the earlier one.
func (m *mixed) again(id string, earlier bool) {
	m.t.Helper()
	drain(m.t, m.at(id), 0)
	m.Ended(id)
	if delete(m.Programs, id); earlier {
		m.Programs[id] = m.earlier
	}
	m.Start(id)
	m.Ready(id)
	m.Leader()
}

// follower is a node that does not lead.
func (m *mixed) follower(but ...string) string {
	m.t.Helper()
	leader := m.Leader()
	for _, n := range m.Nodes {
		if n.ID != leader && (len(but) == 0 || n.ID != but[0]) {
			return n.ID
		}
	}
	return ""
}

// A node of this program relays to a leader of an earlier one, UPGRADE_FROM, and the reverse. testkit/upgrade/versions.sh builds that.
func TestNodesRelayToLeadersOfAnEarlierProgramAndTheReverse(t *testing.T) {
	earlier := os.Getenv("UPGRADE_FROM")
	if earlier == "" {
		t.Skip("UPGRADE_FROM is the path of an earlier program: testkit/upgrade/versions.sh")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m := &mixed{Group: replicas.Build(t, 3), t: t, client: client.New(client.Options{}), earlier: earlier}
	defer m.client.Close()
	m.Programs = map[string]string{"1": earlier, "2": earlier, "3": earlier}
	m.Start("1", "2", "3")
	m.Ready("1", "2", "3")
	m.sends(m.Leader())
	first := m.follower()
	m.again(first, false)
	require.Contains(t, m.Programs, m.Leader())
	m.sends(first)
	t.Logf("node %s relays to node %s of the earlier program", first, m.Leader())
	second := m.follower(first)
	m.again(second, false)
	for ctx.Err() == nil && m.Programs[m.Leader()] != "" {
		m.again(m.Leader(), true)
	}
	third := ""
	for id := range m.Programs {
		third = id
	}
	require.NotEqual(t, third, m.Leader())
	m.sends(third)
	t.Logf("node %s of the earlier program relays to node %s", third, m.Leader())
	m.again(third, false)
	m.sends(m.follower())
}
