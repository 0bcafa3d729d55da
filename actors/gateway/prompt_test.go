//go:build linux && !race

package gateway

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPromptAnswerIsWrittenHere(t *testing.T) {
	ours, theirs := socketPair(t)
	o := newOutbox(ours, func(err error) { t.Error(err) })
	b := make([]byte, 9)
	require.Zero(t, testing.AllocsPerRun(200, func() {
		f := framePool.Get().(*frame)
		f.head, f.bytes = append(f.head[:0], "an answer"...), 9
		if o.putPrompt(f); o.bytes.Load() != 0 || o.head.Load() != nil {
			t.Error("it was left to a goroutine")
		}
		if _, err := io.ReadFull(theirs, b); err != nil {
			t.Error(err)
		}
	}))
}
