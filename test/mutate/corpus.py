"""The models of the campaign: small, and together they reach most of the compiler.

usage: corpus.py DIR

Writes DIR/NAME/model.onnx and, beside it, sets of inputs with the outputs that ONNX Runtime gives:
DIR/NAME/sets/K/input_I.npy, output_I.npy and limits.txt, which holds for each output the largest
allowed |got - expected| as two numbers, absolute and relative to |expected|. The same on every machine
but for ONNX Runtime's own rounding. Needs the packages onnx, onnxruntime and numpy."""

import pathlib
import re
import shutil
import sys
import zlib

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from models import MODELS

# Of results of each dtype: what rounding may change, relative to the largest and to each element.
LIMITS = {"float32": (2e-5, 2e-5), "float64": (1e-12, 1e-12), "float16": (4e-3, 4e-3)}


def parsed(text, opset):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]>\ng {text}')
    return model


def draw(name, dtype, dims, rows, random):
    """Contents of an input or a weight; rows: {name: (low, high) or an array} say what is asked for."""
    rule = rows.get(name)
    if isinstance(rule, (list, np.ndarray)):
        return np.array(rule, dtype)
    if dtype == np.bool_:
        return random.integers(0, 2, dims).astype(bool)
    if dtype == np.object_:
        return np.array(random.choice(["a", "bc", "", "def 12", "bc"], dims), dtype=object)
    if np.issubdtype(dtype, np.integer):
        low, high = rule or ((-9, 9) if np.issubdtype(dtype, np.signedinteger) else (0, 18))
        return random.integers(low, high + 1, dims).astype(dtype)
    if rule:
        return random.uniform(*rule, dims).astype(dtype)
    x = random.normal(0, 1, dims)
    return np.where(random.random(dims) < 0.1, np.round(x), x).astype(dtype)  # ties and zeros among them


def types(values):
    out = {}
    for v in values:
        t = v.type.tensor_type
        dims = [d.dim_param or d.dim_value for d in t.shape.dim]
        out[v.name] = (np.dtype(helper.tensor_dtype_to_np_dtype(t.elem_type)), dims)
    return out


def build(name, row):
    """The model, with those inputs as initializers whose name begins with W."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    model = parsed(row["graph"], row.get("opset", 17))
    graph = model.graph
    weights = [v for v in graph.input if re.match(r"W", v.name)]
    for v, (dtype, dims) in zip(weights, types(weights).values()):
        array = draw(v.name, dtype, dims, row.get("fill", {}), random)
        if dtype.kind == "f" and array.ndim > 1 and v.name not in row.get("fill", {}):
            array = (array / np.sqrt(np.prod(dims[1:]))).astype(dtype)
        graph.initializer.append(numpy_helper.from_array(array, v.name))
        graph.input.remove(v)
    onnx.checker.check_model(model)
    return model, random


def write_sets(folder, model, row, random):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    for k, sizes in enumerate(row.get("sizes", [{}, {}])):
        place = folder / "sets" / str(k)
        place.mkdir(parents=True)
        feeds = {}
        for i, (name, (dtype, dims)) in enumerate(types(model.graph.input).items()):
            dims = [sizes[d] if isinstance(d, str) else d for d in dims]
            feeds[name] = draw(name, dtype, dims, row.get("fill", {}), random)
            np.save(place / f"input_{i}.npy", feeds[name].astype(str) if dtype == object else feeds[name])
        lines = []
        for i, a in enumerate(session.run(None, feeds)):
            a = np.array(a)
            np.save(place / f"output_{i}.npy", a.astype(str) if a.dtype == object else a)
            absolute, relative = LIMITS.get(a.dtype.name, (0, 0))
            finite = np.abs(a[np.isfinite(a)]) if a.dtype.kind == "f" else np.zeros(0)
            scale = row.get("wider", 1)
            lines.append(f"{scale * absolute * float(finite.max(initial=0))} {scale * relative}")
        (place / "limits.txt").write_text("\n".join(lines) + "\n")


def main():
    root = pathlib.Path(sys.argv[1])
    shutil.rmtree(root, ignore_errors=True)
    failed = []
    for name, row in MODELS.items():
        folder = root / name
        folder.mkdir(parents=True)
        try:
            model, random = build(name, row)
            onnx.save(model, folder / "model.onnx")
            write_sets(folder, model, row, random)
        except Exception as e:
            failed.append(f"corpus: {name}: {e}")
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
