#!/bin/sh
# The bare server, or with a SLAVE_PORT a pair of them, in the foreground, for the bench. Stops both on TERM.
#   bare.sh WORK_DIR PORT [SLAVE_PORT]
# Process ids are its own and those of its children.
set -e
work=$1 port=$2 sport=$3
mkdir -p "$work"
b="$(dirname "$0")/go/brokerbench -workload bare -dir $work"
[ -n "$sport" ] || exec $b -addr 127.0.0.1:"$port"
$b -role slave -addr 127.0.0.1:"$sport" &
slave=$!
master=
trap 'kill $slave $master 2>/dev/null || :' TERM INT
sleep 0.5
$b -addr 127.0.0.1:"$port" -slave 127.0.0.1:"$sport" &
master=$!
wait $master || :
wait $slave || :
