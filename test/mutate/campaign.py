"""The campaign of `tools/mutate --campaign`: many changes of the compiler, what `hone optimize` says to each.

All changes stand in one build (schemata.py). A change is tried on models of the corpus (corpus.py) that
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

import schemata

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "build/campaign"
TREE = PLACE / "tree"
BINARIES = TREE / "build/release"
CORPUS = PLACE / "corpus"

FOLDERS = ["ops", "pass", "schedule", "kernel", "codegen", "plan", "runtime", "compile", "import/onnx", "backend/cpu"]
# What judges is not judged; plain C is not what optimize writes.
LEFT_OUT = re.compile(r"src/(codegen/c|backend/null)/|src/(plan|runtime)/self_test")
MOST_MODELS = 8  # that reach a change, tried for it
MOST_DIFFERENT = 3  # models whose results change; then `hone optimize` is tried on these
UNCHANGED = 2  # models on which `hone optimize` is tried where no result changes
VERIFICATION = re.compile(r"refused|differs? from|differ |self-test|does not compute|is wrong|out of bounds|outside|red zone|"
                          r"cannot be read|wrote|candidate|audit|faults? at|no strategy gave")


def fail(text):
    sys.exit(f"mutate: {text}")


def must(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    if done.returncode:
        fail(f"{' '.join(map(str, words))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def new_tree():
    """The sources of HEAD, without what was built before."""
    shutil.rmtree(PLACE, ignore_errors=True)
    TREE.mkdir(parents=True)
    archive = subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE)
    must("tar", "-x", "-C", TREE, stdin=archive.stdout)
    if archive.wait():
        fail("git archive fails")
    (PLACE / "commit").write_text(must("git", "rev-parse", "HEAD", cwd=ROOT))


def sources(tree, scratch):
    llvm = must("llvm-config-19", "--includedir").strip()
    library = sorted(pathlib.Path(must("llvm-config-19", "--libdir").strip()).glob("libclang-19.so*"))
    arguments = ["-std=c++20", f"-I{tree}/src", "-march=x86-64-v3", "-isystem", llvm, '-DHONE_VERSION="0"', "-w",
                 "-ferror-limit=0"]
    return schemata.Sources(tree, scratch, arguments, str(library[0]))


def files_in_scope():
    every = [p for f in FOLDERS for p in sorted((TREE / "src" / f).rglob("*.cpp"))]
    return [p for p in every if not LEFT_OUT.search(str(p.relative_to(TREE)))]


def sites_of(path):
    """Its changes, and whether its headers have to be read for it alone."""
    try:
        found = shared.sites(path)
        return str(path), found, shared.apart[path]
    except schemata.Unreadable as e:
        say(f"left out: {e}")
        return str(path), [], False


def compiling_of(job):
    path, chosen, apart = job
    shared.apart[pathlib.Path(path)] = apart
    return path, shared.compiling(pathlib.Path(path), chosen)


def choose(sites, count, seed):
    """{number: (path, change)}: each line that can be changed is as likely, then each kind, then each place."""
    lines = collections.defaultdict(lambda: collections.defaultdict(list))
    for path, changes in sites.items():
        for c in changes:
            lines[path, c.line][c.kind].append(c)
    draw = random.Random(seed)
    keys = sorted(lines)
    taken, out = set(), {}
    for _ in range(100 * count):
        if len(out) == count:
            break
        key = draw.choice(keys)
        c = draw.choice(lines[key][draw.choice(sorted(lines[key]))])
        if (key[0], c) not in taken:
            taken.add((key[0], c))
            out[len(out)] = (key[0], c)
    return out


def choose_again(sites, rows):
    """Those of an earlier campaign that changed a result, with their numbers; the nearest that reads the same."""
    named = collections.defaultdict(list)
    for path, changes in sites.items():
        text = pathlib.Path(path).read_bytes()
        for c in changes:
            words = schemata.one_line(text[c.start:c.end].decode()), schemata.one_line(c.new)
            named[str(pathlib.Path(path).relative_to(TREE)), c.kind, *words].append((path, c))
    out = {}
    for row in rows:
        same = named.get((row["file"], row["kind"], row["old"], row["new"]))
        if same:
            out[row["n"]] = min(same, key=lambda x: abs(x[1].line - row["line"]))
        else:
            say(f"gone: {row['file']}:{row['line']}: {row['kind']}: '{row['old']}'")
    return out


def some_files(most, seed):
    """Long ones are more likely; in order of their names."""
    files = files_in_scope()
    draw = random.Random(seed)
    weight = {p: draw.random() ** (1 / p.read_bytes().count(b"\n")) for p in files}
    return sorted(sorted(files, key=weight.get)[-most:])


def prepare(args):
    """The build with all changes in it; returns those that compile."""
    global shared
    new_tree()
    rows = []
    if args.again:
        rows = [r for r in map(json.loads, pathlib.Path(args.again).read_text().splitlines()) if r.get("changes") is True]
    schemata.support(TREE / "src", max([args.count, *(r["n"] + 1 for r in rows)]))
    files = sorted({TREE / r["file"] for r in rows}) or some_files(args.files, args.seed)
    say("looking for places to change")
    shared = sources(TREE, PLACE)
    with multiprocessing.Pool(2) as pool:
        found = list(pool.imap_unordered(sites_of, files))
        sites = {path: changes for path, changes, _ in found}
        apart = {path: x for path, _, x in found}
        chosen = choose_again(sites, rows) if rows else choose(sites, args.count, args.seed)
        say(f"{sum(map(len, sites.values()))} changes in {len(sites)} files are possible, {len(chosen)} chosen")
        by_file = collections.defaultdict(dict)
        for n, (path, c) in chosen.items():
            by_file[path][n] = c
        kept = dict(pool.imap_unordered(compiling_of, [(p, c, apart[p]) for p, c in by_file.items()]))
    original = {path: pathlib.Path(path).read_bytes() for path in kept}
    for path, changes in kept.items():
        pathlib.Path(path).write_text(schemata.weave(original[path], changes)[0])
    say(f"{sum(map(len, kept.values()))} compile; building")
    must("cmake", "--preset", "release", "-DHONE_PCH=ON", "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
         cwd=TREE)
    build(["mutation_probe", "hone-run"], kept, original)
    out = []
    for path, changes in kept.items():
        for n, c in changes.items():
            old = original[path][c.start:c.end].decode()
            out.append({"n": n, "file": str(pathlib.Path(path).relative_to(TREE)), "line": c.line, "kind": c.kind,
                        "old": schemata.one_line(old), "new": schemata.one_line(c.new)})
    return sorted(out, key=lambda m: m["n"])


def build(targets, kept, original):
    """The release's compiler refuses a little more than libclang: changes on lines with errors go."""
    for _ in range(12):
        done = subprocess.run(["ninja", "-k", "0", "-j2", "-C", BINARIES, *targets], capture_output=True, text=True)
        if done.returncode == 0:
            return
        bad = set(re.findall(r"(src/[\w/]+\.cpp):(\d+):\d+: (?:error|fatal)", done.stdout + done.stderr))
        gone = 0
        for path, changes in kept.items():
            name = str(pathlib.Path(path).relative_to(TREE))
            lines = {int(l) for f, l in bad if f.endswith(name) or name.endswith(f)}
            # A statement of several lines is blamed at any of them.
            spans = {n: range(c.line, c.line + original[path][c.start:c.end].count(b"\n") + 1) for n, c in changes.items()}
            drop = {n for n, span in spans.items() if any(l in span for l in lines)}
            # The end of a function may be blamed for a return that is gone.
            for l in lines:
                before = [n for n, span in spans.items() if span.start <= l]
                if not any(l in span for span in spans.values()) and before:
                    drop.add(max(before, key=lambda n: spans[n].start))
            for n in drop:
                del changes[n]
            gone += len(drop)
            if drop:
                pathlib.Path(path).write_text(schemata.weave(original[path], changes)[0])
        say(f"{gone} changes do not compile")
        if not gone:
            fail(f"the tree does not build\n{done.stdout[-6000:]}")
    fail("the tree does not build after 12 attempts")


def environment(mutant=None, reached=None):
    own = {k: v for k, v in os.environ.items() if not k.startswith("HONE_")}
    if mutant is not None:
        own["HONE_MUTANT"] = str(mutant)
    if reached is not None:
        own["HONE_MUTANT_REACHED"] = str(reached)
    return own


def probe(mode, models, seconds, most, **switches):
    """{model: (outcome, message)} of those that were tried, and the seconds of each."""
    scratch = PLACE / "scratch" / str(threading.get_ident())
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    words = [BINARIES / "mutation_probe", mode, CORPUS, scratch, int(seconds), most, *models]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, errors="replace",
                          env=environment(**switches))
    out, times = {}, {}
    for line in done.stdout.splitlines():
        name, outcome, took, message = line.split("\t", 3)
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
    text = text.replace(f"{TREE}/", "").replace(f"{CORPUS}/", "").replace(" Please report this with the model and the command line.", "")
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
    return facts | {"summary": True, "changes": len(rows), "verdicts": dict(counts), "changing_results": len(changing),
                    "of_these": dict(kept), "noticed": noticed,
                    "noticed_by_tests": {v: dict(collections.Counter(r["tests"] for r in rows if r["verdict"] == v and "tests" in r))
                                         for v in ("wrong", "equal")},
                    "share": round(noticed / len(changing), 4) if changing else None,
                    "by_folder": {k: dict(v) for k, v in sorted(folders.items())}}


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
        changes = prepare(args)
        listed.write_text(json.dumps(changes))
        say("compiling the corpus without a change")
        reached, slowest = baseline()
        known.write_text(json.dumps({"reached": {m: sorted(x) for m, x in reached.items()}, "slowest": slowest}))
    changes = json.loads(listed.read_text())
    before = json.loads(known.read_text())
    reached = {m: set(x) for m, x in before["reached"].items()}
    limit = 5 + 10 * before["slowest"]
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
        for row in filter(None, multiprocessing.pool.ThreadPool(args.jobs).imap_unordered(one, left)):
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
        facts = machine() | {"seed": args.seed, "models": len(reached), "chosen": args.count, "built": len(changes)} | ({"again": pathlib.Path(args.again).name} if args.again else {})
        total = summary(rows, facts)
        file.write(json.dumps(total) + "\n")
    print(json.dumps(total, indent=1))


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
    parser.add_argument("--minutes", type=float, default=1e9, help="no change is begun after these")
    parser.add_argument("--keep-build", action="store_true", help="goes on with the last build and output")
    parser.add_argument("--output", default=ROOT / f"bench/results/mutate-{datetime.date.today().isoformat()}.jsonl",
                        help="the lines (default: bench/results/mutate-DATE.jsonl)")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
