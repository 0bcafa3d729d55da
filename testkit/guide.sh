#!/usr/bin/env bash
# Runs every command of docs/GUIDE.md, as it stands there, in a fresh folder. It uses the ports that a node has by default.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sed -n '/^```sh$/,/^```$/p' "$root/docs/GUIDE.md" | grep -v '^```' > "$dir/commands.sh"
test "$(wc -l < "$dir/commands.sh")" -gt 10
# The build needs the sources; everything else runs in the folder.
sed -i "s|^go build -o bin/actormq ./cmd/actormq\$|(cd '$root' \&\& go build -o '$dir/bin/actormq' ./cmd/actormq)|" "$dir/commands.sh"
cd "$dir"
{ echo 'trap "kill %1 2> /dev/null || true" EXIT'; cat commands.sh; } > run.sh
bash -euxo pipefail run.sh
echo "docs/GUIDE.md: every command worked"
