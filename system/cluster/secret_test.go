package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/system/gateway/vouch"
	"github.com/actormq/actormq/testkit/fixture"
)

// same waits until every node that is up has the same secret, and returns its text.
func (g *group) same(but string) (text string) {
	g.t.Helper()
	g.until("all nodes have the same secret", func() bool {
		text = ""
		for _, p := range g.up {
			s := p.elector.secret()
			if s == nil || text != "" && s.Text() != text {
				return false
			}
			text = s.Text()
		}
		return text != but
	})
	return text
}

// The nodes of a group have one secret, whichever of them made it; those that come later have it too, and nobody is shown it.
func TestTheNodesOfAGroupHaveOneSecret(t *testing.T) {
	g := newGroup(t, 3)
	var said fixture.Said
	g.log = zerolog.New(&said)
	g.start("1", "2", "3")
	leader := g.up[g.leader()]
	first := g.same("")
	leader.mu.Lock()
	require.Equal(t, first, leader.serves.Secret().Text(), "what serves clients is told")
	leader.mu.Unlock()
	g.stop("1")
	g.start("1")
	require.Equal(t, first, g.same(""))

	ctl := g.up["2"].elector.ctl
	require.ErrorIs(t, ctl.keep(t.Context(), vouch.NewSecret()), ErrChanged)
	got, err := ctl.client.Get(t.Context(), ctl.secretKey())
	require.NoError(t, err)
	require.Equal(t, first, string(got.Kvs[0].Value), "whoever was faster counts")

	all, err := Read(t.Context(), []string{g.etcd}, nil)
	require.NoError(t, err)
	told, err := json.Marshal(all)
	require.NoError(t, err)
	require.NotContains(t, string(told), first)
	require.NotContains(t, said.String(), first)
	require.Contains(t, said.String(), "the group has a secret")
}

// What is no secret is not believed, holds up nothing, and is not replaced; where there is none again the nodes make another one.
func TestASecretThatIsNoneProvesNothing(t *testing.T) {
	g := newGroup(t, 2)
	var said fixture.Said
	g.log = zerolog.New(&said)
	g.start("1", "2")
	g.leader()
	first := g.same("")
	ctl := g.up["1"].elector.ctl
	_, err := ctl.client.Put(t.Context(), ctl.secretKey(), "nonsense")
	require.NoError(t, err)
	g.put()
	g.until("somebody tells", func() bool { return strings.Contains(said.String(), "delete the key") })
	require.Equal(t, first, g.same(""), "what was known goes on to count")
	require.NotContains(t, said.String(), "nonsense")
	_, err = ctl.client.Delete(t.Context(), ctl.secretKey())
	require.NoError(t, err)
	require.NotEqual(t, first, g.same(first))
}
