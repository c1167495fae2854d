#!/usr/bin/env python3
"""Writes the ONNX models that `hone optimize` is timed with: GPT-2 124M and ResNet-50 by shape. `gpt2-decode` is one
token of GPT-2 with its caches as inputs and outputs: past.I.key is [1, 12, past, 64], present.I.key one longer.

usage: models.py gpt2|gpt2-decode|resnet50 FILE [--layers N] [--tokens N] [--width N] [--words N]

Weights are made up: their values do not change what is timed. Needs Python's standard library only.
"""
import argparse
import array
import random
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test/report"))
from onnx_writer import field, value_info, varint  # noqa: E402

F32, I64 = 1, 7
PERIOD = 16381  # a prime, so that no row of a weight repeats in step with a tile


class Model:
    """A graph whose nodes name their results %0, %1, ...; weights go into the same file."""

    def __init__(self, name):
        self.name, self.nodes, self.weights = name, [], []
        self.inputs, self.outputs = [], []
        rng = random.Random(1)
        self.values = [rng.uniform(-1, 1) for _ in range(PERIOD)]

    def input(self, name, dims, dtype=F32):
        shape = b"".join(field(1, field(2 if isinstance(d, str) else 1, d)) for d in dims)
        self.inputs.append(field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape))))
        return name

    def output(self, value, name, dims):
        self.nodes.append(field(1, value) + field(2, name) + field(4, "Identity"))
        self.outputs.append(value_info(name, dims))

    def add_tensor(self, dims, dtype, raw):
        name = f"w{len(self.weights)}"
        self.weights.append(b"".join(field(1, d) for d in dims) + field(2, dtype) +
                            field(8, name) + field(9, raw))
        return name

    def weight(self, dims, scale, around=0.0):
        count = 1
        for d in dims:
            count *= d
        once = array.array("f", (around + scale * v for v in self.values)).tobytes()
        raw = once * (4 * count // len(once)) + once[:4 * count % len(once)]
        return self.add_tensor(dims, F32, raw)

    def integers(self, values):
        return self.add_tensor([len(values)], I64, struct.pack(f"<{len(values)}q", *values))

    def scalar(self, value):
        return self.add_tensor([], F32, struct.pack("<f", value))

    def add(self, op, inputs, results=1, **attributes):
        number = len(self.nodes)
        names = [f"%{number}.{i}" if i else f"%{number}" for i in range(results)]
        data = b"".join(field(1, i) for i in inputs) + b"".join(field(2, n) for n in names)
        data += field(3, f"{op}_{number}") + field(4, op)
        for key, value in attributes.items():
            data += field(5, attribute(key, value))
        self.nodes.append(data)
        return names if results > 1 else names[0]

    def write(self, path):
        graph = b"".join(field(1, n) for n in self.nodes) + field(2, self.name)
        io = (b"".join(field(11, i) for i in self.inputs) +
              b"".join(field(12, o) for o in self.outputs))
        weights = [field(5, w) for w in self.weights]
        size = len(graph) + len(io) + sum(map(len, weights))
        with open(path, "wb") as out:
            out.write(field(1, 8) + varint(7 << 3 | 2) + varint(size) + graph)
            out.writelines(weights)
            out.write(io + field(8, field(2, 17)))


def attribute(key, value):
    if isinstance(value, float):
        return field(1, key) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, int):
        return field(1, key) + field(3, value % (1 << 64)) + field(20, 2)
    return field(1, key) + b"".join(field(8, v) for v in value) + field(20, 7)


def gpt2(layers, tokens, decodes=False, width=768, vocabulary=50257):
    heads, positions = 12, 1024
    m = Model(f"gpt2_decode_{layers}" if decodes else f"gpt2_{layers}x{tokens}")
    ids = m.input("input_ids", [1, tokens], I64)
    embedding = m.weight([vocabulary, width], 0.05)
    x = m.add("Gather", [embedding, ids], axis=0)
    place = m.weight([positions if decodes else 1, *([] if decodes else [tokens]), width], 0.02)
    if decodes:
        place = m.add("Gather", [place, m.input("position_ids", [1, tokens], I64)], axis=0)
    x = m.add("Add", [x, place])

    def norm(x):
        return m.add("LayerNormalization",
                     [x, m.weight([width], 0.1, 1), m.weight([width], 0.1)], axis=-1, epsilon=1e-5)

    # As PyTorch exports it: a product of matrices between two reshapes.
    def linear(x, n, k):
        x = m.add("Reshape", [x, m.integers([tokens, n])])
        y = m.add("Gemm", [x, m.weight([n, k], 0.04), m.weight([k], 0.02)])
        return m.add("Reshape", [y, m.integers([1, tokens, k])])

    def split_heads(x):
        x = m.add("Reshape", [x, m.integers([1, tokens, heads, width // heads])])
        return m.add("Transpose", [x], perm=[0, 2, 1, 3])

    # A cache and the new rows behind it.
    def continued(x, name):
        past = m.input(f"past.{name}", [1, heads, "past", width // heads])
        x = m.add("Concat", [past, x], axis=2)
        m.output(x, f"present.{name}", [1, heads, "present", width // heads])
        return x

    mask = decodes or m.add_tensor([1, 1, tokens, tokens], F32, b"".join(
        struct.pack("<f", 0 if j <= i else -1e9) for i in range(tokens) for j in range(tokens)))
    for layer in range(layers):
        qkv = linear(norm(x), width, 3 * width)
        q, k, v = m.add("Split", [qkv, m.integers([width] * 3)], results=3, axis=2)
        q, k, v = split_heads(q), split_heads(k), split_heads(v)
        if decodes:
            k, v = continued(k, f"{layer}.key"), continued(v, f"{layer}.value")
        scores = m.add("MatMul", [q, m.add("Transpose", [k], perm=[0, 1, 3, 2])])
        scores = m.add("Mul", [scores, m.scalar((width // heads)**-0.5)])
        if not decodes:
            scores = m.add("Add", [scores, mask])
        y = m.add("MatMul", [m.add("Softmax", [scores], axis=-1), v])
        y = m.add("Reshape", [m.add("Transpose", [y], perm=[0, 2, 1, 3]),
                              m.integers([1, tokens, width])])
        x = m.add("Add", [x, linear(y, width, width)])
        h = linear(norm(x), width, 4 * width)
        cube = m.add("Mul", [m.add("Mul", [h, h]), h])
        inner = m.add("Add", [h, m.add("Mul", [cube, m.scalar(0.044715)])])
        tanh = m.add("Tanh", [m.add("Mul", [inner, m.scalar((2 / 3.141592653589793)**0.5)])])
        gelu = m.add("Mul", [m.add("Mul", [h, m.scalar(0.5)]), m.add("Add", [tanh, m.scalar(1)])])
        x = m.add("Add", [x, linear(gelu, 4 * width, width)])
    logits = m.add("MatMul", [norm(x), m.add("Transpose", [embedding], perm=[1, 0])])
    m.output(logits, "logits", [1, tokens, vocabulary])
    return m


def resnet50():
    m = Model("resnet50")
    x = m.input("image", [1, 3, 224, 224])

    def conv(x, n, k, size, stride=1):
        weight = m.weight([k, n, size, size], (2 / (n * size * size))**0.5)
        return m.add("Conv", [x, weight, m.weight([k], 0.05)], kernel_shape=[size, size],
                     strides=[stride, stride], pads=[size // 2] * 4)

    x = m.add("Relu", [conv(x, 3, 64, 7, 2)])
    x = m.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            y = m.add("Relu", [conv(x, channels, width, 1)])
            y = m.add("Relu", [conv(y, width, width, 3, step)])
            y = conv(y, width, 4 * width, 1)
            if block == 0:
                x = conv(x, channels, 4 * width, 1, step)
            x = m.add("Relu", [m.add("Add", [y, x])])
            channels = 4 * width
    x = m.add("Flatten", [m.add("GlobalAveragePool", [x])], axis=1)
    x = m.add("MatMul", [x, m.weight([channels, 1000], 0.02)])
    m.output(m.add("Add", [x, m.weight([1000], 0.02)]), "scores", [1, 1000])
    return m


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shape", choices=["gpt2", "gpt2-decode", "resnet50"])
    parser.add_argument("file")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--width", type=int, default=768, help="of GPT-2: a multiple of 12")
    parser.add_argument("--words", type=int, default=50257, help="of GPT-2")
    a = parser.parse_args()
    decodes = a.shape == "gpt2-decode"
    model = (resnet50() if a.shape == "resnet50" else
             gpt2(a.layers, 1 if decodes else a.tokens, decodes, a.width, a.words))
    model.write(a.file)


if __name__ == "__main__":
    main()
