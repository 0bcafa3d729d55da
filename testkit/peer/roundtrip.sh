#!/usr/bin/env bash
# roundtrip.sh [DIR]: a store that the node wrote under the client suite and one that was killed in the middle of a load are
# opened by RocketMQ itself (the peer) and by `actormq store dump`; both must show the same, and every acknowledged message.
# Then the node goes on with both. Needs Go, JDK 11 or newer and Maven. DIR (default: a new temporary folder) keeps everything.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
dir=${1:-$(mktemp -d)}
mkdir -p "$dir"
port=$((20000 + RANDOM % 12000)) # of the broker; three more around it are used
broker=127.0.0.1:$port namesrv=127.0.0.1:$((port + 7))
sizes=(--set mappedFileSizeCommitLog=1048576 --set mappedFileSizeConsumeQueue=60000 --set maxHashSlotNum=5000 --set maxIndexNum=20000)

echo "building"
(cd "$repo" && go build -o "$dir/actormq" ./cmd/actormq && go build -o "$dir/load" ./testkit/peer/load \
  && go build -o "$dir/compare" ./testkit/peer/compare)
(cd "$repo/testkit/conformance/go" && go build -o "$dir/suite" .)
cp -R "$here/." "$dir/peer" && mvn -q -B -f "$dir/peer/pom.xml" package

node_pid=
start() { # start STORE: runs a node and waits until it serves
  : > "$dir/node.out"
  "$dir/actormq" node --store-dir "$1" --listen $broker --namesrv-listen $namesrv "${sizes[@]}" --log-level warn \
    > "$dir/node.out" 2>> "$dir/node.err" &
  node_pid=$!
  for _ in $(seq 150); do
    grep -q '^ready' "$dir/node.out" && return
    kill -0 $node_pid || { echo "the node ended:"; tail -5 "$dir/node.err"; exit 1; }
    sleep 0.2
  done
  echo "the node is not ready after 30 s"; exit 1
}
stop() { # SIGTERM: exit status 0 within 5 s
  local began=$(date +%s%N)
  kill -TERM $node_pid
  wait $node_pid || { echo "the node ended with status $?"; exit 1; }
  echo "stopped in $(( ($(date +%s%N) - began) / 1000000 )) ms"
  node_pid=
}
trap '[ -z "$node_pid" ] || kill $node_pid 2>/dev/null || true' EXIT
compare() { # compare STORE LEDGER
  "$dir/actormq" store dump "$1" --json "$1.ours.json" --slots 5000
  java -jar "$dir/peer/target/rmqpeer.jar" dump "$1" "$1.peer.json" \
    --commitlog-size 1048576 --cq-size 60000 --slots 5000 --index-num 20000
  "$dir/compare" "$1.ours.json" "$1.peer.json" "$2"
}

echo "== stopped cleanly, after the client suite"
start "$dir/clean"
"$dir/suite" -namesrv $namesrv -cases send_sync,send_async,send_oneway,send_batch,body_and_properties,push_exact_set,orderly,load_8_senders_8000 | grep -E '^(PASS|FAIL|[0-9]+ passed)'
"$dir/load" -broker $broker -topic Peer -ledger "$dir/clean.ledger" -seconds 2
stop
compare "$dir/clean" "$dir/clean.ledger"

echo "== killed in the middle of a load"
start "$dir/killed"
"$dir/load" -broker $broker -topic Peer -ledger "$dir/killed.ledger" -seconds 30 2> "$dir/load.err" & load_pid=$!
sleep 3
kill -KILL $node_pid; wait $node_pid 2>/dev/null || true; node_pid=
wait $load_pid || true
compare "$dir/killed" "$dir/killed.ledger"

echo "== both go on"
for store in clean killed; do
  start "$dir/$store"
  "$dir/load" -broker $broker -topic Peer -ledger "$dir/$store.more" -seconds 1
  stop
  cat "$dir/$store.ledger" "$dir/$store.more" > "$dir/$store.all"
  compare "$dir/$store" "$dir/$store.all"
done
echo "roundtrip: all the same"
