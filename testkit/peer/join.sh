#!/usr/bin/env bash
# join.sh [DIR]: a node joins a RocketMQ cluster, and RocketMQ's broker joins a node's, on loopback ports.
#   1. RocketMQ's name server and broker run; the node registers there. RocketMQ's client, which knows only that name server, sends to
#      the node and receives the same from it, and sends to a topic that both brokers have. The tools see both.
#   2. The node stops: the name server names the other broker alone.
#   3. A node runs with its own name server; RocketMQ's broker registers there. The same, the other way round.
# Needs Go, JDK 11 or newer and Maven, or PEER_JAR=<built rmqpeer.jar>. DIR (default: a new temporary folder) keeps everything.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
dir=${1:-$(mktemp -d)}
mkdir -p "$dir"
port=$((20000 + RANDOM % 11000))
(cd "$repo" && go build -o "$dir/actormq" ./cmd/actormq)
jar=${PEER_JAR:-}
if [ -z "$jar" ]; then
  cp -R "$here/." "$dir/peer" && mvn -q -B -f "$dir/peer/pom.xml" package
  jar=$dir/peer/target/rmqpeer.jar
fi
pids=()
trap 'for p in "${pids[@]}"; do kill $p 2>/dev/null || true; done' EXIT
fail() { echo "FAIL: $*"; exit 1; }
await() { # await FILE WORD: until the file has a line that begins with the word
  for _ in $(seq 300); do grep -q "^$2" "$1" 2>/dev/null && return; sleep 0.2; done
  cat "$1"; fail "no $2 within a minute"
}
real() { # real NAME PORT OPTIONS...: a broker of RocketMQ; its input stays open by a fifo
  mkfifo "$dir/$1.in"
  java -jar "$jar" broker "$dir/$1" "$2" --name "$1" "${@:3}" < "$dir/$1.in" > "$dir/$1.out" 2> "$dir/$1.err" & pids+=($!)
  exec {keep}> "$dir/$1.in"
  await "$dir/$1.out" READY
}
node() { # node NAME PORT OPTIONS...
  "$dir/actormq" node --store-dir "$dir/$1" --listen 127.0.0.1:"$2" --set brokerName="$1" --log-level info "${@:3}" \
    > "$dir/$1.out" 2> "$dir/$1.err" & pids+=($!); last=$!
  await "$dir/$1.out" ready
}
brokers() { # brokers NAMESRV N: waits until the tools list so many
  for _ in $(seq 100); do
    java -jar "$jar" mqadmin clusterList -n "$1" 2>/dev/null | grep -E '127\.0\.0\.1' > "$dir/cluster" || true
    [ "$(wc -l < "$dir/cluster")" = "$2" ] && { cat "$dir/cluster"; return; }
    sleep 0.3
  done
  cat "$dir/cluster"; fail "not $2 brokers"
}
topic() { # topic NAMESRV NAME OPTIONS...: by the tools, then until it is in the route
  java -jar "$jar" mqadmin updateTopic -n "$1" -t "$2" -r 4 -w 4 "${@:3}" > "$dir/topic" 2>&1 || fail "$(cat "$dir/topic")"
  grep -q "create topic to" "$dir/topic" || fail "$(cat "$dir/topic")"
}
exchange() { # exchange NAMESRV TOPIC BROKER: 200 messages by RocketMQ's client, all to that broker and back
  java -jar "$jar" send "$1" "$2" 200 > "$dir/$2.sent" 2> "$dir/$2.err" || fail "send: $(tail -3 "$dir/$2.err")"
  java -jar "$jar" recv "$1" "$2" > "$dir/$2.received" 2> "$dir/$2.err" || fail "recv: $(tail -3 "$dir/$2.err")"
  [ "$(grep -c "SEND_OK $3 " "$dir/$2.sent")" = 200 ] || fail "not all were sent to $3: $dir/$2.sent"
  diff <(sed -n 's/^SENT.*sha=//p' "$dir/$2.sent" | sort) <(sed -n 's/^GOT.*sha=//p' "$dir/$2.received" | sort) \
    > "$dir/$2.diff" || fail "what was received is not what was sent: $dir/$2.diff"
  echo "$2: 200 sent to $3, the same 200 received"
}
both() { # both NAMESRV TOPIC BROKERS...: 200 messages to a topic of all of them
  java -jar "$jar" send "$1" "$2" 200 > "$dir/$2.sent" 2> "$dir/$2.err" || fail "send: $(tail -3 "$dir/$2.err")"
  for b in "${@:3}"; do echo "$2: $(grep -c "SEND_OK $b " "$dir/$2.sent" || fail "none to $b") sent to $b"; done
}

echo "== the node joins RocketMQ's cluster"
names=127.0.0.1:$((port + 9))
real rocket "$port" --namesrv-port $((port + 9)) --cluster DefaultCluster
node ours $((port + 20)) --namesrv-listen "" --set namesrvAddr=$names; ours=$last
brokers $names 2
topic $names Joined -b 127.0.0.1:$((port + 20))
exchange $names Joined ours
topic $names JoinedBoth -c DefaultCluster
both $names JoinedBoth ours rocket
kill -TERM $ours; wait $ours || fail "the node ended with status $?"
brokers $names 1

echo "== RocketMQ's broker joins the node's cluster"
names=127.0.0.1:$((port + 49))
node ours2 $((port + 40)) --namesrv-listen $names
real rocket2 $((port + 60)) --namesrv $names --cluster DefaultCluster
brokers $names 2
topic $names Hosted -b 127.0.0.1:$((port + 60))
exchange $names Hosted rocket2
topic $names HostedBoth -c DefaultCluster
both $names HostedBoth ours2 rocket2
echo "kept in $dir"
