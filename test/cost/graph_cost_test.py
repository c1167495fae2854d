#!/usr/bin/env python3
"""The graph-cost budget of the compiler: instructions per node, counted by callgrind.

graph_cost_test.py GRAPH_COST

The budget is 0.3 us per node and pass and 4 us per node from import to plan, without code generation,
and that cost per node does not grow with the number of nodes. Time on a shared machine says little, so
instructions are counted. One microsecond is 4,500 of them, the lowest of three shapes: `graph_cost SHAPE
10000`, best of 3, took 29.3 ms for a chain, 100.8 ms for a wide graph and 34.0 ms for diamonds, import
and compile, which are 144 M, 450 M and 175 M instructions (2026-11-21, 2 cores of an Intel Xeon with
AVX-512, otherwise idle; counts have fallen since: 9,600, 16,900 and 10,700 per node on 2026-11-22).
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

INSTRUCTIONS_PER_US = 4500
LIMITS = {  # instructions per node
    "pass": 0.3 * INSTRUCTIONS_PER_US,
    "all": 4 * INSTRUCTIONS_PER_US,  # import and compile
}
SHAPES = ("chain", "wide", "diamond")
SMALL, LARGE, HUGE = 1_000, 10_000, 100_000
MOST_GROWTH = 1.2


def facts(output):
    return {k: int(v) for k, v in re.findall(r"^(\w+) (\d+)$", output, re.M)}


def count(program, shape, nodes):
    """Instructions per node of each part."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}",
             program, shape, str(nodes)],
            capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{shape} {nodes}: {run.stdout}{run.stderr}")
        known = facts(run.stdout)
        parts = {}
        for dump in pathlib.Path(directory).glob("out.*"):
            text = dump.read_text()
            part = re.search(r"^desc: Trigger: Client Request: (\w+)$", text, re.M)
            if part:
                parts[part[1]] = int(re.search(r"^totals: (\d+)$", text, re.M)[1]) / known["nodes"]
    parts["pass"] = parts.pop("passes") / known["passes_run"]
    parts["all"] = parts["import"] + parts["compile"]
    return parts


def allocations(program, shape, nodes):
    """Calls of operator new per node: the counter that is cheap enough for the largest graphs."""
    run = subprocess.run([program, shape, str(nodes)], capture_output=True, text=True, check=True)
    known = facts(run.stdout)
    return {k[:-len("_news")]: v / known["nodes"] for k, v in known.items() if k.endswith("_news")}


def check(name, figures, limits, failures):
    """figures: by size, per node. Prints one line."""
    small, large = figures
    growth = large / small if small else 1
    limit = limits.get(name.split()[-1])
    print(f"{name:24} {small:9.0f} {large:9.0f}  x{growth:.2f}" +
          (f"  limit {limit:.0f}" if limit else ""))
    if limit and large > limit:
        failures.append(f"{name}: {large:.0f} per node, the limit is {limit:.0f}")
    if growth > MOST_GROWTH:
        failures.append(f"{name}: grows {growth:.2f} times with the number of nodes")


def main(program):
    failures = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        counted = {(s, n): pool.submit(count, program, s, n) for s in SHAPES for n in (LARGE, SMALL)}
        called = {(s, n): pool.submit(allocations, program, s, n)
                  for s in SHAPES for n in (LARGE, HUGE)}
    print(f"instructions per node at {SMALL} and {LARGE} nodes")
    for shape in SHAPES:
        small, large = (counted[shape, n].result() for n in (SMALL, LARGE))
        for part in ("import", "pass", "compile", "all"):
            check(f"{shape} {part}", (small[part], large[part]), LIMITS, failures)
    print(f"allocations per node at {LARGE} and {HUGE} nodes")
    for shape in SHAPES:
        small, large = (called[shape, n].result() for n in (LARGE, HUGE))
        for part in small:
            check(f"{shape} {part}", (small[part], large[part]), {}, failures)
    for failure in failures:
        print("FAIL", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
