package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// image is what the container file says of the image, by the instruction; of two the last one.
func image(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z]+) (.+)$`).FindAllStringSubmatch(string(text), -1) {
		lines[m[1]] = m[2]
	}
	return lines
}

// TestTheContainerStartsANode: it is the binary and a folder for the store, which is a volume; nothing is fetched, nothing runs as root, and the
// variables are keys of a node.
func TestTheContainerStartsANode(t *testing.T) {
	lines := image(t)
	if lines["FROM"] != "scratch" || lines["RUN"] != "" {
		t.Errorf("built on another image: %v", lines)
	}
	if lines["ENTRYPOINT"] != `["/usr/local/bin/actormq"]` || lines["CMD"] != `["node"]` || lines["STOPSIGNAL"] != "SIGTERM" {
		t.Errorf("what is run: %v", lines)
	}
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(lines["USER"]) || lines["COPY"] != "--chown="+lines["USER"]+" store "+lines["VOLUME"] {
		t.Errorf("the user, to whom the store belongs: %v", lines)
	}
	variables := strings.Fields(lines["ENV"])
	if !slices.Contains(variables, "ACTORMQ_STOREPATHROOTDIR="+lines["VOLUME"]) {
		t.Errorf("the store %v is not the volume %s", variables, lines["VOLUME"])
	}
	nodeStarts(t, variables)
}

// contained runs in namespaces of its own: $1 is a root with nothing but the binary, $2 the volume, $3 the user, $4 the folder of the volume in there.
// What follows are the variables.
const contained = `set -e
root=$1 volume=$2 user=$3 at=$4; shift 4
ip link set lo up
mount --bind "$root" "$root" && mount --bind "$volume" "$root$at" && mount -o remount,bind,ro "$root"
if touch "$root/written" 2> /dev/null; then echo "the root can be written"; exit 1; fi
env -i "$@" ACTORMQ_BROKERIP1=127.0.0.1 "$(command -v chroot)" $user "$root" /usr/local/bin/actormq node > "$volume.out" 2> "$volume.log" &
until grep -q ^ready "$volume.out"; do kill -0 $! || { cat "$volume.log"; exit 1; }; sleep 0.05; done
"$root/usr/local/bin/actormq" produce --topic orders "from a container"
"$root/usr/local/bin/actormq" consume --topic orders
grep -E '^(Uid|CapEff):' /proc/$!/status
kill -TERM $! && wait $!
tail -1 "$volume.log"`

// TestANodeRunsAsInTheContainer: a root that is read-only and has the binary alone, the volume, the user and variables of the container file.
func TestANodeRunsAsInTheContainer(t *testing.T) {
	lines, dir := image(t), t.TempDir()
	root, volume := dir+"/root", dir+"/volume"
	program := root + "/usr/local/bin/actormq"
	for _, d := range []string{root + lines["VOLUME"], volume} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/actormq")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	libraries(t, program, root)
	enter, user := []string{"-rnm"}, "" // root is nobody's there but the tester's
	if os.Geteuid() == 0 {
		enter, user = []string{"-nm"}, "--userspec="+lines["USER"]
		var uid, gid int
		if _, err := fmt.Sscanf(lines["USER"], "%d:%d", &uid, &gid); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chown(volume, uid, gid), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	trial := "ip link set lo up && mount --bind " + root + " " + root + " && chroot --help"
	if out, err := exec.Command("unshare", append(enter, "sh", "-c", trial)...).CombinedOutput(); err != nil {
		t.Skipf("needs unshare, mount, ip and chroot, and to be root or to be allowed to have namespaces: %v: %s", err, out)
	}
	args := append(enter, "bash", "-c", contained, "contained", root, volume, user, lines["VOLUME"])
	args = append(args, append(strings.Fields(lines["ENV"]), "ACTORMQ_MAPPEDFILESIZECOMMITLOG=1048576")...)
	out, err := exec.Command("unshare", args...).CombinedOutput()
	for _, want := range []string{"SEND_OK", "body=from a container", "the store is closed"} {
		if err != nil || !bytes.Contains(out, []byte(want)) {
			t.Fatalf("%v: no %q\n%s", err, want, out)
		}
	}
	if user != "" && !regexp.MustCompile(`Uid:\t65532\t65532\t65532\t65532\nCapEff:\t0+\n`).Match(out) {
		t.Errorf("not the user of the container file: %s", out)
	}
}

// libraries copies what the program is linked with, if it is not static, as that of a release is.
func libraries(t *testing.T, program, root string) {
	t.Helper()
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil {
		return // it is static
	}
	for _, file := range regexp.MustCompile(`/\S+`).FindAllString(string(out), -1) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(root+filepath.Dir(file), 0o755), os.WriteFile(root+file, text, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
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
