"""Makes the build of a campaign: chosen changes of the compiler behind switches, in a copy of the tree."""

import collections
import json
import multiprocessing
import pathlib
import random
import re
import shutil
import subprocess

import schemata
from place import BINARIES, PLACE, ROOT, TREE, fail, must, say

FOLDERS = ["ops", "pass", "schedule", "kernel", "codegen", "plan", "runtime", "compile", "import/onnx", "backend/cpu"]
# What judges is not judged; plain C is not what optimize writes.
LEFT_OUT = re.compile(r"src/(codegen/c|backend/null)/|src/(plan|runtime)/self_test")


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
