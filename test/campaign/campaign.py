"""Exports models of real architectures and compares hone with ONNX Runtime on them (docs/testing.md).

Every model lies in a folder of its own, with its inputs and ONNX Runtime's outputs beside it as `hone validate` reads
them, so that a line of the table can be repeated by hand."""

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from facts import facts  # noqa: E402

STRATEGIES = "ref,cpu,auto"
SECONDS = 600


def names_of(groups):
    """Lists (group, name)."""
    out = []
    for group in groups:
        if group in ("torch", "transformers"):
            out += [(f"{group}-{e}", c.name) for e in ("script", "dynamo") for c in cases_of(group)]
        elif group == "sklearn":
            import other_cases
            out += [(group, m[0]) for m in other_cases.sklearn_models()]
        else:
            import other_cases
            out += [(group, f"{k}-{g}-{n}") for k, g, n in other_cases.CHANGES]
    return out


def cases_of(group):
    import torch_cases
    if group == "torch":
        return torch_cases.cases()
    import transformers_cases
    return transformers_cases.cases()


def make_model(group, name, folder):
    """Writes FOLDER/model.onnx; returns the sets of inputs."""
    import case
    import other_cases
    file = str(folder / "model.onnx")
    if group == "sklearn":
        return other_cases.export_sklearn(name, file)
    if group == "changed":
        kind, base, source = name.split("-", 2)
        original = str(folder / "original.onnx")
        sets = case.export(next(c for c in cases_of(base) if c.name == source), "script", original)
        change = other_cases.quantized if kind in other_cases.QUANTIZED else other_cases.optimized
        change(*((kind, original, sets, file) if kind in other_cases.QUANTIZED else (kind, original, file)))
        os.remove(original)
        return sets
    base, exporter = group.split("-")
    return case.export(next(c for c in cases_of(base) if c.name == name), exporter, file)


def store_sets(folder, sets):
    """Inputs and ONNX Runtime's outputs as test_data_set_K, of the sets that it runs."""
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    done, refusal = 0, ""
    for inputs in sets:
        given = {n: inputs[n] for n in names}
        try:
            outputs = session.run(None, given)
        except Exception as e:
            refusal = str(e)
            continue
        target = folder / f"test_data_set_{done}"
        target.mkdir()
        for kind, arrays in (("input", given.values()), ("output", outputs)):
            for i, a in enumerate(arrays):
                np.save(target / f"{kind}_{i}.npy", np.asarray(a))
        done += 1
    if done == 0:
        raise RuntimeError("ONNX Runtime: " + refusal)


def described(folder):
    """How many sets there are, and how many of them hold an input of no elements."""
    import numpy as np
    sets = list(folder.glob("test_data_set_*"))
    empty = [s for s in sets if any(np.load(f).size == 0 for f in s.glob("input_*.npy"))]
    return {"sets": len(sets), "empty_sets": len(empty)}


def versions():
    return {p: importlib.metadata.version(p) for p in ("torch", "transformers", "onnxruntime", "skl2onnx")}


def reason(error):
    """The first line of what caused an error: exporters wrap it in what they were doing."""
    while error.__cause__ or (error.__context__ and not error.__suppress_context__):
        error = error.__cause__ or error.__context__
    text = re.sub("\\x1b\\[[0-9;]*m", "", str(error)).strip() or type(error).__name__
    return text.splitlines()[0][:200]


def prepare(group, name, folder, answer):
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        folder.mkdir(parents=True)
        store_sets(folder, make_model(group, name, folder))
        answer.put(("ok", ""))
    except Exception as e:
        with open(folder / "export.txt", "w") as out:
            traceback.print_exc(file=out)
        answer.put(("not exported", reason(e)))


def in_a_process(function, *arguments):
    answer = multiprocessing.Queue()
    child = multiprocessing.Process(target=function, args=(*arguments, answer))
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
        return "not exported", f"took more than {SECONDS} s"
    return answer.get() if child.exitcode == 0 else ("not exported", f"the exporter ended with {child.exitcode}")


def validate(hone, folder, is_quantized):
    # Where quantized values differ by a step, so does what follows.
    tolerance = ["--atol", "0.03", "--rtol", "0.03"] if is_quantized else ["--atol", "2e-5", "--rtol", "1e-4"]
    try:
        done = subprocess.run([hone, "validate", str(folder), "--strategy", STRATEGIES, "--json", *tolerance],
                              capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "refused", f"took more than {SECONDS} s"
    (folder / "validate.txt").write_text(done.stdout + done.stderr)
    if done.returncode not in (0, 1):
        try:
            message = json.loads(done.stdout)["error"]
        except (ValueError, KeyError, TypeError):
            message = done.stderr
        message = message if isinstance(message, str) else json.dumps(message)
        return ("refused" if done.returncode == 3 else "DEFECT"), " ".join(message.split())[:300]
    rows = json.loads(done.stdout)
    bad = [r for r in rows if not r["ok"]]
    worst = max((r["max_abs_error"] for r in rows), default=0)
    if bad:
        r = bad[0]
        return "DIFFERS", f"{r['strategy']} {r['set']} output {r['output']}: {r['max_abs_error']:.3g} ({len(bad)} of {len(rows)})"
    return "ok", f"{worst:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hone")
    parser.add_argument("--groups", default="sklearn,changed,torch,transformers")
    parser.add_argument("--only", help="names that contain this")
    parser.add_argument("--keep", default="build/campaign-models", help="where the models go")
    parser.add_argument("--again", action="store_true", help="models that lie there are compared again, not made again")
    parser.add_argument("--jsonl", help="append one line: the machine, counts, and models that do not agree")
    options = parser.parse_args()
    root = pathlib.Path(options.keep).resolve()
    counts, not_ok = {}, []
    sets = {"sets": 0, "empty_sets": 0}
    for group, name in names_of(options.groups.split(",")):
        full = f"{group}/{name}"
        if options.only and options.only not in full:
            continue
        folder = root / group / name
        start = time.time()
        if options.again and (folder / "test_data_set_0").is_dir():
            status, detail = "ok", ""
        else:
            subprocess.run(["rm", "-rf", str(folder)], check=True)
            status, detail = in_a_process(prepare, group, name, folder)
        if status == "ok":
            is_quantized = False
            if group == "changed":
                import other_cases
                is_quantized = name.split("-")[0] in other_cases.QUANTIZED
            status, detail = validate(options.hone, folder, is_quantized)
        counts.setdefault(group, {}).setdefault(status, []).append(name)
        print(f"{full:45} {status:13} {time.time() - start:5.1f} s  {detail}", flush=True)
        if status != "ok":
            not_ok.append({"group": group, "model": name, "status": status, "detail": detail})
        if status != "not exported":
            sets = {k: n + sets[k] for k, n in described(folder).items()}
    if options.jsonl:
        groups = {group: {s: len(v) for s, v in sorted(by_status.items())} for group, by_status in counts.items()}
        line = facts() | {"packages": versions(), "models": sum(sum(g.values()) for g in groups.values()), "groups": groups}
        with open(options.jsonl, "a") as out:
            out.write(json.dumps(line | sets | {"not_ok": not_ok}) + "\n")
    print()
    for group, by_status in counts.items():
        print(f"{group:22}", ", ".join(f"{len(v)} {k}" for k, v in sorted(by_status.items())))
    return any(s in ("DIFFERS", "DEFECT") for by_status in counts.values() for s in by_status)


if __name__ == "__main__":
    # Children are forks, so that these packages are read once.
    import onnxruntime
    import torch
    import transformers.models.bert.modeling_bert
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # its operators cannot be exported
    onnxruntime.set_default_logger_severity(4)
    multiprocessing.set_start_method("fork")
    sys.exit(main())
