"""Optimizes random models, the ONNX suite and the models of test/stored with default settings. See docs/testing.md.

A model must not end `hone optimize` with a defect, a signal or no end, must not lose a strategy without a reason that
accepted.txt lists, and its plan must agree with the peers."""

import argparse
import collections
import datetime
import functools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np
import onnx

import case as cases
import executors
import subjects
import workers

PEERS = ("reference", "onnxruntime")
COMMAND_SECONDS = 240
JOB_SECONDS = 900
MEMORY = 12 << 30  # of addresses
GOOD = ("ok", "unsupported", "settled", "both refuse", "accepted", "no peer", "no model")
SHARE_OF_NETWORKS = 0.6


class Entry:
    """Of accepted.txt: `WHERE; PATTERN`, then the reason. WHERE is what may end like that: optimize, run, or the name
    of a strategy; PATTERN is a regular expression, found in the message."""

    def __init__(self, text):
        first, *rest = text.split("\n")
        where, _, pattern = first.partition(";")
        self.where, self.pattern = where.split(), re.compile(pattern.strip())
        self.reason = " ".join(line.strip() for line in rest)
        if not self.reason:
            raise ValueError(f"accepted.txt: {first}: needs a reason")

    def covers(self, where, message):
        return where in self.where and self.pattern.search(message) is not None


@functools.cache
def accepted():
    with open(os.path.join(os.path.dirname(__file__), "accepted.txt")) as file:
        text = "\n".join(line for line in file.read().split("\n") if not line.startswith("#"))
    return [Entry(block.strip()) for block in re.split(r"\n\s*\n", text) if block.strip()]


def is_accepted(where, message):
    return any(e.covers(where, message) for e in accepted())


class Hone:
    """Commands of the program, each with a cache that starts empty."""

    def __init__(self, program, directory):
        self.program, self.directory, self.seconds = program, directory, 0.0
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(os.path.join(directory, "cache"), mode=0o700)

    def path(self, name):
        return os.path.join(self.directory, name)

    def __call__(self, *words, seconds=COMMAND_SECONDS, **environment):
        """Exit code, output and message; the code is text if there was none."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        started = time.monotonic()
        try:
            done = subprocess.run([self.program, *words], capture_output=True, timeout=seconds, preexec_fn=limit,
                                  stdin=subprocess.DEVNULL, env=os.environ | {"HONE_CACHE_DIR": self.path("cache")} | environment)
        except subprocess.TimeoutExpired:
            return "no end", "", f"no end within {seconds} s"
        finally:
            self.seconds += time.monotonic() - started
        out, message = (t.decode(errors="replace").replace(self.directory + "/", "") for t in (done.stdout, done.stderr))
        code = done.returncode
        return signal.Signals(-code).name if code < 0 else code, out, message.strip()


def is_defect(code):
    return isinstance(code, str) or code not in (0, 1, 2, 3)


def message_of(out, error):
    """Of a command with --json, which may have put it into the output."""
    try:
        said = json.loads(out).get("error", "")
        return said if isinstance(said, str) else said.get("message", json.dumps(said))
    except (ValueError, AttributeError):
        return error or out


def optimized(hone, options, more=()):
    """The exit code, and failures as (where, message): of the command, or of strategies."""
    code, out, error = hone("optimize", hone.path("model.onnx"), "-o", hone.path("plan.hone"), "--json", "-q",
                            "--budget", str(options.budget), "--rounds", "2", *options.further.split(), *more)
    if code != 0:
        return code, [("optimize", message_of(out, error))]
    return 0, [(s["name"], s["failure"]) for s in json.loads(out)["strategies"] if s["failure"]]


def given(hone, subject, run):
    words = []
    for i, (name, tensor) in enumerate(subject.tensors(run).items()):
        file = hone.path(f"{run}_{i}.pb")
        with open(file, "wb") as f:
            f.write(tensor.SerializeToString())
        words += ["-i", f"{name}={file}"]
    return words


def results_of(hone, subject, out):
    files = {r["name"]: r["file"] for r in json.loads(out)["results"]}
    load = lambda name: np.load(os.path.join(hone.directory, files[name]), allow_pickle=False)
    return [executors.as_type(load(o.name), o) for o in subject.model.graph.output]


def run_plan(hone, subject, say):
    """The first run that differs or ends, as a status and a text; else "ok"."""
    for run in range(len(subject.runs)):
        say("hone run")
        code, out, error = hone("run", hone.path("plan.hone"), "-q", "--json", "-o", hone.path(f"out{run}"), *given(hone, subject, run))
        if is_defect(code):
            return "DEFECT", f"run {run}: exit {code}: {message_of(out, error)}"
        if code != 0:
            message = message_of(out, error)
            if not subject.is_judged(run) or subject.settled_refusal(message) or is_accepted("run", message):
                continue
            return "RUN REFUSED", f"run {run}: {message}"
        if problem := subject.wrong(run, results_of(hone, subject, out), say):
            return "DIFFERS", f"run {run}: {problem}"
    return ("ok" if subject.is_judged() else "no peer"), ""


def judge_refusal(hone, subject, message, say):
    """Of a model for which there is no plan, though nothing is called a defect."""
    if reason := subject.settled_refusal(message):
        return reason, message
    if is_accepted("optimize", message):
        return "accepted", message
    if not subject.is_judged():
        return "both refuse", message
    say("hone check")
    code, out, error = hone("check", hone.path("model.onnx"), "--json")
    return ("REFUSED BY CHECK" if code == 3 else "REFUSED BY OPTIMIZE"), message


def judge(hone, subject, options, say):
    onnx.save(subject.model, hone.path("model.onnx"))
    say("hone optimize")
    code, failures = optimized(hone, options)
    if code in (1, 2, 3) and (sizes := subject.given_sizes()):  # an operator may need sizes that are numbers
        code, failures = optimized(hone, options, sizes)
    if is_defect(code):
        return "DEFECT", f"exit {code}: {failures[0][1]}"
    if code != 0:
        return judge_refusal(hone, subject, failures[0][1], say)
    lost = [f"{where}: {message}" for where, message in failures if not is_accepted(where, message)]
    if lost:
        return "LOST", "; ".join(lost)
    return run_plan(hone, subject, say)


def judge_folder(hone, folder, name, options, say):
    """A test of the suite, which `hone validate` knows how to read."""
    shutil.copy(os.path.join(folder, "model.onnx"), hone.path("model.onnx"))
    for other in os.listdir(folder):  # external data
        if not other.startswith("test_data_set") and other != "model.onnx":
            shutil.copy(os.path.join(folder, other), hone.path(other))
    say("hone optimize")
    code, failures = optimized(hone, options)
    if is_defect(code):
        return "DEFECT", f"exit {code}: {failures[0][1]}"
    if code != 0:
        return ("accepted" if is_accepted("optimize", failures[0][1]) else "REFUSED BY OPTIMIZE"), failures[0][1]
    lost = [f"{where}: {message}" for where, message in failures if not is_accepted(where, message)]
    if lost:
        return "LOST", "; ".join(lost)
    if name in subjects.not_passed():
        return "no peer", ""
    say("hone validate")
    code, out, error = hone("validate", hone.path("plan.hone"), "--data", folder, "--json")
    if code == 0:
        return "ok", ""
    message = message_of(out, error)
    if not is_defect(code) and is_accepted("run", message):
        return "accepted", message
    return ("DEFECT" if is_defect(code) else "DIFFERS"), f"exit {code}: {message[:400]}"


def work(job, options, skip, directory, say):
    kind, name, index = job
    started = time.monotonic()
    hone = Hone(options.hone, directory)
    out = {"kind": kind, "name": name, "index": index, "text": ""}
    try:
        if kind == "suite":
            label = "/".join(name.split(os.sep)[-2:])
            out["text"] = label
            status, message = judge_folder(hone, name, label, options, say)
        else:
            subject = subjects.Stored(name) if kind == "stored" else \
                {"network": subjects.Random, "operator": subjects.Row}[kind](name, index, options.seed)
            out["text"] = subject.text
            subject.ask(skip, say)
            status, message = judge(hone, subject, options, say)
            if options.keep and status not in GOOD:
                keep(hone, subject, os.path.join(options.keep, f"{os.path.basename(name)}-{index}"))
    except cases.Reject as e:
        status, message = "no model", str(e)
    except Exception:  # a defect of the generator, or a file that is not what it should be
        status, message = "BROKEN", traceback.format_exc()
    shutil.rmtree(directory, ignore_errors=True)
    return out | {"status": status, "message": message, "seconds": time.monotonic() - started, "hone": hone.seconds}


def keep(hone, subject, target):
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    shutil.copy(hone.path("model.onnx"), target)
    for run in range(len(subject.runs)):
        for name, tensor in subject.tensors(run).items():
            with open(os.path.join(target, f"{run}_{name}.pb".replace("/", "_")), "wb") as file:
                file.write(tensor.SerializeToString())


def lost(job, at):
    kind, name, index = job
    return {"kind": kind, "name": name, "index": index, "text": "", "status": "BROKEN", "message": f"no result while at: {at}",
            "seconds": JOB_SECONDS, "hone": 0}


def numbered(weights, count):
    """About `count` pairs of name and number, by weight."""
    total = sum(weights.values())
    return [(name, i) for name, weight in weights.items() for i in range(max(1, round(count * weight / total)))]


def jobs_of(options, root):
    only = set(options.only)
    chosen = lambda weights: {n: w for n, w in weights.items() if not only or n in only or n.rpartition(".")[2] in only}
    networks, operators = chosen({f: 1 for f in sorted(subjects.FAMILIES)}), chosen(subjects.row_names())
    share = (SHARE_OF_NETWORKS if operators else 1) if networks else 0
    jobs = [("network", *pair) for pair in numbered(networks, options.count * share)]
    jobs += [("operator", *pair) for pair in numbered(operators, options.count * (1 - share))]
    files = [("suite", f, 0) for f in subjects.suite(root)] + [("stored", f, 0) for f in subjects.stored()]
    jobs += [j for j in files if not only or j[0] in only or os.path.basename(j[1]).removesuffix(".onnx") in only]
    if options.index is not None:
        jobs = [(k, n, options.index) for k, n in sorted({(k, n) for k, n, _ in jobs})]
    if options.part:
        part, _, parts = options.part.partition("/")
        jobs = jobs[int(part) - 1::int(parts)]
    random.Random(options.seed).shuffle(jobs)
    return jobs


def repeat_command(r, options):
    name = os.path.basename(r["name"]).removesuffix(".onnx")
    number = f" --index {r['index']}" if r["kind"] in ("network", "operator") else ""
    return f"tools/peers BUILD_DIR --optimize --seed {options.seed} --only {name}{number}"


def report(results, options, seconds):
    bad = [r for r in results if r["status"] not in GOOD]
    kinds = collections.Counter(r["kind"] for r in results)
    print("\naccepted and not judged:")
    for status in GOOD[1:]:
        said = collections.Counter(shortened(r["message"]) for r in results if r["status"] == status)
        for text, count in said.most_common(400 if options.verbose else 4):
            print(f"  {status}: {count} x {text}")
    count = collections.Counter(r["status"] for r in results)
    print(f"\n{len(results)} models ({', '.join(f'{n} {k}' for k, n in kinds.most_common())}) in {seconds:.0f} s, seed {options.seed}, "
          f"budget {options.budget} s: " + ", ".join(f"{n} {s}" for s, n in count.most_common()))
    print(f"time in hone: {sum(r['hone'] for r in results):.0f} s; longest: " +
          ", ".join(f"{os.path.basename(r['name'])} {r['index']} {r['seconds']:.0f} s" for r in sorted(results, key=lambda r: -r["seconds"])[:5]))
    return len(bad)


def shortened(message):
    return re.sub(r"\s+", " ", re.sub(r"\d+", "N", message))[:150]


def arguments():
    p = argparse.ArgumentParser(prog="tools/peers BUILD_DIR --optimize", description=__doc__)
    p.add_argument("hone", help="the program `hone`")
    p.add_argument("--seed", type=int, default=datetime.date.today().toordinal(), help="default: the number of the day")
    p.add_argument("--count", type=int, default=5000, help="how many random models, about (default: 5000)")
    p.add_argument("--seconds", type=float, help="begin no model after this time; the order follows from the seed")
    p.add_argument("--part", metavar="K/N", help="the Kth of N parts, for several machines")
    p.add_argument("--only", nargs="*", default=[], metavar="NAME", help="families, operators, file names, `suite` or `stored`")
    p.add_argument("--index", type=int, help="with --only: this model alone")
    p.add_argument("--jobs", dest="workers", type=int, default=os.cpu_count(), help="models at once (default: all processors)")
    p.add_argument("--budget", type=float, default=0.2, help="for `hone optimize`, in seconds (default: 0.2)")
    p.add_argument("--options", dest="further", default="", metavar="WORDS", help="further options of `hone optimize`")
    p.add_argument("--keep", metavar="DIR", help="keeps the models and inputs that fail")
    p.add_argument("--lines", metavar="FILE", help="appends each result as a line of JSON")
    p.add_argument("--verbose", action="store_true", help="print every model")
    return p.parse_args()


def show(r, options):
    if options.lines:
        with open(options.lines, "a") as file:
            file.write(json.dumps(r | {"seed": options.seed}) + "\n")
    if r["status"] not in GOOD or options.verbose:
        print(f"\n{r['status']} {r['kind']} {r['name']} {r['index']} ({r['seconds']:.1f} s): {r['text'][:600]}\n    {r['message'][:1500]}\n"
              f"    {repeat_command(r, options)}", flush=True)


def main():
    options = arguments()
    root = tempfile.mkdtemp(prefix="peers", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    started, results = time.monotonic(), []
    try:
        jobs = jobs_of(options, root)
        if not jobs:
            sys.exit(f"nothing is named {' or '.join(options.only)}")
        until = started + options.seconds if options.seconds else None
        for r in workers.run_all(jobs, work, options, root, JOB_SECONDS, PEERS, lost, until):
            results.append(r)
            show(r, options)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(1 if report(results, options, time.monotonic() - started) else 0)


if __name__ == "__main__":
    main()
