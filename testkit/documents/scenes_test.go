package documents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/golden"
)

// firstNode is the beginning of README, and what the documents do with such a node.
func firstNode(r *rehearsal) {
	r.documented("go run ./cmd/actormq node")
	n := r.start(`cd ROOT && ACTORMQ_STOREPATHROOTDIR="$OLDPWD/store" exec go run ./cmd/actormq node`)
	r.runs(`bin/actormq produce --topic orders --tag new --key 4711 "two coffees" "one tea"`, `^SEND_OK id=\S+ broker=broker-a queue=\d offset=0\nSEND_OK id=\S+ broker=broker-a queue=\d offset=0$`)
	r.dispatched()
	r.runs("bin/actormq consume --topic orders", "tag=new keys=4711 .*two coffees", "one tea")
	r.runsAs("bin/actormq consume --topic orders --follow", "bin/actormq consume --topic orders --follow > followed & "+
		"until grep -q tea followed; do sleep 0.05; done; kill -INT $!; wait $!") // until Ctrl-C
	r.runs("curl -X PUT -d debug 127.0.0.1:10914/loglevel")
	r.sh("curl -s 127.0.0.1:10914/loglevel", "debug")
	r.sh("curl -s http://127.0.0.1:10914/metrics", `^actormq_puts_total\{status="PUT_OK"\} 2`)
	r.sh("curl -s http://127.0.0.1:10914/healthz && curl -s http://127.0.0.1:10914/readyz", "^ok$")
	r.runsAs("go tool pprof http://127.0.0.1:10914/debug/pprof/profile", "go tool pprof -seconds 1 -top http://127.0.0.1:10914/debug/pprof/profile", "^Type: cpu")
	n.stop(syscall.SIGINT) // Ctrl-C
	for _, says := range []string{
		"go run ./cmd/actormq node --set enablePropertyFilter=true --set transactionTimeOut=1000 --set transactionCheckInterval=1000",
		"actormq node --set timedMessages=true", "actormq node --remote-listen 127.0.0.1:10915",
	} {
		r.documented(says)
		r.start(`cd ROOT && ACTORMQ_STOREPATHROOTDIR="$OLDPWD/store" exec ` + says).stop(syscall.SIGINT)
	}
	r.runs("actormq node --help", "--print-config")
	r.sh("actormq node --print-config --set brokerName=b", "^brokerName=b\t# ")
}

// tools are the commands of docs/CLI.md beside a node.
func tools(r *rehearsal) {
	r.documented("actormq COMMAND --help")
	for text := range r.all {
		if strings.HasPrefix(text, "actormq ") && named.MatchString(text) {
			r.sh(text+" --help", "^Usage:\n  "+text)
		}
	}
	r.sh("actormq version", `\S`)
	r.sh("actormq completion bash", "complete")
	r.sh("actormq config keys", `^\| .fileReservedTime`)
	n := r.start("exec actormq node --store-dir tools")
	r.sh("actormq topic create orders --queues 4")
	r.sh("actormq topic update orders --queues 8")
	r.sh("actormq topic show orders", "orders")
	r.runs("actormq config set fileReservedTime=24", "set fileReservedTime=24 broker=")
	r.runs(`actormq config set "topicLimits=orders=1000"`, `set topicLimits="orders=1000" broker=`)
	r.sh("actormq produce --topic orders --key 4711 a b c --json", "msgId")
	id := regexp.MustCompile(`"msgId":"(\w+)"`).FindStringSubmatch(r.out)
	require.NotNil(r.t, id, r.out)
	r.dispatched()
	r.sh("actormq consume --topic orders --group billing", "(?s)\\ba\n.*\\bb\n.*\\bc\n")
	r.sh("actormq topic list", "orders")
	r.sh("actormq group list", "billing")
	r.sh("actormq group lag", "lag=0")
	r.words = map[string]string{"ROOT": r.words["ROOT"], "GROUP": "billing"}
	r.runs("actormq group show GROUP", "billing")
	r.sh("actormq offset show billing --topic orders", "offset=1")
	r.sh("actormq offset clone billing billing-2 --topic orders")
	r.sh("actormq offset reset billing-2 --topic orders --to earliest")
	r.sh("actormq consume --topic orders --group billing-2", "\\ba\n")
	r.sh("actormq message show "+id[1], "4711")
	r.sh("actormq message find --topic orders --key 4711", "4711")
	r.sh("actormq message trace "+id[1], "dispatched=yes")
	for _, topic := range []string{"%DLQ%billing", "%RETRY%billing"} {
		r.sh("actormq topic create " + topic + " --queues 1")
	}
	r.sh("actormq produce --topic %DLQ%billing --property RETRY_TOPIC=orders d")
	r.eventually("actormq dlq list | grep billing")
	r.runs("actormq dlq resend GROUP --rate 50")
	r.eventually("actormq consume --topic %RETRY%billing | grep d$")
	r.sh("actormq group delete billing-2 --offsets --yes")
	r.sh("actormq topic delete orders --yes")
	r.ends(3, "actormq topic show orders")
	r.ends(4, "actormq topic list --namesrv 127.0.0.1:1 --timeout 1s")
	r.sh("actormq drain --grace 0s")
	n.closed()
}

// aStore is what is done with a directory.
func aStore(r *rehearsal) {
	dir, _ := r.golden("crc-corrupt-old-file")
	r.words["DIR"] = dir
	r.runs("bin/actormq store dump DIR --json out.json")
	r.runs("actormq store dump DIR --json out.json")
	r.sh("cat out.json", `"loaded":true`)
	r.documented("bin/actormq store verify DIR")
	r.ends(1, "bin/actormq store verify DIR", "commitlog/00000000000000000000 at 10693: .*CRC") // names each damage
	r.runs("bin/actormq store repair DIR --apply")
	r.runsAs("actormq store repair --apply", "actormq store repair DIR --apply", "^done$")
	r.runs("actormq store verify DIR", "whole; closed properly")
	r.sh("actormq store export DIR > messages", "^$")
	r.sh("actormq store import imported < messages", "^639 messages, 1 left out$") // that stands for the damaged one
	r.sh("actormq bench store --dir bench --seconds 0.2 --warmup 0", `"msgs_per_s":`)
	r.words["DIR"] = filepath.Join(r.dir, "many")
	r.runsAs("go run ./testkit/manyqueues -dir DIR", "cd ROOT && go run ./testkit/manyqueues -dir DIR -topics 4")
	r.runsAs("go list -deps ./system", "cd ROOT && go list -deps ./system", "^github.com/asynkron/protoactor-go/actor$")
	bench(r)
}

// bench is what testkit/bench has for our own side.
func bench(r *rehearsal) {
	r.runsAs("(cd ../.. && go build -o testkit/bench/actormq ./cmd/actormq)", "cp bin/actormq actormq")
	r.runsAs("(cd broker/go && go build -o brokerbench .)", `(cd ROOT/testkit/bench/broker/go && go build -o "$OLDPWD/bin/brokerbench" .)`)
	n := r.start("echo $$ > broker.pid; exec bin/actormq node --store-dir wire --listen 127.0.0.1:20911")
	r.words["WORK_DIR"] = r.dir
	r.runsAs("brokerbench -addr 127.0.0.1:20911 -workload send -conns 4 -inflight 64 -pids $(cat WORK_DIR/broker.pid)",
		"brokerbench -addr 127.0.0.1:20911 -workload send -conns 4 -inflight 64 -pids $(cat WORK_DIR/broker.pid) -seconds 0.2 -warmup 0", `"failed":0`)
	r.runsAs("brokerbench -addr HOST:PORT -workload W ...", "brokerbench -addr 127.0.0.1:20911 -workload route -seconds 0.2 -warmup 0")
	r.runsAs("brokerbench -workload W -conns C -inflight N -body B -pids NODE",
		"brokerbench -workload pull -conns 2 -inflight 4 -body 100 -pids $(cat broker.pid) -addr 127.0.0.1:20911 -count 1000 -seconds 0.2 -warmup 0")
	n.stop(syscall.SIGTERM)
	r.documented("broker/pair.sh WORK_DIR MASTER_PORT SLAVE_PORT NAMESRV_PORT")
	r.sh("ONCE=1 ROOT/testkit/bench/broker/pair.sh pair 21911 22911 21876")
	if _, err := exec.LookPath("python3"); err != nil {
		r.t.Log("compare.py and table.py are not run: python3 is not here")
	} else {
		r.sh("ROOT/testkit/bench/compare.py --rounds 1 --out store.jsonl --case 'put: --workload put --threads 1' --peer actormq='./actormq bench store {args} --dir {dir} --seconds 0.2 --warmup 0'", "put")
		r.sh("ROOT/testkit/bench/table.py --help", "kind")
	}
	r.documented("./table.py --help")
}

// operating is docs/OPERATIONS.md: a node behind a password, and its drills.
func operating(r *rehearsal) {
	r.words["FILE"] = "some.conf"
	r.sh("echo 12345678 > password; echo adminPasswordFile=password > some.conf")
	r.runs("actormq config check -c FILE", "^ok: ")
	n := r.start("exec actormq node -c some.conf --store-dir drills")
	r.words["PASSWORD"] = "12345678"
	r.runsAs("curl -u :PASSWORD", "curl -sf -u :PASSWORD http://127.0.0.1:10914/console/", "<html")
	r.ends(22, "curl -sf -u :wrong http://127.0.0.1:10914/console/")

	r.runsAs("yes x | actormq produce --topic drill", "yes x | head -1000 | actormq produce --topic drill > sent; wc -l < sent", "^1000$")
	r.documented("kill -9")
	require.NoError(r.t, syscall.Kill(n.PID(), syscall.SIGKILL))
	_ = n.Await()
	n.gone()
	n = r.start("exec actormq node -c some.conf --store-dir drills")
	require.Contains(r.t, n.said.String(), "dispatched: 0..") // what it has recovered
	r.sh("actormq consume --topic drill | wc -l", "^1000$")
	r.documented("kill -STOP")
	r.sh(fmt.Sprintf("kill -STOP %d; (sleep 0.5; kill -CONT %[1]d) & actormq produce --topic drill y", n.PID()), "^SEND_OK")
	r.words["DIR"], r.words["DEST"] = filepath.Join(r.dir, "drills"), filepath.Join(r.dir, "copy")
	r.runs("actormq store backup DIR DEST")
	r.sh("actormq store verify DEST", "whole; .* 1001 records")
	r.sh("actormq store restore DEST back && actormq store verify back", "whole")
	second := r.start("exec actormq node --store-dir copy --listen 127.0.0.1:20911 --namesrv-listen 127.0.0.1:29876 --admin-listen ''")
	r.sh("actormq consume --topic drill --namesrv 127.0.0.1:29876 | wc -l", "^1001$")
	second.stop(syscall.SIGTERM)
	r.sh("actormq drain --grace 0s")
	n.closed()
	fullDisk(r)
}

// fullDisk is the drill with a full disk, on a file system of its own.
func fullDisk(r *rehearsal) {
	r.documented("fallocate -l … filler")
	if os.Getenv(ownNetwork) == "" || r.command("mkdir full && mount -t tmpfs -o size=64m none full").Run() != nil {
		r.t.Log("no disk is filled: none can be mounted. TestAFullFileSystem does it where it can")
		return
	}
	n := r.start("exec actormq node --store-dir full/store --set ballastBytes=1048576")
	r.sh("actormq produce --topic drill x", "^SEND_OK")
	r.sh("fallocate -l 62m full/filler || dd if=/dev/zero of=full/filler bs=1M 2> dd.log || true")
	r.eventually("! actormq produce --topic drill y > why && grep SERVICE_NOT_AVAILABLE why")
	r.sh("actormq consume --topic drill --max 1", "\\bx$")
	r.sh("rm full/filler")
	r.eventually("actormq produce --topic drill z")
	n.stop(syscall.SIGTERM)
	r.sh("umount full")
}

// moving is docs/MIGRATING.md: a store of RocketMQ's is taken over, then a slave follows a master and takes its place.
func moving(r *rehearsal) {
	small := r.env
	r.env = nil // a broker.conf has the sizes
	dir, _ := r.golden("file-roll")
	r.words["DIR"], r.words["DEST"] = dir, filepath.Join(r.dir, "before")
	r.sh(fmt.Sprintf("echo -e 'storePathRootDir=%s\\nfileReservedTime=87600\\nmappedFileSizeCommitLog=131072\\nmappedFileSizeConsumeQueue=20000\\nmaxHashSlotNum=500\\nmaxIndexNum=2000' > broker.conf", dir))
	r.runs("actormq config check -c broker.conf", "^ok: ")
	r.runs("actormq store verify DIR", "whole; closed properly")
	r.runs("actormq store backup DIR DEST")
	n := r.node("actormq node -c broker.conf", "")
	topic := regexp.MustCompile(`"topic":"(\w+)"`).FindSubmatch(golden.Load("file-roll").Expected())
	require.NotNil(r.t, topic)
	r.sh("actormq topic create " + string(topic[1])) // the writer of golden stores has no configuration of topics
	r.sh(fmt.Sprintf("actormq consume --topic %s --max 5 | wc -l", topic[1]), "^5$")
	r.sh("actormq produce --topic after x", "^SEND_OK")
	n.stop(syscall.SIGTERM)
	r.sh("actormq store verify DIR", "whole; closed properly")

	r.env = small
	master := r.start("exec actormq node --store-dir master --listen 127.0.0.1:20911 --admin-listen 127.0.0.1:20914 --set haListenPort=20912")
	r.sh("actormq produce --topic orders a b c", "^SEND_OK")
	r.sh(`curl -s 127.0.0.1:20914/metrics`, `^actormq_log_written_bytes `)
	end := regexp.MustCompile(`(?m)^actormq_log_written_bytes (\d+)`).FindStringSubmatch(r.out)
	require.NotNil(r.t, end)
	slave := r.start("exec actormq node --store-dir slave --namesrv-listen 127.0.0.1:29876 --set brokerRole=SLAVE --set brokerId=1 --set haFullCopy=true " +
		"--set haMasterAddress=127.0.0.1:20912 --set 'namesrvAddr=127.0.0.1:9876'")
	r.words["N"] = end[1]
	r.runs("actormq cluster promote --expect-offset N")
	master.stop(syscall.SIGTERM)
	r.eventually("actormq produce --topic orders --namesrv 127.0.0.1:29876 d")
	r.eventually("test $(actormq consume --topic orders --namesrv 127.0.0.1:29876 | wc -l) = 4")
	slave.stop(syscall.SIGTERM)
}

// aGroup is the replica group of README, as it stands there.
func aGroup(r *rehearsal) {
	r.documented("for n in 1 2 3; do bin/actormq node --cluster demo --node-id $n --store-dir demo/$n --join 127.0.0.1:21100,127.0.0.1:21200,127.0.0.1:21300 2> demo-$n.log & done")
	group := r.command("for n in 1 2 3; do bin/actormq node --cluster demo --node-id $n --store-dir demo/$n --join 127.0.0.1:21100,127.0.0.1:21200,127.0.0.1:21300 2> demo-$n.log & done; trap : TERM; wait; wait")
	require.NoError(r.t, group.Start())
	gone := r.mayRunOver(group.Process.Pid)
	defer func() { // it has ended, unless the test has failed
		if gone() {
			_ = syscall.Kill(-group.Process.Pid, syscall.SIGKILL)
		}
	}()
	r.runs("bin/actormq cluster status --join 127.0.0.1:21100 --wait 30s")
	shown := r.out
	text, err := os.ReadFile(filepath.Join(r.words["ROOT"], "README.md"))
	require.NoError(r.t, err)
	want := regexp.MustCompile("(?s)```\n(cluster=demo .*?)```").FindStringSubmatch(string(text))
	require.NotNil(r.t, want)
	// Any of the three may lead, and after some seconds it puts its delay offsets into the log.
	anybody := func(s string) string {
		return regexp.MustCompile(`leader=\d|epoch=\d+|role=\w+|log_end=\d+|confirmed=-?\d+`).ReplaceAllString(s, "_")
	}
	require.Equal(r.t, anybody(want[1]), anybody(shown))
	r.documented("actormq node --cluster NAME --node-id N --join HOST:PORT,…") // what has just been done
	r.sh("actormq produce --topic orders --namesrv '127.0.0.1:21103;127.0.0.1:21203;127.0.0.1:21303' x", "^SEND_OK")
	require.NoError(r.t, syscall.Kill(-group.Process.Pid, syscall.SIGTERM))
	_ = group.Wait()
	gone()
	for n := 1; n <= 3; n++ {
		r.sh(fmt.Sprintf("cat demo-%d.log", n), "the store is closed")
	}
}
