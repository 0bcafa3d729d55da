package documents

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// notHere are the commands that can't be run in a test as they stand, with the reason, and how far they are looked at.
var notHere = []*struct {
	pattern string // of all of the command
	why     string
	look    func(t *testing.T, command string)
	seen    bool
}{
	{`go test -run xxx -(bench|fuzz) .*`, "minutes: .ci/run does it for a moment", aMoment, false},
	{`(\w+=\S+ )*go test .*`, "the tests of ./... are run by .ci/run; that their names are there is in testkit/tidy", nil, false},
	{`\(cd (\S+) && go test \./\.\.\.\)`, "a module of its own, whose tests .ci/run runs", aModule, false},
	{`(testkit/conformance/run-go\.sh|testkit/upgrade/versions\.sh|testkit/guide\.sh|testkit/console/run\.sh)( .*)?`, "a step of .ci/run", aStepOfCI, false},
	{`\.ci/run`, "it is what runs this", aScript, false},
	{`make .*`, "hours, or what .ci/run does by itself", aTarget, false},
	{`mkdir mine && cd mine|go mod (init example\.com/mine|edit -replace .*|tidy)`, "run by TestExtendingGuideCompilesAndRuns in testkit/dispatching", nil, false},
	{`go run|actormq`, "the name of a program", nil, false},
	{`ssh .*`, "another machine", nil, false},
	{`(useradd|systemctl) .*`, "root, and systemd as the first process; testkit/deploy looks at the unit", nil, false},
	{`docker (build|run) .*`, "a container engine; testkit/deploy looks at the container file and starts a node as it would", aFile, false},
	{`docker stop( .*)?`, "a container engine; testkit/upgrade stops the nodes of a group as it does", nil, false},
	{`kubectl .*`, "a cluster of Kubernetes; testkit/deploy looks at the manifests", aFile, false},
	{`(mqadmin|mqshutdown)( .*)?`, "RocketMQ's own tools, for Java; testkit/conformance runs mqadmin against a node", nil, false},
	{`(cd store/java && )?mvn .*|\(cd store/java && mvn .*|java -jar .*|\S*(java|admin|peer|real-broker)\S*\.sh.*|(golden|golden-append|ten-times|run|run-all|start)\.sh.*|testkit/conformance/run-all\.sh.*`,
		"RocketMQ itself: a JDK, Maven and some hundred megabytes of jars", aScript, false},
	{`(broker/rocketmq/\S+\.sh|\./compare\.py|\S*/?table\.py|unshare) ?.*|gopeers .*|\(cd store/go-peers && go build .*`,
		"RocketMQ or NATS beside a node, minutes a round; their scripts are run with a node alone, and .ci/run builds the module", aScript, false},
	{`cd go && go run \. .*`, "testkit/conformance/run-go.sh does it", nil, false},
}

// elsewhere tells whether a command is in the list, and looks at it.
func elsewhere(t *testing.T, command string) bool {
	t.Helper()
	for _, e := range notHere {
		if regexp.MustCompile(`^(?:` + e.pattern + `)$`).MatchString(command) {
			e.seen = true
			if e.look != nil {
				e.look(t, command)
			}
			return true
		}
	}
	return false
}

// aModule: .ci/run finds it.
func aModule(t *testing.T, command string) {
	t.Helper()
	require.FileExists(t, filepath.Join(root, regexp.MustCompile(`cd (\S+)`).FindStringSubmatch(command)[1], "go.mod"))
	requireInCI(t, `(cd "$module" && go vet ./... && go test ./...)`)
}

// aMoment: .ci/run has the benchmark or the fuzz target, for a shorter time.
func aMoment(t *testing.T, command string) {
	t.Helper()
	m := regexp.MustCompile(`(-bench|-fuzz) (?:'([^']+)'|(\S+)).* (\./\S+)$`).FindStringSubmatch(command)
	require.NotNil(t, m, command)
	switch tree := strings.Split(m[4], "/")[1]; {
	case m[1] == "-fuzz" || tree == "system":
		requireInCI(t, "go test -run xxx "+m[1]+" "+m[2]+m[3]+" ")
	default:
		requireInCI(t, "go test -run xxx -bench . ")
		requireInCI(t, " ./"+tree+"/...")
	}
}

func aStepOfCI(t *testing.T, command string) {
	t.Helper()
	aScript(t, command)
	requireInCI(t, strings.Fields(command)[0])
}

func requireInCI(t *testing.T, what string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	require.NoError(t, err)
	require.Contains(t, string(text), what)
}

var (
	scripts = regexp.MustCompile(`[\w./-]+\.(?:sh|py)\b|\.ci/run`)
	options = regexp.MustCompile(`[ \[](--[a-z][a-z-]+)`)
)

// aScript: the scripts of a command are there, a shell understands them, and they know the options.
func aScript(t *testing.T, command string) {
	t.Helper()
	for _, name := range scripts.FindAllString(command, -1) {
		var found []string
		for _, dir := range []string{"", "testkit/bench", "testkit/bench/broker/rocketmq", "testkit/conformance", "testkit/conformance/java", "testkit/peer"} {
			if file := filepath.Join(root, dir, name); exists(file) {
				found = append(found, file)
			}
		}
		require.NotEmpty(t, found, "%s: %s is not there", command, name)
		text, err := os.ReadFile(found[0])
		require.NoError(t, err)
		if strings.HasSuffix(name, ".py") {
			continue
		}
		out, err := exec.Command("bash", "-n", found[0]).CombinedOutput()
		require.NoError(t, err, string(out))
		if len(scripts.FindAllString(command, -1)) == 1 && !strings.Contains(string(text), `"$@"`) {
			for _, o := range options.FindAllStringSubmatch(command, -1) {
				require.Contains(t, string(text), o[1], command)
			}
		}
	}
}

// aFile: what it names is there.
func aFile(t *testing.T, command string) {
	t.Helper()
	for _, name := range regexp.MustCompile(`docs/\S+`).FindAllString(command, -1) {
		require.FileExists(t, filepath.Join(root, name))
	}
}

// aTarget: make knows the targets, and would do something.
func aTarget(t *testing.T, command string) {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Log("make is not here")
		return
	}
	cmd := exec.Command("bash", "-c", "make -n "+strings.TrimPrefix(command, "make "))
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), "Nothing to be done")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
