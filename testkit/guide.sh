#!/usr/bin/env bash
# Runs every command of docs/GUIDE.md, as it stands there, in a fresh folder. It uses the ports that a node has by default: in a
# network of its own, where the system lets it have one.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sed -n '/^```sh$/,/^```$/p' "$root/docs/GUIDE.md" | grep -v '^```' > "$dir/commands.sh"
test "$(wc -l < "$dir/commands.sh")" -gt 10
# The build needs the sources; everything else runs in the folder.
sed -i "s,|| { cat node.log; break; },|| { cat node.log; exit 1; }," "$dir/commands.sh" # typed by hand it must not end the shell
sed -i "s|^go build -o bin/actormq ./cmd/actormq\$|(cd '$root' \&\& go build -o '$dir/bin/actormq' ./cmd/actormq)|" "$dir/commands.sh"
cd "$dir"
{ echo 'trap "kill %1 2> /dev/null || true" EXIT'; cat commands.sh; } > run.sh
(cd "$root" && go build -o /dev/null ./cmd/actormq) # what it needs is here then
own=()
if unshare -rn ip link set lo up 2> /dev/null; then own=(unshare -rn sh -c 'ip link set lo up && exec "$@"' own); fi
"${own[@]}" bash -euxo pipefail run.sh
echo "docs/GUIDE.md: every command worked"
