#!/usr/bin/env bash
# Makes cmd/actormq/default.pgo again, the profile that the compiler is led by (docs/adr/0013): a node over the wire, a replicated pair and the
# store in process, some seconds of each workload. Takes three minutes (SECONDS_EACH=1: one), some GB of the temporary folder, and Linux; nobody else should
# be at work. Needs broker/go/brokerbench (README.md). Ports 23511 to 25611 must be free.
set -euo pipefail
cd "$(dirname "$0")"
bench=$PWD/broker/go/brokerbench out=$PWD/../../cmd/actormq/default.pgo seconds=${SECONDS_EACH:-4}
work=$(mktemp -d) pids=
stop() { for p in $pids; do kill "$p" 2> /dev/null && wait "$p" || :; done; pids=; }
trap 'stop; rm -rf "$work"' EXIT
go build -trimpath -pgo=off -o "$work/actormq" ../../cmd/actormq # no paths of this machine in the profile

node() { # port, admin port, option...
  port=$1 admin=$2; shift 2
  "$work/actormq" node --store-dir "$work/store-$port" --listen "127.0.0.1:$port" --namesrv-listen "127.0.0.1:$((port + 1000))" \
    --admin-listen "127.0.0.1:$admin" --log-level error --set brokerName=bench "$@" > "$work/$port.out" &
  pids="$pids $!"
  until grep -qs '^ready' "$work/$port.out"; do kill -0 $!; sleep 0.05; done
}
load() { # profile's name, workload; the processes of the node or nodes are profiled through their admin ports
  name=$1; shift
  gets=()
  for a in $admins; do
    curl -sSf -o "$work/$name-$a.pb" "http://127.0.0.1:$a/debug/pprof/profile?seconds=$seconds" & gets+=($!)
  done
  "$bench" "$@" -addr 127.0.0.1:23511 -pids "$(echo $pids | tr ' ' ,)" -warmup 1 -seconds "$seconds"
  wait "${gets[@]}"
}
instore() { # profile's name, workload
  name=$1; shift
  "$work/actormq" bench store --dir "$work/bench" "$@" --warmup 1 --seconds "$seconds" --cpuprofile "$work/$name.pb"
  rm -rf "$work/bench"
}

node 23511 25511
admins=25511
load alone -workload send -conns 1 -inflight 1 -body 1024
load small -workload send -conns 4 -inflight 64 -body 128
load large -workload send -conns 4 -inflight 64 -body 1024
load binary -workload send -conns 4 -inflight 64 -body 1024 -proto binary
load many -workload send -conns 64 -inflight 4 -body 1024
load oneway -workload oneway -conns 1 -body 1024
load batch -workload batch -conns 2 -inflight 4 -body 1024
load pull -workload pull -conns 2 -queues 4 -body 1024 -count 300000
load consumer -workload e2e -rate 10000
stop

rm -rf "$work"/store-*
node 23511 25511 --set brokerRole=SYNC_MASTER
node 23611 25611 --set brokerRole=SLAVE --set brokerId=1 --set haMasterAddress=127.0.0.1:23512
admins="25511 25611"
load pair-alone -workload send -conns 1 -inflight 1 -body 1024
load pair-16 -workload send -conns 4 -inflight 4 -body 1024
load pair-256 -workload send -conns 4 -inflight 64 -body 1024
load pair-batch -workload batch -conns 2 -inflight 4 -batch 32 -body 1024
stop

instore put-1 --workload put --threads 1 --body 128
instore put-4 --workload put --threads 4 --body 128
instore put-16 --workload put --threads 16 --body 128
instore put-256 --workload put --mode async --threads 1 --window 256 --body 128
instore put-sync --workload put-sync --outstanding 64
instore put-batch --workload put-batch --batch 32 --body 128
instore get --workload get --body 128 --count 1000000
instore get-far --workload get --body 1024 --count 500000 --touch none
instore query --workload index-query --count 300000
instore topics --workload put-topics --topics 1000 --body 128

go tool pprof -proto "$work"/*.pb > "$work/merged"
cp "$work/merged" "$out"
echo "wrote $out"
