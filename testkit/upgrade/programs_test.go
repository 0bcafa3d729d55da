package upgrade

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/process"
)

// TestAStoreGoesToAndFroBetweenPrograms: this program and an earlier one, UPGRADE_FROM, take turns on one store; each reads all that both
// have acknowledged, also after the other was killed. testkit/upgrade/versions.sh builds the earlier one.
func TestAStoreGoesToAndFroBetweenPrograms(t *testing.T) {
	earlier := os.Getenv("UPGRADE_FROM")
	if earlier == "" {
		t.Skip("UPGRADE_FROM is the path of an earlier program: testkit/upgrade/versions.sh")
	}
	this, err := process.Build(t.TempDir())
	require.NoError(t, err)
	dir, sent := t.TempDir(), 0
	for turn, program := range []string{earlier, this, earlier, this, earlier, this} {
		signal := syscall.SIGTERM
		if turn/2 == 1 { // in the middle both are killed
			signal = syscall.SIGKILL
		}
		var said fixture.Said
		base := process.Port(t, 6)
		names := base.Beside(4).String()
		p := process.Start(t, &said, program, "--store-dir", filepath.Join(dir, "store"), "--listen", base.Beside(2).String(),
			"--namesrv-listen", names, "--log-level", "warn", "--set", "brokerName=broker-a",
			"--set", "mappedFileSizeCommitLog=32768", "--set", "mappedFileSizeConsumeQueue=2000",
			"--set", "maxHashSlotNum=500", "--set", "maxIndexNum=1000")
		require.Equal(t, texts("message %d", 0, sent), consumed(t, this, names, sent), "turn %d", turn)
		send := exec.Command(program, append([]string{"produce", "--namesrv", names, "--topic", "T", "--queue", "0", "--key", "k"},
			texts("message %d", sent, sent+50)...)...)
		out, err := send.CombinedOutput()
		require.NoError(t, err, "%s", out)
		sent += 50
		if err := p.End(signal); signal == syscall.SIGTERM {
			require.NoError(t, err, "%s", &said)
			for _, reader := range []string{earlier, this} {
				out, err := exec.Command(reader, "store", "dump", filepath.Join(dir, "store"), "--json", filepath.Join(dir, "dump.json"),
					"--slots", "500").CombinedOutput()
				require.NoError(t, err, "turn %d: %s", turn, out)
				dump, err := os.ReadFile(filepath.Join(dir, "dump.json"))
				require.NoError(t, err)
				require.Regexp(t, fmt.Sprintf(`"maxOffset": ?%d\b`, sent), string(dump), "turn %d", turn)
			}
		}
	}
	out, err := exec.Command(this, "store", "verify", filepath.Join(dir, "store"), "--slots", "500").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// consumed are n messages of topic T.
func consumed(t *testing.T, program, names string, n int) []string {
	t.Helper()
	if n == 0 {
		return nil
	}
	out, err := exec.Command(program, "consume", "--namesrv", names, "--topic", "T", "--queue", "0", "--max", fmt.Sprint(n)).Output()
	require.NoError(t, err)
	var all []string
	for line := range strings.Lines(string(out)) {
		_, body, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " body=")
		all = append(all, body)
	}
	return all
}
