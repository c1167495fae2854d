#!/usr/bin/env python3
"""What verification costs: a line of JSON for each model, after one of the machine.

usage: verification.py PATH/TO/hone MODEL... [--rounds N]

MODEL: an ONNX file or a folder with one, or gpt2 or resnet50, which models.py writes. On one thread, with an empty
cache, medians of N rounds. compile_ms: the strategy cpu with each kernel checked, of which kernels_ms are the checks
(kernels_share). unchecked_ms: the same with --verify none, and added_share what checks add to it, of compile_ms: a part of
what checks do, such as touching memory first, the compilation then need not. whole_ms: what `hone optimize` takes longer than
with --verify none: kernels, the whole function, other sizes, second runs, the second reading and the written file;
whole_ratio is to compile_ms."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from facts import facts  # noqa: E402

MODELS = Path(__file__).with_name("models.py")


def optimize(hone, model, level, place):
    command = [hone, "optimize", model, "--strategies", "cpu", "--threads", "1", "--no-cache", "--rounds", "1", "--json",
               "--verify", level, "-o", f"{place}/x.hone"]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = 1e3 * (time.monotonic() - start)
    if done.returncode:
        sys.exit(done.stderr)
    return wall, json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("hone")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(json.dumps(facts()))
    with tempfile.TemporaryDirectory() as place:
        for name in args.models:
            model = name
            if name in ("gpt2", "resnet50"):
                model = f"{place}/{name}.onnx"
                subprocess.run([sys.executable, MODELS, name, model], check=True)
            walls, compiles, unchecked, checks, more = [], [], [], [], []
            for _ in range(args.rounds):
                without, plain = optimize(args.hone, model, "none", place)
                wall, report = optimize(args.hone, model, "model", place)
                unchecked.append(plain["strategies"][0]["compile_ms"])
                compiles.append(report["strategies"][0]["compile_ms"])
                checks.append(report["verified"]["kernels_ms"])
                more.append(wall - without)
                walls.append(wall)
            print(json.dumps({
                "model": Path(name).name, "rounds": args.rounds,
                "compile_ms": round(statistics.median(compiles), 1),
                "kernels_ms": round(statistics.median(checks), 1),
                "unchecked_ms": round(statistics.median(unchecked), 1),
                "added_share": round(1 - statistics.median(unchecked) / statistics.median(compiles), 3),
                "kernels_share": round(statistics.median(c / of for c, of in zip(checks, compiles)), 3),
                "whole_ms": round(statistics.median(more), 1),
                "whole_ratio": round(statistics.median(m / of for m, of in zip(more, compiles)), 2),
                "optimize_ms": round(statistics.median(walls), 1)}), flush=True)


main()
