package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryTemplateParses: they are parsed with the first page that is shown, which is too late to learn that one is wrong.
func TestEveryTemplateParses(t *testing.T) {
	all := templates()
	for _, e := range menu {
		require.NotNil(t, all[e.Name], e.Name)
	}
	for _, name := range []string{"login", "failure", "topic", "group", "message"} {
		require.NotNil(t, all[name], name)
	}
}
