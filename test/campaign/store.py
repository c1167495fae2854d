"""Copies models of a campaign, with a set of inputs and ONNX Runtime's outputs inside, to a folder of test/stored.
usage: store.py CAMPAIGN_MODELS TARGET GROUP/NAME[@SET]..."""

import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper


def store(source, number, target):
    model = onnx.load(source / "model.onnx")
    for kind, values, word in (("input", model.graph.input, "given:"), ("output", model.graph.output, "expected:")):
        for i, value in enumerate(values):
            array = np.load(source / f"test_data_set_{number}" / f"{kind}_{i}.npy")
            model.graph.initializer.append(numpy_helper.from_array(array, word + value.name))
    del model.graph.value_info[:]
    del model.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    onnx.save(model, target)


root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
for name in sys.argv[3:]:
    name, _, number = name.partition("@")
    store(root / name, number or "0", folder / (name.replace("/", "_").replace("-", "_") + ".onnx"))
