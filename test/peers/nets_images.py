"""Families of networks over images, volumes and signals."""

import numpy as np

import nets_parts as part
from case import Reject


def picture(n, channels, low=8, high=20, rank=2):
    """An input whose batch, height and width may be open."""
    names = ["depth", "height", "width"][3 - rank:]
    return n.input("x", [n.size("batch", 1, 4), channels] + [n.size(s, low, high) for s in names])


def fixed_picture(n, channels, low=8, high=28):
    return n.input("x", [n.size("batch", 1, 4), channels, n.int(low, high), n.int(low, high)])


def flattened(n, x):
    """With its number of columns."""
    y = n.op("Flatten", x) if n.chance(0.6) else n.op("Reshape", x, n.ints(-1 if n.chance(0.3) else 0, int(np.prod(n.dims(x)[1:]))))
    size = n.dims(x)[1:]
    if None in size or 0 in size:
        raise Reject("nothing to flatten")
    return y, int(np.prod(size))


def pool2(n, x):
    kind = n.pick(["MaxPool", "MaxPool", "AveragePool", "LpPool"])
    kernel = n.pick([2, 2, 3])
    pads = n.pick([None, [kernel - 1] * 4, [0, 0, 1, 1], [1, 1, 0, 0]])
    ceil = n.pick([None, 0, 1]) if kind != "LpPool" and not pads else None
    return n.op(kind, x, kernel_shape=[kernel] * 2, strides=[2, 2], pads=pads, ceil_mode=ceil)


def lenet(n):
    n.any_float()
    channels, kind = n.pick([1, 3]), n.pick(["Relu", "Tanh", "Sigmoid"])
    x = fixed_picture(n, channels, 12, 32)
    for filters in [n.int(2, 8) for _ in range(n.int(1, 3))]:
        kernel = n.pick([1, 3, 5])
        x = part.act(n, part.conv(n, x, channels, filters, [kernel] * 2, pads=n.pick([[0] * 4, [kernel // 2] * 4, [2] * 4])), kind)
        x, channels = pool2(n, x), filters
    x, size = flattened(n, x)
    for hidden in [n.int(5, 40) for _ in range(n.int(0, 2))]:
        x, size = part.act(n, part.gemm(n, x, size, hidden), kind), hidden
    y = part.gemm(n, x, size, 10)
    n.out(n.op(n.pick(["Softmax", "LogSoftmax"]), y, axis=-1) if n.chance(0.6) else y)


def squeeze_excite(n, x, channels):
    s = n.op("GlobalAveragePool", x) if n.chance(0.6) else n.reduce("ReduceMean", x, [2, 3])
    few = max(1, channels // 4)
    s = part.act(n, part.conv(n, s, channels, few, [1, 1]), "Relu")
    return n.op("Mul", x, part.act(n, part.conv(n, s, few, channels, [1, 1]), n.pick(["Sigmoid", "HardSigmoid"])))


def mobilenet(n):
    channels = n.pick([3, 4, 8])
    x = picture(n, channels)
    kind = n.pick(["relu6", "hard_swish", "HardSwish", "swish"])
    for _ in range(n.int(1, 3)):
        wide, out, stride, k = channels * n.int(1, 4), n.pick([channels, 6, 8]), n.int(1, 2), n.pick([3, 5])
        y = part.act(n, part.batch_norm(n, part.conv(n, x, channels, wide, [1, 1]), wide), kind)
        y = part.conv(n, y, wide, wide, [k, k], group=wide, strides=[stride] * 2)
        y = part.act(n, part.batch_norm(n, y, wide), kind)
        y = squeeze_excite(n, y, wide) if n.chance(0.5) else y
        y = part.batch_norm(n, part.conv(n, y, wide, out, [1, 1]), out)
        x, channels = n.op("Add", x, y) if stride == 1 and out == channels else y, out
    n.out(x)


def resnet(n):
    n.any_float()
    channels = n.pick([3, 4, 16])
    x = picture(n, channels)
    for _ in range(n.int(1, 3)):
        out, stride = n.pick([channels, 8, 12]), n.int(1, 2)
        y = part.act(n, part.image_norm(n, part.conv(n, x, channels, out, [3, 3], strides=[stride] * 2), out), "Relu")
        y = part.image_norm(n, part.conv(n, y, out, out, [3, 3]), out)
        same = out == channels and stride == 1
        shortcut = x if same else part.image_norm(n, part.conv(n, x, channels, out, [1, 1], strides=[stride] * 2), out)
        x, channels = part.act(n, n.op("Add", y, shortcut), "Relu"), out
    n.out(n.op("GlobalAveragePool", x) if n.chance(0.5) else x)


def upsampled(n, x, channels):
    kind = n.pick(["transposed", "scales", "sizes"])
    if kind == "transposed":
        k = n.pick([2, 4])
        return n.op("ConvTranspose", x, n.const(n.r.normal(0, 0.3, (channels, channels, k, k)), n.float),
                    strides=[2, 2], pads=[(k - 2) // 2] * 4)
    how = n.pick([{"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
                  {"mode": "linear", "coordinate_transformation_mode": n.pick(["half_pixel", "align_corners"])},
                  {"mode": "cubic", "coordinate_transformation_mode": "half_pixel"}])
    if kind == "scales":
        return n.op("Resize", x, "", n.const([1, 1, 2, 2], np.float32), **how)
    doubled = [n.op("Mul", s, n.ints(2)) for s in n.shape_of(x, 2, 3)]
    return n.op("Resize", x, "", "", n.op("Concat", *n.shape_of(x, 0, 1), *doubled, axis=0), **how)


def unet(n):
    depth = n.int(1, 2)
    step = 2 ** depth
    channels, width = n.pick([1, 3]), n.int(3, 8)

    def multiple(r, shape, sizes):
        return r.normal(0, 1, shape)
    low = n.int(1, 3) * step
    batch = n.size("batch", 1, 3)
    x = n.input("x", [batch, channels, low * n.int(1, 2), low], make=multiple)
    if n.openness == 1:  # open height and width, of which the runs use one
        dims, *rest = n.inputs["x"]
        n.sizes |= {"height": (dims[2], dims[2], None), "width": (low, low, None)}
        n.inputs["x"] = ([batch, channels, "height", "width"], *rest)
    skips, x = [], part.act(n, part.conv(n, x, channels, width, [3, 3]), "Relu")
    for _ in range(depth):
        skips.append(x)
        x = n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]) if n.chance(0.5) else \
            part.conv(n, x, width, width, [3, 3], strides=[2, 2])
        x = part.act(n, part.conv(n, x, width, width, [3, 3]))
    for skip in reversed(skips):
        x = n.op("Concat", upsampled(n, x, width), skip, axis=1)
        x = part.act(n, part.conv(n, x, 2 * width, width, [3, 3]), "Relu")
    n.out(part.conv(n, x, width, 2, [1, 1]))


def inception(n):
    channels = n.int(2, 6)
    x = picture(n, channels)
    outs = []
    for _ in range(n.int(2, 4)):
        kind = n.pick(["1", "3", "5", "pool"])
        if kind == "pool":
            outs.append(n.op(n.pick(["MaxPool", "AveragePool"]), x, kernel_shape=[3, 3], pads=[1] * 4))
        else:
            k, few = int(kind), n.int(2, 5)
            outs.append(part.act(n, part.conv(n, x, channels, few, [k, k])))
    n.out(n.op("Concat", *outs, axis=1))


def densenet(n):
    channels, growth = n.int(2, 6), n.int(2, 4)
    parts = [picture(n, channels)]
    for _ in range(n.int(2, 4)):
        x = n.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
        x = part.conv(n, part.act(n, part.batch_norm(n, x, channels), "Relu"), channels, growth, [3, 3])
        parts.append(x)
        channels += growth
    n.out(n.op("AveragePool", n.op("Concat", *parts, axis=1), kernel_shape=[2, 2], strides=[2, 2]))


def shufflenet(n):
    groups = n.pick([2, 3])
    channels = groups * 2 * n.int(1, 3)
    x = picture(n, channels)
    for _ in range(n.int(1, 2)):
        y = part.act(n, part.conv(n, x, channels, channels, [1, 1], group=groups), "Relu")
        batch, height, width = n.shape_of(y, 0, 2, 3)
        y = n.op("Transpose", n.reshape(y, batch, groups, channels // groups, height, width), perm=[0, 2, 1, 3, 4])
        y = n.reshape(y, batch, channels, height, width)
        y = part.conv(n, y, channels, channels, [3, 3], group=channels)
        if n.chance(0.5):
            a, b = n.split(y, 1, [channels // 2] * 2)
            y = n.op("Concat", part.act(n, b), a, axis=1)
        x = n.op("Add", x, y)
    n.out(x)


def convnext(n):
    channels = n.pick([4, 6, 16])
    x = picture(n, channels)
    y = part.conv(n, x, channels, channels, [7, 7], group=channels)
    y = part.layer_norm(n, n.op("Transpose", y, perm=[0, 2, 3, 1]), channels)
    y = part.feed_forward(n, y, channels, 4 * channels, n.pick(["gelu", "Gelu"]))
    y = n.op("Transpose", n.op("Mul", y, n.weight(channels)), perm=[0, 3, 1, 2])
    n.out(n.op("Add", x, y))


def temporal(n):
    """A TCN: dilated convolutions of one axis, causal by pads, by a Pad or by cutting the end off."""
    channels = n.int(1, 8)
    x = n.input("x", [n.size("batch", 1, 3), channels, n.size("time", 6, 40)])
    for level in range(n.int(1, 4)):
        filters, kernel, dilation = n.int(2, 8), n.int(2, 4), 2 ** level
        back, how = (kernel - 1) * dilation, n.pick(["both", "left", "pad", "right"])
        source = x
        if how == "pad":
            source = n.op("Pad", x, n.ints(0, 0, back, 0, 0, 0))
        pads = {"both": [back, back], "left": [back, 0], "right": [0, back], "pad": [0, 0]}[how]
        y = part.conv(n, source, channels, filters, [kernel], pads=pads, dilations=[dilation])
        if how == "both":
            y = n.op("Slice", y, n.ints(0), n.ints(-back), n.ints(2))
        y = part.act(n, y)
        shortcut = x if filters == channels else part.conv(n, x, channels, filters, [1])
        x, channels = part.act(n, n.op("Add", y, shortcut), "Relu"), filters
    n.out(x if n.chance(0.5) else n.op("GlobalMaxPool", x))


def window(n, rank):
    """Any kernel with any pads, larger than the kernel too."""
    kernel = [n.int(1, 5 if rank < 3 else 3) for _ in range(rank)]
    return kernel, {"pads": [n.int(0, kernel[i % rank] + 1) for i in range(2 * rank)] if n.chance(0.7) else [0] * 2 * rank,
                    "strides": [n.int(1, 3) for _ in range(rank)] if n.chance(0.6) else None,
                    "dilations": [n.int(1, 2) for _ in range(rank)] if n.chance(0.4) else None}


def any_convolutions(n):
    n.any_float()
    rank, channels = n.pick([1, 2, 2, 3]), n.pick([1, 2, 3, 4, 6])
    x = picture(n, channels, 10, 18 if rank < 3 else 12, rank)
    for _ in range(n.int(1, 2)):
        group = n.pick([g for g in (1, 1, 2, 3, 4, 6) if channels % g == 0])
        filters = group * n.int(1, 4)
        kernel, how = window(n, rank)
        if n.chance(0.15):
            how = {"pads": None, "auto_pad": n.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]), "strides": how["strides"]}
        x, channels = part.conv(n, x, channels, filters, kernel, group=group, **how), filters
        x = part.act(n, x) if n.chance(0.4) else x
    n.out(x)


def transposed_convolutions(n):
    rank, channels = n.pick([1, 2, 2, 3]), n.pick([1, 2, 4])
    x = picture(n, channels, 2, 7, rank)
    for _ in range(n.int(1, 2)):
        kernel, filters = [n.int(1, 4) for _ in range(rank)], n.int(1, 3)
        strides = [n.int(1, 3) for _ in kernel]
        pads = [n.int(0, max(0, (kernel[i % rank] - 1) // 2)) for i in range(2 * rank)]
        padding = [n.int(0, s - 1) for s in strides] if n.chance(0.3) else None
        weight = n.const(n.r.normal(0, 0.4, [channels, filters] + kernel), n.float)
        x = n.op("ConvTranspose", x, weight, strides=strides, pads=pads, output_padding=padding)
        channels = filters
    n.out(x)


def integer_convolutions(n):
    kind = n.pick(["ConvInteger", "QLinearConv"])
    channels, filters = n.int(1, 4), n.int(1, 4)
    left, right = (np.uint8, n.pick([np.uint8, np.int8])) if kind == "ConvInteger" else n.pick([(np.uint8,) * 2, (np.int8,) * 2, (np.uint8, np.int8)])
    rank = n.pick([1, 2, 2, 3]) if kind == "QLinearConv" else 2
    names = ["depth", "height", "width"][3 - rank:]
    low, high = (0, 255) if left == np.uint8 else (-128, 127)
    x = n.input("x", [n.size("batch", 1, 3), channels] + [n.size(s, 6, 12) for s in names], left, low, high)
    kernel, how = window(n, rank)
    weight = n.const(n.r.integers(*((0, 255) if right == np.uint8 else (-128, 127)), [filters, channels] + kernel), right)
    zero, zero_weight = n.const(n.int(0, 100), left), n.const(n.int(0, 9) if right == np.uint8 else 0, right)
    if kind == "ConvInteger":
        more = n.pick([[], [zero], [zero, zero_weight]])
        y = n.op("ConvInteger", x, weight, *more, **how)
        n.out(y if n.chance(0.5) else n.op("Cast", y, to=1))
        return
    n.off_by_one = True
    scale = lambda v: n.const(v, np.float32)
    bias = [n.const(n.r.integers(-500, 500, [filters]), np.int32)] if n.chance(0.5) else []
    y = n.op("QLinearConv", x, scale(0.02), zero, weight, scale(0.01), zero_weight, scale(n.pick([0.1, 0.5, 2.0])),
             n.const(n.int(0, 60), left), *bias, **how)
    n.out(y)


def any_pools(n):
    rank, channels = n.pick([1, 2, 2, 3]), n.int(1, 3)
    x = picture(n, channels, 6, 12, rank)
    if n.chance(0.2) and n.opset >= 13:
        type = n.pick([np.uint8, np.int8])
        n.inputs["x"] = (n.inputs["x"][0], np.dtype(type), *((0, 255) if type == np.uint8 else (-128, 127)), None)
        kind = "MaxPool"
    else:
        kind = n.pick(["MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool"])
    if kind.startswith("Global"):
        return n.out(n.op(kind, x))
    kernel = [n.int(1, 4 if rank < 3 else 3) for _ in range(rank)]
    how = {"kernel_shape": kernel, "pads": [n.int(0, kernel[i % rank] - 1) for i in range(2 * rank)],
           "strides": [n.int(1, 3) for _ in kernel] if n.chance(0.7) else None}
    if kind != "LpPool" or n.opset >= 18:
        how["ceil_mode"] = n.pick([None, 0, 1])
    if kind == "MaxPool" or (kind == "AveragePool" and n.opset >= 19):
        how["dilations"] = n.pick([None, None, [2] * rank])
    if kind == "AveragePool":
        how["count_include_pad"] = n.pick([None, 0, 1])
    if kind == "MaxPool" and n.chance(0.3):
        return n.out(*n.op(kind, x, outputs=2, **how))
    n.out(n.op(kind, x, **how))


def yolo_head(n):
    channels, anchors, classes = n.int(2, 6), n.int(1, 3), n.int(1, 4)
    x = picture(n, channels, 3, 8)
    y = part.conv(n, x, channels, anchors * (5 + classes), [1, 1])
    batch, height, width = n.shape_of(y, 0, 2, 3)
    y = n.op("Transpose", n.reshape(y, batch, anchors, 5 + classes, height, width), perm=[0, 1, 3, 4, 2])
    xy, wh, rest = n.split(y, 4, [2, 2, 1 + classes])
    wh = n.op("Mul", n.op("Exp", wh), n.const(n.r.uniform(1, 4, (1, anchors, 1, 1, 2)), n.float))
    y = n.op("Concat", n.op("Mul", n.op("Sigmoid", xy), n.pick([8.0, 16.0])), wh, n.op("Sigmoid", rest), axis=4)
    n.out(n.reshape(y, batch, -1, 5 + classes))


def boxes(n):
    """Suppression of boxes, whose number the data decide, and what follows."""
    count, classes = n.size("boxes", 3, 12), n.int(1, 3)
    def corners(r, shape, sizes):
        low = r.uniform(0, 0.6, shape[:-1] + (2,))
        return np.concatenate([low, low + r.uniform(0.05, 0.4, low.shape)], -1)
    b = n.input("boxes", [1, count, 4], np.float32, make=corners)
    s = n.input("scores", [1, classes, count], np.float32, 0, 1)
    kept = n.op("NonMaxSuppression", b, s, n.ints(n.int(1, 5)), n.const([0.4], np.float32), n.const([0.2], np.float32))
    columns = n.op("Gather", kept, n.ints(2), axis=1)
    chosen = n.op("Gather", n.op("Squeeze", b, n.ints(0)), n.op("Squeeze", columns, n.ints(1)))
    n.out(kept, n.op("Mul", chosen, n.pick([2.0, 640.0])))


def vision_transformer(n):
    channels, p, count, width = n.pick([1, 3]), n.pick([2, 4]), n.pick([1, 2, 4]), n.pick([2, 4, 8])
    size, rows, columns = count * width, n.int(1, 4), n.int(1, 4)
    x = n.input("x", [n.size("batch", 1, 4), channels, rows * p, columns * p])
    y = part.conv(n, x, channels, size, [p, p], pads=[0] * 4, strides=[p, p])
    y = n.op("Transpose", n.op("Reshape", y, n.ints(0, size, -1)), perm=[0, 2, 1])
    if n.chance(0.6):
        token = n.op("Expand", n.weight(1, 1, size), n.op("Concat", *n.shape_of(x, 0), n.ints(1, size), axis=0))
        y = n.op("Concat", token, y, axis=1)
    y = n.op("Add", y, n.weight(1, n.dims(y)[1] or rows * columns + 1, size))
    for _ in range(n.int(1, 2)):
        y = n.op("Add", y, part.self_attention(n, part.layer_norm(n, y, size), count, width))
        y = n.op("Add", y, part.feed_forward(n, part.layer_norm(n, y, size), size, 2 * size))
    y = n.op("Gather", y, n.const(0, np.int64), axis=1) if n.chance(0.5) else n.reduce("ReduceMean", y, [1], 0)
    n.out(part.gemm(n, y, size, n.int(2, 9)))


def super_resolution(n):
    channels, block = n.int(1, 3), n.int(2, 3)
    x = picture(n, channels, 3, 8)
    y = part.act(n, part.conv(n, x, channels, 6, [5, 5]))
    y = part.conv(n, y, 6, channels * block * block, [3, 3])
    n.out(n.op("DepthToSpace", y, blocksize=block, mode=n.pick(["DCR", "CRD"])))


def segmentation(n):
    """Atrous pyramid and a resize to the size of the image."""
    channels, width = n.pick([1, 3]), n.int(2, 6)
    x = picture(n, channels, 8, 16)
    y = part.act(n, part.conv(n, x, channels, width, [3, 3], strides=[2, 2]), "Relu")
    parts = [part.conv(n, y, width, 3, [3, 3], dilations=[d, d], pads=[d] * 4) for d in (1, 2, n.int(3, 6))]
    pooled = part.conv(n, n.op("GlobalAveragePool", y), width, 3, [1, 1])
    parts.append(n.op("Expand", pooled, n.op("Concat", *n.shape_of(parts[0], 0, 1, 2, 3), axis=0)))
    y = part.conv(n, n.op("Concat", *parts, axis=1), 12, 4, [1, 1])
    sizes = n.op("Concat", *n.shape_of(y, 0, 1), *n.shape_of(x, 2, 3), axis=0)
    y = n.op("Resize", y, "", "", sizes, mode="linear", coordinate_transformation_mode=n.pick(["half_pixel", "align_corners", "pytorch_half_pixel"]))
    n.out(n.op("ArgMax", y, axis=1, keepdims=n.int(0, 1)) if n.chance(0.3) else n.op("Softmax", y, axis=1))


def preprocessing(n):
    """From bytes, channels last, to a normalized picture."""
    batch = n.size("batch", 1, 3)
    x = n.input("image", [batch, n.size("height", 6, 16), n.size("width", 6, 16), 3], np.uint8, 0, 255)
    y = n.op("Transpose", n.op("Cast", x, to=1), perm=[0, 3, 1, 2])
    mode = n.pick(["linear", "cubic", "nearest"])
    anti = n.pick([None, 1]) if n.opset >= 18 and mode != "nearest" else None
    y = n.op("Resize", y, "", "", n.op("Concat", *n.shape_of(y, 0), n.ints(3, n.int(4, 9), n.int(4, 9)), axis=0), mode=mode, antialias=anti,
             coordinate_transformation_mode=n.pick(["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]))
    y = n.op("Sub", n.op("Div", y, 255), n.const(np.float32([0.48, 0.45, 0.4]).reshape(1, 3, 1, 1)))
    y = n.op("Div", y, n.const(np.float32([0.22, 0.23, 0.25]).reshape(1, 3, 1, 1)))
    edge = n.pick(["constant", "edge", "reflect"])
    n.out(n.op("Pad", y, n.ints(0, 0, 1, 0, 0, 0, 2, 1), mode=edge))


def spectrogram(n):
    window, hop = n.pick([8, 16, 20]), n.int(2, 6)
    x = n.input("x", [n.size("batch", 1, 2), n.size("time", 40, 90)])
    y = n.op("Unsqueeze", x, n.ints(1))
    y = n.op("Pad", y, n.ints(0, 0, window // 2, 0, 0, window // 2), mode=n.pick(["reflect", "constant"]))
    angle = 2 * np.pi * np.outer(np.arange(window // 2 + 1), np.arange(window)) / window
    bins = angle.shape[0]
    real = n.op("Conv", y, n.const(np.cos(angle)[:, None], n.float), strides=[hop])
    imaginary = n.op("Conv", y, n.const(-np.sin(angle)[:, None], n.float), strides=[hop])
    power = n.op("Add", n.op("Mul", real, real), n.op("Pow", imaginary, 2))
    mel = n.op("MatMul", n.weight(n.int(2, 6), bins, low=0, high=1), power)
    y = n.op("Log", n.op("Max", mel, 1e-5) if n.chance(0.5) else n.op("Add", mel, 1e-6))
    if n.chance(0.5):
        y = n.op("Div", n.op("Sub", y, n.reduce("ReduceMean", y, [2])), 3.5)
    n.out(y)


def autoencoder(n):
    size, hidden = n.int(6, 30), n.int(2, 6)
    x = n.input("x", [n.size("batch", 1, 6), size])
    noise = n.input("noise", [n.inputs["x"][0][0], hidden])
    h = part.act(n, part.gemm(n, x, size, 2 * hidden))
    mean, spread = part.gemm(n, h, 2 * hidden, hidden), part.gemm(n, h, 2 * hidden, hidden)
    z = n.op("Add", mean, n.op("Mul", n.op("Exp", n.op("Mul", spread, 0.5)), noise))
    h = n.op("Reshape", part.gemm(n, z, hidden, 4 * 9), n.ints(-1, 4, 3, 3))
    y = n.op("ConvTranspose", part.act(n, h), n.const(n.r.normal(0, 0.3, (4, 1, 4, 4)), n.float), strides=[2, 2], pads=[1] * 4)
    n.out(n.op("Sigmoid", y), mean)


def grid_sampled(n):
    """A spatial transformer."""
    n.need_opset(20)
    channels, batch = n.int(1, 3), n.size("batch", 1, 3)
    x = n.input("x", [batch, channels, n.size("height", 4, 8), n.size("width", 4, 8)])
    theta = n.op("Reshape", part.linear(n, n.reduce("ReduceMean", x, [2, 3], 0), channels, 6), n.ints(-1, 2, 3))
    theta = n.op("Add", theta, n.const([[[1, 0, 0], [0, 1, 0]]], n.float))
    grid = n.op("AffineGrid", theta, n.op("Shape", x), align_corners=n.int(0, 1))
    n.out(n.op("GridSample", x, grid, mode=n.pick(["linear", "cubic"]), padding_mode=n.pick(["zeros", "border", "reflection"]),
               align_corners=n.int(0, 1)))


FAMILIES = {f.__name__: f for f in [
    lenet, mobilenet, resnet, unet, inception, densenet, shufflenet, convnext, temporal, any_convolutions, transposed_convolutions,
    integer_convolutions, any_pools, yolo_head, boxes, vision_transformer, super_resolution, segmentation, preprocessing,
    spectrogram, autoencoder, grid_sampled]}
