#!/usr/bin/env bash
# Runs every command of docs/GUIDE.md, as it stands there, in a fresh folder, and compares what they say with what the page says. It uses the ports that a node has by default: in a
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
# Who types takes longer than the dispatcher.
sed -i "/^bin.actormq produce/a until curl -s http://127.0.0.1:10914/metrics | grep -q '^actormq_dispatch_lag_bytes 0\$'; do sleep 0.1; done" "$dir/commands.sh"
cd "$dir"
{ echo 'trap "kill %1 2> /dev/null || true" EXIT'; cat commands.sh; } > run.sh
(cd "$root" && go build -o /dev/null ./cmd/actormq) # what it needs is here then
own=()
if unshare -rn ip link set lo up 2> /dev/null; then own=(unshare -rn sh -c 'ip link set lo up && exec "$@"' own); fi
"${own[@]}" bash -euxo pipefail run.sh 2> trace | tee said || { cat trace >&2; exit 1; }

# What the page says, and the lines that say it, in order.
from=1
says() { # text of the page, pattern of a line
  tr '\n' ' ' < "$root/docs/GUIDE.md" | grep -qF -- "$1" || { echo "docs/GUIDE.md does not say any more: $1"; exit 1; }
  at=$(tail -n "+$from" said | grep -nE -m1 -- "$2" | cut -d: -f1) || true
  [ -n "$at" ] || { echo "docs/GUIDE.md says: $1, and behind line $from nothing is like: $2"; exit 1; }
  from=$((from + at))
}
says 'SEND_OK id=… broker=broker-a queue=2 offset=0' '^SEND_OK id=[0-9A-F]{32} broker=broker-a queue=[0-3] offset=0$'
says 'a line with its place, time, tag, keys and body' '^broker=broker-a queue=[0-3] offset=0 time=[^ ]+ tag=new keys=4711 body=two coffees$'
says '`put=yes`' '^put=yes '
says '`flushed=no`' '^flushed=(no|yes) ' # by then it may be
says '`dispatched=yes`' '^dispatched=(yes|no) ' # as soon as that
for body in 'two coffees|one tea|a tart' 'two coffees|one tea|a tart' 'two coffees|one tea|a tart'; do
  says 'The first call shows three messages' " body=($body)$"
done
says '`group lag` one message that is not read (`lag=1`)' ' lag=1 '
says 'the second call that one: a cake' ' body=a cake$'
says 'what it would do, and does nothing' '^billing .* new=0 dry-run$'
says '`ok`' '^ok$'
says '`… 4`' '^actormq_puts_total\{status="PUT_OK"\} 4$'
says 'the end of the log that was copied' ' log end 544$'
says '`whole; closed properly; log 0..544, 4 records`' ' whole; closed properly; log 0\.\.544, 4 records'
says '`the store is closed`' '"message":"the store is closed"'
echo "docs/GUIDE.md: every command worked"
