package extension

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// TestAHookThatIsLeftOutOfAClosingStoreStaysSo: puts still come while the store is drained, and nothing outlives it.
func TestAHookThatIsLeftOutOfAClosingStoreStaysSo(t *testing.T) {
	for name, closed := range map[string]bool{"open": false, "closing": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := NewHook(HookConfig{
					Name: "bad", Func: func(*messages.Message) error { panic("bad") }, Inline: true, Budget: time.Second,
					Policy: Policy{Failures: 1, MaxBackoff: time.Minute},
				})
				if closed {
					h.Close()
				}
				require.ErrorIs(t, h.Call(&messages.Message{}, &messages.Message{}), ErrHook)
				require.ErrorIs(t, h.LeftOut(), ErrHook)
				<-time.After(time.Hour)
				require.Equal(t, closed, h.LeftOut() != nil)
			})
		})
	}
}
