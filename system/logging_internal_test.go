package system

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// TestALineOfTheActorLibraryHasEachNameOnce: a dead letter has an attribute "message".
func TestALineOfTheActorLibraryHasEachNameOnce(t *testing.T) {
	var out bytes.Buffer
	log := slogFactory(zerolog.New(&out))(nil)
	log.With("level", "deep").Info("[DeadLetter]", "message", "{}", "pid", "x")
	require.Equal(t, 1, strings.Count(out.String(), `"message":`), out.String())
	require.Equal(t, 1, strings.Count(out.String(), `"level":`), out.String())
	require.Contains(t, out.String(), `"actor_message":"{}"`)
	require.Contains(t, out.String(), `"pid":"x"`)
}
