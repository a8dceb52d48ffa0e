#!/usr/bin/env python3
"""Measures what docs/results.md claims of the method, on the engines in the cache, and prints it as Markdown.

Every figure is the mean over launch groups (processes started anew) with its 95% Student's t interval; inside a
group it is the median over passes, each against the baseline that alternated with it step by step. Takes minutes to
hours: run nothing else meanwhile. Usage: bench/figures.py FIGURE... (bench/figures.py --help lists them)"""
import argparse
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("OPLEDGER_BINARY", str(ROOT / "build/release/bin/opledger"))
sys.path.insert(0, str(ROOT / "tests/real"))
import sessions  # noqa: E402
from engine import CACHE, ENGINES, SMOLLM2, Engine, decode, prefill, skeleton  # noqa: E402

# Two-sided 95% quantiles of Student's t by degrees of freedom (any table).
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 14: 2.145}
LARGE_ROW = 0.05  # of the pass


def interval(values):
    """Mean and half-width of its 95% interval; None where one value says nothing about spread."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, None
    return mean, T95.get(len(values) - 1, 1.96) * statistics.stdev(values) / math.sqrt(len(values))


def show(values, digits=4):
    mean, half = interval(values)
    return f"{mean:.{digits}f}" + ("" if half is None else f" ± {half:.{digits}f}")


def show_pooled(values, digits=3):
    """Trimmed mean of all steps of all launches, and its 95% half-width by Tukey and McLaughlin (winsorised)."""
    ordered, n = sorted(values), len(values)
    cut = n // 5 if n > 4 else 0
    winsorised = [ordered[cut]] * cut + ordered[cut:n - cut] + [ordered[n - cut - 1]] * cut
    half = T95.get(n - 2 * cut - 1, 1.96) * statistics.stdev(winsorised) / ((1 - 2 * cut / n) * math.sqrt(n))
    return f"{trimmed(values):.{digits}f} ± {half:.{digits}f}"


def progress(text):
    """A campaign that is stopped early leaves its groups' figures in the log."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)


def models(names):
    folder = CACHE / "models"
    known = {"q4_1": lambda: SMOLLM2, "q8_0": lambda: requantised("q8_0"), "q4_0": lambda: requantised("q4_0"),
             "qwen3moe": lambda: skeleton("qwen3moe", 4, 64, folder),
             "qwen35moe": lambda: skeleton("qwen35moe", 4, 64, folder)}
    return {name: known[name]() for name in names}


def first_model(options):
    return next(iter(models(options.models[:1]).values()))


def requantised(kind):
    """SmolLM2 written again in another type by llama.cpp's own llama_model_quantize."""
    out = CACHE / "models" / f"SmolLM2-135M-Instruct.{kind}.gguf"
    if not out.exists():
        subprocess.run([str(ROOT / "bench/requantise"), str(SMOLLM2), str(out), kind], check=True)
    return out


class Campaign:
    """One engine, model and workload: arms measured in random order over launch groups."""

    flags = {}  # of every engine: --flags

    def __init__(self, name, model, workload, context, groups, rounds, passes=1, together=None):
        self.name, self.model, self.workload, self.context = name, model, workload, context
        self.together = workload["kind"] == "decode" if together is None else together
        self.groups, self.rounds, self.passes = groups, rounds, passes
        self.tokens = len(workload["tokens"]) if workload["kind"] == "decode" else 1

    def run(self, make_arms, **engine_options):
        """Yields one Group per launch. `make_arms(units)` gives the arms; baseline and price are added. All arms take
        turns step by step."""
        for number in range(self.groups):
            with Engine(self.name, **engine_options) as engine:
                engine.load(self.model, context=self.context, **self.flags)
                graph = engine.call("graph", workload=self.workload, probe=True)
                units = list_units(graph)
                arms = [{"id": "baseline", "kind": "baseline"}, {"id": "price", "kind": "price"}] + make_arms(units)
                engine.call("prepare", workload=self.workload["id"], arms=arms)
                group = Group(units, self.tokens, self.measure(engine, [arm["id"] for arm in arms[2:]]))
            progress(f"{self.name} {self.workload['id']} launch {number + 1} of {self.groups}: {group}")
            yield group

    def measure(self, engine, arms):
        """Turns: blocks by arm, each turn with a baseline. The first round has the price too, three passes of it. A
        prefill pass is one step of seconds: there each arm has a turn, and so a baseline, of its own, unless the
        arms are to be compared with each other (`together`)."""
        schedule = []
        for number in range(self.rounds):
            round_arms = arms + (["price"] if number == 0 else [])
            random.shuffle(round_arms)
            shared = [round_arms] if self.together else [[arm] for arm in round_arms]
            for turn in shared:
                turn = ["baseline"] + turn
                random.shuffle(turn)
                schedule.append((turn, max(self.passes, 3) if "price" in turn else self.passes, False))
        blocks = engine.measure(self.workload["id"], ("baseline", 1, False), *schedule)[1:]
        turns = []
        for turn, _, _ in schedule:
            turns.append({block["arm"]: block for block in blocks[:len(turn)]})
            blocks = blocks[len(turn):]
        return turns


def list_units(graph):
    found = []
    for g, part in enumerate(graph["graphs"]):
        for u, unit in enumerate(part["units"]):
            found.append({"unit": [g, u], "calls": graph["calls"].count(g), "category": rough_category(part, unit)})
    return found


def rough_category(part, unit):
    """Enough to tell the large rows apart; the program's rules are finer."""
    for i in unit["nodes"]:
        node = part["nodes"][i]
        if node["view"]:
            continue
        weights = [part["tensors"][-1 - s]["name"] for s in node["src"]
                   if s < 0 and part["tensors"][-1 - s]["kind"] == "weight"]
        weight, op = (weights or [""])[0], node["op"]
        if node["writes"] == "kv":
            return "kv_write"
        if "MUL_MAT_ID" in op or op.startswith("MOE_FUSED"):
            return "moe_experts"
        if op in ("MUL_MAT", "FUSED_UP_GATE") and weight:
            if weight.startswith(("output", "token_embd")):
                return "lm_head"
            return "moe_router" if "ffn_gate_inp.w" in weight else "dense_proj"
        if op in ("FLASH_ATTN_EXT", "MUL_MAT", "SOFT_MAX") and not weight:
            return "attention" if op != "SOFT_MAX" or "ffn_moe" not in node["name"] else "moe_router"
        if "NORM" in op:
            return "norm"
        return op.lower()
    return "view"


def trimmed(values):
    """Mean without the lowest and the highest fifth."""
    ordered = sorted(values)
    cut = len(ordered) // 5 if len(ordered) > 4 else 0
    return statistics.fmean(ordered[cut:len(ordered) - cut])


class Sample:
    """One pass of an arm: its length against the baseline of its turn, its steps (ns), and what a baseline took in
    each of them, as all arms of the turn saw it."""

    def __init__(self, block, i, ratio, baseline_steps):
        self.block, self.i, self.ratio, self.baseline_steps = block, i, ratio, baseline_steps
        self.steps = block["passes"][i]["step_graph_ns"]
        self.baseline_ns = sum(baseline_steps)

    def table(self, key):
        """The block's rows of this pass, one per step; a row has one time per unit."""
        first = self.i * len(self.steps)
        return self.block[key][first:first + len(self.steps)]

    def share(self, step_sums):
        """What part of a baseline pass something is that took so long in each step: one disturbed step counts little."""
        return trimmed([ns / baseline for ns, baseline in zip(step_sums, self.baseline_steps)])


def samples_of(turn, i):
    steps = {arm: block["passes"][i]["step_graph_ns"] for arm, block in turn.items()}
    ratios = {arm: math.exp(trimmed([math.log(x / y) for x, y in zip(mine, steps["baseline"])]))
              for arm, mine in steps.items()}
    count = len(steps["baseline"])
    baseline_steps = [statistics.median(steps[arm][s] / ratios[arm] for arm in turn) for s in range(count)]
    return {arm: Sample(block, i, ratios[arm], baseline_steps) for arm, block in turn.items()}


class Group:
    """Turns of one launch group as figures per arm, in milliseconds per token or pass, all at the speed of the
    group's baselines: the machine drifts by tenths."""

    def __init__(self, units, tokens, turns):
        self.units, self.scale = units, 1e6 * tokens
        self.digests = {tuple(rows) for turn in turns for block in turn.values() for rows in block["digests"]}
        self.baselines = [p["graph_ns"] / self.scale for turn in turns for p in turn["baseline"]["passes"]]
        self.baseline = statistics.median(self.baselines)
        self.samples = {}
        for turn in turns:
            for i in range(len(turn["baseline"]["passes"])):
                for arm, sample in samples_of(turn, i).items():
                    self.samples.setdefault(arm, []).append(sample)
        # The median over units: one preempted interval would multiply a mean.
        self.price = statistics.median(
            statistics.median(ns * len(sample.steps) / unit["calls"] for row in sample.table("unit_ns")
                              for unit, ns in zip(units, row))
            / sample.baseline_ns * self.baseline for sample in self.samples["price"])

    def increment(self, arm):
        return statistics.median((sample.ratio - 1) * self.baseline for sample in self.samples[arm])

    def __str__(self):
        parts = [f"baseline {self.baseline:.3f} ms"]
        for arm in self.samples:
            if arm not in ("baseline", "price"):
                parts.append(f"closes {self.closure():.4f}" if arm == "stamp" else f"{arm} +{self.increment(arm):.3f}")
        return ", ".join(parts)

    def rows(self, arm, key="unit_ns"):
        """Each category's time, price taken off, in every pass of the arm."""
        totals = {}
        for sample in self.samples[arm]:
            table = sample.table(key)
            for category in {unit["category"] for unit in self.units}:
                mine = [u for u, unit in enumerate(self.units)
                        if unit["category"] == category and (key == "unit_ns" or table[0][u] > 0)]
                if not mine:
                    continue
                share = sample.share([sum(row[u] for u in mine) for row in table])
                clocks = self.price * sum(self.units[u]["calls"] for u in mine)
                totals.setdefault(category, []).append(share * self.baseline - clocks)
        return totals

    def row(self, arm, category, key="unit_ns"):
        return statistics.median(self.rows(arm, key)[category])

    def copy_excess(self, arm, category):
        """c - o, each copy against the original of its own turn."""
        return statistics.median(c - o for c, o in zip(self.rows(arm, "copy_ns")[category],
                                                       self.rows("stamp")[category]))

    def disagreement(self, stamped, plain):
        return trimmed(self.disagreements(stamped, plain))

    def disagreements(self, stamped, plain):
        """In every step, what a stamped replay says its copies cost the pass, less what the plain one says: four arms compared,
        the price of the copies' clocks taken off."""
        shares = []
        for turn in zip(*(self.samples[arm] for arm in (stamped, "stamp", plain, "baseline"))):
            shares += [(a - b - c + d) / base for a, b, c, d, base in
                       zip(*(sample.steps for sample in turn), turn[0].baseline_steps)]
        copied = self.samples[stamped][0].table("copy_ns")[0]
        clocks = sum(unit["calls"] for unit, ns in zip(self.units, copied) if ns > 0)
        return [share * self.baseline - self.price * clocks for share in shares]

    def closure(self):
        """What part of a stamped pass its units are, times its length: both share every disturbance."""
        clocks = self.price * sum(unit["calls"] for unit in self.units) / self.baseline
        return statistics.median(
            sum(map(sum, one.table("unit_ns"))) / one.block["passes"][one.i]["graph_ns"] * one.ratio - clocks
            for one in self.samples["stamp"])


def replay(units, arm, kind, category, weights, copies=1):
    chosen = [{"unit": u["unit"], "copies": copies, "weights": weights, "stride": 7} for u in units
              if category in ("all", u["category"])]
    return {"id": arm, "kind": kind, "units": chosen}


def method(options):
    """closes, clocks agree, replay all, brackets: every large row by stamps, copies and stamped copies."""
    closes, clocks = [], []
    for model_name, model in models(options.models).items():
        for workload in options.workloads:
            for name in options.engines:
                is_decode = workload["kind"] == "decode"
                context = len(workload.get("prompt", [])) + len(workload["tokens"]) + 64
                campaign = Campaign(name, model, workload, context, options.groups,
                                    options.rounds if is_decode else max(2, options.rounds // 3))

                def arms(units):
                    made = [{"id": "stamp", "kind": "stamp"}]
                    rows = [c for c in ("dense_proj", "moe_experts", "attention", "lm_head")
                            if any(u["category"] == c for u in units)]
                    for weights in ("same", "sibling"):
                        made.append(replay(units, f"all:{weights}", "replay", "all", weights))
                    for row in rows:
                        made.append(replay(units, f"plain:{row}", "replay", row, "sibling"))
                        for weights in ("sibling", "shadow"):
                            made.append(replay(units, f"{weights}:{row}", "stamped_replay", row, weights))
                    return made

                groups = list(campaign.run(arms))
                label = f"{model_name} {workload['id']} {name}"
                digests = len(set().union(*(g.digests for g in groups)))
                closes.append([label, show([g.baseline for g in groups], 3), show([g.closure() for g in groups]),
                               show([g.increment("all:same") / g.baseline for g in groups]),
                               show([g.increment("all:sibling") / g.baseline for g in groups]), digests])
                clocks += clock_rows(label, groups)
    print("### Closure, and everything replayed once\n")
    table(["model, workload, engine", "baseline ms", "stamps / baseline", "replay all same", "replay all sibling",
           "distinct digests"], closes)
    print("### Two clocks, ms: o in an untouched pass, c its copy; limit: the larger of 5% of o and 0.5% of the pass\n")
    table(["row", "o", "c - o, sibling", "c - o, shadow", "plain increment", "predicted - plain", "limit"], clocks)


def closes(options):
    """Stamps over baselines alone, with as many groups and rounds as their interval needs."""
    rows = []
    for model_name, model in models(options.models).items():
        for workload in options.workloads:
            for name in options.engines:
                context = len(workload.get("prompt", [])) + len(workload["tokens"]) + 64
                campaign = Campaign(name, model, workload, context, options.groups, options.rounds)
                groups = list(campaign.run(lambda units: [{"id": "stamp", "kind": "stamp"}]))
                rows.append([f"{model_name} {workload['id']} {name}", len(groups),
                             show([g.baseline for g in groups], 3), show([g.closure() for g in groups])])
    print("### Closure\n")
    table(["model, workload, engine", "launches", "baseline ms", "stamps / baseline"], rows)


def clocks(options):
    """clocks agree, for the rows named by --rows: c against o, and the plain increment against the stamped one's."""
    rows = []
    model = first_model(options)
    for workload in options.workloads:
        for name in options.engines:
            for row in options.rows:
                context = len(workload.get("prompt", [])) + len(workload["tokens"]) + 64
                campaign = Campaign(name, model, workload, context, options.groups, options.rounds, together=True)
                groups = list(campaign.run(lambda units: [
                    {"id": "stamp", "kind": "stamp"}, replay(units, "copies", "stamped_replay", row, "sibling"),
                    replay(units, "plain", "replay", row, "sibling", options.copies),
                    replay(units, "many", "stamped_replay", row, "sibling", options.copies)][:3 + (options.copies > 1)]))
                rows.append([f"{name} {workload['id']} {row}", *clock_figures(groups, row, options.copies)])
                progress(" | ".join(rows[-1]))
    print("### Two clocks, ms; limit: the larger of 5% of the row and 0.5% of the pass\n")
    table(["row", "pass", "o", "c - o", "plain increment", "predicted - plain",
           "by steps", "limit"], rows)


def clock_figures(groups, row, copies):
    """Per copy. c - o is told by one copy: of several, the later ones find closer what the first one brought."""
    o = [g.row("stamp", row) for g in groups]
    plain = [g.increment("plain") / copies for g in groups]
    stamped = "many" if copies > 1 else "copies"
    apart = [g.disagreement(stamped, "plain") / copies for g in groups]
    by_steps = [one / copies for g in groups for one in g.disagreements(stamped, "plain")]
    limit = max(0.05 * statistics.fmean(o), 0.005 * statistics.fmean(g.baseline for g in groups))
    return [show([g.baseline for g in groups], 3), show(o, 3), show([g.copy_excess("copies", row) for g in groups], 3),
            show(plain, 3), show(apart, 3), show_pooled(by_steps), f"{limit:.3f}"]


def clock_rows(label, groups):
    rows = []
    for arm in sorted(groups[0].samples):
        if not arm.startswith("plain:"):
            continue
        category = arm.split(":")[1]
        stamped = f"sibling:{category}"
        if groups[0].row("stamp", category) < LARGE_ROW * groups[0].baseline:
            continue
        o = [g.row("stamp", category) for g in groups]
        shadow = [g.copy_excess(f"shadow:{category}", category) for g in groups]
        plain = [g.increment(arm) for g in groups]
        limit = max(0.05 * statistics.fmean(o), 0.005 * statistics.fmean(g.baseline for g in groups))
        rows.append([f"{label} {category}", show(o, 3), show([g.copy_excess(stamped, category) for g in groups], 3),
                     show(shadow, 3), show(plain, 3), show([g.disagreement(stamped, arm) for g in groups], 3),
                     f"{limit:.3f}"])
    return rows


def hook(options):
    """The hook with nothing inserted against no hook at all, toggled in one process."""
    rows = []
    for name in options.engines:
        for workload in options.workloads:
            pairs = options.pairs if workload["kind"] == "decode" else max(3, options.pairs // 7)
            ratios = []
            for _ in range(options.groups):
                with Engine(name) as engine:
                    engine.load(first_model(options), context=768, **Campaign.flags)
                    engine.call("graph", workload=workload, probe=False)
                    engine.call("prepare", workload=workload["id"],
                                arms=[{"id": k, "kind": k} for k in ("baseline", "unhooked")])
                    turn = ["baseline", "unhooked"]
                    blocks = engine.measure(workload["id"], ("baseline", 1, False), *[
                        (turn if i % 2 == 0 else turn[::-1], 1, False) for i in range(pairs)])[1:]
                for first, second in zip(blocks[::2], blocks[1::2]):
                    both = {b["arm"]: b["passes"][0]["wall_ns"] for b in (first, second)}
                    ratios.append(math.log(both["baseline"] / both["unhooked"]))
                progress(f"{name} {workload['id']}: {len(ratios)} pairs, {math.exp(statistics.median(ratios)):.4f}")
            ordered = sorted(ratios)
            n = len(ordered)
            spread = 1.96 * math.sqrt(n) / 2  # distribution-free interval of the median: order statistics
            low, high = ordered[max(0, int(n / 2 - spread))], ordered[min(n - 1, int(n / 2 + spread))]
            rows.append([f"{name} {workload['id']}", n, f"{math.exp(statistics.median(ratios)):.4f}",
                         f"{math.exp(low):.4f} to {math.exp(high):.4f}"])
    print("### Hook installed, nothing inserted / no hook\n")
    table(["engine, workload", "pairs", "ratio of wall times", "95% interval of the median"], rows)


def linear(options):
    """a + b k over k = 1, 2, 4 copies of the rows named by --rows."""
    rows = []
    for name in options.engines:
        for workload in options.workloads:
            context = len(workload.get("prompt", [])) + 600
            campaign = Campaign(name, first_model(options), workload, context, options.groups,
                                options.rounds if workload["kind"] == "decode" else 2)
            groups = list(campaign.run(lambda units: [
                replay(units, f"{row} x{k}", "replay", row, "sibling", k) for row in options.rows for k in (1, 2, 4)]))
            for row in options.rows:
                rows.append([f"{name} {workload['id']} {row}", *linear_figures(groups, row)])
    print("### Linear in the number of copies\n")
    table(["row", "per copy x1 ms", "x2", "x4", "a / baseline"], rows)


def linear_figures(groups, row):
    """Cost of a copy among 1, 2 and 4, and the fitted cost of none, over the pass."""
    intercepts = []
    for g in groups:
        ks, costs = (1, 2, 4), [g.increment(f"{row} x{k}") for k in (1, 2, 4)]
        slope = sum((k - 7 / 3) * cost for k, cost in zip(ks, costs)) / sum((k - 7 / 3) ** 2 for k in ks)
        intercepts.append((statistics.fmean(costs) - slope * 7 / 3) / g.baseline)
    return [*(show([g.increment(f"{row} x{k}") / k for g in groups], 3) for k in (1, 2, 4)), show(intercepts)]


def aliases(options):
    """ik's dense products at pp512, copies with and without inputs of their own."""
    ratios = []
    for _ in range(options.pairs):
        cost = {}
        for fault in ("", "no_alias"):
            campaign = Campaign("ik", first_model(options), prefill(512), 640, 1, 2)
            group = next(campaign.run(lambda units: [replay(units, "dense", "replay", "dense_proj", "same")],
                                      fault=fault))
            cost[fault] = group.increment("dense")
        ratios.append(cost["no_alias"] / cost[""])
        progress(f"pair {len(ratios)} of {options.pairs}: {ratios[-1]:.4f}")
    print("### ik dense_proj at pp512: copies without inputs of their own / with\n")
    table(["pairs", "ratio", "below 1"], [[len(ratios), show(ratios), sum(r < 1 for r in ratios)]])


def repeat(options):
    """Ledgers made again and again: rows called real, and with which sign."""
    sessions.repeat(options, os.environ["OPLEDGER_BINARY"], first_model(options), CACHE / "bench/repeat", table)


def llama_bench(options):
    """The adapter's baseline passes against llama-bench (--llama-bench) of the same tree and build flags."""
    if options.llama_bench is None:
        raise SystemExit("llama_bench: give --llama-bench the program, built with the flags of the engine `llama`")
    sessions.beside_llama_bench(options, Engine, options.workloads, first_model(options), T95, table)


def parse_workload(text):
    if text.startswith("pp"):
        return prefill(int(text[2:]))
    count, depth = text[2:].split("@")
    return decode(int(count), int(depth))


def main():
    figures = {"method": method, "closes": closes, "clocks": clocks, "hook": hook, "linear": linear,
               "aliases": aliases, "repeat": repeat, "llama_bench": llama_bench}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="+", choices=figures,
                        help="; ".join(f"{name}: {run.__doc__.splitlines()[0]}" for name, run in figures.items()))
    parser.add_argument("--models", nargs="+", default=["q4_1"],
                        choices=["q4_1", "q8_0", "q4_0", "qwen3moe", "qwen35moe"])
    parser.add_argument("--workloads", nargs="+", type=parse_workload, default=[prefill(512), decode(8, 64)],
                        metavar="pp512|tg8@64")
    parser.add_argument("--rows", nargs="+", default=["dense_proj"], metavar="CATEGORY", help="of clocks and linear")
    parser.add_argument("--copies", type=int, default=1, help="of the compared increments (clocks)")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--flags", nargs="+", default=[], metavar="NAME=VALUE", help="of the engines")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--groups", type=int, default=3, help="launches of each engine")
    parser.add_argument("--rounds", type=int, default=9, help="of every arm per launch (prefill: a third)")
    parser.add_argument("--pairs", type=int, default=140, help="per launch (hook: prefill a seventh; aliases: in all)")
    parser.add_argument("--runs", type=int, default=5, help="ledgers of each pair (repeat)")
    parser.add_argument("--budget", default="180s", help="of each ledger (repeat)")
    parser.add_argument("--prompt", type=int, default=512, help="prefill tokens (repeat)")
    parser.add_argument("--llama-bench", metavar="PROGRAM")
    options = parser.parse_args()
    random.seed(1)
    Campaign.flags = dict(flag.split("=", 1) for flag in options.flags) | {"threads": options.threads}
    for name in options.figures:
        figures[name](options)


if __name__ == "__main__":
    main()
