package upgrade

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/testkit/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestARollingUpgradeLosesNothingAndNoSendFails(t *testing.T) {
	if os.Getenv("UPGRADE_CLIENT") != "" {
		t.Skip("another client does the work")
	}
	c := begin(t)
	l := c.send(4)
	for range fixture.Number(t, "UPGRADE_ROUNDS", 1) {
		for i := range c.nodes {
			l.goesOn(100)
			c.replace(i, 5*poll)
		}
	}
	l.goesOn(100)
	l.end()
}

func TestRocketMQsGoClientGoesThroughARollingUpgrade(t *testing.T) {
	if os.Getenv("UPGRADE_CLIENT") != "go" {
		t.Skip("takes minutes: UPGRADE_CLIENT=go")
	}
	c := begin(t)
	var said fixture.Said
	load := clientOf(t, "go", c.nameServers())
	load.Stdout, load.Stderr = &said, &said
	require.NoError(t, load.Start())
	for range fixture.Number(t, "UPGRADE_ROUNDS", 1) {
		for i := range c.nodes {
			c.replace(i, 35*time.Second)
		}
	}
	require.NoError(t, load.Process.Signal(syscall.SIGTERM))
	require.NoError(t, load.Wait(), "%s", &said)
	t.Log(said.String())
}
