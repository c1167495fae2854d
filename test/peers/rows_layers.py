"""Rows of the layers of networks: windows, normalization, recurrence, attention, losses, signals."""

import numpy as np

from case import Reject
from values import numpy_type


def windows(c, spatial, kernel, dilated=True, padded=True, auto=True, wide=False):
    """Attributes of a window that fits into the image. Some pads are `wide`: larger than the window."""
    rank = len(spatial)
    dilations = [c.pick([1, 1, 2]) for _ in range(rank)] if dilated and c.has("dilations") else [1] * rank
    extra = 3 if wide and c.chance(0.3) else 0
    pads = [c.int(0, min(2, (kernel[i % rank] - 1) * dilations[i % rank]) + extra) for i in range(2 * rank)] \
        if padded else [0] * 2 * rank
    mode = c.pick(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]) if auto else "NOTSET"
    for i in range(rank):
        if spatial[i] < (kernel[i] - 1) * dilations[i] + 1:
            raise Reject("the window is larger than the image")
    if mode == "NOTSET" and c.chance(0.8):
        c.attr("pads", pads)
    if mode != "NOTSET":
        c.attr("auto_pad", mode)
    if any(d != 1 for d in dilations):
        c.attr("dilations", dilations)
    if c.chance(0.7):
        c.attr("strides", [c.int(1, 3) for _ in range(rank)])


def image(c, rank=None):
    rank = rank or c.pick([1, 2, 2, 3])
    return [c.int(3, 8 if rank < 3 else 5) for _ in range(rank)]


def pool(c):
    spatial = image(c)
    kernel = [c.int(1, 3) for _ in spatial]
    c.attr("kernel_shape", kernel)
    windows(c, spatial, kernel)
    c.sums = c.op != "MaxPool"
    kind = c.pick(["plain", "ties", "extremes"] if c.op == "MaxPool" else ["plain", "ties"])
    kind = "plain" if kind == "extremes" and c.input_type("X") in ("float", "double", "float16", "bfloat16") else kind
    c.data("X", [c.int(1, 2), c.int(1, 3)] + spatial, flavour=kind)


def global_pool(c):
    c.sums = c.op != "GlobalMaxPool"
    c.data("X", [c.int(1, 2), c.int(1, 3)] + image(c), flavour=c.pick(["plain", "ties"]))


def max_unpool(c):
    n, ch, h, w = c.int(1, 2), c.int(1, 2), c.int(1, 3), c.int(1, 3)
    c.attr("kernel_shape", [2, 2])
    c.attr("strides", [2, 2])
    c.data("X", [n, ch, h, w], flavour="plain")
    size = 4 * h * w
    indices = np.stack([c.r.permutation(size)[:h * w] + size * i for i in range(n * ch)])
    c.x("I", indices.reshape(n, ch, h, w).astype(np.int64))
    c.attr("pads", None)


def conv(c):
    c.sums = True
    integer, quantized = c.op == "ConvInteger", c.op == "QLinearConv"
    spatial = image(c, 2 if integer or quantized else None)
    kernel = [c.int(1, 3) for _ in spatial]
    group = c.pick([1, 1, 2, 3])
    channels, filters = group * c.int(1, 2), group * c.int(1, 2)
    c.attr("group", group if group > 1 or c.chance(0.5) else None)
    if c.chance(0.7):
        c.attr("kernel_shape", kernel)
    windows(c, spatial, kernel, wide=True)
    x, w = ("x", "w") if integer or quantized else ("X", "W")
    c.data(x, [c.int(1, 2), channels] + spatial, flavour=c.pick(["plain", "ties"]))
    c.data(w, [filters, channels // group] + kernel, flavour=c.pick(["plain", "ties"]))
    if integer:
        for zero, t in [("x_zero_point", "T1"), ("w_zero_point", "T2")]:
            if c.chance(0.6):
                c.x(zero, c.draw(c.bound[t], []), parameter=True)
    elif quantized:
        c.off_by_one = True
        for name in "xwy":
            per_filter = name == "w" and c.chance(0.3)
            t = {"x": "T1", "w": "T2", "y": "T3"}[name]
            shape = [filters] if per_filter else []
            c.x(name + "_scale", np.full(shape, c.pick([0.25, 0.5, 0.1]), np.float32), parameter=True)
            c.x(name + "_zero_point", c.draw(c.type(t), shape, low=0, high=5), parameter=True)
        if c.chance(0.5):
            c.x("B", c.draw("int32", [filters]), parameter=True)
    elif c.chance(0.6):
        c.data("B", [filters])


def conv_transpose(c):
    c.sums = True
    spatial = [c.int(1, 5) for _ in range(c.pick([1, 2, 2, 3]))]
    rank = len(spatial)
    kernel = [c.int(1, 3) for _ in spatial]
    group = c.pick([1, 1, 2])
    strides = [c.int(1, 3) for _ in spatial]
    c.attr("strides", strides)
    c.attr("group", group)
    if c.chance(0.7):
        c.attr("kernel_shape", kernel)
    kind = c.pick(["pads", "pads", "auto", "shape"])
    if kind == "pads":
        c.attr("pads", [c.int(0, kernel[i % rank] // 2) for i in range(2 * rank)])
        if c.chance(0.4):
            c.attr("output_padding", [c.int(0, s - 1) for s in strides])
        if c.chance(0.3):
            c.attr("dilations", [c.int(1, 2) for _ in spatial])
    elif kind == "auto":
        c.attr("auto_pad", c.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    else:
        full = [s * (n - 1) + k for s, n, k in zip(strides, spatial, kernel)]
        c.attr("output_shape", [c.int(max(1, n - 2), n) for n in full])
        c.attr("auto_pad", c.pick([None, "SAME_UPPER", "SAME_LOWER"]))
    channels, filters = group * c.int(1, 2), c.int(1, 2)
    c.data("X", [c.int(1, 2), channels] + spatial, flavour=c.pick(["plain", "ties"]))
    c.data("W", [channels, filters] + kernel, flavour=c.pick(["plain", "ties"]))
    if c.chance(0.5):
        c.data("B", [filters * group], flavour="plain")


def deform_conv(c):
    c.sums = True
    n, h, w = c.int(1, 2), c.int(3, 5), c.int(3, 5)
    kernel = [c.int(1, 2), c.int(1, 3)]
    group, offsets = c.pick([1, 2]), c.pick([1, 2])
    channels, filters = 2 * group, 2 * group
    pad, stride = c.int(0, 1), c.int(1, 2)
    out = [(size + 2 * pad - k) // stride + 1 for size, k in zip((h, w), kernel)]
    for name, value in [("pads", [pad] * 4), ("strides", [stride] * 2), ("group", group),
                        ("offset_group", offsets), ("kernel_shape", kernel)]:
        c.attr(name, value)
    c.data("X", [n, channels, h, w], flavour="plain")
    c.data("W", [filters, channels // group] + kernel, flavour="plain")
    c.data("offset", [n, 2 * offsets * kernel[0] * kernel[1]] + out, low=-1.7, high=1.7)
    if c.chance(0.5):
        c.data("B", [filters], flavour="plain")
    if c.chance(0.5):
        c.data("mask", [n, offsets * kernel[0] * kernel[1]] + out, low=0, high=1)


def col2im(c):
    c.sums = True
    rank = c.pick([1, 2, 2])
    block, size = [c.int(1, 3) for _ in range(rank)], [c.int(3, 6) for _ in range(rank)]
    strides, pads = [c.int(1, 2) for _ in block], [c.int(0, 1) for _ in range(2 * rank)]
    counts = [(size[i] + pads[i] + pads[i + rank] - block[i]) // strides[i] + 1 for i in range(rank)]
    c.attr("strides", strides)
    c.attr("pads", pads)
    c.data("input", [c.int(1, 2), c.int(1, 2) * int(np.prod(block)), int(np.prod(counts))], flavour="plain")
    c.x("image_shape", np.asarray(size, np.int64), parameter=True)
    c.x("block_shape", np.asarray(block, np.int64), parameter=True)


def lrn(c):
    c.sums = True
    c.data("X", [c.int(1, 2), c.int(1, 6)] + image(c, c.int(1, 2)), flavour=c.pick(["plain", "ties"]))
    c.attr("size", c.pick([1, 2, 3, 4, 5]))
    c.attr("bias", c.pick([None, 1.0, 2.0]))


def channel_norm(c):
    """Batch, instance and group normalization."""
    c.sums = True
    group = c.int(1, 2)
    channels = group * c.int(1, 2)
    shape = [c.int(1, 3), channels] + (image(c, c.int(1, 2)) if c.op != "BatchNormalization" or c.chance(0.8) else [])
    names = [i.name for i in c.schema.inputs]
    c.data(names[0], shape, flavour="plain")
    per = group if c.op == "GroupNormalization" and c.version < 21 else channels
    for name in names[1:3]:
        c.data(name, [per], flavour="plain")
    if c.op == "BatchNormalization":
        c.data(names[3], [channels], flavour="plain")
        c.data(names[4], [channels], low=0.2, high=3)
        training = c.has("training_mode") and c.chance(0.25)
        c.attr("training_mode", 1 if training else None)
        if not training:
            c.drop_outputs = ("running_mean", "running_var", "mean", "var", "saved_mean", "saved_var")
        c.attr("is_test", 1)
        c.attr("spatial", None)
    if c.op == "GroupNormalization":
        c.attr("num_groups", group)


def layer_norm(c):
    c.sums = True
    shape = [max(n, 1) for n in c.shape(1, 4)]
    axis = c.axis(len(shape))
    c.attr("axis", axis)
    c.data("X", shape, flavour="plain")
    scale = "Scale" if c.takes("Scale") else "scale"
    c.data(scale, shape[axis:] if axis < 0 else shape[axis:], flavour="plain")
    if c.takes("B") and c.chance(0.6):
        c.data("B", shape[axis:], flavour="plain")
    c.attr("epsilon", c.pick([None, 1e-3, 0.1]))


def mvn(c):
    c.sums = True
    c.data("X", [c.int(2, 3), c.int(2, 3), c.int(2, 4), c.int(2, 4)], flavour="plain")
    c.attr("axes", c.pick([None, [0, 2, 3], [2, 3], [1]]))


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent(c):
    c.sums = True
    gates = GATES[c.op]
    steps, batch, inputs, hidden = c.int(1, 4), c.int(1, 3), c.int(1, 4), c.int(1, 4)
    direction = c.pick(["forward", "reverse", "bidirectional"])
    count = 2 if direction == "bidirectional" else 1
    layout = c.int(0, 1) if c.has("layout") and c.chance(0.3) else 0
    c.attr("direction", direction)
    c.attr("hidden_size", hidden)
    c.attr("layout", layout if layout else None)
    c.data("X", [batch, steps, inputs] if layout else [steps, batch, inputs], flavour="plain")
    c.data("W", [count, gates * hidden, inputs], low=-1, high=1)
    c.data("R", [count, gates * hidden, hidden], low=-1, high=1)
    state = [batch, count, hidden] if layout else [count, batch, hidden]
    if c.chance(0.6):
        c.data("B", [count, 2 * gates * hidden], low=-1, high=1)
    if c.chance(0.4):
        c.data("sequence_lens", [batch], low=1, high=steps)
    for name in ("initial_h", "initial_c"):
        if c.takes(name) and c.chance(0.5):
            c.data(name, state, low=-1, high=1)
    if c.takes("P") and c.chance(0.3):
        c.data("P", [count, 3 * hidden], low=-1, high=1)
    c.attr("clip", c.pick([None, None, None, 0.7]))
    c.attr("output_sequence", 1)
    each = {"RNN": 1, "GRU": 2, "LSTM": 3}[c.op]
    if c.chance(0.35):
        c.attr("activations", [c.pick(["Tanh", "Sigmoid", "Relu", "Softsign", "Tanh", "HardSigmoid"])
                               for _ in range(each * count)])
    for name in ("activation_alpha", "activation_beta"):
        c.attr(name, None)
    if c.op == "LSTM":
        c.attr("input_forget", c.pick([None, None, 0, 1]))


def attention(c):
    c.sums = True
    c.bound.setdefault("T2", c.type("T1", ["float", "float", "float16", "double"]))
    batch, heads, kv, q_len, kv_len = c.int(1, 2), c.pick([2, 4]), c.pick([1, 2]), c.int(1, 4), c.int(1, 5)
    kv = heads if c.chance(0.5) else kv
    size, v_size, past = c.pick([2, 4]), c.pick([2, 4]), c.pick([0, 0, 2])
    flat = c.chance(0.4)
    for name, h, length, d in [("Q", heads, q_len, size), ("K", kv, kv_len, size), ("V", kv, kv_len, v_size)]:
        c.data(name, [batch, length, h * d] if flat else [batch, h, length, d], flavour="plain")
    if flat:
        c.attr("q_num_heads", heads)
        c.attr("kv_num_heads", kv)
    total = kv_len + past
    if c.chance(0.5):
        mask = c.pick([[q_len, total], [1, 1, q_len, total], [batch, 1, q_len, total], [batch, heads, q_len, total]])
        if c.type("U", ["bool", c.bound["T1"]]) == "bool":
            values = c.r.random(mask) < 0.7
            values[..., 0] = True
            c.x("attn_mask", values)
        else:
            c.data("attn_mask", mask, flavour="plain")
    if past:
        c.data("past_key", [batch, kv, past, size], flavour="plain")
        c.data("past_value", [batch, kv, past, v_size], flavour="plain")
    else:
        c.drop_outputs = ("present_key", "present_value")
    c.attr("qk_matmul_output_mode", c.int(0, 3) if c.chance(0.4) else None)
    c.attr("softmax_precision", None)


def linear_attention(c):
    c.sums = True
    c.bound.setdefault("S", c.type("T", ["float"]))
    batch, heads, length, d, dv = c.int(1, 2), c.pick([1, 2]), c.int(1, 4), c.int(1, 3), c.int(1, 3)
    rule = c.pick(["linear", "gated", "delta", "gated_delta"])
    c.attr("q_num_heads", heads)
    c.attr("kv_num_heads", heads)
    c.attr("update_rule", rule)
    c.attr("scale", c.pick([None, 0.5]))
    for name, size in [("query", d), ("key", d), ("value", dv)]:
        c.data(name, [batch, length, heads * size], low=-1, high=1)
    if c.chance(0.5):
        c.data("past_state", [batch, heads, d, dv], low=-1, high=1)
    if rule.startswith("gated"):
        c.data("decay", [batch, length, heads], low=-1, high=0)
    if rule.endswith("delta"):
        c.data("beta", [batch, length, heads], low=0, high=1)


def causal_conv(c):
    c.sums = True
    batch, channels, length, k = c.int(1, 2), c.int(1, 3), c.int(1, 5), c.int(1, 4)
    c.data("input", [batch, channels, length], flavour="plain")
    c.data("weight", [channels, 1, k], flavour="plain")
    if c.chance(0.5):
        c.data("bias", [channels], flavour="plain")
    if c.chance(0.5) and k > 1:
        c.data("past_state", [batch, channels, k - 1], flavour="plain")
    c.attr("activation", c.pick([None, "none", "silu", "swish"]))


def rotary(c):
    c.sums = True
    batch, heads, length, half = c.int(1, 2), c.int(1, 3), c.int(1, 4), c.int(1, 3)
    flat = c.chance(0.5)
    extra = c.pick([0, 0, 2])
    size = 2 * half + extra
    c.data("X", [batch, length, heads * size] if flat else [batch, heads, length, size], flavour="plain")
    c.attr("num_heads", heads if flat else None)
    c.attr("rotary_embedding_dim", 2 * half if extra else None)
    lookup = c.chance(0.6)
    cache = [6, half] if lookup else [batch, length, half]
    c.data("cos_cache", cache, low=-1, high=1)
    c.data("sin_cache", cache, low=-1, high=1)
    if lookup:
        c.x("position_ids", c.r.integers(0, 5, [batch, length], endpoint=True).astype(np.int64))


def dropout(c):
    """In inference only; a training draw is not comparable."""
    c.data(c.schema.inputs[0].name, c.shape(0, 4))
    c.attr("is_test", 1)
    c.attr("ratio", None)
    if c.takes("ratio") and c.chance(0.6):
        c.x("ratio", np.asarray(0.3, numpy_type(c.input_type("ratio"))), parameter=True)
        if c.chance(0.5):
            c.x("training_mode", np.asarray(False), parameter=True)


def loss(c):
    c.sums = True
    n, classes, rest = c.int(1, 4), c.int(1, 4), c.shape(0, 2)
    rest = [max(s, 1) for s in rest]
    scores, labels, weights = [i.name for i in c.schema.inputs]
    c.data(scores, [n, classes] + rest, low=-4, high=0 if c.op.startswith("Neg") else 4)
    target = c.draw(c.input_type(labels), [n] + rest, low=0, high=classes - 1)
    if c.chance(0.3):
        ignored = c.pick([-1, 0, classes])
        target = np.where(c.r.random(target.shape) < 0.2, ignored, target).astype(target.dtype)
        target.reshape(-1)[0] = c.int(0, classes - 1)
        c.attr("ignore_index", ignored)
    else:
        c.attr("ignore_index", None)
    c.x(labels, target)
    if c.chance(0.5):
        c.data(weights, [classes], low=0.2, high=2)


# Images and boxes.
def resize(c):
    rank = c.pick([1, 2, 3, 4])
    shape = [c.int(1, 6) for _ in range(rank)]
    modes = ["nearest", "linear"] + (["cubic"] if c.opset >= 11 and rank <= 4 else [])
    mode = c.pick(modes)
    if mode == "cubic" and rank > 2:
        shape = [c.int(1, 2), c.int(1, 2)] + shape[2:] if rank == 4 else shape[:2]
    rank = len(shape)
    scaled = list(range(rank)) if rank < 4 else [2, 3]
    coordinates = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] + \
        (["half_pixel_symmetric"] if c.opset >= 19 else []) + (["tf_crop_and_resize"] if c.opset >= 11 else [])
    transform = c.pick(coordinates)
    c.attr("mode", mode)
    if c.opset >= 11:
        c.attr("coordinate_transformation_mode", transform)
        c.attr("nearest_mode", c.pick([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
        c.attr("cubic_coeff_a", c.pick([None, -0.5]))
        c.attr("exclude_outside", c.pick([None, 1]) if mode == "cubic" else None)
        c.attr("extrapolation_value", c.pick([None, 2.0]))
        c.attr("antialias", c.pick([None, 0, 1]) if mode != "nearest" and transform != "tf_crop_and_resize" else None)
    axes = c.has("axes") and c.chance(0.4)
    if axes:
        c.attr("axes", scaled)
    name = c.schema.inputs[0].name
    t = c.type("T1" if c.opset >= 11 else "T", ["float", "float", "double", "uint8", "int8", "int32", "float16"])
    c.data(name, shape, flavour="plain", low=0 if t == "uint8" else -9, high=9)
    factors = [c.pick([0.5, 2.0, 1.5, 0.6, 3.0, 1.0]) if a in scaled else 1.0 for a in range(rank)]
    sizes = [max(1, int(n * f)) for n, f in zip(shape, factors)]
    used = scaled if axes else range(rank)
    if transform == "tf_crop_and_resize" and c.opset >= 11:
        low, high = [c.pick([0.0, 0.1]) for _ in used], [c.pick([1.0, 0.8, 1.2]) for _ in used]
        c.x("roi", np.asarray(low + high, np.float32), parameter=True)
        c.bound.setdefault("T2", "float")
    if c.opset < 11 or c.chance(0.5):
        if any(int(shape[a] * factors[a]) == 0 for a in used):
            raise Reject("empty")
        c.x("scales", np.asarray([factors[a] for a in used], np.float32), parameter=True)
    else:
        c.x("sizes", np.asarray([sizes[a] for a in used], np.int64), parameter=True)
        c.attr("keep_aspect_ratio_policy", c.pick([None, "stretch", "not_larger", "not_smaller"])
               if transform != "tf_crop_and_resize" and (axes or rank < 3) else None)
    if c.opset == 11 or c.opset == 12:
        for missing in ("roi", "scales"):
            if missing not in c.inputs:
                c.x(missing, np.asarray([], np.float32), parameter=True)
    c.sums = mode != "nearest"
    c.off_by_one = mode != "nearest"


def grid_sample(c):
    c.sums = True
    flat = c.opset < 20 or c.chance(0.7)
    spatial = [c.int(2, 5) for _ in range(2 if flat else 3)]
    n = c.int(1, 2)
    modes = ["linear", "nearest"] + (["cubic"] if flat else []) if c.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    c.attr("mode", c.pick(modes))
    c.attr("padding_mode", c.pick([None, "zeros", "border", "reflection"]))
    c.bound["T1"] = c.bound["T2"] = c.pick(["float", "float", "double"])
    c.data("X", [n, c.int(1, 2)] + spatial, flavour="plain")
    c.data("grid", [n] + [c.int(1, 3) for _ in spatial] + [len(spatial)], low=-1.3, high=1.3)


def affine_grid(c):
    n, spatial = c.int(1, 2), [c.int(1, 4) for _ in range(c.pick([2, 3]))]
    if c.pick([True]) and len(spatial):
        spatial = [max(2, s) for s in spatial]
    c.data("theta", [n, len(spatial), len(spatial) + 1], flavour="plain")
    c.x("size", np.asarray([n, 1] + spatial, np.int64), parameter=True)


def roi_align(c):
    c.sums = True
    n, ch, h, w, count = c.int(1, 2), c.int(1, 2), c.int(4, 8), c.int(4, 8), c.int(1, 3)
    c.bound["T1"] = c.pick(["float", "float", "double"])
    c.data("X", [n, ch, h, w], flavour="plain")
    corner = c.r.uniform(0, 3, [count, 2])
    c.x("rois", np.concatenate([corner, corner + c.r.uniform(1, 6, [count, 2])], 1).astype(numpy_type(c.bound["T1"])))
    c.x("batch_indices", c.r.integers(0, n, [count]).astype(np.int64))
    for name, among in [("mode", ["avg", "max"]), ("output_height", [1, 2, 3]), ("output_width", [1, 2, 3]),
                        ("sampling_ratio", [0, 1, 2]), ("spatial_scale", [1.0, 0.5]),
                        ("coordinate_transformation_mode", ["half_pixel", "output_half_pixel"])]:
        c.attr(name, c.pick(among) if c.chance(0.7) else None)


def max_roi_pool(c):
    c.data("X", [1, 2, 6, 6], flavour="plain")
    c.x("rois", np.asarray([[0, 0, 0, 3, 3], [0, 1, 1, 5, 4]], numpy_type(c.input_type("X"))))
    c.attr("pooled_shape", [2, 2])


def suppression(c):
    batch, classes, count = c.int(1, 2), c.int(1, 2), c.int(1, 6)
    corner = c.r.uniform(0, 2, [batch, count, 2])
    boxes = np.concatenate([corner, corner + c.r.uniform(0.1, 1.5, [batch, count, 2])], 2)
    flip = c.r.random([batch, count]) < 0.2
    boxes[flip] = boxes[flip][:, [2, 3, 0, 1]]
    c.attr("center_point_box", c.int(0, 1))
    c.x("boxes", (np.abs(boxes) if c.attrs.get("center_point_box") else boxes).astype(np.float32))
    c.x("scores", c.r.permutation(batch * classes * count).reshape(batch, classes, count).astype(np.float32) / 8)
    for name, value, kind in [("max_output_boxes_per_class", c.int(0, 4), np.int64),
                              ("iou_threshold", c.pick([0.0, 0.3, 0.5, 1.0]), np.float32),
                              ("score_threshold", c.pick([0.0, 0.3, 1.1]), np.float32)]:
        if c.chance(0.8):
            c.x(name, np.asarray([value] if c.chance(0.5) else value, kind), parameter=True)


# Signals.
def dft(c):
    c.sums = True
    real = c.chance(0.5)
    shape = [c.int(1, 2), c.pick([1, 2, 3, 4, 5, 8, 10, 16])] + ([c.int(1, 4)] if c.chance(0.3) else []) + [1 if real else 2]
    inverse = c.int(0, 1)
    c.attr("inverse", inverse if inverse else None)
    c.attr("onesided", 1 if not inverse and real and c.chance(0.5) else None)
    c.data("input", shape, flavour="plain")
    axis = c.int(1, len(shape) - 2)
    if c.chance(0.3):
        c.x("dft_length", np.asarray(c.int(1, 9), numpy_type(c.input_type("dft_length"))), parameter=True)
    if c.has("axis"):
        c.attr("axis", axis)
    elif c.chance(0.8):
        c.x("axis", np.asarray(axis - (len(shape) if c.chance(0.3) else 0), np.int64), parameter=True)


def stft(c):
    c.sums = True
    length, frame, step = c.int(8, 20), c.pick([4, 5, 8]), c.int(1, 5)
    real = c.chance(0.6)
    c.data("signal", [c.int(1, 2), length, 1 if real else 2], flavour="plain")
    t2 = numpy_type(c.input_type("frame_step"))
    c.x("frame_step", np.asarray(step, t2), parameter=True)
    kind = c.int(0, 2)
    if kind != 0:
        c.data("window", [frame], low=0, high=1)
    if kind != 1:
        c.x("frame_length", np.asarray(frame, t2), parameter=True)
    c.attr("onesided", c.int(0, 1) if real else 0)


def window_of(c):
    c.sums = True
    c.x("size", np.asarray(c.int(1, 12), numpy_type(c.input_type("size"))), parameter=True)
    c.attr("output_datatype", c.pick([None, 1, 11, 10]))


def mel(c):
    for name, value in [("num_mel_bins", c.int(1, 6)), ("dft_length", c.pick([16, 32, 64])), ("sample_rate", 8192),
                        ("lower_edge_hertz", c.pick([0.0, 100.0])), ("upper_edge_hertz", c.pick([4096.0, 3000.0]))]:
        c.x(name, np.asarray(value).astype(numpy_type(c.input_type(name))), parameter=True)


GROUPS = [
    (pool, 3, "AveragePool MaxPool"), (pool, 2, "LpPool"),
    (global_pool, 1, "GlobalAveragePool GlobalMaxPool GlobalLpPool"), (max_unpool, 1, "MaxUnpool"),
    (conv, 3, "Conv"), (conv, 1, "ConvInteger QLinearConv"), (conv_transpose, 3, "ConvTranspose"),
    (deform_conv, 1, "DeformConv"), (col2im, 1, "Col2Im"), (lrn, 1, "LRN"),
    (channel_norm, 2, "BatchNormalization"), (channel_norm, 1, "InstanceNormalization GroupNormalization"),
    (layer_norm, 2, "LayerNormalization"), (layer_norm, 1, "RMSNormalization"),
    (mvn, 1, "MeanVarianceNormalization"), (recurrent, 3, "RNN GRU LSTM"), (attention, 4, "Attention"),
    (linear_attention, 1, "LinearAttention"), (causal_conv, 1, "CausalConvWithState"),
    (rotary, 1, "RotaryEmbedding"), (dropout, 1, "Dropout"),
    (loss, 2, "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"), (resize, 5, "Resize"),
    (grid_sample, 2, "GridSample"), (affine_grid, 1, "AffineGrid"), (roi_align, 1, "RoiAlign"),
    (max_roi_pool, 0.2, "MaxRoiPool"), (suppression, 2, "NonMaxSuppression"), (dft, 2, "DFT"),
    (stft, 1, "STFT"), (window_of, 1, "BlackmanWindow HammingWindow HannWindow"), (mel, 1, "MelWeightMatrix"),
]
