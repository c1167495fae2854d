"""Operators of com.microsoft that ONNX Runtime runs on a processor, with most of their attributes."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(1)
CASES = []


def normal(*shape, scale=1):
    return (RANDOM.standard_normal(shape) * scale).astype(np.float32)


def codes(*shape, t=np.uint8):
    limits = np.iinfo(t)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(t)


def real(v):
    return np.array(v, np.float32)


def code(v, t=np.uint8):
    return np.array(v, t)


def integers(*v):
    return np.array(v, np.int64)


def add(name, op, inputs, outputs=("y",), inits={}, order=None, domain="com.microsoft", checked=None, **attributes):
    """A model of one node. Operands stand in the order of inputs, then initializers, unless `order` says so; `checked` are the outputs
    whose every element is specified."""
    names = order or [*inputs, *inits]
    node = helper.make_node(op, names, list(outputs), domain=domain, **attributes)
    ins = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()
    ]
    outs = [helper.make_empty_tensor_value_info(o) for o in checked or outputs if o]
    graph = helper.make_graph([node], "g", ins, outs, [numpy_helper.from_array(a, n) for n, a in inits.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    CASES.append((name.replace(" ", "_"), helper.make_model(graph, opset_imports=opsets, ir_version=8), inputs))


def cases():
    return CASES


x = normal(2, 3, 8)
add("Gelu", "Gelu", {"x": x})
add("BiasGelu", "BiasGelu", {"x": x}, inits={"b": normal(8)})
add("FastGelu", "FastGelu", {"x": x})
add("FastGelu bias", "FastGelu", {"x": x}, inits={"b": normal(8)})
add("QuickGelu", "QuickGelu", {"x": x}, alpha=1.5)
add("FusedMatMul", "FusedMatMul", {"a": normal(2, 4, 3), "b": normal(2, 4, 5)}, transA=1, alpha=0.5)
add("FusedMatMul tb", "FusedMatMul", {"a": normal(3, 4), "b": normal(5, 4)}, transB=1)
add("FusedMatMul batch", "FusedMatMul", {"a": normal(4, 2, 3), "b": normal(2, 3, 5)}, transBatchA=1)
add(
    "FusedMatMul batch2",
    "FusedMatMul",
    {"a": normal(3, 2, 4), "b": normal(5, 2, 3)},
    transBatchA=1,
    transA=1,
    transBatchB=1,
    transB=1,
)
add(
    "FusedGemm",
    "FusedGemm",
    {"a": normal(3, 4)},
    inits={"b": normal(5, 4), "c": normal(5)},
    transB=1,
    activation="LeakyRelu",
    activation_alpha=0.2,
)
add(
    "FusedConv",
    "FusedConv",
    {"x": normal(1, 3, 6, 6)},
    inits={"w": normal(4, 3, 3, 3), "b": normal(4)},
    activation="Relu",
    pads=[1, 1, 1, 1],
)
add(
    "FusedConv z",
    "FusedConv",
    {"x": normal(1, 3, 6, 6), "z": normal(1, 4, 6, 6)},
    order=["x", "w", "b", "z"],
    inits={"w": normal(4, 3, 3, 3), "b": normal(4)},
    activation="Clip",
    activation_params=[0.0, 1.0],
    pads=[1, 1, 1, 1],
)
for bits, bs, K, N in ((4, 16, 32, 6), (4, 32, 40, 5)):
    nb = (K + bs - 1) // bs
    add(
        f"MatMulNBits {bits} {K}",
        "MatMulNBits",
        {"a": normal(2, 3, K)},
        inits={"b": codes(N, nb, bs * bits // 8), "s": normal(N * nb, scale=0.1)},
        K=K,
        N=N,
        bits=bits,
        block_size=bs,
    )
    add(
        f"MatMulNBits zp {bits} {K}",
        "MatMulNBits",
        {"a": normal(2, 3, K)},
        inits={
            "b": codes(N, nb, bs * bits // 8),
            "s": normal(N * nb, scale=0.1),
            "z": codes(N * ((nb * bits + 7) // 8)),
        },
        K=K,
        N=N,
        bits=bits,
        block_size=bs,
    )
add(
    "MatMulNBits 8",
    "MatMulNBits",
    {"a": normal(3, 32)},
    inits={"b": codes(4, 1, 32), "s": normal(4, scale=0.1)},
    K=32,
    N=4,
    bits=8,
    block_size=32,
)
add(
    "LayerNormalization pre17",
    "LayerNormalization",
    {"x": x},
    ("y", "m", "i"),
    inits={"s": normal(8), "b": normal(8)},
    domain="",
    axis=-1,
)
add(
    "SimplifiedLayerNormalization",
    "SimplifiedLayerNormalization",
    {"x": x},
    ("y", "i"),
    inits={"s": normal(8)},
    domain="",
    axis=-1,
    epsilon=1e-6,
    stash_type=1,
)
add(
    "SkipLayerNormalization",
    "SkipLayerNormalization",
    {"x": x, "k": normal(2, 3, 8)},
    ("y", "", "", "s"),
    inits={"g": normal(8), "b": normal(8), "bias": normal(8)},
    epsilon=1e-5,
)
add("SkipLayerNormalization nobias", "SkipLayerNormalization", {"x": x, "k": normal(2, 3, 8)}, inits={"g": normal(8)})
add(
    "SkipSimplifiedLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    {"x": x, "k": normal(2, 3, 8)},
    ("y", "", "", "s"),
    inits={"g": normal(8), "bias": normal(8)},
    epsilon=1e-5,
)
ids = np.array([[1, 4, 2], [0, 3, 3]], np.int32)
seg = np.array([[0, 0, 1], [1, 1, 0]], np.int32)
msk = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
add(
    "EmbedLayerNormalization",
    "EmbedLayerNormalization",
    {"i": ids, "t": seg, "m": msk},
    ("y", "mi", "e"),
    order=["i", "t", "w", "p", "s", "g", "b", "m"],
    inits={"w": normal(5, 8), "p": normal(6, 8), "s": normal(2, 8), "g": normal(8), "b": normal(8)},
)
add(
    "EmbedLayerNormalization plain",
    "EmbedLayerNormalization",
    {"i": ids},
    ("y", "mi"),
    order=["i", "", "w", "p", "", "g", "b"],
    inits={"w": normal(5, 8), "p": normal(6, 8), "g": normal(8), "b": normal(8)},
)
add("CDist", "CDist", {"a": normal(4, 3), "b": normal(5, 3)}, metric="euclidean")
add("CDist sq", "CDist", {"a": normal(4, 3), "b": normal(5, 3)}, metric="sqeuclidean")
# attention
A = {"x": normal(2, 4, 8)}
W = {"w": normal(8, 24, scale=0.5), "b": normal(24)}
add("Attention", "Attention", A, inits=W, num_heads=2)
add("Attention causal", "Attention", A, inits=W, num_heads=2, unidirectional=1)
add(
    "Attention mask1",
    "Attention",
    dict(A, m=np.array([3, 4], np.int32)),
    inits=W,
    order=["x", "w", "b", "m"],
    num_heads=2,
)
add(
    "Attention mask2b",
    "Attention",
    dict(A, m=np.array([3, 4, 1, 0], np.int32)),
    inits=W,
    order=["x", "w", "b", "m"],
    num_heads=2,
)
add(
    "Attention mask2",
    "Attention",
    dict(A, m=np.array([[1, 1, 0, 1], [1, 0, 0, 1]], np.int32)),
    inits=W,
    order=["x", "w", "b", "m"],
    num_heads=2,
)
add(
    "Attention mask3",
    "Attention",
    dict(A, m=RANDOM.integers(0, 2, (2, 4, 4)).astype(np.int32)),
    inits=W,
    order=["x", "w", "b", "m"],
    num_heads=2,
    scale=0.3,
)
add(
    "Attention past",
    "Attention",
    dict(A, p=normal(2, 2, 2, 3, 4)),
    ("y", "pr"),
    inits=W,
    order=["x", "w", "b", "", "p"],
    num_heads=2,
    unidirectional=1,
)
add(
    "Attention past mask",
    "Attention",
    dict(A, p=normal(2, 2, 2, 3, 4), m=RANDOM.integers(0, 2, (2, 7)).astype(np.int32)),
    ("y", "pr"),
    inits=W,
    order=["x", "w", "b", "m", "p"],
    num_heads=2,
)
add(
    "Attention bias",
    "Attention",
    dict(A, e=normal(2, 2, 4, 4)),
    inits=W,
    order=["x", "w", "b", "", "", "e"],
    num_heads=2,
)
add(
    "Attention sizes",
    "Attention",
    A,
    inits={"w": normal(8, 28, scale=0.5), "b": normal(28)},
    num_heads=2,
    qkv_hidden_sizes=[8, 8, 12],
)
M = {"q": normal(2, 4, 8), "k": normal(2, 5, 8), "v": normal(2, 5, 8)}
add("MHA", "MultiHeadAttention", M, num_heads=2)
add("MHA bias", "MultiHeadAttention", M, inits={"b": normal(24)}, num_heads=2)
add(
    "MHA mask",
    "MultiHeadAttention",
    dict(M, m=np.array([[1, 1, 1, 0, 0], [1, 1, 0, 1, 1]], np.int32)),
    order=["q", "k", "v", "", "m"],
    num_heads=2,
)
add(
    "MHA attnbias",
    "MultiHeadAttention",
    dict(M, e=normal(1, 2, 4, 5)),
    order=["q", "k", "v", "", "", "e"],
    num_heads=2,
    scale=0.2,
)
add(
    "MHA past",
    "MultiHeadAttention",
    dict(M, k=normal(2, 4, 8), v=normal(2, 4, 8), pk=normal(2, 2, 3, 4), pv=normal(2, 2, 3, 4)),
    ("y", "k2", "v2"),
    order=["q", "k", "v", "", "", "", "pk", "pv"],
    num_heads=2,
    unidirectional=1,
)
add(
    "MHA cross",
    "MultiHeadAttention",
    {"q": normal(2, 4, 8), "k": normal(2, 2, 5, 4), "v": normal(2, 2, 5, 4)},
    num_heads=2,
)
cos = np.cos(normal(10, 2))
sin = np.sin(normal(10, 2))
for il in (0, 1):
    add(
        f"Rotary {il}",
        "RotaryEmbedding",
        {"x": normal(2, 3, 8), "p": np.array([[1, 2, 3], [4, 5, 6]], np.int64)},
        inits={"c": cos, "s": sin},
        interleaved=il,
    )
    add(
        f"Rotary 4d {il}",
        "RotaryEmbedding",
        {"x": normal(2, 2, 3, 4), "p": integers(2)},
        inits={"c": cos, "s": sin},
        interleaved=il,
    )
add(
    "Rotary partial",
    "RotaryEmbedding",
    {"x": normal(2, 3, 16), "p": integers(0)},
    inits={"c": cos, "s": sin},
    num_heads=2,
    rotary_embedding_dim=4,
)


def grouped(name, s, past, total, lens, **k):
    b = len(lens)
    ins = {"q": normal(b, s, 64), "k": normal(b, s, 32), "v": normal(b, s, 32)}
    if past is not None:
        ins.update(pk=normal(b, 2, past, 16), pv=normal(b, 2, past, 16))
    ins.update(l=np.array(lens, np.int32), t=np.array(total, np.int32))
    inits = {}
    order = ["q", "k", "v", "pk" if past is not None else "", "pv" if past is not None else "", "l", "t"]
    if k.get("do_rotary"):
        inits = {"c": np.cos(normal(16, 8)), "s": np.sin(normal(16, 8))}
        order += ["c", "s"]
    add(
        name,
        "GroupQueryAttention",
        ins,
        ("y", "pk2", "pv2"),
        inits=inits,
        order=order,
        num_heads=4,
        kv_num_heads=2,
        **k,
    )


grouped("GQA prompt", 4, 0, 4, [3, 3])
grouped("GQA rotary", 4, 0, 4, [3, 3], do_rotary=1)
grouped("GQA token", 1, 5, 6, [5, 5], do_rotary=1)
grouped("GQA token ragged", 1, 5, 6, [5, 3], checked=["y"], do_rotary=1, rotary_interleaved=1)
grouped("GQA window", 1, 5, 6, [5, 5], local_window_size=3)
grouped("GQA softcap", 4, 0, 4, [3, 3], softcap=5.0, scale=0.4)
grouped("GQA continue", 3, 5, 8, [7], do_rotary=1)
# quantized
for t in (np.uint8, np.int8):
    nm = t.__name__
    zero = lambda v, t=t: np.array(v if t == np.uint8 else v - 128, t)
    add(
        "QLinearAdd " + nm,
        "QLinearAdd",
        {"a": codes(2, 3, t=t), "b": codes(3, t=t)},
        order=["a", "as", "az", "b", "bs", "bz", "cs", "cz"],
        inits={"as": real(0.1), "az": zero(120), "bs": real(0.07), "bz": zero(100), "cs": real(0.13), "cz": zero(130)},
    )
    add(
        "QLinearMul " + nm,
        "QLinearMul",
        {"a": codes(2, 3, t=t), "b": codes(2, 3, t=t)},
        order=["a", "as", "az", "b", "bs", "bz", "cs", "cz"],
        inits={"as": real(0.1), "az": zero(120), "bs": real(0.07), "bz": zero(100), "cs": real(0.53), "cz": zero(130)},
    )
    add(
        "QLinearSigmoid " + nm,
        "QLinearSigmoid",
        {"a": codes(2, 30, t=t)},
        inits={"as": real(0.05), "az": zero(120), "cs": real(1 / 256), "cz": zero(0)},
    )
    add(
        "QLinearLeakyRelu " + nm,
        "QLinearLeakyRelu",
        {"a": codes(2, 30, t=t)},
        inits={"as": real(0.05), "az": zero(120), "cs": real(0.04), "cz": zero(90)},
        alpha=0.2,
    )
    add(
        "QLinearSoftmax " + nm,
        "QLinearSoftmax",
        {"a": codes(2, 30, t=t)},
        inits={"as": real(0.05), "az": zero(120), "cs": real(1 / 256), "cz": zero(0)},
        opset=13,
        axis=-1,
    )
    add(
        "QLinearGlobalAveragePool " + nm,
        "QLinearGlobalAveragePool",
        {"a": codes(1, 3, 4, 5, t=t)},
        inits={"as": real(0.05), "az": zero(120), "cs": real(0.04), "cz": zero(90)},
        channels_last=0,
    )
    add(
        "QLinearAveragePool " + nm,
        "QLinearAveragePool",
        {"a": codes(1, 3, 6, 5, t=t)},
        inits={"as": real(0.05), "az": zero(120), "cs": real(0.04), "cz": zero(90)},
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
    )
    add(
        "QLinearConcat " + nm,
        "QLinearConcat",
        {"a": codes(2, 3, t=t), "b": codes(2, 2, t=t)},
        order=["ys", "yz", "a", "as", "az", "b", "bs", "bz"],
        inits={"ys": real(0.1), "yz": zero(128), "as": real(0.08), "az": zero(120), "bs": real(0.12), "bz": zero(100)},
        axis=1,
    )
add(
    "QLinearAveragePool last",
    "QLinearAveragePool",
    {"a": codes(1, 6, 5, 3)},
    inits={"as": real(0.05), "az": code(120), "cs": real(0.04), "cz": code(90)},
    kernel_shape=[3, 3],
    channels_last=1,
)
add(
    "QLinearGlobalAveragePool last",
    "QLinearGlobalAveragePool",
    {"a": codes(1, 4, 5, 3)},
    inits={"as": real(0.05), "az": code(120), "cs": real(0.04), "cz": code(90)},
    channels_last=1,
)
add(
    "QLinearWhere",
    "QLinearWhere",
    {"c": np.array([True, False, True]), "a": codes(3), "b": codes(3)},
    order=["c", "a", "as", "az", "b", "bs", "bz", "cs", "cz"],
    inits={"as": real(0.05), "az": code(120), "bs": real(0.07), "bz": code(100), "cs": real(0.06), "cz": code(90)},
)
add(
    "QLinearConv last",
    "QLinearConv",
    {"x": codes(1, 6, 5, 3)},
    order=["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"],
    inits={
        "xs": real(0.05),
        "xz": code(120),
        "w": codes(4, 3, 3, 3, t=np.int8),
        "ws": real(0.02),
        "wz": code(0, np.int8),
        "ys": real(0.3),
        "yz": code(110),
        "b": RANDOM.integers(-500, 500, 4).astype(np.int32),
    },
    channels_last=1,
    pads=[1, 1, 1, 1],
)
add("NhwcMaxPool", "NhwcMaxPool", {"x": codes(1, 6, 5, 3)}, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
add(
    "QGemm",
    "QGemm",
    {"a": codes(3, 8)},
    order=["a", "as", "az", "b", "bs", "bz", "c", "ys", "yz"],
    inits={
        "as": real(0.05),
        "az": code(120),
        "b": codes(5, 8, t=np.int8),
        "bs": normal(5, scale=0.01) ** 2 + 0.01,
        "bz": np.zeros(5, np.int8),
        "c": RANDOM.integers(-500, 500, 5).astype(np.int32),
        "ys": real(0.3),
        "yz": code(110),
    },
    transB=1,
)
add(
    "QGemm float",
    "QGemm",
    {"a": codes(3, 8)},
    order=["a", "as", "az", "b", "bs", "bz"],
    inits={"as": real(0.05), "az": code(120), "b": codes(8, 5, t=np.int8), "bs": real(0.02), "bz": code(3, np.int8)},
    alpha=0.5,
)
add(
    "MatMulIntegerToFloat",
    "MatMulIntegerToFloat",
    {"a": codes(3, 8), "as": real(0.05)},
    order=["a", "b", "as", "bs", "az", "bz", "bias"],
    inits={
        "b": codes(8, 5),
        "bs": normal(5, scale=0.01) ** 2 + 0.01,
        "az": code(120),
        "bz": codes(5),
        "bias": normal(5),
    },
)
add(
    "DynamicQuantizeMatMul",
    "DynamicQuantizeMatMul",
    {"a": normal(3, 8)},
    order=["a", "b", "bs", "bz", "bias"],
    inits={"b": codes(8, 5, t=np.int8), "bs": real(0.02), "bz": code(3, np.int8), "bias": normal(5)},
)
add(
    "QAttention",
    "QAttention",
    {"x": codes(2, 4, 8), "m": np.array([[1, 1, 0, 1], [1, 1, 1, 1]], np.int32)},
    order=["x", "w", "b", "xs", "ws", "m", "xz", "wz"],
    inits={
        "w": codes(8, 24, t=np.int8),
        "b": normal(24),
        "xs": real(0.02),
        "ws": real(0.01),
        "xz": code(120),
        "wz": code(0, np.int8),
    },
    num_heads=2,
)
add("ExpandDims", "ExpandDims", {"x": normal(2, 3)}, inits={"a": np.array(1, np.int32)})
add(
    "DynamicQuantizeLSTM",
    "DynamicQuantizeLSTM",
    {"x": normal(5, 2, 6)},
    outputs=("y", "h", "c"),
    order=["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"],
    inits={
        "w": codes(1, 6, 16, t=np.int8),
        "r": codes(1, 4, 16, t=np.int8),
        "b": normal(1, 32),
        "ws": real([0.01]),
        "wz": code([0], np.int8),
        "rs": real([0.008]),
        "rz": code([0], np.int8),
    },
    hidden_size=4,
)
add(
    "DynamicQuantizeLSTM_both",
    "DynamicQuantizeLSTM",
    {"x": normal(4, 1, 6), "h0": normal(2, 1, 4), "c0": normal(2, 1, 4)},
    outputs=("y", "h", "c"),
    order=["x", "w", "r", "b", "", "h0", "c0", "", "ws", "wz", "rs", "rz"],
    inits={
        "w": codes(2, 6, 16),
        "r": codes(2, 4, 16),
        "b": normal(2, 32),
        "ws": real([0.01, 0.02]),
        "wz": code([120, 130]),
        "rs": real([0.008, 0.01]),
        "rz": code([128, 127]),
    },
    hidden_size=4,
    direction="bidirectional",
)


# g_idx: groups of rows in another order than the rows. Other numbers of bits and packed zero points beside it ONNX Runtime 1.32
# computes as 4 bits and as none.
K, N, bs, nb = 40, 5, 16, 3
for zeros in (False, True):
    inits = {"b": codes(N, nb, bs // 2), "s": normal(N * nb, scale=0.1)}
    if zeros:
        inits["z"] = normal(N * nb) + 8
    inits["g"] = RANDOM.permutation(np.arange(K) % nb).astype(np.int32)
    add(
        f"MatMulNBits g_idx{' zp' if zeros else ''}",
        "MatMulNBits",
        {"a": normal(2, 3, K)},
        inits=inits,
        order=["a", "b", "s", "z" if zeros else "", "g"],
        K=K,
        N=N,
        bits=4,
        block_size=bs,
    )


def sunk(name, s, past, total, lens, sink, **k):
    ins = {"q": normal(len(lens), s, 64), "k": normal(len(lens), s, 32), "v": normal(len(lens), s, 32)}
    ins.update(pk=normal(len(lens), 2, past, 16), pv=normal(len(lens), 2, past, 16))
    ins.update(l=np.array(lens, np.int32), t=np.array(total, np.int32))
    order = ["q", "k", "v", "pk", "pv", "l", "t", "", "", "", "", "w"][: 12 if sink else 7]
    outputs = ("y", "pk2", "pv2")
    inits = {"w": normal(4)} if sink else {}
    add(name, "GroupQueryAttention", ins, outputs, inits=inits, order=order, num_heads=4, kv_num_heads=2, **k)


sunk("GQA sink", 4, 0, 4, [3, 3], True)
sunk("GQA sink softcap", 4, 0, 4, [3, 3], True, softcap=5.0)
sunk("GQA sink window", 1, 5, 6, [5, 5], True, local_window_size=3)
sunk("GQA smooth", 3, 5, 8, [7], False, smooth_softmax=1)

# Corners at halves, behind the image, and of no size; operators of ONNX itself that no test suite has.
regions = [[0, 0, 0, 3, 3], [1, 1, 1, 5, 4], [0, 2.5, 1.5, 3.5, 4.5], [1, -2, 3, 2, 9], [0, 9, 9, 12, 12], [1, 4, 4, 1, 1]]
for name, scale in (("MaxRoiPool", 1.0), ("MaxRoiPool half", 0.5)):
    add(
        name,
        "MaxRoiPool",
        {"x": normal(2, 3, 6, 7), "rois": np.array(regions, np.float32)},
        domain="",
        pooled_shape=[3, 2],
        spatial_scale=scale,
    )
