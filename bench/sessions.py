"""Figures of whole sessions and whole passes: do five ledgers agree, and does the adapter run at llama-bench's speed?"""
import json
import math
import statistics
import subprocess
import sys
import tempfile


def repeat(options, opledger, model, folder, show_table):
    """Ledgers made again and again: rows called real, and with which sign. Their records stay in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = [("llama", "ik", ["-p", str(options.prompt), "-n", "16", "-d", "64"]),
             ("llama@fa=0", "llama@fa=1", ["-n", "16", "-d", "1024"])]
    rows = []
    for a, b, workload in pairs:
        signs = {}
        for run in range(options.runs):
            record = folder / f"{a}-{b}-{run}.json.gz"
            for name, row in rows_of(opledger, [a, b, "-m", str(model), *workload, "--budget", options.budget,
                                                "--record", str(record)]):
                sign = 0 if not row["real"] else (1 if row["gap"]["ms"] > 0 else -1)
                signs.setdefault((name, row["scope"]), []).append(sign)
        for (name, scope), seen in signs.items():
            if any(seen):
                rows.append([f"{a} {b} {name}", scope, seen.count(1), seen.count(-1), seen.count(0),
                             "OPPOSITE" if 1 in seen and -1 in seen else "agree"])
    print(f"### {options.runs} ledgers of {options.budget} each: how often a row was called real\n")
    show_table(["pair, workload", "row", "slower", "faster", "not real", "signs"], rows)


def rows_of(opledger, arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = subprocess.run([opledger, "compare", *arguments, "--json", out.name], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 4):
            raise SystemExit(f"compare gave {done.returncode}: {done.stderr}")
        ledger = json.load(open(out.name, encoding="utf-8"))
    for workload in ledger["workloads"]:
        failed = ", ".join(check["name"] for check in workload["checks"] if check["status"] == "failed")
        print(f"{' '.join(arguments[:2])} {workload['name']}: failed checks: {failed or 'none'}", file=sys.stderr, flush=True)
    return [(workload["name"], row) for workload in ledger["workloads"] for row in workload["rows"]]


def beside_llama_bench(options, make_engine, workloads, model, t95, show_table):
    """The adapter's baseline passes against llama-bench of the same tree and build flags: launches alternate until the
    interval of the ratio is narrower than 2% to either side, at most 15 of each."""
    rows = []
    for workload in workloads:
        ratios = []
        half = math.inf
        while len(ratios) < 15 and (len(ratios) < 3 or half > 0.02):
            first, second = (adapter_ns, llama_bench_ns) if len(ratios) % 2 == 0 else (llama_bench_ns, adapter_ns)
            took = {run.__name__: run(options, make_engine, workload, model) for run in (first, second)}
            ratios.append(math.log(took["adapter_ns"] / took["llama_bench_ns"]))
            if len(ratios) > 1:
                half = t95.get(len(ratios) - 1, 1.96) * statistics.stdev(ratios) / math.sqrt(len(ratios))
        mean = statistics.fmean(ratios)
        rows.append([workload["id"], len(ratios), f"{math.exp(mean):.4f}",
                     f"{math.exp(mean - half):.4f} to {math.exp(mean + half):.4f}"])
    print("### Wall time of the adapter / of llama-bench\n")
    show_table(["workload", "launches of each", "ratio", "95% interval"], rows)


def adapter_ns(_options, make_engine, workload, model):
    """Median nanoseconds of a baseline pass in one launch."""
    with make_engine("llama") as engine:
        engine.load(model, context=len(workload.get("prompt", [])) + len(workload["tokens"]) + 64)
        engine.call("graph", workload=workload, probe=False)
        engine.call("prepare", workload=workload["id"], arms=[{"id": "baseline", "kind": "baseline"}])
        blocks = engine.measure(workload["id"], ("baseline", 1, False), ("baseline", 5, False))
    return statistics.median(one["wall_ns"] for one in blocks[1]["passes"])


def llama_bench_ns(options, _make_engine, workload, model):
    """Median nanoseconds of the same work in one launch of llama-bench (which warms up by itself)."""
    is_decode = workload["kind"] == "decode"
    count = str(len(workload["tokens"]))
    asked = ["-p", "0", "-n", count, "-d", str(len(workload["prompt"]))] if is_decode else ["-p", count, "-n", "0"]
    done = subprocess.run([options.llama_bench, "-m", str(model), *asked, "-t", "2", "-r", "5", "-fa", "1", "-o", "json"],
                          capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    return statistics.median(json.loads(done.stdout)[0]["samples_ns"])
