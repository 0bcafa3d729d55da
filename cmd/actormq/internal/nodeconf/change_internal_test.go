package nodeconf

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever can be changed while the node runs changes only what a running node looks at again.
func TestChangeableKeysChangeOnlyWhatIsRunning(t *testing.T) {
	for _, key := range changeable {
		before := Default()
		require.NoError(t, before.Finish())
		i := slices.IndexFunc(keys, func(k keyDef) bool { return k.name == key })
		require.GreaterOrEqual(t, i, 0, key)
		value := map[string]string{"true": "false", "false": "true", "6": "4", "04": "05"}[keys[i].byDefault]
		switch {
		case key == "topicLimits":
			value = "*=5"
		case key == "topicRetention":
			value = "T=5"
		case strings.HasPrefix(keys[i].byDefault, "0."):
			value = "0.77"
		case value == "":
			value = "77"
		}
		after, err := before.Change(map[string]string{key: value}, "a test")
		require.NoError(t, err, key)
		require.Equal(t, value, after.Effective()[key])
		require.NotEqual(t, value, before.Effective()[key], "the old one stays as it was")
		require.NotEqual(t, before.Running(), after.Running(), "%s has an effect", key)

		rest := *after
		rest.Gateway.Broker.Policy, rest.Store.Retention, rest.set = before.Gateway.Broker.Policy, before.Store.Retention, before.set
		require.True(t, reflect.DeepEqual(*before, rest), "%s changes what only a start reads", key)
	}
}

func TestChangeableKeysAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/COMPATIBILITY.md")
	require.NoError(t, err)
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| at run time \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1])
	}
	require.ElementsMatch(t, changeable, documented)
}

func TestChangeNamesEveryProblem(t *testing.T) {
	c := Default()
	_, err := c.Change(map[string]string{"listenPort": "1", "traceOn": "perhaps", "clusterTopicEnable": "true", "x": "y"}, "a tool")
	require.ErrorIs(t, err, ErrConfig)
	for _, want := range []string{"listenPort can't", "traceOn=perhaps", "unknown key x"} {
		require.ErrorContains(t, err, want)
	}
}

// TestTheReferenceIsThatOfTheKeys: `actormq config keys > docs/CONFIG.md` writes it.
func TestTheReferenceIsThatOfTheKeys(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/CONFIG.md")
	require.NoError(t, err)
	require.Equal(t, string(text), Reference(), "go run ./cmd/actormq config keys > docs/CONFIG.md")
}
