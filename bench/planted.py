#!/usr/bin/env python3
"""Plants spins that count themselves in five kernels of both engines and looks whether the ledger finds them.

A copy of each engine's tree gets one call per kernel (bench/planted/spin.h); nothing else knows of it, the adapter
neither. The ledger of the clean build against the planted one must then show, in the planted row alone, spins per
pass times nanoseconds per spin. Usage: bench/planted.py [STEP...]
  build    copies the trees, builds both variants with the same flags, adds the engines NAME-clean and NAME-spin
  fires    shows that every spin is executed: spins per pass and nanoseconds per spin
  measure  the ledgers: minutes per kernel; run nothing else meanwhile
Without a STEP all three, in this order. A spin is found when its row moved by the truth within 10% and no other row
moved; unresolved when the row's interval is too wide to deny it: give more --budget or --share. Exit code 1 unless
every spin fired and was found."""
import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from figures import CACHE, ROOT, Engine, models, parse_workload, table

OPLEDGER = os.environ["OPLEDGER_BINARY"]
SPIN_HEADER = ROOT / "bench/planted/spin.h"
WORK = CACHE / "bench/planted"
LIMIT = 0.10  # of the truth, for the planted row's gap
ROWS = {"dense": "dense_proj", "attention": "attention", "norm": "norm", "kv_write": "kv_write",
        "lm_head": "lm_head"}
CONTROL = "none"  # the planted build without a spin: what the two builds differ by on their own


@dataclasses.dataclass(frozen=True)
class Site:
    """A function that every executed node of a kernel passes once, and what to put at its beginning."""
    file: str
    function: str
    kernel: str  # an expression of the function's parameters
    thread: str = "params->ith"


def weight_of(tensor):
    return f"opledger_spin_of_weight({tensor}->src[0]->name)"


@dataclasses.dataclass(frozen=True)
class Plant:
    cmake: tuple
    sites: tuple


CPU = "ggml/src/ggml-cpu"
PLANTS = {
    # The flags of tools/get_engines. A product runs in one of two functions: weights that were repacked have their
    # own. A norm runs alone or together with the product after it.
    "llama": Plant(("-DGGML_NATIVE=OFF", "-DGGML_AVX2=ON", "-DGGML_FMA=ON", "-DGGML_F16C=ON", "-DGGML_BMI2=ON"), (
        Site(f"{CPU}/ggml-cpu.c", "ggml_compute_forward_mul_mat", weight_of("dst")),
        Site(f"{CPU}/repack.cpp", "forward_mul_mat", weight_of("op")),
        Site(f"{CPU}/ops.cpp", "ggml_compute_forward_flash_attn_ext", '"attention"'),
        Site(f"{CPU}/ops.cpp", "ggml_compute_forward_rms_norm", '"norm"'),
        Site(f"{CPU}/ops.cpp", "ggml_compute_forward_rms_norm_mul_fused", '"norm"'),
        Site(f"{CPU}/ops.cpp", "ggml_compute_forward_set_rows", '"kv_write"'))),
    # Products that share an input run as one, from the function of the first: that is one spin per run. In a dense
    # model's graph nothing but the KV cache is written by CPY.
    "ik": Plant(("-DGGML_NATIVE=ON", "-DGGML_IQK_FA_ALL_QUANTS=OFF"), (
        Site("ggml/src/ggml.c", "ggml_compute_forward_mul_mat", weight_of("dst")),
        Site("ggml/src/ggml.c", "ggml_compute_forward_flash_attn_ext", '"attention"'),
        Site("ggml/src/ggml.c", "ggml_compute_forward_rms_norm", '"norm"'),
        Site("ggml/src/ggml.c", "ggml_compute_forward_fused_rms_norm", '"norm"'),
        Site("ggml/src/iqk/iqk_cpu_ops.cpp", "iqk_rms_rms_add", '"norm"', "ith"),
        Site("ggml/src/ggml.c", "ggml_compute_forward_cpy", '"kv_write"'))),
}
# What `opledger engine add` builds with, and libraries that find each other in whatever folder they lie.
LEAN = ("-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
        "-DLLAMA_BUILD_TOOLS=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_BUILD_UI=OFF",
        "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF", "-DGGML_CCACHE=OFF", "-DCMAKE_SKIP_BUILD_RPATH=ON")


class Problem(Exception):
    """One line: what, where, next step."""


def entry_of(name):
    file = CACHE / "engines" / name / "engine.json"
    if not file.exists():
        raise Problem(f"there is no engine {name}: run {'bench/planted.py build' if '-' in name else './quickstart'}")
    return json.loads(file.read_text())


def logged(command, log):
    """Runs a command with its output in a log; gives the exit code."""
    with open(log, "ab") as out:
        return subprocess.run([str(word) for word in command], stdout=out, stderr=out, check=False).returncode


# build ---------------------------------------------------------------------------------------------------------------

def planted(text, sites):
    """A source file with the header included and one call at the beginning of each site's function."""
    for site in sites:
        definition = re.compile(rf"^[ \t]*[\w \t*]*\b{site.function}\([^;{{}}]*\)(?:\s*override)?\s*\{{", re.MULTILINE)
        found = list(definition.finditer(text))
        if len(found) != 1:
            raise Problem(f"{site.file}: {len(found)} definitions of {site.function}, not 1: PLANTS in "
                          "bench/planted.py does not know this version of the tree")
        end = found[0].end()
        text = f"{text[:end]}\n    opledger_spin({site.kernel}, {site.thread});{text[end:]}"
    first = re.search(r"^#include ", text, re.MULTILINE)
    return f'{text[:first.start()]}#include "opledger_spin.h"\n{text[first.start():]}'


def write_sources(source, tree, plant, is_planted):
    """Writes every file of a site anew, so that the build compiles it again."""
    for file in sorted({site.file for site in plant.sites}):
        text = (source / file).read_text()
        if is_planted:
            text = planted(text, [site for site in plant.sites if site.file == file])
            shutil.copy(SPIN_HEADER, (tree / file).parent / "opledger_spin.h")
        (tree / file).write_text(text)


def build_libraries(folder, plant, variant):
    log = folder / f"{variant}.log"
    log.unlink(missing_ok=True)
    for command in (["cmake", "-S", folder / "tree", "-B", folder / "build", "-G", "Ninja", *LEAN, *plant.cmake],
                    ["cmake", "--build", folder / "build", "--target", "llama"]):
        if logged(command, log) != 0:
            raise Problem(f"the {variant} build of {folder.name} failed: its log is {log}")
    out = folder / variant
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for library in (folder / "build").rglob("*.so*"):
        shutil.copy2(library, out / library.name, follow_symlinks=False)
    return out


def add_engine(name, libraries, headers, log):
    if logged([OPLEDGER, "engine", "add", name, "--lib", libraries, "--headers", headers], log) != 0:
        raise Problem(f"engine {name} could not be added: the log is {log}")
    for library in entry_of(name)["libraries"]:
        if pathlib.Path(library["path"]).parent != libraries:
            raise Problem(f"engine {name} would load {library['path']}, not the library in {libraries}")


def build(options):
    """One build folder, compiled clean and then again with the calls: every other object file is the same one."""
    for name in options.engines:
        plant, source, folder = PLANTS[name], pathlib.Path(entry_of(name)["source"]), WORK / name
        wanted = hashlib.sha256((repr((plant, LEAN, str(source))) + SPIN_HEADER.read_text()).encode()).hexdigest()
        stamp = folder / "built.sha256"
        if stamp.exists() and stamp.read_text() == wanted:
            print(f"{name}: {folder} is built", flush=True)
        else:
            stamp.unlink(missing_ok=True)
            copy_tree(source, folder / "tree")
            for variant in ("clean", "spin"):
                print(f"{name}: building {variant}, log {folder / variant}.log", flush=True)
                write_sources(source, folder / "tree", plant, variant == "spin")
                build_libraries(folder, plant, variant)
            stamp.write_text(wanted)
        for variant in ("clean", "spin"):
            add_engine(f"{name}-{variant}", folder / variant, source, folder / "add.log")
            print(f"engine {name}-{variant} is ready", flush=True)


def copy_tree(source, tree):
    if tree.exists():
        return
    fresh = tree.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(source, fresh, symlinks=True)
    fresh.rename(tree)


# fires ---------------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def spin_asked(kernel, spin_ns):
    """The environment of every engine started meanwhile; gives the log in which they count their spins."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "spins.jsonl"
        log.touch()
        if kernel != CONTROL:
            os.environ["OPLEDGER_TEST_SPIN"] = f"{kernel}:{spin_ns}"
        os.environ["OPLEDGER_TEST_SPIN_LOG"] = str(log)
        try:
            yield log
        finally:
            os.environ.pop("OPLEDGER_TEST_SPIN", None)
            del os.environ["OPLEDGER_TEST_SPIN_LOG"]


class Spins:
    """What processes logged. A preempted spin says nothing of how long the others took: the mean leaves it out."""

    def __init__(self, log):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.count = sum(line["count"] for line in lines)
        self.late = sum(line["late_count"] for line in lines)
        on_time = self.count - self.late
        self.mean_ns = sum(line["spun_ns"] - line["late_ns"] for line in lines) / on_time if on_time else None


def baseline_run(name, options, workload, passes, kernel=CONTROL, spin_ns=0):
    """One process that runs baseline passes alone: milliseconds per pass, and its spins."""
    with spin_asked(kernel, spin_ns) as log:
        with Engine(name) as engine:
            engine.load(options.model, context=len(workload.get("prompt", [])) + len(workload["tokens"]) + 64,
                        threads=options.threads)
            engine.call("graph", workload=workload, probe=False)
            engine.call("prepare", workload=workload["id"], arms=[{"id": "baseline", "kind": "baseline"}])
            blocks = engine.measure(workload["id"], ("baseline", passes, False))
        return statistics.median(p["graph_ns"] for p in blocks[0]["passes"]) / 1e6, Spins(log)


def spins_per_pass(name, options, workload, kernel, spin_ns=1000):
    """From two runs of which one has more passes: loading, prompt and discovery drop out of the difference."""
    few, many = (baseline_run(f"{name}-spin", options, workload, passes, kernel, spin_ns)[1] for passes in (2, 5))
    count = (many.count - few.count) / 3
    if count < 1 or count != int(count):
        raise Problem(f"{name}, {workload['id']}: the spin in {kernel} is executed {count:g} times per pass")
    return int(count), many


def fires(options):
    rows = []
    for name in options.engines:
        for workload in options.workloads:
            for kernel in (k for k in options.kernels if k != CONTROL):
                count, spins = spins_per_pass(name, options, workload, kernel)
                rows.append([name, workload["id"], kernel, count, f"{spins.mean_ns:.0f}", spins.late])
    print("### Spins of 1000 ns asked for\n")
    table(["engine", "workload", "kernel", "spins per pass", "mean ns", "preempted"], rows)


# measure -------------------------------------------------------------------------------------------------------------

def workload_flags(workload):
    if workload["kind"] == "decode":
        return ["-n", len(workload["tokens"]), "-d", len(workload["prompt"])]
    return ["-p", len(workload["tokens"])]


def ledger_of(name, options, workload, kernel, spin_ns):
    """The ledger of clean against spin, and the spins of all processes that made it. Files stay for a later look."""
    folder = WORK / "ledgers"
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{name}-{workload['id']}-{kernel}"
    text, ledger = stem.with_suffix(".txt"), stem.with_suffix(".json")
    for old in (text, ledger):
        old.unlink(missing_ok=True)
    with spin_asked(kernel, spin_ns) as log:
        code = logged([OPLEDGER, "compare", f"{name}-clean", f"{name}-spin", "-m", options.model,
                       *workload_flags(workload), "-t", options.threads, "--budget", options.budget, "--json", ledger,
                       "--record", stem.with_suffix(".record.json.gz")], text)
        if code not in (0, 1, 4):
            raise Problem(f"compare ended with {code}: its output is {text}")
        return json.loads(ledger.read_text())["workloads"][0], Spins(log)


def added(measured):
    """A gap of clean - spin as what the spin added: milliseconds and interval."""
    interval = measured["ci_ms"]
    return (None if measured["ms"] is None else -measured["ms"],
            None if interval is None else [-interval[1], -interval[0]])


def verdict_of(ms, interval, truth_ms, moved):
    if moved:
        return "failed"
    if truth_ms is None or (ms is not None and abs(ms - truth_ms) <= LIMIT * truth_ms):
        return "passed"
    is_denied = interval and (interval[0] > (1 + LIMIT) * truth_ms or interval[1] < (1 - LIMIT) * truth_ms)
    return "failed" if is_denied else "unresolved"


def judge(ledger, kernel, truth_ms):
    row = next((r for r in ledger["rows"] if ROWS.get(kernel) in r["categories"]), None)
    if row is None and kernel != CONTROL:
        raise Problem(f"the ledger has no row {ROWS[kernel]}")
    moved = []
    for other in ledger["rows"]:
        ms, interval = added(other["gap"])
        if other is not row and other["real"] and interval and (interval[0] > 0 or interval[1] < 0):
            moved.append({"row": other["scope"], "ms": ms, "ci_ms": interval})
    wall_ms, wall_interval = added(ledger["gap"])
    found = {"truth_ms": truth_ms, "wall_ms": wall_ms, "wall_ci_ms": wall_interval, "moved": moved,
             "failed_checks": sorted({c["name"] for c in ledger["checks"] if c["status"] == "failed"})}
    if row is None:
        return found | {"verdict": verdict_of(None, None, None, moved)}
    ms, interval = added(row["gap"])
    replay = [row["replay"][side] and row["replay"][side]["ms"] for side in "ab"]
    return found | {"row": row["scope"], "row_ms": ms, "row_ci_ms": interval, "row_real": row["real"],
                    "row_replay_ms": None if None in replay else replay[1] - replay[0],
                    "error_ratio": None if ms is None else ms / truth_ms - 1,
                    "verdict": verdict_of(ms, interval, truth_ms, moved)}


def measure(options):
    """The spins of each kernel together take `--share` of a clean pass, whatever their number."""
    results = []
    for name in options.engines:
        for workload in options.workloads:
            tokens = len(workload["tokens"]) if workload["kind"] == "decode" else 1
            pass_ms, _ = baseline_run(f"{name}-clean", options, workload, 5)
            for kernel in options.kernels:
                one = {"engine": name, "workload": workload["id"], "kernel": kernel, "clean_pass_ms": pass_ms / tokens}
                truth_ms, spin_ns = None, 0
                if kernel != CONTROL:
                    count, _ = spins_per_pass(name, options, workload, kernel)
                    spin_ns = max(1, round(options.share * pass_ms * 1e6 / count))
                ledger, spins = ledger_of(name, options, workload, kernel, spin_ns)
                if kernel != CONTROL:
                    truth_ms = count * spins.mean_ns / tokens / 1e6
                    one |= {"asked_spin_ns": spin_ns, "spins_per_pass": count, "spin_ns": spins.mean_ns,
                            "spins": spins.count, "preempted_spins": spins.late}
                results.append(one | judge(ledger, kernel, truth_ms))
                options.json.parent.mkdir(parents=True, exist_ok=True)
                options.json.write_text(json.dumps(results, indent=1) + "\n")
                print(sentence(results[-1]), flush=True)
    print("\n### Planted spins, ms per token or pass\n")
    table(["engine, workload, kernel", "spins x ns", "truth", "row", "95% interval", "error", "by replay", "wall",
           "other rows moved", "verdict"], [line_of(one) for one in results])
    print(f"written to {options.json}; the ledgers are in {WORK / 'ledgers'}")
    if any(one["verdict"] != "passed" for one in results):
        sys.exit(1)


def shown(value, digits=4):
    if isinstance(value, list):
        return f"[{value[0]:+.{digits}f}, {value[1]:+.{digits}f}]"
    return "-" if value is None else f"{value:.{digits}f}"


def sentence(one):
    what = f"{one['engine']} {one['workload']} {one['kernel']}"
    if one["kernel"] != CONTROL:
        what += f": truth {shown(one['truth_ms'])} ms, row {shown(one['row_ms'])} {shown(one['row_ci_ms'])}"
    moved = ", ".join(other["row"] for other in one["moved"])
    return f"{what}: {one['verdict']}" + (f"; moved: {moved}" if moved else "")


def line_of(one):
    error = one.get("error_ratio")
    return [f"{one['engine']} {one['workload']} {one['kernel']}",
            f"{one['spins_per_pass']} x {one['spin_ns']:.0f}" if "spin_ns" in one else "-", shown(one["truth_ms"]),
            shown(one.get("row_ms")), shown(one.get("row_ci_ms")), "-" if error is None else f"{error:+.1%}",
            shown(one.get("row_replay_ms")), shown(one["wall_ms"]),
            "; ".join(f"{m['row']} {shown(m['ms'])} {shown(m['ci_ms'])}" for m in one["moved"]) or "none",
            one["verdict"]]


def main():
    steps = {"build": build, "fires": fires, "measure": measure}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(steps))
    parser.add_argument("--engines", nargs="+", default=list(PLANTS), choices=PLANTS)
    parser.add_argument("--kernels", nargs="+", default=[CONTROL, *ROWS], choices=[CONTROL, *ROWS])
    parser.add_argument("--workloads", nargs="+", type=parse_workload, default=[parse_workload("tg16@64")],
                        metavar="tg16@64|pp128")
    parser.add_argument("--model", type=pathlib.Path, help="a dense model (default: SmolLM2 requantised to Q8_0)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", default="60s", help="of each ledger")
    parser.add_argument("--share", type=float, default=0.08, help="of a clean pass that the spins of a kernel take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the builds")
    parser.add_argument("--json", type=pathlib.Path, default=WORK / "planted.json")
    options = parser.parse_args()
    if unknown := [step for step in options.steps if step not in steps]:
        parser.error(f"no such step: {unknown[0]} (give {', '.join(steps)})")
    os.environ["CMAKE_BUILD_PARALLEL_LEVEL"] = str(options.jobs)
    try:
        chosen = options.steps or list(steps)
        if options.model is None and chosen != ["build"]:
            options.model = models(["q8_0"])["q8_0"]
        for step in chosen:
            steps[step](options)
    except Problem as problem:
        sys.exit(f"bench/planted.py: {problem}")


if __name__ == "__main__":
    main()
