"""Copies models of a campaign, with their inputs and ONNX Runtime's outputs inside, to a folder of test/stored.
usage: store.py CAMPAIGN_MODELS TARGET GROUP/NAME...

Values of the first set are initializers named given:NAME and expected:NAME, those of set K given.K:NAME and
expected.K:NAME. Names of nodes and what exporters say of the Python code that they came from are left out."""

import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper


def all_nodes(nodes):
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from all_nodes(graph.node)


def store(source, target):
    model = onnx.load(source / "model.onnx")
    sets = sorted(source.glob("test_data_set_*"), key=lambda s: int(s.name.rsplit("_", 1)[1]))
    for k, folder in enumerate(sets):
        for kind, values, word in (("input", model.graph.input, "given"), ("output", model.graph.output, "expected")):
            for i, value in enumerate(values):
                array = np.load(folder / f"{kind}_{i}.npy")
                name = f"{word}{f'.{k}' if k else ''}:{value.name}"
                model.graph.initializer.append(numpy_helper.from_array(array, name))
    del model.graph.value_info[:]
    del model.metadata_props[:]
    del model.graph.metadata_props[:]
    for function in model.functions:
        del function.value_info[:]
        del function.metadata_props[:]
    for node in all_nodes([*model.graph.node, *(n for f in model.functions for n in f.node)]):
        node.name = node.doc_string = ""
        del node.metadata_props[:]
    onnx.save(model, target)


if __name__ == "__main__":
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for name in sys.argv[3:]:
        store(root / name, folder / (name.replace("/", "_").replace("-", "_") + ".onnx"))
