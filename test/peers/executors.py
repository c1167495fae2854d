"""A case run by each program: the reference implementation of ONNX, ONNX Runtime, and hone."""

import os
import shutil
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper

import values


class Refused(Exception):
    """No result, with what the program says."""


class Crashed(Exception):
    """A signal, a defect that the program itself reports, or no end."""


def run_reference(case):
    from onnx.reference import ReferenceEvaluator
    with np.errstate(all="ignore"):
        got = ReferenceEvaluator(case.model).run(None, {n: a for n, (a, _) in case.feeds.items()})
    return [np.asarray(g) for g in got]


# ONNX Runtime takes and gives NumPy arrays, which know no narrow types: those go in as constants and
# come out through a Cast that loses nothing.
def through_numpy(case):
    narrow = set(values.SMALL) | {"bfloat16"}
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    for name, (array, type_name) in case.feeds.items():
        if type_name in narrow:
            graph.initializer.append(case._tensor(name, array, type_name))
    kept = [i for i in graph.input if i.name not in {t.name for t in graph.initializer}]
    del graph.input[:]
    graph.input.extend(kept)
    for output in graph.output:
        if values.name_of(output.type.tensor_type.elem_type) in narrow:
            graph.node.append(helper.make_node("Cast", [output.name], [output.name + "_wide"], to=TensorProto.FLOAT))
            output.name += "_wide"
            output.type.tensor_type.elem_type = TensorProto.FLOAT
    return model


def session_of(model):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run_arrays(peer, model, inputs):
    """A model whose inputs and outputs are of types that NumPy has."""
    if peer == "onnxruntime":
        return [np.asarray(g) for g in session_of(model).run(None, inputs)]
    from onnx.reference import ReferenceEvaluator
    with np.errstate(all="ignore"):
        return [np.asarray(g) for g in ReferenceEvaluator(model).run(None, inputs)]


def run_onnxruntime(case):
    session = session_of(through_numpy(case))
    taken = {i.name for i in session.get_inputs()}
    got = session.run(None, {n: a for n, (a, _) in case.feeds.items() if n in taken})
    return [np.asarray(g) for g in got]


def run_hone(case, hone, directory, strategy, sizes=False):
    """Results of `hone run`, in the model's order; with `sizes`, open ones are given."""
    shutil.rmtree(directory, ignore_errors=True)
    write(case, directory)
    out = os.path.join(directory, "out")
    done = subprocess.run([hone] + command(case, directory, strategy, sizes) + ["-o", out], capture_output=True, text=True,
                          errors="replace", timeout=60, stdin=subprocess.DEVNULL)
    text = (done.stderr + done.stdout).replace(directory + "/", "").strip()
    if done.returncode not in (0, 1, 2, 3):
        raise Crashed(f"exit {done.returncode}: {text[-400:]}")
    if done.returncode != 0:
        raise Refused(text)
    return [as_type(np.load(os.path.join(out, o.name + ".npy"), allow_pickle=False), o) for o in case.model.graph.output]


def as_type(array, output):
    """What a file of `hone run` holds, in NumPy's type of the output, if the model declares one."""
    if not output.type.tensor_type.elem_type:
        return array
    type_name = values.name_of(output.type.tensor_type.elem_type)
    kind = values.numpy_type(type_name)
    if array.dtype.kind == "V" and array.dtype.itemsize == kind.itemsize:
        return array.view(kind)
    return array.astype(kind) if type_name in values.BITS else array


def write(case, directory):
    os.makedirs(directory, exist_ok=True)
    onnx.save(case.model, os.path.join(directory, "model.onnx"))
    for name, tensor in case.tensors().items():
        with open(os.path.join(directory, name + ".pb"), "wb") as file:
            file.write(tensor.SerializeToString())


def command(case, directory, strategy, sizes):
    words = ["run", os.path.join(directory, "model.onnx"), "-q", "--no-cache", "--threads", "1", "--strategy", strategy]
    for name in case.feeds:
        words += ["-i", f"{name}={os.path.join(directory, name + '.pb')}"]
    return words + (sizes_given(case) if sizes else [])


def sizes_given(case):
    words = []
    for name, (array, _) in case.feeds.items():
        if array.ndim:
            words += ["--shapes", f"{name}:{'x'.join(map(str, array.shape))}"]
    return words
