package messages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// A list of delay levels is read or refused; no level is shorter than nothing.
func FuzzParseDelayLevels(f *testing.F) {
	for _, text := range []string{messages.DefaultDelayLevels, "", " ", "1s", "1x", "-1s", "99999999999999999999d", "1s  2m\t3h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		levels, err := messages.ParseDelayLevels(text)
		if err != nil {
			require.ErrorIs(t, err, messages.ErrDelayLevels)
			return
		}
		_, highest := levels.Millis(1)
		for level := 1; level <= highest; level++ {
			ms, _ := levels.Millis(level)
			require.GreaterOrEqual(t, ms, int64(0), "level %d of %q", level, text)
		}
	})
}
