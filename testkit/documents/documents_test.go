package documents

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryDocumentedCommandRuns runs the commands of the documents in the order in which the texts have them, and requires that none is left that
// is neither run nor in the list of those that can't be.
func TestEveryDocumentedCommandRuns(t *testing.T) {
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	if os.Getenv(ownNetwork) == "" { // what is compiled may have to be loaded first
		for _, args := range [][]string{{"build", "-o", os.DevNull, "./cmd/actormq"}, {"build", "-o", os.DevNull, "./testkit/manyqueues"}} {
			cmd := exec.Command("go", args...)
			cmd.Dir, cmd.Env = here, append(os.Environ(), "GOFLAGS=-buildvcs=false")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
		}
		if apart(t) {
			return
		}
	}
	all := map[string]bool{}
	for _, c := range documented(t) {
		all[c.text] = false
	}
	r := &rehearsal{t: t, dir: t.TempDir(), all: all, words: map[string]string{"ROOT": here}}
	// Whole files of 1 GiB are for those who stay.
	r.env = []string{"ACTORMQ_MAPPEDFILESIZECOMMITLOG=1048576", "ACTORMQ_MAPPEDFILESIZECONSUMEQUEUE=20000", "ACTORMQ_MAXHASHSLOTNUM=500", "ACTORMQ_MAXINDEXNUM=2000"}
	r.runsAs("go build -o bin/actormq ./cmd/actormq", `(cd ROOT && go build -o "$OLDPWD/bin/actormq" ./cmd/actormq)`)
	for _, scene := range []struct {
		name string
		play func(*rehearsal)
	}{{"a first node", firstNode}, {"the tools", tools}, {"a store", aStore}, {"operating", operating}, {"moving", moving}, {"a group", aGroup}} {
		if !t.Run(scene.name, func(t *testing.T) {
			r.t = t
			scene.play(r)
		}) {
			return
		}
	}
	var left []string
	for _, text := range slices.Sorted(maps.Keys(all)) {
		if !all[text] && !elsewhere(t, text) && !r.isName(text) {
			left = append(left, text)
		}
	}
	require.Empty(t, left, "commands of documents that are not run")
	for _, e := range notHere {
		require.True(t, e.seen, "no document has such a command any more: %s", e.pattern)
	}
}

// isName tells whether it is only the name of a command of ours that has been run with what it needs.
func (r *rehearsal) isName(text string) bool {
	if !named.MatchString(text) {
		return false
	}
	text = strings.TrimPrefix(text, "bin/")
	return slices.ContainsFunc(r.ran, func(line string) bool { return strings.Contains(line+" ", text+" ") })
}
