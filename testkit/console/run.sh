#!/usr/bin/env bash
# Looks at every page of the console in Chromium. usage: run.sh [folder of the pictures]. Needs Go and chromium (CHROMIUM names it).
# SETTLE is for how many seconds messages come before it looks, 30 unless it is set: what the plots have to show.
# A node is started with something to see, on ports from PORT on (default 21811).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(mkdir -p "${1:-pictures}" && cd "${1:-pictures}" && pwd)
port=${PORT:-21811}
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2> /dev/null || true; wait; rm -rf "$dir"' EXIT
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
(cd "$root" && go build -o "$dir/actormq" ./cmd/actormq)
(cd "$root/testkit/console" && go build -o "$dir/look" .)
cd "$dir"

# start PORT ARGS… starts a node and waits until it serves.
start() {
  local at=$1; shift
  ./actormq node --store-dir "store-$at" --listen "127.0.0.1:$at" --namesrv-listen "127.0.0.1:$((at + 1))" --admin-listen "127.0.0.1:$((at + 2))" \
    --set haListenPort="$((at + 3))" --set mappedFileSizeCommitLog=67108864 --set maxHashSlotNum=5000 --set maxIndexNum=20000 "$@" > "$at.out" 2> "$at.log" &
  pids+=($!)
  until grep -qs ^ready "$at.out"; do kill -0 "${pids[-1]}" || { cat "$at.log"; exit 1; }; sleep 0.2; done
}

start "$port"
names="127.0.0.1:$((port + 1))"
q() { ./actormq "$@" --namesrv "$names" > /dev/null; }
q topic create orders --queues 4
q topic create payments --queues 2
q topic create %DLQ%shipping --queues 1
for n in $(seq 1 40); do echo "{\"order\":$n,\"items\":[{\"name\":\"coffee\",\"cups\":2}],\"note\":\"no sugar\"}"; done > orders.txt
q produce --topic orders --tag new --key 4711 < orders.txt
q consume --topic orders --group billing
q produce --topic orders --tag changed "a cake" "<script>alert('x')</script>"
q produce --topic payments --key p-1 '{"paid":true}'
q produce --topic %DLQ%shipping --key s-1 --property RETRY_TOPIC=orders "parcel 1" "parcel 2" "parcel 3"
q produce --topic orders --property DELAY=18 "call back in two hours"
( while sleep 0.2; do q produce --topic orders < orders.txt || exit; done ) & # something goes on while the pages are looked at
pids+=($!)
sleep "${SETTLE:-30}" # so that the plots have something to show
flags=""
[ "$(id -u)" != 0 ] || flags="no-sand""box"
./look -base "http://127.0.0.1:$((port + 2))" -out "$out" -chromium "${CHROMIUM:-chromium}" -flags "$flags"

# Once more behind a login.
echo "a long password" > password
start "$((port + 10))" --set adminPasswordFile=password
./look -base "http://127.0.0.1:$((port + 12))" -out "$dir/again" -chromium "${CHROMIUM:-chromium}" -flags "$flags" -password "a long password" -only login
cp "$dir/again/login.png" "$out/"
