"""Files that `hone export` writes, as other programs see them. See docs/testing.md.

The models are those of peers.py. Each that ONNX Runtime runs as it is must be accepted by the full check
of ONNX when hone has exported it, run by ONNX Runtime, and give the same results, or those that hone
computes, which peers.py judges. What hone refuses to export must have a reason in REFUSED.
"""

import argparse
import collections
import copy
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import onnx
from onnx import checker

import case as cases
import compare
import executors
import peers
import workers

# What ONNX has no operators for, by words of hone's messages, and why.
REFUSED = {
    "random_bits": "the numbers of a generator of hone's own",
    "running sums and products only": "ONNX has no running maximum",
    "host op": "ONNX has no operators for texts and images that compute what hone's do",
}
CASE_SECONDS = 180
NO_KERNELS = {"bfloat16", "float64"}  # of ONNX Runtime on processors
# What hone's importer refuses is counted; it is judged by peers.py.
NOT_READ = ("not supported", "is unknown")


# What a fault of ONNX Runtime may end, and how that counts.
GIVEN, EXPORTED = "onnxruntime, given", "onnxruntime, exported"


def verdict(name, index, options, directory, say):
    """A status, and what is wrong."""
    try:
        case = peers.make(name, index, options.seed)
    except cases.Reject:
        return "no model", ""
    say(GIVEN)
    try:
        expected = executors.run_onnxruntime(case)
    except Exception:
        return "not run by onnxruntime", ""
    say("hone")
    os.makedirs(directory, exist_ok=True)
    executors.write(case, directory)
    given, written = os.path.join(directory, "model.onnx"), os.path.join(directory, "exported.onnx")
    done = subprocess.run([options.hone, "export", given, "-o", written], capture_output=True, text=True, timeout=120)
    said = done.stderr.replace(directory + "/", "").strip()
    if done.returncode not in (0, 3):
        return "crash", said[-300:]
    if done.returncode != 0:
        if "cannot be exported" not in said:
            return "not read", said[-200:]
        reason = next((r for words, r in REFUSED.items() if words in said), None)
        return ("refused, listed" if reason else "refused"), said[-300:]
    try:
        checker.check_model(written, full_check=True)
    except Exception as e:
        return "not valid", str(e)[:300]
    exported = copy.copy(case)
    exported.model = onnx.load(written)
    say(EXPORTED)
    try:
        got = executors.run_onnxruntime(exported)
    except Exception as e:
        # Valid, and without kernels for most operators in any form.
        lacks = "NOT_IMPLEMENTED" in str(e) and NO_KERNELS & {t for _, t in [*case.feeds.values(), *case.constants.values()]}
        if not lacks and "assumed to be equal" in said:  # open sizes, of which one is 1 here
            return "sizes assumed", str(e)[:300]
        return "no kernel" if lacks else "not accepted by onnxruntime", str(e)[:300]
    say("hone")
    wrong = compare.difference(case, got, expected)
    if not wrong:
        return "ok", ""
    ours = executors.run_hone(case, options.hone, os.path.join(directory, "run"), "ref")
    return ("differs", wrong) if compare.difference(case, got, ours) else ("as hone computes", "")


FINE = ("ok", "as hone computes", "no kernel", "no model", "not run by onnxruntime", "not read", "refused, listed",
        "sizes assumed")


def one(job, options, skip, directory, say):
    name, index = job
    if options.keep:
        directory = os.path.join(options.keep, f"{name}-{index}")
    try:
        status, text = verdict(name, index, options, directory, say)
    except Exception as e:
        status, text = "crash", f"{type(e).__name__}: {e}"[:300]
    return name, index, status, text


def lost(job, at):
    """The result of a model that ended the process, or had no end."""
    status = {GIVEN: "not run by onnxruntime", EXPORTED: "ends onnxruntime"}.get(at, "crash")
    return *job, status, f"the process ended or took over {CASE_SECONDS} s: {at}"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("hone", help="the program `hone`")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=1500, help="how many models, about (default: 1500)")
    p.add_argument("--only", nargs="*", default=[], metavar="OP")
    p.add_argument("--index", type=int, help="with --only: this case alone")
    p.add_argument("--keep", metavar="DIR", help="keeps all models")
    p.add_argument("--workers", type=int, default=os.cpu_count())
    p.add_argument("--verbose", action="store_true", help="print every case")
    options = p.parse_args()
    jobs = peers.plan(options.count, set(options.only))
    if options.index is not None:
        jobs = [(name, options.index) for name in sorted({name for name, _ in jobs})]
    if not jobs:
        sys.exit(f"no operator is named {' or '.join(options.only)}")
    started = time.monotonic()
    count, bad = collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="exported") as root:
        for name, index, status, text in workers.run_all(jobs, one, options, root, CASE_SECONDS, (), lost):
            count[status] += 1
            bad += status not in FINE
            if status not in FINE or options.verbose:
                print(f"{status.upper()} {name} {index}: {text}", flush=True)
    print(f"{sum(count.values())} models of {len({n for n, _ in jobs})} operators in {time.monotonic() - started:.0f} s, "
          f"seed {options.seed}: " + ", ".join(f"{n} {s}" for s, n in count.most_common()))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
