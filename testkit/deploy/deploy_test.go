package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestTheManifestsAreThoseOfKubernetes: each document is of a known kind, with no field that the kind does not have, and the parts
// name each other.
func TestTheManifestsAreThoseOfKubernetes(t *testing.T) {
	text, err := os.ReadFile("../../docs/deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			t.Fatal(err)
		}
		var into any
		switch kind.APIVersion + " " + kind.Kind {
		case "v1 Namespace":
			into = &corev1.Namespace{}
		case "v1 Service":
			into = &corev1.Service{}
		case "policy/v1 PodDisruptionBudget":
			into = &policyv1.PodDisruptionBudget{}
		case "apps/v1 StatefulSet":
			into = &appsv1.StatefulSet{}
		default:
			t.Fatalf("unknown kind %+v", kind)
		}
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
		}
		seen[kind.Kind]++
		if set, ok := into.(*appsv1.StatefulSet); ok {
			look(t, set)
		}
	}
	if len(seen) != 4 {
		t.Errorf("kinds: %v", seen)
	}
}

// look compares what the parts of the set say of each other.
func look(t *testing.T, set *appsv1.StatefulSet) {
	t.Helper()
	if *set.Spec.Replicas != 3 || set.Spec.Selector.MatchLabels["app"] != set.Spec.Template.Labels["app"] {
		t.Error("three pods, which the set selects")
	}
	c := set.Spec.Template.Spec.Containers[0]
	if c.VolumeMounts[0].Name != set.Spec.VolumeClaimTemplates[0].Name {
		t.Error("the store is on a volume of the set")
	}
	if !*c.SecurityContext.ReadOnlyRootFilesystem || !*set.Spec.Template.Spec.SecurityContext.RunAsNonRoot {
		t.Error("not as root, and nothing but the store is written")
	}
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if !ports[probe.HTTPGet.Port.String()] {
			t.Errorf("a probe of port %s", probe.HTTPGet.Port.String())
		}
	}
}

// TestANodeStartsWithTheArgumentsOfTheManifest: `actormq config check` knows every key.
func TestANodeStartsWithTheArgumentsOfTheManifest(t *testing.T) {
	text, err := os.ReadFile("../../docs/deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir() + "/broker.conf"
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "-buildvcs=false", "./cmd/actormq", "config", "check", "-c", empty}
	for _, m := range regexp.MustCompile(`- (--set=\S+)`).FindAllSubmatch(text, -1) {
		arg := regexp.MustCompile(`\$\(POD_NAME\)`).ReplaceAll(m[1], []byte("actormq-0"))
		args = append(args, string(regexp.MustCompile(`\$\(POD_IP\)`).ReplaceAll(arg, []byte("10.1.2.3"))))
	}
	if len(args) < 10 {
		t.Fatalf("no arguments: %v", args)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// nodeStarts has a node print its configuration: it would start with these arguments and variables.
func nodeStarts(t *testing.T, environment []string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"run", "-buildvcs=false", "./cmd/actormq", "node", "--print-config"}, args...)...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v %v: %v\n%s", environment, args, err, out)
	}
}

// TestTheContainerStartsANode: its variables are keys of a node, and its store is a volume.
func TestTheContainerStartsANode(t *testing.T) {
	text, err := os.ReadFile("../../docs/deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z]+) (.+)$`).FindAllStringSubmatch(string(text), -1) {
		lines[m[1]] = m[2] // of two, that of the image itself
	}
	if lines["ENTRYPOINT"] != `["/usr/local/bin/actormq"]` || lines["CMD"] != `["node"]` || lines["STOPSIGNAL"] != "SIGTERM" {
		t.Errorf("what is run: %v", lines)
	}
	variables := strings.Fields(lines["ENV"])
	if !slices.Contains(variables, "ACTORMQ_STOREPATHROOTDIR="+lines["VOLUME"]) {
		t.Errorf("the store %v is not the volume %s", variables, lines["VOLUME"])
	}
	nodeStarts(t, variables)
}

// TestTheUnitStartsANode: systemd takes the unit, where it is on the machine, and a node the arguments.
func TestTheUnitStartsANode(t *testing.T) {
	text, err := os.ReadFile("../../docs/deploy/actormq.service")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/actormq node -c \S+ (.+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("ExecStart is not a node with a broker.conf")
	}
	empty := t.TempDir() + "/broker.conf"
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	nodeStarts(t, nil, append([]string{"-c", empty}, strings.Fields(string(m[1]))...)...)
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	unit := t.TempDir() + "/actormq.service"
	if err := os.WriteFile(unit, bytes.ReplaceAll(text, []byte("/usr/local/bin/actormq"), []byte("/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || bytes.Contains(out, []byte("actormq.service")) {
		t.Errorf("%v\n%s", err, out)
	}
}
