"""The unit tests of ONNX for shape inference, run as they are, while every model whose types they ask
for is recorded with the answer that they accept."""

import contextlib
import dataclasses
import hashlib
import io
import os
import tarfile
import urllib.request

import onnx
import onnx.checker
import onnx.shape_inference
import pytest
from onnx import helper, numpy_helper

VERSION = "1.23.2"
SOURCE = ("https://files.pythonhosted.org/packages/3f/62/bc2dfadb63ecf04cb2d65a6b17751863039d36c65de51d6a3128ab35f1e7/"
          f"onnx-{VERSION}.tar.gz")
SHA256 = "008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8"
FILES = ("shape_inference", "split_shape_inference", "node_shape_inference", "model_inference", "function_inference",
         "inference_function", "data_propagation", "symbolic_shape")


@dataclasses.dataclass
class Question:
    test: str  # "shape_inference_test.py::TestShapeInference::test_transpose[13]"
    number: int  # of the questions of this test
    model: onnx.ModelProto
    expected: dict  # name to TypeProto, of values of the model's graph; empty when it is refused
    error: str = ""  # what refuses the model

    @property
    def name(self):
        return f"{self.test.split('::')[-1]} {self.number}"


def fetch(directory):
    """The folder of the tests, from the source distribution (the wheel has none)."""
    tests = os.path.join(directory, f"onnx-{VERSION}", "tests", "python")
    if not os.path.isdir(tests):
        with urllib.request.urlopen(SOURCE) as answer:
            archive = answer.read()
        if hashlib.sha256(archive).hexdigest() != SHA256:
            raise SystemExit(f"{SOURCE} is not the file that was pinned: it has another sha256")
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(directory, [m for m in tar if "/tests/python/" in m.name], filter="data")
    return tests


class Recorder:
    """A plugin of pytest. Tests import the functions by name, so it must be made before they are."""

    def __init__(self):
        self.questions, self.outcomes = [], {}
        self.infer_shapes = onnx.shape_inference.infer_shapes
        self.infer_node = onnx.shape_inference.infer_node_outputs
        self.infer_function = onnx.shape_inference.infer_function_output_types
        self.check_model = onnx.checker.check_model
        onnx.shape_inference.infer_shapes = self.asked_of_model
        onnx.shape_inference.infer_node_outputs = self.asked_of_node
        onnx.shape_inference.infer_function_output_types = self.asked_of_function
        onnx.checker.check_model = self.checked

    def pytest_runtest_setup(self, item):
        self.test, self.number = item.nodeid, 0

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome

    def ask(self, model, answer):
        """Notes what `answer` gives, a result and the types in it."""
        self.number += 1
        question = Question(self.test, self.number, model, {})
        self.questions.append(question)
        try:
            result, question.expected = answer()
            return result
        except Exception as e:
            question.error = f"{type(e).__name__}: {e}"
            raise

    def asked_of_model(self, model, *args, **kwargs):
        given = onnx.ModelProto()
        if not isinstance(model, (bytes, onnx.ModelProto)):
            return self.infer_shapes(model, *args, **kwargs)
        given.CopyFrom(onnx.load_model_from_string(model) if isinstance(model, bytes) else model)

        def answer():
            inferred = self.infer_shapes(model, *args, **kwargs)
            graph = (onnx.load_model_from_string(inferred) if isinstance(inferred, bytes) else inferred).graph
            return inferred, {v.name: v.type for v in [*graph.value_info, *graph.output]}
        return self.ask(given, answer)

    def checked(self, model, *args, **kwargs):
        try:
            return self.check_model(model, *args, **kwargs)
        except onnx.checker.ValidationError as e:
            if self.questions and self.questions[-1].test == self.test:
                self.questions[-1].error = f"{type(e).__name__}: {e}"
            raise

    def asked_of_node(self, schema, node, input_types, input_data=None, input_sparse_data=None, opset_imports=None,
                      ir_version=onnx.IR_VERSION):
        opsets = opset_imports or [helper.make_opsetid(schema.domain, schema.since_version)]
        constants = dict(input_data or {})
        model = model_of(node, {n: t for n, t in input_types.items() if n not in constants}, opsets)
        for name, tensor in constants.items():
            model.graph.initializer.add().CopyFrom(tensor)
            model.graph.initializer[-1].name = name

        def answer():
            types = self.infer_node(schema, node, input_types, input_data, input_sparse_data, opset_imports, ir_version)
            return types, dict(types)
        return self.ask(model, answer)

    def asked_of_function(self, function, input_types, attributes):
        given = [name if t.WhichOneof("value") else "" for name, t in zip(function.input, input_types)]
        node = helper.make_node(function.name, given, list(function.output), domain=function.domain)
        node.attribute.extend(attributes)
        opsets = [*function.opset_import, helper.make_opsetid(function.domain, 1)]
        model = model_of(node, {n: t for n, t in zip(given, input_types) if n}, opsets)
        model.functions.append(function)

        def answer():
            types = self.infer_function(function, input_types, attributes)
            return types, dict(zip(function.output, types))
        return self.ask(model, answer)


def model_of(node, input_types, opsets):
    graph = helper.make_graph([node], "test", [helper.make_value_info(n, t) for n, t in input_types.items()], [])
    return helper.make_model(graph, opset_imports=opsets)


def record(directory):
    """All questions of tests that passed, and a count of tests by outcome."""
    tests = fetch(directory)
    if onnx.__version__ != VERSION:
        raise SystemExit(f"the tests are of onnx {VERSION}, and {onnx.__version__} is installed")
    recorder = Recorder()
    files = [os.path.join(tests, f"{name}_test.py") for name in FILES]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", tests, *files], plugins=[recorder])
    if failed := [t for t, o in recorder.outcomes.items() if o == "failed"]:
        raise SystemExit("tests of onnx fail with onnx itself: " + ", ".join(failed))
    return [q for q in recorder.questions if recorder.outcomes.get(q.test) == "passed"], recorder.outcomes
