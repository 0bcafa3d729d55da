#!/usr/bin/env bash
# ten-times.sh [DIR] [TIMES]: one store goes to and fro between us and RocketMQ itself (the peer), ten times: each appends to it and
# closes it, or ends without closing it, and the other goes on. After each turn both show the same, with every message that
# either has acknowledged, and `actormq store verify` finds nothing. Needs Go, JDK 11 or newer and Maven. DIR (default: a new
# temporary folder) keeps everything.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
dir=${1:-$(mktemp -d)} times=${2:-10}
mkdir -p "$dir"
(cd "$repo" && go build -o "$dir/actormq" ./cmd/actormq && go build -o "$dir/append" ./testkit/peer/append \
  && go build -o "$dir/compare" ./testkit/peer/compare)
[ -e "$dir/peer/target/rmqpeer.jar" ] || { cp -R "$here/." "$dir/peer" && mvn -q -B -f "$dir/peer/pom.xml" package; }
opens=(); for p in java.nio sun.nio.ch jdk.internal.ref java.lang; do opens+=(--add-opens "java.base/$p=ALL-UNNAMED"); done
peer() { java "${opens[@]}" -jar "$dir/peer/target/rmqpeer.jar" "$@"; }

rm -rf "$dir"/store "$dir"/ledger "$dir"/part*.json
echo '{"commitLogSize":65536,"consumeQueueSize":20000,"hashSlots":500,"indexNum":2000}' > "$dir/params.json"
phases=
for i in $(seq "$times"); do
  [ $((i % 3)) -eq 0 ] && end=halt || end=close # every third time RocketMQ's process dies
  phases+="${phases:+,}{\"end\":\"$end\",\"run\":[{\"op\":\"put\",\"count\":70,\"topics\":[\"Appended\",\"Theirs\"],\"queues\":2,\"body\":[40,400],\"tags\":[\"A\"],\"keys\":1,\"uniq\":true}]}"
done
echo "{\"name\":\"ten-times\",\"seed\":7,\"commitLogSize\":65536,\"phases\":[$phases]}" > "$dir/spec.json"

for i in $(seq "$times"); do
  crash= how=close
  [ $((i % 2)) -eq 0 ] || { crash=-crash how=crash; } # every second time ours dies
  "$dir/append" -dir "$dir/store" -params "$dir/params.json" -ledger "$dir/ledger" -count 60 $crash
  [ -n "$crash" ] || "$dir/actormq" store verify "$dir/store" --params "$dir/params.json" 2>/dev/null > "$dir/verify.$i" || cat "$dir/verify.$i"
  status=0; peer session "$dir/spec.json" $((i - 1)) "$dir/store" "$dir/part$i.json" > "$dir/peer.log" 2>&1 || status=$?
  [ $status -eq 0 ] || [ $status -eq 7 ] || { echo "the peer's session ended with $status"; tail -5 "$dir/peer.log"; exit 1; }
  "$dir/actormq" store dump "$dir/store" --params "$dir/params.json" --json "$dir/ours.json"
  peer dump "$dir/store" "$dir/peer.json" --params "$dir/params.json" --work "$dir"
  echo "turn $i (ours: $how): $("$dir/compare" "$dir/ours.json" "$dir/peer.json" "$dir/ledger" "$dir"/part*.json)"
done
"$dir/append" -dir "$dir/store" -params "$dir/params.json" -ledger "$dir/ledger" -count 1
"$dir/actormq" store verify "$dir/store" --params "$dir/params.json" 2>/dev/null
echo "ten-times: nothing lost"
