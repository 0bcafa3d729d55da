#!/usr/bin/env bash
# golden-append.sh [DIR] [NAME…]: each golden store is opened by us, messages are appended, and it is closed; then RocketMQ
# itself (the peer) and `actormq store dump` open it: both must show the same, all that was in the store before, and every
# appended message. Needs Go, JDK 11 or newer, and the peer: PEER_JAR=…/rmqpeer.jar, or Maven, which builds it.
# DIR (default: a new temporary folder) keeps everything; names: default all 54.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
dir=${1:-$(mktemp -d)}
[ $# -gt 1 ] && names=("${@:2}") || names=($(ls "$repo/testkit/golden/testdata"))
mkdir -p "$dir"
(cd "$repo" && go build -o "$dir/actormq" ./cmd/actormq && go build -o "$dir/append" ./testkit/peer/append \
  && go build -o "$dir/compare" ./testkit/peer/compare)
jar=${PEER_JAR:-$dir/peer/target/rmqpeer.jar}
[ -e "$jar" ] || { cp -R "$here/." "$dir/peer" && mvn -q -B -f "$dir/peer/pom.xml" package; jar=$dir/peer/target/rmqpeer.jar; }

good=0 bad=()
for name in "${names[@]}"; do
  data=$repo/testkit/golden/testdata/$name work=$dir/$name
  rm -rf "$work" && mkdir -p "$work" && tar -C "$work" -xzf "$data/store.tar.gz"
  manifest=()
  [ ! -e "$data/manifest.json.gz" ] || { gzip -dc "$data/manifest.json.gz" > "$work/manifest.json"; manifest=(--manifest "$work/manifest.json"); }
  if "$dir/append" -dir "$work/store" -params "$data/params.json" -ledger "$work/ledger" \
    && "$dir/actormq" store dump "$work/store" --params "$data/params.json" "${manifest[@]}" --json "$work/ours.json" \
    && java -jar "$jar" dump "$work/store" "$work/peer.json" --params "$data/params.json" "${manifest[@]}" --work "$work" \
    && result=$("$dir/compare" -golden "$name" "$work/ours.json" "$work/peer.json" "$work/ledger"); then
    echo "$name: $result"; good=$((good + 1))
  else
    echo "$name: DIFFERENT"; echo "${result:-}" | cut -c1-300; bad+=("$name")
  fi
done
echo "golden-append: $good of ${#names[@]} the same${bad:+; not: ${bad[*]}}"
[ ${#bad[@]} -eq 0 ]
