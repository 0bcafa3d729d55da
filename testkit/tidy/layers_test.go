package tidy_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers says which trees of ours the code of a tree may import; what an actor may import of actors, sibling says.
var layers = []struct {
	tree string
	may  []string
}{
	{"messages", []string{"messages"}},
	{"segments", []string{"messages", "segments"}},
	{"actors", []string{"messages", "segments"}},
	{"system", []string{"messages", "segments", "actors", "system"}},
	{"cmd", []string{"messages", "segments", "actors", "system", "cmd"}},
	{"testkit", []string{"messages", "segments", "actors", "system", "cmd", "testkit"}},
}

// parties says who may import a module of somebody else, the standard library apart. A module that is not here is a
// decision that is still to be made: docs/adr/0003.
var parties = []struct {
	module string
	trees  []string
	tests  bool // also, or only, in tests
}{
	{"golang.org/x/sys", []string{"segments/vfs"}, false},
	{"google.golang.org/grpc", []string{"system/remote"}, false},
	{"google.golang.org/protobuf", []string{"system/remote", "testkit/cluster"}, false},
	{"github.com/asynkron/protoactor-go", []string{"actors", "system", "cmd", "testkit"}, false},
	{"github.com/rs/zerolog", []string{"actors", "system", "cmd", "testkit"}, false},
	{"github.com/spf13/cobra", []string{"cmd"}, false},
	{"github.com/spf13/pflag", []string{"cmd"}, false},
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"cmd"}, false},
	{"go.yaml.in/yaml", []string{"system/gateway/acl"}, false},
	{"github.com/magiconair/properties", []string{"cmd"}, false},
	{"github.com/prometheus/client_golang", []string{"system/admin", "testkit/fixture"}, false},
	{"go.opentelemetry.io/otel", []string{"system/ext/tracing"}, false},
	{"go.opentelemetry.io/proto/otlp", []string{"testkit/cluster"}, true},
	{"go.etcd.io/etcd/server/v3", []string{"system/cluster"}, true},
	{"go.etcd.io/etcd/client/v3", []string{"system/cluster"}, true},
	{"go.etcd.io/etcd/api/v3", []string{"system/cluster"}, true},
	{"go.uber.org/zap", []string{"system/cluster"}, false},
	{"github.com/klauspost/compress", []string{"cmd"}, false},
	{"github.com/pierrec/lz4", []string{"cmd"}, false},
	{"github.com/stretchr/testify/require", []string{"testkit"}, true},
	{"github.com/anishathalye/porcupine", []string{"testkit/cluster"}, true},
	{"go.uber.org/goleak", nil, true},
}

// standard says who may use packages of the standard library that reach out of the process. The operating system's files
// are behind segments/vfs, the network behind the gateway.
var standard = map[string][]string{
	"os":       {"segments/vfs", "cmd", "testkit"},
	"syscall":  {"segments/vfs", "actors/socket", "cmd", "testkit"},
	"os/exec":  {"testkit", "cmd/actormq/internal/storebench"},
	"net":      {"actors/gateway", "actors/ha", "actors/socket", "system/client", "system/gateway", "system/admin", "system/cluster", "system/remote", "cmd", "testkit"},
	"net/http": {"system/admin", "cmd"},
	"log":      nil, // zerolog, or an error
}

// without says what single packages do without: the codec is pure, the writer's mailbox is its lock.
var without = map[string][]string{
	"segments/record": {"time", "io"},
	"actors/writer":   {"sync"},
	"actors/mailbox":  {"sync"},
}

// imports is the rule of who may import whom.
func imports(s *source) []string {
	if s.external() {
		return nil // an external test may use anything
	}
	var problems []string
	for _, spec := range s.tree.Imports {
		target := strings.Trim(spec.Path.Value, `"`)
		if why := forbidden(s, target); why != "" {
			problems = append(problems, s.at(spec.Pos(), "imports %s: %s", target, why))
		}
	}
	return problems
}

// forbidden says why a file may not import a package; empty when it may.
func forbidden(s *source, target string) string {
	switch {
	case target == module || strings.HasPrefix(target, module+"/"):
		return ours(s, strings.TrimPrefix(strings.TrimPrefix(target, module), "/"))
	case !strings.Contains(strings.Split(target, "/")[0], "."):
		return libraries(s, target)
	}
	return theirs(s, target)
}

func libraries(s *source, target string) string {
	if s.test() {
		return ""
	}
	if slices.Contains(without[s.dir()], target) {
		return "this package does without it"
	}
	trees, limited := standard[target]
	if limited && !slices.ContainsFunc(trees, func(tree string) bool { return within(s.dir(), tree) }) {
		return "not in this part of the house"
	}
	return ""
}

func ours(s *source, target string) string {
	if within(target, "testkit") {
		if s.test() || within(s.dir(), "testkit") {
			return ""
		}
		return "only tests use testkit"
	}
	for _, l := range layers {
		if !within(s.dir(), l.tree) {
			continue
		}
		if slices.ContainsFunc(l.may, func(may string) bool { return within(target, may) }) {
			return ""
		}
		if l.tree == "actors" {
			return sibling(s.dir(), target)
		}
		return l.tree + " is below it"
	}
	return "the folder is in no layer"
}

// shared are the packages that actors have in common.
var shared = []string{"actors", "actors/keeper", "actors/mailbox", "actors/socket"}

// sibling lets an actor import what all share, and its own tree.
func sibling(dir, target string) string {
	elements := strings.Split(dir, "/")
	switch {
	case !within(target, "actors"):
		return "actors is below it"
	case len(elements) == 1:
		return "the root of actors imports none of them"
	case slices.Contains(shared, target), within(target, path.Join(elements[0], elements[1])):
		return ""
	}
	return "siblings meet in messages only"
}

func theirs(s *source, target string) string {
	for _, p := range parties {
		if !within(target, p.module) {
			continue
		}
		if p.tests && s.test() || slices.ContainsFunc(p.trees, func(tree string) bool { return within(s.dir(), tree) }) {
			return ""
		}
		return "not in this part of the house"
	}
	return "a module without a decision (docs/adr/0003)"
}

func TestImportLayers(t *testing.T) { check(t, imports) }

// required are the modules that go.mod names for our own sake.
var required = regexp.MustCompile(`(?m)^\s+(\S+) v\S+$`)

// undecided is the rule that each of them has a row in docs/adr/0003 and is somebody's to import.
func undecided(mod, adr string) []string {
	var problems []string
	for _, m := range required.FindAllStringSubmatch(mod, -1) {
		if !strings.Contains(adr, "| `"+m[1]+"` |") {
			problems = append(problems, "go.mod: "+m[1]+" has no row in docs/adr/0003")
		}
		known := false
		for _, p := range parties {
			known = known || within(p.module, m[1]) || within(m[1], p.module)
		}
		if !known {
			problems = append(problems, "go.mod: nobody may import "+m[1])
		}
	}
	return problems
}

func TestEveryModuleIsADecision(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	require.Regexp(t, required, string(mod))
	none(t, undecided(string(mod), document(t, "adr/0003-dependencies.md")))
}

// onlyRequire: of testify the tests use require, and nothing else; external tests too.
func onlyRequire(s *source) []string {
	var problems []string
	for _, spec := range s.tree.Imports {
		target := strings.Trim(spec.Path.Value, `"`)
		if within(target, "github.com/stretchr/testify") && target != "github.com/stretchr/testify/require" {
			problems = append(problems, s.at(spec.Pos(), "imports %s: tests use require only", target))
		}
	}
	return problems
}

func TestOfTestifyOnlyRequire(t *testing.T) { check(t, onlyRequire) }

// storeMayBringIn are the modules that the store brings into an embedder's program: the actor library, the logger, x/sys, and
// what the actor library itself needs.
var storeMayBringIn = []string{
	module, "github.com/asynkron/protoactor-go", "github.com/rs/zerolog", "golang.org/x/sys",
	"github.com/Workiva/go-datastructures", "github.com/beorn7/perks", "github.com/cespare/xxhash", "github.com/emirpasic/gods",
	"github.com/go-logr/logr", "github.com/go-logr/stdr", "github.com/golang/protobuf", "github.com/google/uuid",
	"github.com/lithammer/shortuuid", "github.com/lmittmann/tint", "github.com/mattn/go-colorable", "github.com/mattn/go-isatty",
	"github.com/matttproud/golang_protobuf_extensions", "github.com/orcaman/concurrent-map", "github.com/prometheus",
	"github.com/twmb/murmur3", "go.opentelemetry.io/otel", "google.golang.org/protobuf",
	"go.opentelemetry.io/auto/sdk", "github.com/munnerz/goautoneg", "go.yaml.in/yaml/v2",
}

// storeLeavesOut are our own trees that an embedder of the store does not get.
var storeLeavesOut = []string{"system/", "actors/gateway", "messages/remoting", "cmd", "testkit"}

// embedded is the rule of what `go list -deps ./system` may name; deps are lines of a module's path and a package's.
func embedded(deps []string) []string {
	var problems []string
	for _, line := range deps {
		fields := strings.Fields(line)
		if len(fields) != 2 { // the standard library has no module
			continue
		}
		if !slices.ContainsFunc(storeMayBringIn, func(may string) bool { return within(fields[0], may) }) {
			problems = append(problems, "system brings in "+fields[1])
		}
		for _, no := range storeLeavesOut {
			if strings.HasPrefix(fields[1], module+"/"+no) {
				problems = append(problems, "system brings in "+fields[1])
			}
		}
	}
	return problems
}

// An embedder gets the store and nothing else: no gateway, no server, no client library, no command line.
func TestTheStoreBringsInNoNetwork(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}", "./system")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	deps := strings.Split(string(out), "\n")
	require.Contains(t, deps, module+" "+module+"/system")
	none(t, embedded(deps))
}
