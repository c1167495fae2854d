"""Parts that families of networks share: activations, convolutions, normalizations, attention."""

import numpy as np

ACTIVATIONS = ["Relu", "Relu", "Relu", "LeakyRelu", "Elu", "Sigmoid", "Tanh", "HardSigmoid", "Softplus", "Selu", "Softsign",
               "Celu", "ThresholdedRelu", "relu6", "swish", "gelu", "tanh_gelu", "hard_swish", "PRelu", "Mish", "HardSwish",
               "Gelu"]
NEWER = {"Mish": 18, "HardSwish": 14, "Gelu": 20}
PRECISE = ("Celu", "Mish", "HardSwish", "Gelu")  # which older kernels have for f32 alone


def act(n, x, kind=None):
    kind = kind or n.pick(ACTIVATIONS)
    if NEWER.get(kind, 0) > n.opset or (kind in PRECISE and n.float != np.float32):
        kind = "Relu"
    if kind == "relu6":
        return n.op("Clip", x, 0, 6)
    if kind == "swish":
        return n.op("Mul", x, n.op("Sigmoid", x))
    if kind == "hard_swish":
        return n.op("Div", n.op("Mul", x, n.op("Clip", n.op("Add", x, 3), 0, 6)), 6)
    if kind == "gelu":
        erf = n.op("Erf", n.op("Div", x, np.sqrt(2)))
        return n.op("Mul", n.op("Mul", x, n.op("Add", erf, 1)), 0.5)
    if kind == "tanh_gelu":
        cube = n.op("Mul", n.op("Mul", x, x), x) if n.chance(0.5) else n.op("Pow", x, 3)
        inner = n.op("Mul", n.op("Add", x, n.op("Mul", cube, 0.044715)), 0.7978845608)
        return n.op("Mul", n.op("Mul", x, 0.5), n.op("Add", n.op("Tanh", inner), 1))
    if kind == "PRelu":
        return n.op("PRelu", x, n.const([0.25], n.float))
    attrs = {"LeakyRelu": {"alpha": n.pick([0.01, 0.1, 0.3])}, "Elu": {"alpha": n.pick([0.5, 1.0])},
             "Celu": {"alpha": n.pick([0.5, 1.0, 2.0])}, "HardSigmoid": {"alpha": 1 / 6, "beta": 0.5},
             "ThresholdedRelu": {"alpha": 0.4}, "Gelu": {"approximate": n.pick(["none", "tanh"])}}
    return n.op(kind, x, **attrs.get(kind, {}))


def conv(n, x, channels, filters, kernel, bias=None, group=1, **attrs):
    """`kernel` is a list; without pads, those that keep odd sizes."""
    attrs.setdefault("pads", [k // 2 for k in kernel] * 2)
    weight = n.weight(filters, channels // group, *kernel)
    more = [n.weight(filters)] if (n.chance(0.6) if bias is None else bias) else []
    return n.op("Conv", x, weight, *more, group=group if group > 1 or n.chance(0.3) else None,
                kernel_shape=kernel if n.chance(0.6) else None, **attrs)


def linear(n, x, inputs, outputs, bias=True):
    """Over the last axis."""
    y = n.op("MatMul", x, n.weight(inputs, outputs))
    if not bias:
        return y
    return n.op("Add", y, n.weight(outputs)) if n.chance(0.5) else n.op("Add", n.weight(outputs), y)


def gemm(n, x, inputs, outputs):
    if n.chance(0.5):
        weight = n.const(n.r.normal(0, 1 / np.sqrt(inputs), (outputs, inputs)), n.float)
        return n.op("Gemm", x, weight, n.weight(outputs), transB=1)
    return n.op("Gemm", x, n.weight(inputs, outputs), n.weight(outputs), alpha=n.pick([None, 0.5]), beta=n.pick([None, 2.0]))


def batch_norm(n, x, channels):
    return n.op("BatchNormalization", x, n.weight(channels, low=0.5, high=1.5), n.weight(channels), n.weight(channels),
                n.weight(channels, low=0.5, high=1.5), epsilon=n.pick([None, 1e-3]))


def layer_norm(n, x, size, rms=False):
    """One node, or spelled in parts as older exporters do."""
    scale, epsilon = n.weight(size, low=0.5, high=1.5), n.pick([1e-5, 1e-6, 1e-3])
    if rms and n.opset >= 23 and n.chance(0.3):
        return n.op("RMSNormalization", x, scale, epsilon=epsilon)
    if not rms and n.opset >= 17 and n.chance(0.5):
        return n.op("LayerNormalization", x, scale, n.weight(size), axis=-1, epsilon=epsilon)
    if not rms:
        x = n.op("Sub", x, n.reduce("ReduceMean", x, [-1]))
    square = n.op("Pow", x, 2) if n.chance(0.5) else n.op("Mul", x, x)
    deviation = n.op("Sqrt", n.op("Add", n.reduce("ReduceMean", square, [-1]), epsilon))
    y = n.op("Div", x, deviation) if n.chance(0.6) else n.op("Mul", x, n.op("Reciprocal", deviation))
    y = n.op("Mul", y, scale)
    return y if rms else n.op("Add", y, n.weight(size))


def image_norm(n, x, channels):
    kind = n.pick(["batch", "batch", "instance", "group", "none"])
    if kind == "batch":
        return batch_norm(n, x, channels)
    if kind == "instance":
        return n.op("InstanceNormalization", x, n.weight(channels, low=0.5, high=1.5), n.weight(channels))
    if kind == "group" and n.opset >= 21 and channels % 2 == 0:
        return n.op("GroupNormalization", x, n.weight(channels, low=0.5, high=1.5), n.weight(channels), num_groups=2)
    return x


def heads(n, x, count, width):
    """[b, s, count * width] to [b, count, s, width]."""
    if n.chance(0.5):
        y = n.op("Reshape", x, n.ints(0, 0 if n.chance(0.5) else -1, count, width))
    else:
        y = n.reshape(x, *n.shape_of(x, 0, 1), count, width)
    return n.op("Transpose", y, perm=[0, 2, 1, 3])


def attend(n, q, k, v, width, mask=None):
    """Of heads; the mask is added."""
    scores = n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = n.op("Div", scores, np.sqrt(width)) if n.chance(0.5) else n.op("Mul", scores, 1 / np.sqrt(width))
    if mask:
        scores = n.op("Add", scores, mask)
    return n.op("MatMul", n.op("Softmax", scores, axis=-1), v)


def joined(n, x, width):
    """[b, count, s, width] to [b, s, count * width]; width is the product."""
    return n.op("Reshape", n.op("Transpose", x, perm=[0, 2, 1, 3]), n.ints(0, 0, width))


def self_attention(n, x, count, width, mask=None):
    size = count * width
    if n.chance(0.4):
        q, k, v = n.split(linear(n, x, size, 3 * size), 2, [size] * 3)
    else:
        q, k, v = (linear(n, x, size, size) for _ in range(3))
    y = attend(n, *(heads(n, t, count, width) for t in (q, k, v)), width, mask)
    return linear(n, joined(n, y, size), size, size)


def feed_forward(n, x, size, hidden, kind=None):
    return linear(n, act(n, linear(n, x, size, hidden), kind), hidden, size)
