package cluster

import (
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/fixture"
)

// TestAGroupThatIsStoppedLogsNoError, nor warns of what it does itself: first the leader hands over, then all nodes go at once.
func TestAGroupThatIsStoppedLogsNoError(t *testing.T) {
	g := newGroup(t, 3)
	var said fixture.Said
	g.log = zerolog.New(&said).Level(zerolog.InfoLevel)
	g.start("1", "2", "3")
	for range 5 {
		g.put()
	}
	g.until("all are in sync", func() bool {
		all, err := Read(t.Context(), []string{g.etcd}, nil)
		return err == nil && len(all) == 1 && len(all[0].InSync) == 3
	})
	first := g.leader()
	before := len(said.String())
	require.True(t, g.up[first].Yield())
	<-g.up[first].HandedOver()
	g.leader(first)
	var ended sync.WaitGroup
	for _, p := range g.up {
		ended.Go(func() { _ = p.Close() })
	}
	ended.Wait()
	for line := range strings.Lines(said.String()[before:]) {
		require.NotRegexp(t, `"level":"error"`, line)
		require.NotRegexp(t, `"level":"warn".*(can't be watched|leads no more|in sync any more|"master":"")`, line)
	}
}
