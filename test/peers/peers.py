"""Compares hone with other programs that run ONNX, operator by operator. See docs/testing.md."""

import argparse
import collections
import os
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import onnx
from onnx import defs

import case as cases
import compare
import executors
import rows
import settled
import workers

PEERS = {"reference": executors.run_reference, "onnxruntime": executors.run_onnxruntime}
CASE_SECONDS = 60
UNSUPPORTED = ("not supported", "is unknown")


def split_name(name):
    domain, _, op = name.rpartition(".")
    return domain, op


def make(name, index, seed):
    domain, op = split_name(name)
    return cases.make(op, index, seed, rows.table()[name][0], domain)


def plan(count, only):
    """Names of operators with numbers of their cases, about `count` in all."""
    table = rows.table()
    chosen = {n: table[n][1] for n in sorted(table) if not only or split_name(n)[1] in only or n in only}
    total = sum(chosen.values())
    return [(name, i) for name, weight in chosen.items() for i in range(max(1, round(count * weight / total)))]


def judge(case, results, hone_result, refusal, entries):
    """The verdict of one case: a status, and a line for each peer that differs."""
    differing = []
    for peer, got in results.items():
        detail = refusal or compare.difference(case, hone_result, got)
        if detail:
            differing.append((peer, detail, not refusal and not compare.difference(case, hone_result, got, 2.0**-23)))
    if refusal and any(word in refusal for word in UNSUPPORTED):
        return "unsupported", differing, []
    if not results:
        return ("both refuse" if refusal else "alone"), [], []
    if not differing:
        return "ok", [], []
    used, agreed = [], set(results) - {d[0] for d in differing}
    for peer, detail, within_f32 in differing:
        entry = next((e for e in entries if e.covers(case, peer, refusal or "", detail, within_f32, agreed)), None)
        if entry is None:
            return "one peer agrees" if agreed else "disagreement", differing, used
        used.append((entry.first, entry.right, peer))
    return "settled", differing, used


def run_case(job, options, skip, directory, say):
    name, index = job
    started, entries = time.monotonic(), settled.read()
    out = {"name": name, "index": index, "peers": {}, "refusals": {}, "differing": [], "used": [], "text": ""}
    try:
        case = make(name, index, options.seed)
    except cases.Reject as e:
        return out | {"status": "no model", "text": str(e)}
    except Exception:  # a defect of a row
        return out | {"status": "crash", "text": traceback.format_exc()}
    out["text"] = case.describe()
    results = {}
    for peer, run in PEERS.items():
        if peer in skip:
            out["peers"][peer] = "crashed"
            continue
        say(peer)
        try:
            results[peer] = run(case)
            out["peers"][peer] = "ran"
        except Exception as e:  # whatever a peer raises, it has no result
            out["peers"][peer] = "refused"
            out["refusals"][peer] = f"{type(e).__name__}: {e}"[:300]
    say("hone")
    out["strategy"] = options.strategy or ("ref" if index % 5 == 4 else "auto")
    hone_result, refusal = None, None
    try:
        try:
            hone_result = executors.run_hone(case, options.hone, directory, out["strategy"])
        except executors.Refused as e:
            if not case.symbolic or not case.feeds:
                raise
            out["open"] = str(e)  # an operator may need sizes that are numbers: given them, it is judged
            hone_result = executors.run_hone(case, options.hone, directory, out["strategy"], sizes=True)
    except executors.Refused as e:
        refusal = str(e)
    except Exception as e:  # a signal, a defect, no end, or a file that is not what it should be
        return out | {"status": "crash", "text": f"{out['text']}\n    {type(e).__name__}: {e}"}
    out["refusal"] = refusal
    out["status"], out["differing"], out["used"] = judge(case, results, hone_result, refusal, entries)
    out["seconds"] = time.monotonic() - started
    return out


def lost(job, at):
    return {"name": job[0], "index": job[1], "status": "crash", "peers": {}, "differing": [], "used": [],
            "text": f"no result while at: {at}"}


def keep(result, options):
    if options.keep:
        case = make(result["name"], result["index"], options.seed)
        executors.write(case, os.path.join(options.keep, f"{result['name']}-{result['index']}"))


def repeat_command(result, options):
    return (f"tools/peers BUILD_DIR --seed {options.seed} --only {result['name']} --index {result['index']}"
            f" --strategy {result.get('strategy', 'auto')} --keep DIR")


def report(results, options, seconds):
    count = collections.Counter(r["status"] for r in results)
    ran = collections.Counter(p for r in results for p, s in r["peers"].items() if s == "ran")
    crashed = collections.Counter(p for r in results for p, s in r["peers"].items() if s == "crashed")
    models = sum(r["status"] != "no model" for r in results)
    for r in results:
        if r["status"] in ("disagreement", "one peer agrees", "crash"):
            keep(r, options)
            print(f"\n{r['status'].upper()} {r['name']} {r['index']}: {r['text']}")
            for peer, detail, within_f32 in r["differing"]:
                print(f"    {peer}: {detail}{' (within f32)' if within_f32 else ''}")
            agrees = [p for p, s in r["peers"].items() if s == "ran" and p not in {d[0] for d in r["differing"]}]
            print(f"    agrees with: {', '.join(agrees) or 'none'}\n    {repeat_command(r, options)}")
    print_lists(results)
    print(f"\n{models} models of {len({r['name'] for r in results})} operators in {seconds:.0f} s, seed "
          f"{options.seed}, onnx {onnx.__version__}: " + ", ".join(f"{n} {s}" for s, n in count.most_common()))
    print("compared with " + ", ".join(f"{p}: {ran[p]} (crashed {crashed[p]})" for p in PEERS) +
          f"; with both: {sum(list(r['peers'].values()).count('ran') == 2 for r in results)}")
    # What a peer computes hangs on the processor too; so the other one, where it agrees, clears hone.
    return count["disagreement"] + count["crash"] + (count["one peer agrees"] if options.strict else 0)


def print_lists(results):
    refused = collections.defaultdict(collections.Counter)
    for r in results:
        if r["status"] == "unsupported":
            refused[r["name"]][r["refusal"].split("\n")[-1].split(": ", 1)[-1][:110]] += 1
    print("\nnot supported by hone, and said so:")
    for name, messages in sorted(refused.items()):
        print(f"  {name}: " + "; ".join(f"{n} x {m}" for m, n in messages.most_common(3)))
    print("settled (settled.txt):")
    used = collections.Counter((u[0].split(";")[0] if r["name"] is None else r["name"], u[1], u[2]) for r in results for u in r["used"])
    for (name, right, peer), n in sorted(used.items()):
        print(f"  {name}: {n} against {peer}: {right}")
    needed = collections.Counter(r["name"] for r in results if r.get("open"))
    print("open sizes refused, judged with the sizes given: " + (", ".join(f"{n} {c}" for n, c in sorted(needed.items())) or "none"))
    alone = collections.Counter(r["name"] for r in results if r["status"] == "alone")
    print("no peer gave a result: " + (", ".join(f"{n} {c}" for n, c in sorted(alone.items())) or "none"))
    missing = collections.Counter(r["name"] for r in results if r["status"] == "no model")
    print("draws that made no valid model: " + (", ".join(f"{n} {c}" for n, c in sorted(missing.items())) or "none"))
    named = set(rows.table()) | {n for names in rows.SKIPPED for n in names.split()}
    known = {s.name for s in defs.get_all_schemas() if s.domain == ""}
    for names, why in rows.SKIPPED.items():
        print(f"skipped: {names}: {why}")
    print("without a row: " + (", ".join(sorted(known - named)) or "none"))


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("hone", help="the program `hone`")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=3800, help="how many models, about (default: 3800)")
    p.add_argument("--only", nargs="*", default=[], metavar="OP")
    p.add_argument("--index", type=int, help="with --only: this case alone")
    p.add_argument("--strategy", help="of all cases (default: auto, and ref of every fifth)")
    p.add_argument("--keep", metavar="DIR", help="keeps the models and inputs of disagreements")
    p.add_argument("--workers", type=int, default=os.cpu_count())
    p.add_argument("--strict", action="store_true", help="fail also where the other peer agrees with hone")
    p.add_argument("--verbose", action="store_true", help="print every case")
    return p.parse_args()


def main():
    options = arguments()
    jobs = plan(options.count, set(options.only))
    if options.index is not None:
        jobs = [(name, options.index) for name in sorted({name for name, _ in jobs})]
    if not jobs:
        sys.exit(f"no operator is named {' or '.join(options.only)}")
    if wrong := settled.false_quotations(settled.read()):
        sys.exit("settled.txt quotes what the specification does not say:\n  " + "\n  ".join(wrong))
    root = tempfile.mkdtemp(prefix="peers", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    started, results = time.monotonic(), []
    try:
        for r in workers.run_all(jobs, run_case, options, root, CASE_SECONDS, PEERS, lost):
            results.append(r)
            if options.verbose:
                print(r["status"], r["name"], r["index"], r["text"], r["peers"], r.get("refusal") or "", r.get("refusals"))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    results.sort(key=lambda r: (r["name"], r["index"]))
    bad = report(results, options, time.monotonic() - started)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
