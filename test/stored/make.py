"""Writes small models with inputs and ONNX Runtime's results, which test_compile runs (tools/stored).

One .onnx file each: what an input holds is an initializer given:NAME, what an output must hold one
expected:NAME. Nothing in the graph uses them.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import contrib
import learned


def tensor(name, array):
    array = np.asarray(array)
    if array.dtype.kind in "OU":
        return helper.make_tensor(name, TensorProto.STRING, array.shape, [str(s).encode() for s in array.ravel()])
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def store(directory, name, model, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    for output, array in zip(names, session.run(names, inputs)):
        if isinstance(array, list):  # ZipMap: a map for each row, whose keys are known
            array = np.array([[row[k] for k in sorted(row)] for row in array], np.float32)
        model.graph.initializer.append(tensor("expected:" + output, array))
    for input_name, array in inputs.items():
        model.graph.initializer.append(tensor("given:" + input_name, array))
    model.doc_string = ""
    model.producer_version = ""
    onnx.save(model, os.path.join(directory, name + ".onnx"))


def main(directory):
    for old in os.listdir(directory):
        if old.endswith(".onnx"):
            os.remove(os.path.join(directory, old))
    for name, model, inputs in [*contrib.cases(), *learned.cases()]:
        store(directory, name, model, inputs)


main(sys.argv[1])
