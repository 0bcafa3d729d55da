#!/usr/bin/env bash
# run-go.sh [--cases a,b] [--all] [--keep DIR]: builds a node and the Go client's suite, starts the node on loopback with a
# temporary store, runs the suite, stops the node by SIGTERM, and requires that every case passed and that the node ended with
# status 0. Without --cases it runs all but those of what is not built yet ("later" below); --all runs these too. --keep leaves
# store, results and logs in DIR. Needs Go.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
later=''
cases='' all='' dir='' keep=''
while [ $# -gt 0 ]; do
  case $1 in
    --cases) cases=$2; shift 2 ;;
    --all) all=1; shift ;;
    --keep) dir=$2 keep=1; shift 2 ;;
    *) sed -n 2,5p "$0" >&2; exit 2 ;;
  esac
done
[ -n "$dir" ] || dir=$(mktemp -d)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

node=
finish() { # whatever happens, no node is left behind
  [ -z "$node" ] || kill -KILL "$node" 2>/dev/null || true
  [ -n "$keep" ] || rm -rf "$dir"
}
trap finish EXIT

echo "building the node and the suite"
(cd "$repo" && go build -o "$dir/actormq" ./cmd/actormq)
(cd "$here/go" && go build -o "$dir/suite" .)

if [ -z "$cases" ]; then
  while read -r name; do
    if [ -z "$all" ] && [[ ,$later, == *",$name,"* ]]; then
      echo "left out: $name"
    else
      cases=${cases:+$cases,}$name
    fi
  done < <("$dir/suite" -list)
fi

start() { # tries one place for the ports: the broker's, the one two below it, and the name server's
  local port=$((20000 + RANDOM % 12000))
  namesrv=127.0.0.1:$((port + 7))
  "$dir/actormq" node --store-dir "$dir/store" --listen "127.0.0.1:$port" --namesrv-listen "$namesrv" \
    --set mappedFileSizeCommitLog=67108864 --set mappedFileSizeConsumeQueue=600000 --set maxHashSlotNum=50000 \
    --set maxIndexNum=200000 --set enablePropertyFilter=true --set transactionTimeOut=1000 --set transactionCheckInterval=1000 \
    --log-level warn > "$dir/node.out" 2> "$dir/node.log" < /dev/null &
  node=$!
  for _ in $(seq 150); do
    grep -q '^ready' "$dir/node.out" && return 0
    kill -0 "$node" 2>/dev/null || break
    sleep 0.2
  done
  kill -KILL "$node" 2>/dev/null || true
  wait "$node" 2>/dev/null || true
  node=
  return 1
}
for _ in 1 2 3; do start && break; done
if [ -z "$node" ]; then
  echo "the node does not start:" >&2
  tail -20 "$dir/node.log" >&2
  exit 1
fi
echo "the node serves: $(cat "$dir/node.out")"

failed=0
"$dir/suite" -namesrv "$namesrv" -cases "$cases" -json "$dir/results.json" || failed=1

began=$SECONDS
kill -TERM "$node"
status=0
wait "$node" || status=$?
node=
echo "the node stopped with status $status after $((SECONDS - began)) s"
[ "$status" -eq 0 ] || failed=1
if [ "$failed" -ne 0 ]; then
  echo "the end of the node's log:" >&2
  tail -40 "$dir/node.log" >&2
fi
exit "$failed"
