#!/usr/bin/env python3
"""Prints the table of docs/PERFORMANCE.md: each row with its target, the ratio that was measured, and pass or short.

  table.py [--rounds 5] [--seconds 3] [--only TEXT] [--work DIR] [--out raw.jsonl]     measure, then print
  table.py --kind store|long|wire|node|pair|lag …                                      one part of it; any number of times
  table.py --load raw.jsonl                                                            print what was measured before

The parts: puts, gets and queries in process; the long ones of these (a minute, 5 GB, 10,000 topics); over the wire; the start and
the memory of a node; a replicated pair; how soon a replica is attached, and how far it lags. Needs what README.md builds in this
folder: actormq, store/java, store/go-peers, broker/go. Runs in this folder. Peers: stock (RocketMQ 4.9.7 as installed), tuned
(warmMapedFileEnable, ParallelGC), nats (embedded JetStream) and raw (a loop without a store). Each row is measured by compare.py:
the peers alternate, and a ratio is the median over the rounds of the ratio within a round; more than 1 is better than the peer. A
peer called limit is a figure that is to be met: at most that. One called row:LABEL is our own figure of that row in the same
round. The last column has, with --bare, the same ratio of a program without a store or a broker in it, that does the least anything
in Go can do for the workload: what that one misses a broker or store of this kind can hardly reach on that machine. Ports 21876, 21911, 22911, 20911, 21011, 23911,
24911, 29876 and the next ones must be free for all but the store's rows.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

STORE = {
    "actormq": "./actormq bench store --dir {dir} --seconds {s} --warmup {w} {args}",
    "stock": "store/java/run.sh --dir {dir} --seconds {s} --warmup {w} {args}",
    "tuned": "JVM_OPTS='-Xms2g -Xmx2g -XX:+UseParallelGC -XX:+AlwaysPreTouch -XX:MaxDirectMemorySize=4g' "
             "store/java/run.sh --dir {dir} --seconds {s} --warmup {w} --opt warmMapedFileEnable=true {args}",
    "raw": "store/go-peers/gopeers -peer raw -dir {dir} -seconds {s} {args} -workload mmap-crc -state cold",
    "nats": "store/go-peers/gopeers -dir {dir} -seconds {s} {args}",
    "bare": "store/go-peers/gopeers -peer bare -dir {dir} -seconds {s} -warmup {w} {args}",
}
WIRE = {
    "actormq": "broker/go/brokerbench -addr 127.0.0.1:21911 -peer actormq -pids {pids} -seconds {s} -warmup {w} {args}",
    "stock": "broker/go/brokerbench -addr 127.0.0.1:20911 -pids {pids} -seconds {s} -warmup {w} {args}",
    "bare": "broker/go/brokerbench -addr 127.0.0.1:23911 -peer bare -pids {pids} -seconds {s} -warmup {w} {args}",
}
LAG = {"actormq": WIRE["actormq"] + " -slave 127.0.0.1:22911", "stock": WIRE["stock"] + " -slave 127.0.0.1:21011"}
SERVERS = {
    "actormq": ("exec ./actormq node --store-dir {dir}/store --listen 127.0.0.1:21911 --namesrv-listen 127.0.0.1:21876 "
                "--log-level error", "127.0.0.1:21911"),
    "stock": ("exec broker/rocketmq/start.sh store/java/target/lib {dir} 20911 29876", "127.0.0.1:20911"),
    "bare": ("exec broker/bare.sh {dir} 23911", "127.0.0.1:23911"),
}
PAIR_SERVERS = {
    "actormq": ("exec broker/pair.sh {dir} 21911 22911 21876", "file:{dir}/ready"),
    "stock": ("exec broker/rocketmq/start-pair.sh store/java/target/lib {dir} 20911 21011 29876", "file:{dir}/ready"),
    "bare": ("exec broker/bare.sh {dir} 23911 24911", "127.0.0.1:23911"),
}
LAG_SERVERS = {n: (c.replace("exec ", "MASTER_ROLE=ASYNC_MASTER exec ", 1), ready) for n, (c, ready) in PAIR_SERVERS.items()}
NODE = {
    "actormq": "broker/go/brokerbench -addr 127.0.0.1:21911 -peer actormq {args} -exec '" + SERVERS["actormq"][0] + "'",
    "stock": "broker/go/brokerbench -addr 127.0.0.1:20911 {args} -exec '" + SERVERS["stock"][0] + "'",
}
ATTACH = {"actormq": "ONCE=1 broker/pair.sh {dir} 21911 22911 21876"}
RATE, CPU = "drained_msgs_per_s", "cpu_us_per_msg"

# What is added to the commands of each side for a burst: memory is warmed before. Half a second of warm-up writes as much here as a whole
# one does at the tuned peer: with a whole one the burst would begin further on, behind the segments that are warm.
BURST = {"actormq": "--warmup 0.5 --settle 4 --opt warmMapedFileEnable=true", "stock": "--settle 4", "tuned": "--settle 4", "nats": "", "bare": "-burst"}

# The same bytes in the same time: a body of 1 KB takes 1,240 in the log, its queue and the index. A minute is more than 50 GB: either side
# deletes its oldest files as it goes on, the store all that are dispatched and durable, the loop all but eight.
SUSTAINED = {"actormq": "--opt diskMaxUsedSpaceRatio=10 --opt diskSpaceCleanForciblyRatio=0.1 --opt cleanResourceInterval=1000", "raw": "-body 1240 -keep 8"}

# 30,000 folders and files are made behind the first messages of as many queues, for some ten seconds: the row is about what comes then.
TOUCHED = {"actormq": "--settle 20"}

# label, arguments, [(metric, peer, at least)], what is added for each side
PUTS = [(RATE, "stock", 3), (RATE, "tuned", 1.5), ("p999_us", "stock", 1), ("max_us", "tuned", 2)]
STORE_ROWS = [
    ("put 128 B, 1 caller", "--workload put --threads 1 --body 128", PUTS),
    ("put 128 B, 4 callers", "--workload put --threads 4 --body 128", PUTS),
    ("put 128 B, 16 callers", "--workload put --threads 16 --body 128", PUTS),
    ("put 128 B, 256 in flight", "--workload put --mode async --threads 1 --window 256 --body 128", [(RATE, "stock", 3), (RATE, "tuned", 1.5)]),
    ("put 1 KB, a burst, 4 callers", "--workload put --threads 4 --body 1024 --warmup 1 --seconds 10 --count 1000000",
     [(RATE, "stock", 2.5), (RATE, "tuned", 1.2), ("max_us", "tuned", 2)], BURST),
    ("put 4 KB, a burst, 4 callers", "--workload put --threads 4 --body 4096 --warmup 1 --seconds 10 --count 350000",
     [(RATE, "stock", 1.5), (RATE, "tuned", 1.2), (RATE, "nats", 1), ("max_us", "tuned", 2)], BURST),
    ("put, sync flush, 1 outstanding", "--workload put-sync --outstanding 1", [(RATE, "stock", 1.1)]),
    ("put, sync flush, 16 outstanding", "--workload put-sync --outstanding 16", [(RATE, "stock", 2.5), ("p99_us", "stock", 2)]),
    ("put, sync flush, 64 outstanding", "--workload put-sync --outstanding 64", [(RATE, "stock", 2.5), ("p99_us", "stock", 2)]),
    ("put, sync flush, 256 outstanding", "--workload put-sync --outstanding 256", [(RATE, "stock", 2.5), ("p99_us", "stock", 2)]),
    ("batches of 32, 128 B", "--workload put-batch --batch 32 --body 128", [(RATE, "stock", 3)]),
    ("batches of 32, 1 KB", "--workload put-batch --batch 32 --body 1024", [(RATE, "stock", 2)]),
    ("get 32, 128 B, copied out", "--workload get --body 128 --count 1000000", [("msgs_per_s", "stock", 1.5)]),
    ("get 32, 1 KB, copied out", "--workload get --body 1024 --count 500000", [("msgs_per_s", "stock", 1.5)]),
    ("get 32, 4 KB, copied out", "--workload get --body 4096 --count 200000", [("msgs_per_s", "stock", 1)]),
    ("get 32, 1 KB, not copied", "--workload get --body 1024 --count 500000 --touch none", [("msgs_per_s", "stock", 3)]),
    ("put to readable, 1,000/s", "--workload tail --rate 1000", [("p50_us", "limit", 30), ("p50_us", "stock", 10), ("p50_us", "nats", 1)]),
    ("put to readable, 20,000/s", "--workload tail --rate 20000", [("p50_us", "limit", 100), ("p50_us", "stock", 5), ("p50_us", "nats", 1)]),
    ("index query", "--workload index-query --count 300000", [("msgs_per_s", "stock", 2)]),
    ("time search", "--workload time-search --count 300000", [("msgs_per_s", "stock", 2)]),
    ("1 topic", "--workload put-topics --topics 1 --body 128", [(RATE, "stock", 1)]),
    ("1,000 topics", "--workload put-topics --topics 1000 --body 128", [(RATE, "stock", 1), (RATE, "row:1 topic", 0.9)]),
    ("open 1 GB after a clean stop", "--workload recover --exit clean --mb 1000", [("open_ms", "stock", 3), ("open_ms", "limit", 50)]),
    ("open 1 GB after a kill", "--workload recover --exit crash --mb 1000", [("open_ms", "stock", 3)]),
]
LONG_ROWS = [
    ("put 1 KB for a minute", "--workload put --threads 4 --body 1024 --seconds 60", [("msgs_per_s", "raw", 0.95)], SUSTAINED),
    ("10,000 topics", "--workload put-topics --topics 10000 --body 128", [(RATE, "row:1 topic", 0.9)], TOUCHED),
    ("open 5 GB after a clean stop", "--workload recover --exit clean --mb 5000", [("open_ms", "stock", 3), ("open_ms", "limit", 50)]),
    ("open 5 GB after a kill", "--workload recover --exit crash --mb 5000", [("open_ms", "stock", 3)]),
]
WIRE_ROWS = [
    ("warm", "-workload send -conns 4 -inflight 64", []),
    ("send, one at a time", "-workload send -conns 1 -inflight 1 -body 1024", [("p50_us", "stock", 1 / 0.6)]),
    ("send 4 x 64, 128 B", "-workload send -conns 4 -inflight 64 -body 128", [(RATE, "stock", 3), (CPU, "stock", 3), ("p99_us", "stock", 4)]),
    ("send 4 x 64, 1 KB", "-workload send -conns 4 -inflight 64 -body 1024", [(RATE, "stock", 3), (CPU, "stock", 3), ("p99_us", "stock", 4)]),
    ("send 4 x 64, 4 KB", "-workload send -conns 4 -inflight 64 -body 4096", [(RATE, "stock", 3), (CPU, "stock", 3), ("p99_us", "stock", 4)]),
    ("send 64 x 4, 1 KB", "-workload send -conns 64 -inflight 4 -body 1024", [(RATE, "stock", 3), (CPU, "stock", 3), ("p99_us", "stock", 4)]),
    ("one-way 1 KB", "-workload oneway -conns 1 -body 1024", [("msgs_per_s", "stock", 2)]),
    ("batches of 32 over the wire, 1 KB", "-workload batch -conns 2 -inflight 4 -body 1024", [(RATE, "stock", 2)]),
    ("pull of a backlog, 1 KB", "-workload pull -conns 2 -queues 4 -body 1024 -count 300000", [("msgs_per_s", "stock", 1.5), (CPU, "stock", 2)]),
    ("send to consumer, 1,000/s", "-workload e2e -rate 1000", [("p50_us", "stock", 6), ("p999_us", "stock", 3)]),
    ("send to consumer, 10,000/s", "-workload e2e -rate 10000", [("p50_us", "stock", 6), ("p999_us", "stock", 3)]),
    ("1,000 parked pulls", "-workload parked -conns 100 -inflight 10 -queues 16 -seconds 10 -warmup 2", [("idle_cpu", "limit", 0.01), ("idle_cpu", "stock", 1)]),
]
NODE_ROWS = [
    ("start and memory of a node", "-workload coldstart -body 128 -idle 5 -count 1000000",
     [("start_ms", "limit", 150), ("rss_anon_mb", "limit", 40), ("rss_anon_after_mb", "limit", 80), ("start_ms", "stock", 1), ("rss_anon_after_mb", "stock", 1)]),
]
REPLICATED = [(RATE, "stock", 2.5), ("p99_us", "stock", 3), (CPU, "stock", 3)]
PAIR_ROWS = [
    ("warm", "-workload send -conns 4 -inflight 64", []),
    ("replicated, one at a time", "-workload send -conns 1 -inflight 1 -body 1024", [(RATE, "stock", 1.5), ("p99_us", "stock", 3), (CPU, "stock", 3)]),
    ("replicated, 16 outstanding", "-workload send -conns 4 -inflight 4 -body 1024", REPLICATED),
    ("replicated, 64 outstanding", "-workload send -conns 4 -inflight 16 -body 1024", REPLICATED),
    ("replicated, 256 outstanding", "-workload send -conns 4 -inflight 64 -body 1024", REPLICATED),
    ("replicated, batches of 32", "-workload batch -conns 2 -inflight 4 -batch 32 -body 1024", REPLICATED),
]
ATTACH_ROWS = [("a replica is attached", "", [("attach_ms", "limit", 100)])]
LAG_ROWS = [
    ("warm", "-workload send -conns 4 -inflight 64", []),
    ("lag after 5 s of load", "-workload lag -conns 4 -inflight 64 -seconds 5", [("caught_up_ms", "limit", 100), ("caught_up_ms", "stock", 1)]),
]

# The workloads that the bare loop and the bare server know.
BARE = ("put", "put-batch", "put-topics", "put-sync", "get", "index-query", "recover", "send", "oneway", "batch")

# What belongs to a part: rows, the commands of the peers, their servers.
PARTS = {
    "store": [(STORE_ROWS, STORE, None)],
    "long": [(LONG_ROWS, STORE, None)],
    "wire": [(WIRE_ROWS, WIRE, SERVERS)],
    "node": [(NODE_ROWS, NODE, None)],
    "pair": [(PAIR_ROWS, WIRE, PAIR_SERVERS)],
    "lag": [(ATTACH_ROWS, ATTACH, None), (LAG_ROWS, LAG, LAG_SERVERS)],
}


def short_form(v):
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(v) >= 10 * size or unit == "M" and abs(v) >= size:
            return f"{v / size:.3g}{unit}"
    return f"{v:.4g}"


HIGHER = {"msgs_per_s", "drained_msgs_per_s"}


def kind_of(row, bare):
    """Rows that are measured in one go: with the same peers, and the same additions."""
    _, args, targets, *extra = row
    names = {p for _, p, _ in targets if p != "limit" and not p.startswith("row:")}
    if bare and "workload" in args and args.split("workload ")[1].split()[0] in BARE:
        names.add("bare")
    return tuple(sorted(names)), tuple(sorted((extra or [{}])[0].items()))


def measure(a, rows, peers, servers, raw):
    rows = [r for r in rows if a.only in r[0] or r[0] == "warm"]
    warm = [r for r in rows if r[0] == "warm"]
    for names, extra in sorted({kind_of(r, a.bare) for r in rows if r not in warm}):
        mine = warm + [r for r in rows if r not in warm and kind_of(r, a.bare) == (names, extra)]
        cmd = ["./compare.py", "--rounds", str(a.rounds), "--out", raw, "--base", "actormq", "--timeout", "600"]
        if a.work:
            cmd += ["--work", a.work]
        if a.warm_memory:
            cmd += ["--warm-memory", str(a.warm_memory)]
        for n in ["actormq", *names]:
            command = peers[n].replace("{s}", str(a.seconds)).replace("{w}", str(a.warmup))
            cmd += ["--peer", f"{n}={command} {dict(extra).get(n, '')}"]
            if servers:
                cmd += ["--server", f"{n}={servers[n][0]}", "--ready", f"{n}={servers[n][1]}"]
        for r in mine:
            cmd += ["--case", f"{r[0]}: {r[1]}"]
        compare(cmd)


def compare(cmd):
    """Runs compare.py. It is given the time to stop its servers; on Ctrl-C it has got the signal too."""
    proc = subprocess.Popen(cmd, stdout=subprocess.DEVNULL)
    try:
        status = proc.wait()
    except BaseException:
        proc.terminate()
        proc.wait()
        raise
    if status != 0:
        raise subprocess.CalledProcessError(status, cmd)


def interrupted(*_):
    raise KeyboardInterrupt


def judge(metric, peer, ours, theirs):
    """The ratios of the rounds, more than 1 is better, and what the peer had."""
    mid = lambda lines: statistics.median(l[metric] for l in lines.values() if metric in l)
    q = [ours[r][metric] / theirs[r][metric] if metric in HIGHER else theirs[r][metric] / ours[r][metric]
         for r in ours if r in theirs and ours[r].get(metric) and theirs[r].get(metric)]
    return q, mid(ours) if q else 0, f"{peer} {short_form(mid(theirs))}" if q else ""


def show(raw):
    got = {}
    with open(raw) as f:
        for s in f:
            l = json.loads(s)
            got.setdefault(l["case"], {}).setdefault(l["name"], {})[l["round"]] = l
    print("| row | figure | actormq | peer | ratio (min..max) | target | | bare |\n|---|---|---|---|---|---|---|---|")
    short = out = 0
    for label, _, targets, *_ in [r for part in PARTS.values() for rows, *_ in part for r in rows]:
        have = got.get(label, {})
        ours = have.get("actormq", {})
        for metric, peer, least in targets:
            if peer == "limit":
                theirs, least = {r: {metric: least} for r in ours}, 1
            elif peer.startswith("row:"):
                theirs = got.get(peer[4:], {}).get("actormq", {})
            else:
                theirs = have.get(peer, {})
            q, figure, other = judge(metric, peer, ours, theirs)
            if not q:
                continue
            m = statistics.median(q)
            short += m < least
            b = judge(metric, peer, have.get("bare", {}), theirs)[0]
            if b and m < least:
                out += statistics.median(b) < least
            print(f"| {label} | {metric} | {short_form(figure)} | {other} | {m:.2f} ({min(q):.2f}..{max(q):.2f}) "
                  f"| {least:.2f} | {'pass' if m >= least else 'short'} | {f'{statistics.median(b):.2f}' if b else ''} |")
    print(f"\n{short} short" + (f", {out} of them missed by the bare loop too" if out else ""))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--seconds", type=float, default=3)
    ap.add_argument("--warmup", type=float, default=3)
    ap.add_argument("--only", default="", help="rows whose label contains this")
    ap.add_argument("--kind", choices=PARTS, action="append", help="a part of the table (default: all)")
    ap.add_argument("--bare", action="store_true", help="measure the bare loop and the bare server too")
    ap.add_argument("--warm-memory", type=int, default=0, metavar="MB", help="as of compare.py: so much free memory stays in the machine")
    ap.add_argument("--work", default="", help="folder for the stores (default: a temporary one)")
    ap.add_argument("--out", default="", help="file for the raw lines (default: a temporary one)")
    ap.add_argument("--load", default="", help="print the table of such a file; nothing is measured")
    a = ap.parse_args()
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    raw = a.load or a.out or tempfile.mktemp(suffix=".jsonl", prefix="bench")
    if not a.load:
        print(f"raw lines: {raw}", file=sys.stderr)
        signal.signal(signal.SIGTERM, interrupted)
        try:
            for kind in a.kind or PARTS:
                for rows, peers, servers in PARTS[kind]:
                    measure(a, rows, peers, servers, raw)
        except KeyboardInterrupt:
            sys.exit(130)
    show(raw)


if __name__ == "__main__":
    main()
