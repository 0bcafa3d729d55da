#!/usr/bin/env bash
# ha.sh [DIR]: replication with RocketMQ's own brokers, both ways, on loopback ports.
#   1. A node follows RocketMQ's master under load, from its first byte on, is killed (kill -9) and goes on, and is stopped and
#      goes on. Its commit log has the master's bytes, its topics, groups, offsets and delay offsets are the master's, and
#      `actormq store verify` finds no damage. Then it is started as a master: it has every acknowledged message.
#   2. RocketMQ's slave follows a node (SYNC_MASTER) under load, and goes on after the node was killed. Their commit logs are
#      the same bytes, file by file, and RocketMQ reads every acknowledged message from its own.
#   3. A node that follows RocketMQ's master under load is promoted (`actormq cluster promote --expect-offset N`). It has every
#      acknowledged message, topic, group and offset, nothing that the old master takes afterwards, and takes messages itself.
# Needs Go, JDK 11 or newer and Maven, or PEER_JAR=<built rmqpeer.jar>. DIR (default: a new temporary folder) keeps everything.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
dir=${1:-$(mktemp -d)}
mkdir -p "$dir"
port=$((20000 + RANDOM % 11000))
(cd "$repo" && go build -o "$dir/actormq" ./cmd/actormq && go build -o "$dir/load" ./testkit/peer/load \
  && go build -o "$dir/compare" ./testkit/peer/compare)
jar=${PEER_JAR:-}
if [ -z "$jar" ]; then
  cp -R "$here/." "$dir/peer" && mvn -q -B -f "$dir/peer/pom.xml" package
  jar=$dir/peer/target/rmqpeer.jar
fi
sizes=(--set mappedFileSizeCommitLog=1048576 --set mappedFileSizeConsumeQueue=60000 --set maxHashSlotNum=5000 --set maxIndexNum=20000)
theirs=(--commitlog-size 1048576 --cq-size 60000 --slots 5000 --index-num 20000)
pids=()
trap 'for p in "${pids[@]}"; do kill $p 2>/dev/null || true; done' EXIT
fail() { echo "FAIL: $*"; exit 1; }
await() { # await FILE WORD
  for _ in $(seq 300); do grep -q "^$2" "$1" 2>/dev/null && return; sleep 0.2; done
  cat "$1"; fail "no $2 within a minute"
}
real() { # real NAME PORT OPTIONS...: a broker of RocketMQ; its input stays open by a fifo
  rm -f "$dir/$1.in"; mkfifo "$dir/$1.in"; : > "$dir/$1.out"
  java -jar "$jar" broker "$dir/$1" "$2" --name ha "${theirs[@]}" "${@:3}" < "$dir/$1.in" > "$dir/$1.out" 2>> "$dir/$1.err" & last=$!
  pids+=($last)
  exec {keep}> "$dir/$1.in"
  await "$dir/$1.out" READY
}
ask() { echo stat >&$keep; } # of the broker started last
node() { # node NAME PORT OPTIONS...
  : > "$dir/$1.out"
  "$dir/actormq" node --store-dir "$dir/$1" --listen 127.0.0.1:"$2" --set brokerName=ha "${sizes[@]}" --namesrv-listen 127.0.0.1:$(($2 + 7)) \
    --set adminListen=127.0.0.1:$(($2 + 5)) --log-level info "${@:3}" > "$dir/$1.out" 2>> "$dir/$1.err" & last=$!
  pids+=($last)
  await "$dir/$1.out" ready
}
written() { curl -s "http://127.0.0.1:$(($1 + 5))/metrics" | sed -n 's/^[^#]*log_dispatched_bytes[^ ]* //p' | awk '{printf "%d\n", $1}'; }
peermax() { # peermax NAME: the end of the log of the broker started last
  local n=$(grep -c ^STAT "$dir/$1.out" || true)
  ask
  for _ in $(seq 50); do [ "$(grep -c ^STAT "$dir/$1.out" || true)" -gt "$n" ] && break; sleep 0.1; done
  grep ^STAT "$dir/$1.out" | tail -1 | sed 's/.* max=\([0-9]*\).*/\1/'
}
level() { # level NODEPORT PEERNAME: until both logs end at the same place
  for _ in $(seq 200); do
    a=$(written "$1"); b=$(peermax "$2")
    [ -n "$a" ] && [ "$a" = "$b" ] && { echo "both logs end at $a"; return; }
    sleep 0.3
  done
  fail "the node's log ends at $a, RocketMQ's at $b"
}
same() { # same MASTER SLAVE: the slave's files are the master's
  local n=0
  for f in "$dir/$2"/commitlog/*; do
    name=$(basename "$f")
    # A segment that only one of them has made ahead is all zeros.
    if [ ! -e "$dir/$1/commitlog/$name" ]; then cmp -s -n 1048576 "$f" /dev/zero || fail "only $2 has $name"; continue; fi
    cmp "$f" "$dir/$1/commitlog/$name" || fail "$name differs"
    n=$((n + 1))
  done
  echo "$n files of the commit log are the same, byte for byte"
}
stopnode() { kill -TERM $1; wait $1 || fail "the node ended with status $?"; }

echo "== a node follows RocketMQ's master"
p=$port names=127.0.0.1:$((p + 9))
real master $p --role async_master --ha-port $((p + 1)) --namesrv-port $((p + 9))
slave() { node slave $((p + 20)) --set brokerRole=SLAVE --set brokerId=1 --set brokerClusterName=MadeUpCluster --set haMasterAddress=127.0.0.1:$((p + 1)) --set haFullCopy=true; }
"$dir/load" -broker 127.0.0.1:$p -topic Before -ledger "$dir/before.ledger" -seconds 2
slave; first=$last
"$dir/load" -broker 127.0.0.1:$p -topic Load -ledger "$dir/load.ledger" -seconds 8 & load=$!
sleep 3
kill -KILL $first; wait $first 2>/dev/null || true; echo "the slave was killed"
slave; second=$last
wait $load
"$dir/actormq" consume --namesrv "$names" --topic Before --group Readers --max 1000 > "$dir/received" 2> "$dir/consume.err"
level $((p + 20)) master
stopnode $second; echo "the slave was stopped"
"$dir/load" -broker 127.0.0.1:$p -topic Load -ledger "$dir/load2.ledger" -seconds 2
slave; third=$last
level $((p + 20)) master
sleep 15 # the master writes its offsets every 5 s, the slave asks every 10 s
cp -R "$dir/master/config" "$dir/master.config" # at its stop RocketMQ makes a topic for transactions
echo stop >&$keep; await "$dir/master.out" STOPPED
stopnode $third
same master slave
told() { # told MASTERCONFIG SLAVE FILES...: what the slave has been told is what the master had
  for f in "${@:3}"; do
    python3 - "$dir/$1/$f.json" "$dir/$2/config/$f.json" "$f" <<'P' || fail "$f.json differs"
import json, re, sys
def load(p):
    text = re.sub(r'([{,]\s*)(\d+)(\s*:)', r'\1"\2"\3', open(p).read())
    return json.loads(text)
m, s = load(sys.argv[1]), load(sys.argv[2])
key = {"topics": "topicConfigTable", "subscriptionGroup": "subscriptionGroupTable"}.get(sys.argv[3], "offsetTable")
lacking = {k: (v, s.get(key, {}).get(k)) for k, v in m.get(key, {}).items() if s.get(key, {}).get(k) != v}
print(f"{sys.argv[3]}: {len(m.get(key, {}))} entries of the master, {len(lacking)} differ at the slave", *list(lacking.items())[:3])
sys.exit(bool(lacking))
P
  done
}
told master.config slave topics consumerOffset delayOffset subscriptionGroup
"$dir/actormq" store verify "$dir/slave" --slots 5000
cat "$dir/before.ledger" "$dir/load.ledger" "$dir/load2.ledger" > "$dir/all.ledger"
"$dir/actormq" store dump "$dir/slave" --slots 5000 --json "$dir/slave.json"
java -jar "$jar" dump "$dir/slave" "$dir/slave.peer.json" "${theirs[@]}"
"$dir/compare" "$dir/slave.json" "$dir/slave.peer.json" "$dir/all.ledger"

echo "== RocketMQ's slave follows a node"
p=$((port + 40))
master() { node ours $p --set brokerRole=$1; }
followed() { # followed N: until a slave has come for the Nth time; RocketMQ's reports after 5 s, and for the last segment first
  for _ in $(seq 200); do [ "$(grep -c "a slave follows" "$dir/ours.err" || true)" -ge $1 ] && return; sleep 0.2; done
  fail "no slave follows"
}
master ASYNC_MASTER
"$dir/load" -broker 127.0.0.1:$p -topic Before -ledger "$dir/before.ledger" -seconds 2
stopnode $last
master SYNC_MASTER; first=$last
real theirs $((p + 20)) --role slave --id 1 --ha-port $((p + 21)) --ha-master 127.0.0.1:$((p + 1))
followed 1
"$dir/load" -broker 127.0.0.1:$p -topic Load -ledger "$dir/ours.ledger" -seconds 8 & load=$!
sleep 5
kill -KILL $first; wait $first 2>/dev/null || true; echo "the master was killed"
wait $load || true
master SYNC_MASTER; second=$last
followed 2
"$dir/load" -broker 127.0.0.1:$p -topic Load -ledger "$dir/ours2.ledger" -seconds 4
level $p theirs
echo stop >&$keep; await "$dir/theirs.out" STOPPED
stopnode $second
same ours theirs
java -jar "$jar" dump "$dir/theirs" "$dir/theirs.peer.json" "${theirs[@]}"
"$dir/actormq" store dump "$dir/theirs" --slots 5000 --json "$dir/theirs.json"
cat "$dir/ours.ledger" "$dir/ours2.ledger" > "$dir/ours.all"
"$dir/compare" "$dir/theirs.json" "$dir/theirs.peer.json" "$dir/ours.all"
echo "== a slave of RocketMQ's master is promoted"
p=$((port + 80)) names=127.0.0.1:$((p + 9))
real old $p --role async_master --ha-port $((p + 1)) --namesrv-port $((p + 9))
"$dir/load" -broker 127.0.0.1:$p -topic Before -ledger "$dir/before.ledger" -seconds 2
"$dir/load" -broker 127.0.0.1:$p -topic Load -ledger "$dir/load.ledger" -seconds 6 & load=$!
node promoted $((p + 20)) --set brokerRole=SLAVE --set brokerId=1 --set brokerClusterName=MadeUpCluster --set haMasterAddress=127.0.0.1:$((p + 1)) \
  --set haFullCopy=true --set namesrvAddr="$names"; new=$last
"$dir/actormq" consume --namesrv "$names" --topic Before --group Readers --max 1000 > "$dir/received" 2> "$dir/consume.err"
wait $load
sleep 6 # the master writes its offsets every 5 s
cp -R "$dir/old/config" "$dir/old.config"
"$dir/actormq" cluster promote --expect-offset "$(peermax old)" 127.0.0.1:$((p + 20))
# The old master does not know, and takes more: in the same queues, and in a topic of its own.
"$dir/load" -broker 127.0.0.1:$p -topic Load -ledger "$dir/late.ledger" -seconds 2
"$dir/load" -broker 127.0.0.1:$p -topic Late -ledger "$dir/late2.ledger" -seconds 1
echo stop >&$keep; await "$dir/old.out" STOPPED
"$dir/load" -broker 127.0.0.1:$((p + 20)) -topic Load -ledger "$dir/new.ledger" -seconds 2
told old.config promoted topics consumerOffset subscriptionGroup
stopnode $new
cat "$dir/before.ledger" "$dir/load.ledger" "$dir/new.ledger" > "$dir/promoted.ledger"
"$dir/actormq" store verify "$dir/promoted" --slots 5000
"$dir/actormq" store dump "$dir/promoted" --slots 5000 --json "$dir/promoted.json"
java -jar "$jar" dump "$dir/promoted" "$dir/promoted.peer.json" "${theirs[@]}"
"$dir/compare" "$dir/promoted.json" "$dir/promoted.peer.json" "$dir/promoted.ledger"
cat "$dir/late.ledger" "$dir/late2.ledger" | sed 's/.*"msgId":"\([^"]*\)".*/\1/' > "$dir/late.ids"
[ -s "$dir/late.ids" ] || fail "the old master took nothing after the promotion"
! grep -q -F -f "$dir/late.ids" "$dir/promoted.json" || fail "what the old master took after the promotion is in the new one"
echo "nothing of the $(wc -l < "$dir/late.ids") messages that the old master took after the promotion is there"
echo "all as it should be; everything is in $dir"
