package cluster

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/fixture"
)

// A node that another one names by a host name, and that names itself by an address, is told of, once; a list in another order too.
func TestNodesThatAreNotNamedTheSameAreToldOf(t *testing.T) {
	var said fixture.Said
	e := &elector{cfg: Config{ID: "1", Logger: zerolog.New(&said), Nodes: []Node{{"1", "10.0.0.1:7000"}, {"2", "two.example:7000"}, {"3", "10.0.0.3:7000"}}}}
	see := func(second string) int {
		e.view = view{known: true, nodes: map[string]NodeState{"1": {Base: "10.0.0.1:7000"}, "2": {Base: second}, "3": {}}}
		e.compare()
		return strings.Count(said.String(), "not the same on each")
	}
	require.Equal(t, 0, see("two.example:7000"), "node 3 is of an earlier version")
	require.Equal(t, 1, see("10.0.0.2:7000"))
	require.Equal(t, 1, see("10.0.0.2:7000"))
	require.Contains(t, said.String(), `"node":"2","here":"two.example:7000","there":"10.0.0.2:7000"`)
	require.Equal(t, 1, see("two.example:7000"), "it has been put right")
	require.Equal(t, 2, see("10.0.0.2:7000"))
}

// A node that was started with its host's name, where the others have its address: they go on together, and both sides say what is wrong.
func TestANodeThatNamesItselfOtherwiseIsSeenByTheOthers(t *testing.T) {
	g := newGroup(t, 3)
	var said, says fixture.Said
	g.log = zerolog.New(&said)
	g.start("1", "2")
	same := g.nodes
	g.nodes = slices.Clone(same)
	_, port, err := net.SplitHostPort(same[2].Base)
	require.NoError(t, err)
	g.nodes[2].Base = net.JoinHostPort("localhost", port)
	g.log = zerolog.New(&says)
	g.nodes[1].Base = net.JoinHostPort("localhost", strconv.Itoa(1)) // and it has another one wrong
	g.start("3")
	g.put()
	g.until("those that have its address say it", func() bool {
		return strings.Contains(said.String(), `"node":"3","here":"`+same[2].Base+`","there":"localhost:`)
	})
	g.until("it says it", func() bool {
		return strings.Contains(says.String(), `"node":"2","here":"localhost:1","there":"`+same[1].Base)
	})
	require.NotContains(t, said.String()+says.String(), `"node":"1","here"`)
}
