"""The campaign of `tools/mutate --campaign`: many changes of the compiler, what `hone optimize` says to each.

All changes stand in one build (prepare.py, schemata.py). It can be judged on another machine, which needs this
file, place.py, commit, changes.json, baseline.json, corpus/ and tree/build/release/{mutation_probe,hone-run} of build/campaign
in a folder that the variable CAMPAIGN_PLACE names, and no package: --keep-build goes on there. A change is tried on models of the corpus (corpus.py) that
reach it, by build/release/mutation_probe: first compiled without verification, so that it is known whether
numbers change, then by `hone optimize`. Verdicts:

  unreached  no model executes the changed place
  equal      no result changes
  refused    `hone optimize` writes no plan, with a message of its verification
  avoided    a result changes without verification; `hone optimize` writes a plan whose results are right
  stopped    the compiler ends with another message, or crashes, or takes too long; no plan is written
  wrong      `hone optimize` writes a plan whose results are wrong, or that does not run"""

import argparse
import collections
import datetime
import json
import multiprocessing.pool
import os
import pathlib
import platform
import random
import re
import shutil
import subprocess
import sys
import threading
import time

from place import BINARIES, CORPUS, PLACE, ROOT, TREE, fail, must, say

MOST_MODELS = 8  # that reach a change, tried for it
MOST_DIFFERENT = 3  # models whose results change; then `hone optimize` is tried on these
UNCHANGED = 2  # models on which `hone optimize` is tried where no result changes
VERIFICATION = re.compile(r"refused|differs? from|differ |self-test|does not compute|is wrong|out of bounds|outside|red zone|"
                          r"cannot be read|wrote|candidate|audit|faults? at|no strategy gave")


def environment(mutant=None, reached=None):
    own = {k: v for k, v in os.environ.items() if not k.startswith("HONE_")}
    if mutant is not None:
        own["HONE_MUTANT"] = str(mutant)
    if reached is not None:
        own["HONE_MUTANT_REACHED"] = str(reached)
    return own


def processors():
    """Of this job: two, for what only threads show, where jobs run side by side."""
    allowed = sorted(os.sched_getaffinity(0))
    worker = re.search(r"-(\d+) ", threading.current_thread().name + " ")
    first = int(worker[1]) if worker else 0
    return {allowed[first % len(allowed)], allowed[(first + 1) % len(allowed)]}


def probe(mode, models, seconds, most, **switches):
    """{model: (outcome, message)} of those that were tried, and the seconds of each."""
    scratch = PLACE / "scratch" / str(threading.get_ident())
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    words = [BINARIES / "mutation_probe", mode, CORPUS, scratch, int(seconds), most, *models]
    mine = processors()
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, errors="replace",
                          env=environment(**switches), preexec_fn=lambda: os.sched_setaffinity(0, mine))
    out, times = {}, {}
    for line in done.stdout.splitlines():
        fields = line.split("\t", 3)
        if len(fields) != 4:
            continue  # a changed program may print anything
        name, outcome, took, message = fields
        out[name], times[name] = (outcome, message.strip()), float(took)
    if done.returncode and models[0] not in out:  # while objects were made, before main()
        out[models[0]] = ("dies", f"before main(), code {done.returncode} {done.stderr[-300:]}")
    return out, times


def baseline():
    """The models, with what they reach; each is right without a change."""
    must(sys.executable, ROOT / "test/mutate/corpus.py", CORPUS)
    models = sorted(p.name for p in CORPUS.iterdir())
    reached, slowest = {}, 0.0
    for m in models:
        file = PLACE / "reached" / m
        file.parent.mkdir(exist_ok=True)
        file.unlink(missing_ok=True)
        for mode in ("plain", "optimize"):
            out, times = probe(mode, [m], 120, 1, reached=file)
            if out[m][0] != "same":
                fail(f"{m} without a change, {mode}: {out[m]}")
            slowest = max(slowest, times[m])
        reached[m] = {i for i, b in enumerate(file.read_bytes()) if b}
    return reached, slowest


def right_here(models, pool):
    """The models that are right without a change on this machine, too, and the seconds of the slowest."""
    def one(m):
        plain, _ = probe("plain", [m], 120, 1)
        optimized, times = probe("optimize", [m], 120, 1)
        if plain[m][0] != "same" or optimized[m][0] != "same":
            say(f"left out: {m} is wrong here without a change: {plain[m]} {optimized[m]}")
            return None
        return m, times[m]

    found = list(filter(None, pool.imap_unordered(one, models)))
    if not found:
        fail("no model is right here without a change")
    return {m for m, _ in found}, max(seconds for _, seconds in found)


def verdict(plain, optimized):
    outcomes = [o for o, _ in optimized.values()]
    if any(o in ("differs", "fails", "dies-run") for o in outcomes):
        return "wrong"
    if any(o == "none" and VERIFICATION.search(text) for o, text in optimized.values()):
        return "refused"
    if any(o in ("none", "dies") for o in outcomes):
        return "stopped"
    return "avoided" if any(o != "same" for o, _ in plain.values()) else "equal"


def short(text):
    text = text.replace(f"{TREE}/", "").replace(f"{CORPUS}/", "").replace(f"{ROOT}/", "").replace(" Please report this with the model and the command line.", "")
    text = text.split(" strategy  one run")[0]
    return text if len(text) <= 240 else text[:120] + " ... " + text[-115:]


def try_change(m, reached, limit, seed):
    draw = random.Random(f"{seed} {m['n']}")
    models = sorted(name for name, places in reached.items() if m["n"] in places)
    m["reached_by"] = len(models)
    if not models:
        return m | {"verdict": "unreached"}
    models = draw.sample(models, min(len(models), MOST_MODELS))
    plain, _ = probe("plain", models, limit, MOST_DIFFERENT, mutant=m["n"])
    changed = [name for name, (outcome, _) in plain.items() if outcome != "same"]
    chosen = changed or models[:UNCHANGED]
    optimized, _ = probe("optimize", chosen, limit, len(chosen), mutant=m["n"])
    # A wrong plan is found twice, or it is timing.
    for name, (outcome, _) in list(optimized.items()):
        if outcome in ("differs", "fails", "dies-run"):
            again, _ = probe("optimize", [name], limit, 1, mutant=m["n"])
            m.setdefault("again", {})[name] = again[name][0]
    m["plain"] = {name: [outcome, short(text)] for name, (outcome, text) in plain.items() if outcome != "same"}
    m["tried"] = len(plain)
    m["optimize"] = {name: [outcome, short(text) if outcome != "same" else ""] for name, (outcome, text) in optimized.items()}
    m["verdict"] = verdict(plain, optimized)
    m["changes"] = any(o in ("differs", "fails", "dies-run") for o, _ in plain.values()) or m["verdict"] == "wrong"
    return m


def summary(rows, facts):
    counts = collections.Counter(r["verdict"] for r in rows)
    changing = [r for r in rows if r.get("changes")]
    kept = collections.Counter(r["verdict"] for r in changing)
    noticed = len(changing) - kept["wrong"]
    folders = collections.defaultdict(collections.Counter)
    for r in changing:
        folders[re.match(r"src/((?:import|backend)/\w+|\w+)", r["file"])[1]]["wrong" if r["verdict"] == "wrong" else "noticed"] += 1
    wrong = [{k: r[k] for k in ("file", "line", "kind", "old", "new")} |
             {"models": [m for m, (outcome, _) in r["optimize"].items() if outcome in ("differs", "fails", "dies-run")]} |
             ({"noticed_by": r["tests"]} if "tests" in r else {}) for r in rows if r["verdict"] == "wrong"]
    return facts | {"changes": len(rows), "verdicts": dict(counts), "changing_results": len(changing),
                    "of_these": dict(kept), "noticed": noticed,
                    "equal_noticed_by": dict(collections.Counter(r["tests"] for r in rows if r["verdict"] == "equal" and "tests" in r)),
                    "share": round(noticed / len(changing), 4) if changing else None,
                    "by_folder": {k: dict(v) for k, v in sorted(folders.items())}, "wrong": wrong}


# Each of a folder, or of many; fast ones first.
TESTS = ["plan", "schedule", "ops", "pass", "import", "kernel", "runtime", "verify", "codegen", "fault", "compile"]


def test_program(name, seconds, **switches):
    scratch = PLACE / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700)
    models = os.environ.get("HONE_MODELS", ROOT.parent / "shared/models")
    own = environment(**switches) | {"HONE_CACHE_DIR": str(scratch), "TMPDIR": str(scratch), "HONE_MODELS": str(models)}
    try:
        return subprocess.run([BINARIES / "test" / f"test_{name}", "--gtest_brief=1", "--gtest_fail_fast"], cwd=TREE,
                              env=own, capture_output=True, timeout=seconds).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def try_tests(rows, args, end):
    """Adds to changes that optimize does not refuse which test program notices them; a sample of the equal ones."""
    programs = [t for t in TESTS if (TREE / "test" / t).is_dir()]
    say("building the tests")
    must("ninja", "-j2", "-C", BINARIES, *[f"test_{t}" for t in programs])
    reached, limit = {}, {}
    for t in list(programs):
        file = PLACE / "reached" / f"test_{t}"
        file.unlink(missing_ok=True)
        start = time.monotonic()
        if not test_program(t, 1200, reached=file):
            say(f"left out: test_{t} fails without a change")
            programs.remove(t)
            continue
        reached[t] = {i for i, b in enumerate(file.read_bytes()) if b}
        limit[t] = 10 * (time.monotonic() - start) + 10
    wrong = [r for r in rows if r["verdict"] == "wrong"]
    equal = [r for r in rows if r["verdict"] == "equal"]
    sample = random.Random(args.seed).sample(equal, min(args.tests, len(equal)))
    for r in wrong + sample:
        if time.monotonic() > end or "tests" in r:
            continue
        mine = sorted((t for t in programs if r["n"] in reached[t]), key=limit.get)
        r["tests"] = next((t for t in mine if not test_program(t, limit[t], mutant=r["n"])), "none" if mine else "unreached")
        say(f"{r['verdict']:9} noticed by {r['tests']}: {r['file']}:{r['line']}: {r['kind']}")


def machine():
    processor = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "")
    return {"date": datetime.date.today().isoformat(), "commit": (PLACE / "commit").read_text().strip(),
            "processor": processor, "processors": os.cpu_count(), "system": platform.platform()}


def run(args):
    end = time.monotonic() + 60 * args.minutes
    listed, known = PLACE / "changes.json", PLACE / "baseline.json"
    if not args.keep_build:
        import prepare  # needs libclang, which a machine that only judges lacks

        changes = prepare.prepare(args)
        listed.write_text(json.dumps(changes))
        say("compiling the corpus without a change")
        reached, slowest = baseline()
        known.write_text(json.dumps({"reached": {m: sorted(x) for m, x in reached.items()}, "slowest": slowest,
                                     "processor": machine()["processor"]}))
    if args.only_prepare:
        return
    changes = json.loads(listed.read_text())
    before = json.loads(known.read_text())
    reached = {m: set(x) for m, x in before["reached"].items()}
    pool = multiprocessing.pool.ThreadPool(args.jobs)
    if before.get("processor") != machine()["processor"]:
        right, before["slowest"] = right_here(sorted(reached), pool)
        reached = {m: x for m, x in reached.items() if m in right}
    limit = args.seconds or 5 + 10 * before["slowest"]
    done = set()
    out = pathlib.Path(args.output)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    if args.keep_build and out.exists():
        rows = [r for r in map(json.loads, out.read_text().splitlines()) if "n" in r]
        for r in rows:
            for named in (r.get("plain", {}), r.get("optimize", {})):
                named.update({m: [outcome, short(text)] for m, (outcome, text) in named.items()})
        done = {r["n"] for r in rows}
    with open(out, "w") as file:
        for r in rows:
            file.write(json.dumps(r) + "\n")
        def one(m):
            start = time.monotonic()
            if start < end:
                return try_change(m, reached, limit, args.seed) | {"seconds": round(time.monotonic() - start, 2)}

        left = [m for m in changes if m["n"] not in done]
        for row in filter(None, pool.imap_unordered(one, left)):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            if row["verdict"] not in ("unreached", "equal"):
                say(f"{len(rows):4} {row['verdict']:9} {row['file']}:{row['line']}: {row['kind']}: '{row['old'][:60]}' -> '{row['new'][:60]}'")
    if args.tests >= 0:
        try_tests(rows, args, end)
    with open(out, "w") as file:
        for r in rows:
            file.write(json.dumps(r) + "\n")
        chosen = {"again": pathlib.Path(args.again).name} if args.again else {"chosen": args.count, "files": args.files}
        total = summary(rows, machine() | {"seed": args.seed, "models": len(reached)} | chosen | {"built": len(changes)})
        file.write(json.dumps(total) + "\n")
    say(f"all changes: {out}; the line for bench/results/mutate.jsonl:")
    print(json.dumps(total))


def main():
    parser = argparse.ArgumentParser(prog="tools/mutate --campaign", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="changes to choose (default: 1000)")
    parser.add_argument("--files", type=int, default=100, help="files to change, drawn by length (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="chooses them (default: 1)")
    parser.add_argument("--again", metavar="FILE",
                        help="instead the changes that changed a result in an earlier campaign, whose lines these are")
    parser.add_argument("--tests", type=int, default=-1, metavar="N",
                        help="also run the tests on all wrong changes and on N equal ones (default: no tests)")
    parser.add_argument("--jobs", type=int, default=1, help="changes tried at a time (default: 1)")
    parser.add_argument("--seconds", type=float, help="a model may take so long (default: ten times the slowest's)")
    parser.add_argument("--minutes", type=float, default=1e9, help="no change is begun after these")
    parser.add_argument("--only-prepare", action="store_true", help="makes the build and tries nothing")
    parser.add_argument("--keep-build", action="store_true", help="goes on with the last build and output")
    parser.add_argument("--output", default=ROOT / f"build/mutate-{datetime.date.today().isoformat()}.jsonl",
                        help="a line for each change, and a summary (default: build/mutate-DATE.jsonl)")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
