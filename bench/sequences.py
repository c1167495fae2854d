#!/usr/bin/env python3
"""Times LSTM, GRU and Scan at several lengths in hone and in ONNX Runtime, interleaved, one thread.

Needs the packages numpy, onnx and onnxruntime. Usage: bench/sequences.py [HONE] [LENGTH...]
Prints the machine and then a JSON line for each model and length: the least time of a run in
milliseconds, and hone's over ONNX Runtime's.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from facts import facts
from onnx import TensorProto, helper, numpy_helper

ROUNDS = 5
rng = np.random.default_rng(1)


def weight(name, *dims):
    return numpy_helper.from_array((rng.standard_normal(dims) * 0.1).astype("f"), name)


def info(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def model(nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, "sequence", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def recurrent(kind, steps, size=64, hidden=128):
    gates = {"LSTM": 4, "GRU": 3}[kind] * hidden
    node = helper.make_node(kind, ["X", "W", "R", "B"], ["Y", "H"], hidden_size=hidden)
    return model([node], [info("X", steps, 1, size)],
                 [info("Y", steps, 1, 1, hidden), info("H", 1, 1, hidden)],
                 [weight("W", 1, gates, size), weight("R", 1, gates, hidden),
                  weight("B", 1, 2 * gates)])


def scan(steps, hidden=64):
    body = helper.make_graph(
        [helper.make_node("MatMul", ["s", "W"], ["m"]), helper.make_node("Add", ["m", "x"], ["a"]),
         helper.make_node("Tanh", ["a"], ["t"]), helper.make_node("Identity", ["t"], ["y"])],
        "body", [info("s", 1, hidden), info("x", 1, hidden)],
        [info("t", 1, hidden), info("y", 1, hidden)])
    node = helper.make_node("Scan", ["S", "X"], ["F", "Y"], body=body, num_scan_inputs=1)
    return model([node], [info("S", 1, hidden), info("X", steps, 1, hidden)],
                 [info("F", 1, hidden), info("Y", steps, 1, hidden)], [weight("W", hidden, hidden)])


def hone_ms(hone, path):
    out = subprocess.run([hone, "bench", path, "--threads", "1", "--json", "--duration", "0.5"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["min_ms"]


def ort_ms(session, inputs):
    start = time.perf_counter()
    session.run(None, inputs)
    return (time.perf_counter() - start) * 1e3


def main():
    hone = sys.argv[1] if len(sys.argv) > 1 else "build/release/hone"
    lengths = [int(n) for n in sys.argv[2:]] or [100, 500, 2000, 4000]
    makers = {"LSTM": lambda n: recurrent("LSTM", n), "GRU": lambda n: recurrent("GRU", n),
              "Scan": scan}
    print(json.dumps(facts() | {"onnxruntime": onnxruntime.__version__, "threads": 1}))
    with tempfile.TemporaryDirectory() as folder:
        for name, make in makers.items():
            for steps in lengths:
                path = str(pathlib.Path(folder) / f"{name}_{steps}.onnx")
                onnx.save(make(steps), path)
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = 1
                session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
                inputs = {i.name: rng.standard_normal(i.shape).astype("f")
                          for i in session.get_inputs()}
                ours, theirs = [], []
                for _ in range(ROUNDS):
                    ours.append(hone_ms(hone, path))
                    theirs.extend(ort_ms(session, inputs) for _ in range(3))
                print(json.dumps({"model": name, "steps": steps, "hone_ms": round(min(ours), 3),
                                  "onnxruntime_ms": round(min(theirs), 3),
                                  "ratio": round(min(ours) / min(theirs), 3)}), flush=True)


if __name__ == "__main__":
    main()
