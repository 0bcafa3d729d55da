#!/usr/bin/env python3
"""Runs bench commands of several peers alternately and prints ratios.

  compare.py --rounds 3 --out raw.jsonl \
      --peer go='./bench {args} --dir {dir}' \
      --peer rocketmq='store/java/run.sh {args} --dir {dir}' \
      --suite store/suite.txt

Every command prints JSON lines. With cases (--case 'LABEL: ARGS', or --suite with one such line each, # comments)
a command is run once for each case with {args} replaced, and results are matched by case. Without cases each
command is run once in each round and its lines are matched by their identifying fields (workload, threads, ...).

The order of the peers flips in every round (AB, BA, ...). The first --peer is the base unless --base names another.
Ratios are medians over the rounds of the ratio within a round, and always "more than 1: better than the base":
rates are peer/base, times and memory are base/peer.

--server NAME='COMMAND' starts a server before the cases of that peer in each round and stops it afterwards
(its own process group, TERM then KILL); --ready HOST:PORT is waited for. {pids} in a peer's command becomes the
process ids of its server. --ready NAME=file:PATH waits for a file instead, with {dir} as in the command.
{dir} becomes a fresh directory below --work, removed after the run. Ctrl-C or TERM stops what runs, removes it too, and prints
what there is; the status is 130 then.

--warm-memory MB has all peers run with memory that stays in the machine: so much is taken before the first command, and given back but for a page
of each 2 MiB, which are kept to the end. A virtual machine's host takes back what nobody uses, in pieces of 2 MiB, and what a page costs otherwise
depends on who freed it, and when. Take as much as is free, less what the peers use themselves.

Brokers delete their oldest files while the disk is more than 75 % full (diskMaxUsedSpaceRatio): a run that ends so says it, since
that is measured too.

CPU that other processes used during a run is recorded as other_cpu (in cores); a run above --max-other is repeated
up to --retries times and the quietest attempt is kept. --load FILE prints the table of earlier runs again.
"""
import argparse
import ctypes
import json
import mmap
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HIGHER = ["msgs_per_s", "drained_msgs_per_s", "mb_per_s"]
LOWER = ["p50_us", "p99_us", "p999_us", "ack_p50_us", "ack_p99_us", "open_ms", "start_ms", "rss_mb", "rss_anon_mb", "rss_after_mb",
         "rss_anon_after_mb", "cpu_us_per_msg", "idle_cpu"]
DEFAULT = {
    "tail": ["p50_us", "p99_us", "p999_us", "cpu_us_per_msg"],
    "broker-e2e": ["p50_us", "p99_us", "p999_us", "ack_p50_us", "ack_p99_us", "cpu_us_per_msg"],
    "broker-lag": ["msgs_per_s", "lag_msgs", "lag_max_msgs", "lag_avg_msgs", "caught_up_ms", "cpu_us_per_msg"],
    "recover": ["open_ms", "rss_anon_mb"],
    "start": ["start_ms", "rss_anon_mb", "rss_anon_after_mb", "idle_cpu"],
    "broker-coldstart": ["start_ms", "rss_mb", "rss_anon_mb", "idle_cpu"],
    "disk": ["mb_per_s"],
}
USUAL = ["msgs_per_s", "drained_msgs_per_s", "p50_us", "p99_us", "p999_us", "cpu_us_per_msg"]
IDENTITY = ["workload", "mode", "proto", "threads", "conns", "inflight", "outstanding", "window", "body", "batch", "topics", "queues",
            "rate", "exit", "mb", "state", "props", "touch"]


def busy_seconds():
    try:
        with open("/proc/stat") as f:
            v = [int(x) for x in f.readline().split()[1:]]
        return (v[0] + v[1] + v[2] + v[5] + v[6]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def child_seconds():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def proc_seconds(pids):
    total = 0.0
    for p in pids:
        try:
            with open(f"/proc/{p}/stat") as f:
                s = f.read()
        except OSError:
            continue
        v = s[s.rindex(")") + 1:].split()
        total += (int(v[11]) + int(v[12])) / os.sysconf("SC_CLK_TCK")
    return total


def descendants(root):
    kids = {}
    for d in os.listdir("/proc"):
        if d.isdigit():
            try:
                with open(f"/proc/{d}/stat") as f:
                    s = f.read()
            except OSError:
                continue
            kids.setdefault(int(s[s.rindex(")") + 1:].split()[1]), []).append(int(d))
    out = [root]
    for p in out:
        out.extend(kids.get(p, []))
    return out


def stop(proc):
    for sig, wait in ((signal.SIGTERM, 20), (signal.SIGKILL, 10)):
        try:
            os.killpg(proc.pid, sig)
        except ProcessLookupError:
            pass
        try:
            proc.wait(wait)
            return
        except subprocess.TimeoutExpired:
            continue


KEPT = []
HUGE = 2 << 20


def warm_memory(mb):
    """Takes memory, once, and gives it back in pieces that are too small for the host to take.

    A page of each 2 MiB is kept. They are taken as huge pages, where the system has them, so that what is given back beside that page are
    pieces of 1 MiB and less, and not only small ones, which a kernel with large folios takes last. MADV_FREE is what divides a huge page.
    """
    if not mb or KEPT:
        return
    m = mmap.mmap(-1, mb << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        m.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        pass  # the system has none
    first = -ctypes.addressof(ctypes.c_char.from_buffer(m)) % HUGE
    for page in range(0, len(m), mmap.PAGESIZE):
        m[page] = 1
    for at in range(first, len(m) - HUGE + 1, HUGE):
        m.madvise(mmap.MADV_FREE, at + mmap.PAGESIZE, HUGE - mmap.PAGESIZE)
        m.madvise(mmap.MADV_DONTNEED, at + mmap.PAGESIZE, HUGE - mmap.PAGESIZE)
    KEPT.append(m)


FULL = 0.75  # diskMaxUsedSpaceRatio


def tell_full(folder, label):
    u = shutil.disk_usage(folder)
    used = u.used / (u.used + u.free)
    if used > FULL:
        print(f"  {label}: the disk of {folder} is {used:.0%} full: brokers delete their oldest files above {FULL:.0%}, which is measured too",
              file=sys.stderr)


def interrupted(*_):
    """Ctrl-C or TERM: what runs is stopped, and what there is is printed. A second one must not cut that off."""
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, signal.SIG_IGN)
    raise KeyboardInterrupt


def reachable(addr):
    if addr.startswith("file:"):
        return os.path.exists(addr[5:])
    host, _, port = addr.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
        return True
    except OSError:
        return False


def pair(s):
    name, eq, value = s.partition("=")
    if not eq:
        raise argparse.ArgumentTypeError("NAME=VALUE expected: " + s)
    return name, value


def run(command, timeout, pids):
    b0, c0, s0, t0 = busy_seconds(), child_seconds(), proc_seconds(pids), time.time()
    proc = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, process_group=0, text=True)
    try:
        out, _ = proc.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        stop(proc)
        print(f"  timed out: {command}", file=sys.stderr)
        return []
    except BaseException:  # Ctrl-C or TERM: the command has a process group of its own, and would go on
        stop(proc)
        raise
    el = max(time.time() - t0, 1e-3)
    other = (busy_seconds() - b0) - (child_seconds() - c0) - (proc_seconds(pids) - s0)
    lines = []
    for s in out.splitlines():
        if s.startswith("{"):
            try:
                d = json.loads(s)
            except ValueError:
                continue
            d["other_cpu"] = round(max(other, 0) / el, 3)
            lines.append(d)
    if proc.returncode != 0:
        print(f"  exit {proc.returncode}: {command}", file=sys.stderr)
    return lines


def wait_quiet(limit, longest, pids):
    """Waits until everything but the given processes used fewer than limit cores for a second."""
    end = time.time() + longest
    while time.time() < end:
        b0 = busy_seconds() - proc_seconds(pids)
        time.sleep(1)
        if busy_seconds() - proc_seconds(pids) - b0 < limit:
            return


def fmt(v):
    a = abs(v)
    if a >= 1e6:
        return f"{v / 1e6:.2f}M"
    if a >= 1e4:
        return f"{v / 1e3:.1f}k"
    if a >= 100:
        return f"{v:.0f}"
    return f"{v:.2f}" if a >= 1 else f"{v:.3f}"


def ratio(v):
    return f"{v:.2f}" if v >= 0.1 else f"{v:.2g}"


def table(results, names, base, metrics, stream=sys.stdout):
    """results: {case: {peer: {round: line}}}"""
    head = ["case", "metric"] + [f"{n} median [min..max]" for n in names] + [f"{n} vs {base}" for n in names if n != base] + ["other_cpu"]
    print("| " + " | ".join(head) + " |", file=stream)
    print("|" + "---|" * len(head), file=stream)
    for case, peers in results.items():
        some = next((l for p in peers.values() for l in p.values()), None)
        if some is None:
            continue
        for m in metrics or DEFAULT.get(some.get("workload"), USUAL):
            have = {n: {r: l[m] for r, l in peers.get(n, {}).items() if isinstance(l.get(m), (int, float))} for n in names}
            if not any(have.values()):
                continue
            row = [case, m]
            for n in names:
                v = list(have[n].values())
                row.append(f"{fmt(statistics.median(v))} [{fmt(min(v))}..{fmt(max(v))}]" if v else "-")
            for n in names:
                if n == base:
                    continue
                q = []
                for r, v in have[n].items():
                    b = have[base].get(r)
                    if b and v:
                        q.append(v / b if m in HIGHER else b / v)
                row.append(f"{ratio(statistics.median(q))}x" if q else "-")
            row.append(fmt(statistics.median(l["other_cpu"] for p in peers.values() for l in p.values())))
            print("| " + " | ".join(row) + " |", file=stream)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--peer", action="append", type=pair, default=[], metavar="NAME=COMMAND")
    ap.add_argument("--load", action="append", default=[], metavar="FILE", help="no runs: print the table of files written by --out")
    ap.add_argument("--quiet", type=float, default=9e9, help="with --load: leave out runs with a higher other_cpu")
    ap.add_argument("--server", action="append", type=pair, default=[], metavar="NAME=COMMAND")
    ap.add_argument("--ready", action="append", type=pair, default=[], metavar="NAME=HOST:PORT|file:PATH")
    ap.add_argument("--settle", type=float, default=1.0, help="seconds to wait after a server is ready")
    ap.add_argument("--case", action="append", default=[], metavar="LABEL: ARGS")
    ap.add_argument("--suite", action="append", default=[], help="file of cases")
    ap.add_argument("--only", default="", help="run only the cases whose label contains this")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--base", default="")
    ap.add_argument("--metrics", default="", help="comma separated; default depends on the workload")
    ap.add_argument("--work", default="", help="directory for {dir} (default: a temporary directory)")
    ap.add_argument("--timeout", type=float, default=180)
    ap.add_argument("--max-other", type=float, default=9e9)
    ap.add_argument("--retries", type=int, default=1)
    ap.add_argument("--wait-quiet", type=float, default=0, help="before a run wait up to so many seconds until other "
                    "processes use fewer cores than --max-other")
    ap.add_argument("--warm-memory", type=int, default=0, metavar="MB", help="keep so much free memory in the machine")
    ap.add_argument("--out", default="", help="append every line here")
    a = ap.parse_args()

    if a.load:
        results, names = {}, []
        for n, f in enumerate(a.load):
            with open(f) as fh:
                for s in fh:
                    l = json.loads(s)
                    if l["other_cpu"] > a.quiet:
                        continue
                    if l["name"] not in names:
                        names.append(l["name"])
                    results.setdefault(l["case"], {}).setdefault(l["name"], {})[(n, l["round"])] = l
        table(results, names, a.base or names[0], [m for m in a.metrics.split(",") if m])
        return
    if not a.peer:
        ap.error("--peer or --load is needed")
    names = [n for n, _ in a.peer]
    base = a.base or names[0]
    if base not in names:
        ap.error("no peer " + base)
    servers, ready = dict(a.server), dict(a.ready)
    cases = list(a.case)
    for f in a.suite:
        with open(f) as fh:
            cases += [s.strip() for s in fh if s.strip() and not s.startswith("#")]
    cases = [tuple(x.strip() for x in c.partition(":")[::2]) for c in cases if a.only in c.partition(":")[0]] or [("", "")]
    work = a.work or tempfile.mkdtemp(prefix="bench")
    os.makedirs(work, exist_ok=True)
    results = {}
    sink = open(a.out, "a") if a.out else None
    ended = 0
    for s in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(s) != signal.SIG_IGN:
            signal.signal(s, interrupted)

    def one(rnd, name, command, label, args, pids):
        best = None
        for attempt in range(a.retries + 1):
            d = os.path.join(work, f"{name}-{os.getpid()}")
            if a.wait_quiet:
                wait_quiet(a.max_other, a.wait_quiet, pids)
            full = command.replace("{args}", args).replace("{dir}", d).replace("{pids}", ",".join(map(str, pids)))
            warm_memory(a.warm_memory)
            try:
                lines = run(full, a.timeout, pids)
                tell_full(work, label)
            finally:
                shutil.rmtree(d, ignore_errors=True)
            if lines and (best is None or lines[0]["other_cpu"] < best[0]["other_cpu"]):
                best = lines
            if lines and lines[0]["other_cpu"] <= a.max_other:
                break
        for l in best or []:
            key = label or " ".join(f"{k}={l[k]}" for k in IDENTITY if k in l)
            results.setdefault(key, {}).setdefault(name, {})[rnd] = l
            if sink:
                sink.write(json.dumps({"round": rnd, "name": name, "case": key, **l}) + "\n")
                sink.flush()
            print(f"round {rnd} {name:12s} {key}: " + " ".join(
                f"{m}={fmt(l[m])}" for m in ("msgs_per_s", "p50_us", "p99_us", "open_ms", "start_ms", "mb_per_s", "other_cpu")
                if isinstance(l.get(m), (int, float))), file=sys.stderr)

    try:
        for rnd in range(a.rounds):
            order = a.peer if rnd % 2 == 0 else a.peer[::-1]
            plain = [p for p in order if p[0] not in servers]
            for label, args in cases:
                for name, command in plain:
                    one(rnd, name, command, label, args, [])
            for name, command in order:
                if name not in servers:
                    continue
                d = os.path.join(work, f"{name}-server-{os.getpid()}")
                at = ready.get(name, "").replace("{dir}", d)
                if at and reachable(at):
                    sys.exit(f"{at} answers before the server of {name} was started: another port is needed")
                srv = subprocess.Popen(servers[name].replace("{dir}", d), shell=True, process_group=0, stdout=sys.stderr)
                try:
                    end = time.time() + 120
                    while at and time.time() < end and srv.poll() is None:
                        if reachable(at):
                            break
                        time.sleep(0.05)
                    if srv.poll() is not None:
                        print(f"  server of {name} ended", file=sys.stderr)
                        continue
                    time.sleep(a.settle)
                    for label, args in cases:
                        one(rnd, name, command, label, args, descendants(srv.pid))
                finally:
                    stop(srv)
                    shutil.rmtree(d, ignore_errors=True)
    except KeyboardInterrupt:
        ended = 130
    finally:
        if not a.work:
            shutil.rmtree(work, ignore_errors=True)
    print(f"\nratio: more than 1 is better than {base}; median over rounds\n")
    table(results, names, base, [m for m in a.metrics.split(",") if m])
    sys.exit(ended)


if __name__ == "__main__":
    main()
