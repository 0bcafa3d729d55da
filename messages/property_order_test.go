package messages_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// The vectors of spec/store.md §17.11.
func TestInMapOrder(t *testing.T) {
	names := strings.Fields("KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET UNIQ_KEY CLUSTER")
	for n, want := range map[int]string{
		12: "MIN_OFFSET REAL_TOPIC RETRY_TOPIC MAX_OFFSET KEYS TRAN_MSG UNIQ_KEY WAIT DELAY PGROUP TAGS REAL_QID",
		13: "TRAN_MSG MIN_OFFSET REAL_TOPIC RETRY_TOPIC MAX_OFFSET KEYS UNIQ_KEY CLUSTER WAIT DELAY PGROUP TAGS REAL_QID",
	} {
		p := messages.Properties("")
		for _, name := range names[:n] {
			p = p.With(name, "v")
		}
		var got []string
		for name := range p.InMapOrder(messages.MapBuckets).All() {
			got = append(got, name)
		}
		require.Equal(t, want, strings.Join(got, " "))
	}
	require.EqualValues(t, "a\x012\x02b\x013", messages.Properties("a\x011\x02b\x013\x02c\x01\x02junk\x02a\x012\x02").
		InMapOrder(messages.MapBuckets), "the last of two counts, and what nobody sees is gone")
	require.Empty(t, messages.Properties("").InMapOrder(messages.MapBuckets))
}
