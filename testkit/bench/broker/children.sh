# What pair.sh and start-pair.sh share; they read it with work set to a folder. $pids: the processes that they have started, the newest first.
pids= stopping=
stop() { stopping=1; for p in $pids; do kill "$p" 2>/dev/null || :; done; }
reap() { for p in $pids $pids; do wait "$p" 2>/dev/null || :; done; }
trap stop TERM INT

until_true() { # what, command...: looks for a minute while all live; else ends all, and the script
  what=$1; shift; n=0
  until "$@"; do
    n=$((n + 1))
    for p in $pids; do kill -0 "$p" 2>/dev/null || n=9999; done
    if [ -n "$stopping" ] || [ $n -gt 6000 ]; then
      [ -n "$stopping" ] || echo "FAILED waiting for: $what (see $work)"
      stop; reap; exit 1
    fi
    sleep 0.01
  done
}
