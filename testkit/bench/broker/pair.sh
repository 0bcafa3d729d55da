#!/bin/sh
# Starts a master and a slave of this product in the foreground, for the bench. Stops both on TERM.
#   pair.sh WORK_DIR [MASTER_PORT [SLAVE_PORT [NAMESRV_PORT [key=value of both ...]]]]
# Prints READY and creates WORK_DIR/ready once the master knows the slave's offset. The line tells the time from the moment when both
# serve to that one. ONCE=1: prints that time as a line of JSON and stops. ACTORMQ: the binary, ./actormq by default. MASTER_ROLE: SYNC_MASTER (default) or ASYNC_MASTER; the flush is
# asynchronous. Process ids: WORK_DIR/master.pid, slave.pid.
set -e
work=$1; port=${2:-10911}; sport=${3:-11911}; nsport=${4:-9876}
[ $# -gt 4 ] && shift 4 || shift $#
mkdir -p "$work"
rm -f "$work/ready"
. "$(dirname "$0")/children.sh"

node() { # name port key=value...
  name=$1 listen=$2; shift 2
  for kv in "$@"; do set -- "$@" --set "$kv"; shift; done
  "${ACTORMQ:-./actormq}" node --store-dir "$work/store-$name" --listen 127.0.0.1:"$listen" --log-level info --set brokerName=bench "$@" \
    > "$work/$name.out" 2> "$work/$name.err" &
  pids="$! $pids"; echo $! > "$work/$name.pid"
}

node master "$port" brokerRole="${MASTER_ROLE:-SYNC_MASTER}" namesrvListen=127.0.0.1:"$nsport" "$@"
node slave "$sport" brokerRole=SLAVE brokerId=1 haMasterAddress=127.0.0.1:$((port + 1)) namesrvListen=127.0.0.1:$((nsport + 1)) "$@"
until_true "master" grep -qs "^ready" "$work/master.out"
until_true "slave" grep -qs "^ready" "$work/slave.out"
t0=$(date +%s%N)
until_true "offset of the slave" grep -qs "a slave follows" "$work/master.err"
attach=$((($(date +%s%N) - t0) / 1000000))
: > "$work/ready"
if [ "${ONCE:-0}" = 1 ]; then
  echo "{\"workload\":\"attach\",\"attach_ms\":$attach}"
  stop
else
  echo "READY attach_ms=$attach"
fi
reap
