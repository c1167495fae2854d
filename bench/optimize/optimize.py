#!/usr/bin/env python3
"""Times `hone optimize` on the shapes of GPT-2 124M and ResNet-50.

Prints the machine and then a JSON line for each model.

usage: optimize.py PATH/TO/hone [--models gpt2,resnet50] [--unlimited]

cold_s: with an empty cache; warm_s: a second time. With --unlimited the model is also optimized with
a budget of 300 s, and ratio_to_unlimited is the median of the two plans' times, taken in turns.
"""
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


def optimize(hone, model, plan, cache, *arguments):
    start = time.monotonic()
    done = subprocess.run([hone, "optimize", model, "-o", plan, "--json", *arguments], check=True,
                          stdout=subprocess.PIPE, env={**os.environ, "HONE_CACHE_DIR": str(cache)})
    return time.monotonic() - start, json.loads(done.stdout)["strategies"]


def median_ms(hone, plan):
    done = subprocess.run([hone, "bench", plan, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["median_ms"]


def measure(hone, name, unlimited):
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        model = work / f"{name}.onnx"
        subprocess.run([sys.executable, MODELS, name, model], check=True)
        caches = [work / "cache", work / "other_cache"]
        for cache in caches:
            cache.mkdir(mode=0o700)
        plan, other = work / "plan.hone", work / "other.hone"
        cold, strategies = optimize(hone, model, plan, caches[0])
        warm, _ = optimize(hone, model, work / "warm.hone", caches[0])
        chosen = next(s for s in strategies if s["chosen"])
        line = {"model": name, "cold_s": round(cold, 2), "warm_s": round(warm, 2),
                "chosen": chosen["name"], "ms": chosen["ms"]}
        if unlimited:
            took, _ = optimize(hone, model, other, caches[1], "--budget", "300")
            ratios = [median_ms(hone, plan) / median_ms(hone, other) for _ in range(7)]
            line |= {"unlimited_s": round(took, 2),
                     "ratio_to_unlimited": round(statistics.median(ratios), 3)}
        print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("hone")
    parser.add_argument("--models", default="gpt2,resnet50")
    parser.add_argument("--unlimited", action="store_true")
    a = parser.parse_args()
    print(json.dumps(facts()), flush=True)
    for name in a.models.split(","):
        measure(a.hone, name, a.unlimited)


if __name__ == "__main__":
    main()
