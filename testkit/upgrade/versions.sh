#!/usr/bin/env bash
# versions.sh [REF…]: builds earlier programs from the history and lets each take turns with this one on one store, stopped and killed
# (TestAStoreGoesToAndFroBetweenPrograms), and be nodes of one group (EarlierProgram). Without a REF: the last release, the newest tag v*. Needs Go and the history.
set -euo pipefail
repo=$(cd "$(dirname "$0")/../.." && pwd)
refs=("$@")
if [ ${#refs[@]} = 0 ]; then
  last=$(git -C "$repo" tag --list 'v*' --sort=-v:refname 2> /dev/null | head -1 || true)
  [ -n "$last" ] || { echo "no release is known here: name a commit"; exit 0; }
  refs=("$last")
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"; git -C "$repo" worktree prune' EXIT
for ref in "${refs[@]}"; do
  echo "== $ref"
  git -C "$repo" worktree add --quiet --detach "$dir/tree" "$ref"
  (cd "$dir/tree" && go build -buildvcs=false -o "$dir/actormq" ./cmd/actormq)
  git -C "$repo" worktree remove --force "$dir/tree"
  (cd "$repo" && UPGRADE_FROM="$dir/actormq" go test -count=1 -v -run 'BetweenPrograms|EarlierProgram' ./testkit/upgrade)
done
