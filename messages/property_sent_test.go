package messages_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// sentBySteps is what AppendSent does, one step after the other.
func sentBySteps(p messages.Properties, cluster string) (string, messages.Sent) {
	half, _ := p.Get(messages.PropertyTransactionMessage)
	stored := p.AppendWith([]byte("before"), messages.PropertyCluster, cluster, messages.PropertyWait)
	return string(stored), messages.Sent{Waits: p.Waits(), Half: strings.EqualFold(half, "true")}
}

func requireSentAlike(t *testing.T, p messages.Properties, cluster string) {
	t.Helper()
	stored, sent := p.AppendSent([]byte("before"), cluster)
	wantStored, want := sentBySteps(p, cluster)
	require.Equal(t, wantStored, string(stored), "%q", p)
	require.Equal(t, want, sent, "%q", p)
}

func TestAppendSentIsWhatTheStepsAre(t *testing.T) {
	for _, p := range []messages.Properties{
		"", "\x02", "\x02\x02", "a\x01b", "a\x01b\x02", "\x02a\x01b", "a\x01b\x02\x02c\x01d", "UNIQ_KEY\x01k\x02WAIT\x01true\x02TAGS\x01t\x02",
		"WAIT\x01false", "WAIT\x01FALSE\x02", "WAIT\x01", "WAIT\x01false\x02WAIT\x01", "WAIT\x01false\x02WAIT\x01true", "WAIT", "WAITS\x01false",
		"CLUSTER\x01c", "CLUSTER\x01", "CLUSTER", "\x02WAIT\x01no\x02\x02CLUSTER\x01x\x02\x02a\x01b\x02\x02", "TRAN_MSG\x01true", "TRAN_MSG\x01TRUE\x02",
		"TRAN_MSG\x01true\x02TRAN_MSG\x01", "TRAN_MSG\x01true\x02TRAN_MSG\x01no\x02WAIT\x01false", "TRAN_MSG", "WAIT\x01\x01", "a\x01WAIT\x01false",
	} {
		for _, cluster := range []string{"DefaultCluster", "", "a\x01b", "a\x02b"} {
			requireSentAlike(t, p, cluster)
		}
	}
}

func TestAppendSentIsWhatTheStepsAreOfAnything(t *testing.T) {
	parts := []string{"WAIT", "CLUSTER", "TRAN_MSG", "TAGS", "\x01", "\x01", "\x01", "\x02", "\x02", "true", "false", "x"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		text := ""
		for range random.IntN(16) {
			text += parts[random.IntN(len(parts))]
		}
		requireSentAlike(t, messages.Properties(text), "c")
	}
}

func TestAppendSentDoesNotAllocate(t *testing.T) {
	p, room := messages.Properties("UNIQ_KEY\x01k\x02WAIT\x01true\x02TAGS\x01t\x02"), make([]byte, 0, 128)
	require.Zero(t, testing.AllocsPerRun(100, func() { room, _ = p.AppendSent(room[:0], "DefaultCluster") }))
}
