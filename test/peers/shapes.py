"""Types that hone finds against those that the unit tests of ONNX for shape inference expect. See docs/testing.md.

A model of theirs is read by `hone check --json`, with the values in question as outputs. Dtypes, ranks
and every size that is a number must be the same; a size that the tests leave open may be anything. What
hone does not find must stand in test/peers/shapes.txt.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import onnx

import record

DTYPES = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "bool", "string": "text"}
LISTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes.txt")
# What is well; all else must be listed.
AGREES, KNOWS_MORE, BOTH_REFUSE = "agrees", "knows more", "both refuse"


def dtype_name(number):
    name = onnx.TensorProto.DataType.Name(number).lower()
    return DTYPES.get(name) or re.sub("^(u?)int", lambda m: "u" if m[1] else "i", re.sub("^float", "f", name))


# ---- the model that hone reads


def as_asked(question):
    """The question's model with the values in question as outputs."""
    model = onnx.ModelProto()
    model.CopyFrom(question.model)
    graph = model.graph
    seeds_to_inputs(graph)
    made = [o for n in graph.node for o in n.output if o]
    declared = {v.name: v for v in [*graph.value_info, *graph.output]}
    wanted = [o for o in made if o in question.expected] if question.expected else [o.name for o in graph.output] or made
    del graph.output[:]
    del graph.value_info[:]
    for name in dict.fromkeys(wanted):
        graph.output.append(declared.get(name) or onnx.ValueInfoProto(name=name))
    return model


def seeds_to_inputs(graph):
    """The tests make x, of a declared type, as Reshape(SEED_x, UNKNOWN_SHAPE_x), so that nothing else
    tells its type; an input of that type says the same. Where x is a result too, it is its type only."""
    seeds = [n for n in graph.node if n.op_type == "Reshape" and n.input[:1] == ["SEED_" + n.output[0]]]
    declared = {v.name: v for v in graph.value_info}
    for node in seeds:
        name = node.output[0]
        for given in node.input:
            graph.input.remove(next(v for v in graph.input if v.name == given))
        graph.node.remove(node)
        if not any(name in n.output for n in graph.node):
            graph.input.append(declared[name])
            graph.value_info.remove(declared[name])


def without_rank(model):
    constants = {t.name for t in model.graph.initializer}
    return [v for v in model.graph.input if v.name not in constants and v.type.HasField("tensor_type") and
            not v.type.tensor_type.HasField("shape")]


def completions(model):
    """The model, then instances of it: hone asks for a rank of every input, and some operators for sizes
    that are numbers. What holds for all sizes holds for these."""
    yield model
    ranks = range(5) if without_rank(model) else [None]
    for rank in ranks:
        for size in (None, 1, 2, 3, 4):
            if rank is not None or size is not None:
                yield completed(model, rank, size)


def completed(model, rank, size):
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for v in without_rank(out):
        v.type.tensor_type.shape.dim.extend([onnx.TensorShapeProto.Dimension()] * (rank or 0))
    for v in out.graph.input:
        for dim in v.type.tensor_type.shape.dim if size and v.type.HasField("tensor_type") else ():
            if not dim.HasField("dim_value"):
                dim.dim_value = size
    return out


# ---- the comparison


def sizes_of(text):
    """"f32[2,floor_div(a,b)]" as "f32", ["2", "floor_div(a,b)"]."""
    dtype, _, rest = text.removesuffix("]").partition("[")
    sizes, depth = [""], 0
    for c in rest:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            sizes.append("")
        else:
            sizes[-1] += c
    return dtype, sizes if rest else []


def compare_tensor(expected, text):
    """KNOWS_MORE, AGREES, or what differs."""
    dtype, sizes = sizes_of(text)
    if expected.elem_type and dtype_name(expected.elem_type) != dtype:
        return f"{text}, expected {dtype_name(expected.elem_type)}"
    if not expected.HasField("shape"):
        return KNOWS_MORE
    wanted = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in expected.shape.dim]
    if len(wanted) != len(sizes) or any(w.isdigit() and w != s for w, s in zip(wanted, sizes)):
        return f"{text}, expected [{','.join(wanted)}]"
    return KNOWS_MORE if any(s.isdigit() and not w.isdigit() for w, s in zip(wanted, sizes)) else AGREES


def compare(name, expected, outputs):
    """The same of a value. Of a sequence or an optional hone gives the tensors in it: NAME.0, NAME.1, ..."""
    found = [t for o in outputs for t in o["types"] if re.fullmatch(re.escape(name) + r"(\.\d+)*", o["name"])]
    kind = expected.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        while kind in ("sequence_type", "optional_type"):
            expected = getattr(expected, kind).elem_type
            kind = expected.WhichOneof("value")
    elif not found:
        return "no such output"
    if kind is None:
        return KNOWS_MORE
    if kind != "tensor_type":
        return f"a {kind} is expected"
    said = [compare_tensor(expected.tensor_type, t) for t in found]
    return next((s for s in said if s not in (AGREES, KNOWS_MORE)), KNOWS_MORE if KNOWS_MORE in said else AGREES)


def judge(question, told, complete=True):
    """A status and what there is to say about it."""
    if "crash" in told:
        return "crashes", told["crash"]
    problems = told["wrong"] + told["unsupported"] + told["data_dependent"]
    if question.error:
        if not problems:
            return "accepts", "; ".join(told["warnings"]) + " where onnx says: " + question.error
        meant = [p for p in told["wrong"] if "not even a rank" not in p and "are no tensors" not in p]
        return (BOTH_REFUSE, "") if meant else ("refuses for another reason", problems[0])
    if problems:
        return ("unsupported" if told["unsupported"] else "refuses"), problems[0]
    said = {n: compare(n, t, told["outputs"]) for n, t in question.expected.items() if n in question.made}
    if differing := [f"{n}: {s}" for n, s in said.items() if s not in (AGREES, KNOWS_MORE)]:
        return "disagrees", "; ".join(differing)
    return (KNOWS_MORE if complete and KNOWS_MORE in said.values() else AGREES), ""


def ask(hone, model, path):
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    done = subprocess.run([hone, "check", path, "--json"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 3):
        return {"crash": f"exit {done.returncode}: {done.stderr[-400:]}"}
    return json.loads(done.stdout)


def settle(question, hone, path):
    """Verdict of the first completion that hone reads, or else of the model as it is."""
    asked = as_asked(question)
    question.made = {v.name for v in asked.graph.output}
    first = None
    for model in completions(asked):
        told = ask(hone, model, path)
        verdict = judge(question, told, first is None)
        first = first or verdict
        if verdict[0] not in ("refuses", "unsupported", "refuses for another reason"):
            return (*verdict, model is not asked)
    return (*first, False)


# ---- shapes.txt


def read_list():
    """Entries separated by empty lines: names of tests without their parameters, a status, a reason.
        test_dft_dynamic_axis_opset20 test_onehot_empty_depth; refuses
        The reason, in one or more lines."""
    with open(LISTED) as file:
        text = "\n".join(line for line in file.read().split("\n") if not line.startswith("#"))
    out = {}
    for block in filter(None, (b.strip() for b in re.split(r"\n\s*\n", text))):
        first, *reason = block.split("\n")
        names, _, status = first.rpartition(";")
        if not names or not reason:
            raise SystemExit(f"shapes.txt: {first}: needs 'TEST ...; STATUS' and a reason")
        for name in names.split():
            out[name, status.strip()] = " ".join(reason)
    return out


def report(verdicts, outcomes, seconds, everything):
    listed = read_list()
    used, new = collections.Counter(), []
    for question, status, text, _ in verdicts:
        key = (question.name.split()[0].split("[")[0], status)
        if status in (AGREES, KNOWS_MORE, BOTH_REFUSE):
            continue
        if key in listed:
            used[key] += 1
        else:
            new.append(f"{status.upper()} {question.name}: {text}")
    stale = [f"{name}; {status}" for name, status in listed if (name, status) not in used] if everything else []
    reasons = collections.Counter()
    for key, n in used.items():
        reasons[key[1], listed[key]] += n
    print("listed in test/peers/shapes.txt:")
    for (status, reason), n in sorted(reasons.items()):
        print(f"  {n} {status}: {reason}")
    for line in new:
        print("\n" + line)
    for line in stale:
        print(f"\nshapes.txt: {line}: holds for no model any more")
    count = collections.Counter(v[1] for v in verdicts)
    given = sum(v[3] for v in verdicts if v[1] in (AGREES, KNOWS_MORE))
    tests = collections.Counter(outcomes.values())
    print(f"\n{len(verdicts)} models of {tests['passed']} tests of onnx {onnx.__version__} for shape inference "
          f"({tests['skipped']} others are skipped there) in {seconds:.0f} s: " +
          ", ".join(f"{n} {s}" for s, n in count.most_common()) +
          f"; {given} were given ranks or sizes; {len(new)} are not listed")
    return bool(new or stale)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("hone", help="the program `hone`")
    p.add_argument("--directory", default="build/peers", help="where the tests of ONNX are kept (default: build/peers)")
    p.add_argument("--only", default="", metavar="TEXT", help="tests with this in their names")
    p.add_argument("--keep", metavar="DIR", help="keeps the models")
    p.add_argument("--verbose", action="store_true", help="print every case")
    options = p.parse_args()
    started = time.monotonic()
    questions, outcomes = record.record(options.directory)
    questions = [q for q in questions if options.only in q.name]
    with tempfile.TemporaryDirectory(prefix="shapes") as scratch:
        root = options.keep or scratch
        os.makedirs(root, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            paths = [os.path.join(root, re.sub(r"[^\w.-]+", "_", q.name)[:150] + ".onnx") for q in questions]
            verdicts = [(q, *v) for q, v in zip(questions, pool.map(settle, questions, [options.hone] * len(paths), paths))]
    for q, status, text, _ in verdicts if options.verbose else ():
        print(f"{status.upper()} {q.name}: {text}")
    sys.exit(report(verdicts, outcomes, time.monotonic() - started, not options.only))


if __name__ == "__main__":
    main()
