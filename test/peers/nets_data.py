"""Families around single difficulties: NaN on the way, empty axes, sizes by data or by inputs, texts, quantization."""

import numpy as np
from onnx import helper

import nets_parts as part

SMALL = (0.2, 3.0)  # numbers that have a logarithm, where made-up inputs have none


def mlp(n):
    n.any_float()
    size = n.int(1, 40)
    x = n.input("x", [n.size("batch", 1, 20), size])
    for _ in range(n.int(1, 5)):
        hidden = n.int(1, 40)
        y = part.act(n, part.gemm(n, x, size, hidden))
        y = part.layer_norm(n, y, hidden) if hidden > 1 and n.chance(0.2) else y
        y = n.op("Dropout", y) if n.chance(0.1) else y
        x, size = (n.op("Add", x, y) if hidden == size else y), hidden
    n.out(x)


def nan_inside(n):
    """Operators that give NaN for some inputs, then operators to which NaN means different things."""
    n.any_float()
    size = n.int(2, 12)
    x = n.input("x", [n.size("batch", 1, 5), size], None, 0.2, 0.9)
    makers = {"Log": {}, "Sqrt": {}, "Acos": {}, "Atanh": {}, "Asin": {}, "pow": {}, "ratio": {}}
    for _ in range(n.int(1, 2)):
        kind = n.pick(makers)
        if n.float == np.float16 and kind in ("Acos", "Atanh", "Asin"):
            kind = "Log"
        x = n.op("Pow", n.op("Abs", x) if n.chance(0.5) else x, 0.37) if kind == "pow" else \
            n.op("Div", x, n.op("Relu", x)) if kind == "ratio" else n.op(kind, x)
        if kind in ("Log",) and n.chance(0.5):
            x = n.op("Exp", x)
    uses = ["TopK", "Sign", "Celu", "quantize", "ArgMax", "Max", "Clip", "Relu", "Softmax", "Round", "Where", "ReduceMax", "CumSum",
            "MaxPool", "Hardmax", "cast", "IsNaN", "Mod", "ReduceSum", "Selu", "Floor", "dynamic", "Unique", "NonZero"]
    for use in [n.pick(uses) for _ in range(n.int(1, 3))]:
        if use == "TopK":
            n.out(*n.op("TopK", x, n.ints(n.int(1, size)), outputs=2, axis=1, largest=n.pick([0, 1])))
        elif use == "quantize":
            if n.float != np.float32:
                continue
            n.off_by_one, n.step = True, 0.1
            scale, zero = n.const(0.1, np.float32), n.const(n.pick([0, 3]), n.pick([np.int8, np.uint8]))
            n.out(n.op("DequantizeLinear", n.op("QuantizeLinear", x, scale, zero), scale, zero))
        elif use == "dynamic":
            if n.float == np.float32:
                n.off_by_one = True
                n.out(*n.op("DynamicQuantizeLinear", x, outputs=3))
                n.unjudged.update(n.outputs[-3:])  # the page does not say what the range of NaN is: the peers differ in that
        elif use in ("Max", "Mod"):
            n.out(n.op(use, x, n.scalar(0.4), **({"fmod": 1} if use == "Mod" else {})))
        elif use == "Clip":
            n.out(n.op("Clip", x, -0.5, 0.5))
        elif use == "Where":
            n.out(n.op("Where", n.op("Greater", x, n.scalar(0)), x, n.scalar(-1)))
        elif use == "ReduceMax" or use == "ReduceSum":
            n.out(n.reduce(use, x, [1]))
        elif use == "CumSum":
            n.out(n.op("CumSum", x, n.const(1, np.int64)))
        elif use == "MaxPool":
            n.out(n.op("MaxPool", n.op("Unsqueeze", x, n.ints(0)), kernel_shape=[2]))
            n.unjudged.add(n.outputs[-1])  # the page does not say what the maximum of NaN is
        elif use == "cast":
            n.out(n.op("Cast", x, to=n.pick([1, 10, 11])))
        elif use == "Unique":
            n.out(n.op("Unique", x, outputs=2)[0])
            n.unjudged.add(n.outputs[-1])  # whether NaN equals NaN there is open: the peers differ in that
        elif use == "NonZero":
            n.out(n.op("NonZero", n.op("Relu", x)))
        elif use == "Celu" and n.float != np.float32:
            n.out(n.op("Elu", x))
        else:
            n.out(n.op(use, x, **({"axis": 1} if use in ("ArgMax", "Softmax", "Hardmax") else {})))
    if not n.outputs:
        n.out(x)


REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
              "ReduceLogSumExp"]


def reductions(n):
    """Chains over any axes; some axes have no elements."""
    type = n.pick([np.float32, np.float32, np.float64, np.int32, np.int64])
    n.float = type if np.dtype(type).kind == "f" else np.float32
    rank = n.int(1, 4)
    dims = [n.size(f"d{i}", 1, 6) for i in range(rank)]
    if n.chance(0.3):
        dims[n.int(0, rank - 1)] = 0
    x = n.input("x", dims, type, -3, 3)
    has_nothing = 0 in dims
    for _ in range(n.int(1, 2)):
        kind = n.pick(REDUCTIONS[:2] + ["ReduceL2", "ReduceL1"] if has_nothing else REDUCTIONS)
        if np.dtype(type).kind in "iu" and kind in ("ReduceLogSumExp", "ReduceL2", "ReduceMean"):
            kind = "ReduceSum"
        axes = [int(a) for a in n.r.permutation(rank)[:n.int(1, rank)]]
        y = n.reduce(kind, x, [a - rank if n.chance(0.3) else a for a in axes], n.int(0, 1))
        n.out(y)
    n.out(n.op("Abs", x))


def standardized(n):
    """Norms of axes; some groups hold one number only."""
    rank = n.pick([2, 3, 4])
    dims = [n.size("batch", 1, 3), n.int(1, 4)] + [n.size(f"d{i}", 1, 5) for i in range(rank - 2)]
    x = n.input("x", dims)
    if n.chance(0.3):
        x = n.op("Mul", x, n.pick([0.0, 1e-3]))
    kind = n.pick(["MeanVarianceNormalization", "InstanceNormalization", "LayerNormalization", "LpNormalization", "LRN",
                   "GroupNormalization", "training", "spelled"])
    channels = dims[1]
    scale, bias = n.weight(channels, low=0.5, high=1.5), n.weight(channels)
    if kind == "MeanVarianceNormalization":
        axes = sorted(int(a) for a in n.r.permutation(rank)[:n.int(1, rank)])
        return n.out(n.op(kind, x, axes=axes))
    if kind == "InstanceNormalization" and rank > 2:
        return n.out(n.op(kind, x, scale, bias, epsilon=n.pick([1e-5, 1e-2])))
    if kind == "GroupNormalization" and n.opset >= 21 and rank > 2:
        return n.out(n.op(kind, x, scale, bias, num_groups=n.pick([1, channels])))
    if kind == "LpNormalization":
        return n.out(n.op(kind, n.op("Add", n.op("Abs", x), 0.1), axis=n.int(0, rank - 1), p=n.int(1, 2)))
    if kind == "LRN" and rank == 4:
        return n.out(n.op(kind, x, size=n.int(1, 5), alpha=0.1))
    if kind == "training" and n.opset >= 15:
        running = n.weight(channels), n.weight(channels, low=0.5, high=1.5)
        return n.out(*n.op("BatchNormalization", x, scale, bias, *running, outputs=3, training_mode=1, momentum=0.7))
    if kind == "LayerNormalization" and n.opset >= 17 and isinstance(dims[-1], int):
        size = dims[-1]
        return n.out(n.op(kind, x, n.weight(size, low=0.5, high=1.5), n.weight(size), axis=-1, epsilon=n.pick([1e-5, 1e-2])))
    axes = [-1] if n.chance(0.5) else list(range(1, rank))
    off = n.op("Sub", x, n.reduce("ReduceMean", x, axes))
    spread = n.op("Sqrt", n.op("Add", n.reduce("ReduceMean", n.op("Mul", off, off), axes), n.pick([1e-5, 1e-3])))
    n.out(n.op("Div", off, spread))


def integers(n):
    type = n.pick([np.int32, np.int64, np.uint8, np.uint32, np.uint64, np.int8])
    unsigned = np.dtype(type).kind == "u"
    dims = [n.size("batch", 1, 6), n.int(1, 9)]
    x = n.input("x", dims, type, 0 if unsigned else -50, 100)
    n.need_opset(18)
    for _ in range(n.int(1, 4)):
        kind = n.pick(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "Mod", "Div", "Mul", "Add", "BitShift", "Max", "Abs", "Where"])
        one = n.const(n.r.integers(1, 7, [dims[1]]), type)
        if kind == "BitShift" and not unsigned or kind in ("Abs", "Max") and type in (np.uint32, np.int8):
            kind = "Add"
        if kind in ("Mod", "Div", "Mul", "Add", "BitwiseNot") and type == np.int8 and kind == "BitwiseNot":
            kind = "BitwiseXor"
        x = n.op("BitwiseNot", x) if kind == "BitwiseNot" else n.op("Abs", x) if kind == "Abs" else \
            n.op("BitShift", x, one, direction=n.pick(["LEFT", "RIGHT"])) if kind == "BitShift" else \
            n.op("Where", n.op("Less", x, one), x, one) if kind == "Where" else n.op(kind, x, one)
    n.out(x)


def sized_by_data(n):
    """A size that the data decide, and operators on what has it."""
    kind, columns = n.pick(["NonZero", "Unique", "Compress", "Range", "mask"]), n.int(1, 5)
    rows = n.size("rows", 1, 9)
    x = n.input("x", [rows, columns], make=lambda r, s, _: np.round(r.normal(0, 1, s)))
    if kind == "NonZero":
        where = n.op("NonZero", x)
        y = n.op("GatherND", x, n.op("Transpose", where, perm=[1, 0])) if n.chance(0.5) else n.op("Cast", where, to=1)
    elif kind == "Unique":
        values, index, inverse, counts = n.op("Unique", x, outputs=4, axis=n.pick([None, 0]), sorted=1)
        y = n.op("Cast", counts, to=1) if n.chance(0.3) else values
        n.out(inverse)
    elif kind == "Compress":
        keep = n.op("Greater", n.reduce("ReduceMax", x, [1], 0), 0)
        y = n.op("Compress", x, keep, axis=0)
    elif kind == "Range":
        count = n.op("Cast", n.reduce("ReduceSum", n.op("Clip", n.op("Abs", x), 0, 2), [0, 1], 0), to=7)
        y = n.op("Cast", n.op("Range", n.const(0, np.int64), n.op("Add", count, n.const(1, np.int64)), n.const(1, np.int64)), to=1)
    else:
        flat = n.op("Reshape", x, n.ints(-1))
        chosen = n.op("Squeeze", n.op("NonZero", n.op("Greater", flat, 0)), n.ints(0))
        y = n.op("Gather", flat, chosen)
    for _ in range(n.int(1, 3)):
        use = n.pick(["act", "Mul", "bits", "sum", "Concat", "norm"])
        if use == "act":
            y = part.act(n, y)
        elif use == "Mul":
            y = n.op("Add", n.op("Mul", y, 0.5), y)
        elif use == "bits" and n.opset >= 18:
            whole = n.op("Cast", y, to=7)
            y = n.op("Cast", n.op("BitwiseOr", whole, n.const(3, np.int64)), to=1)
        elif use == "sum":
            n.out(n.reduce("ReduceSum", y, [0]))
        elif use == "Concat":
            y = n.op("Concat", y, y, axis=-1)
        elif use == "norm":
            n.out(n.op("Sub", y, n.reduce("ReduceMean", n.op("Concat", y, y, axis=0), [0])))
    n.out(y)


def sized_by_input(n):
    """Sizes that are inputs of the model."""
    kind = n.pick(["Reshape", "Split", "Resize", "Expand", "Tile", "Slice", "Pad", "TopK", "Range", "ConstantOfShape", "OneHot", "GatherND"])
    columns = n.pick([4, 6, 8])
    rows = n.size("rows", 2, 6)
    given = lambda name, count, make: n.input(name, [count] if count else [], np.int64, make=make)
    x = n.input("x", [rows, columns])
    if kind == "Reshape":
        y = n.op("Reshape", x, given("shape", 2, lambda r, s, z: r.choice([[-1, 2], [2, -1], [-1, columns]])))
    elif kind == "Split":
        def pieces(r, s, z):
            cut = r.integers(0, columns, endpoint=True)
            return [cut, columns - cut]
        y, other = n.op("Split", x, given("parts", 2, pieces), outputs=2, axis=1)
        n.out(n.op("Neg", other))
    elif kind == "Resize":
        sizes = given("sizes", 4, lambda r, s, z: [1, 1, r.integers(1, 9), r.integers(1, 9)])
        y = n.op("Resize", n.op("Unsqueeze", x, n.ints(0, 1)), "", "", sizes, mode=n.pick(["nearest", "linear"]),
                 coordinate_transformation_mode=n.pick(["half_pixel", "asymmetric"]))
    elif kind == "Expand":
        y = n.op("Expand", n.op("Unsqueeze", x, n.ints(0)), given("shape", 3, lambda r, s, z: [r.integers(1, 4), 1, 1]))
    elif kind == "Tile":
        y = n.op("Tile", x, given("repeats", 2, lambda r, s, z: r.integers(1, 3, 2)))
    elif kind == "Slice":
        y = n.op("Slice", x, given("starts", 1, lambda r, s, z: [r.integers(-3, 3)]), given("ends", 1, lambda r, s, z: [r.integers(-2, 9)]), n.ints(1))
    elif kind == "Pad":
        y = n.op("Pad", x, given("pads", 4, lambda r, s, z: r.integers(0, 2, 4)), mode=n.pick(["constant", "reflect", "edge"]))
    elif kind == "TopK":
        y, index = n.op("TopK", x, given("k", 1, lambda r, s, z: [r.integers(1, columns)]), outputs=2)
        n.out(index)
    elif kind == "Range":
        y = n.op("Cast", n.op("Range", n.const(0, np.int64), given("end", 0, lambda r, s, z: r.integers(1, 9)), n.const(1, np.int64)), to=1)
        n.out(n.op("Neg", x))
    elif kind == "ConstantOfShape":
        y = n.op("ConstantOfShape", given("shape", 2, lambda r, s, z: r.integers(1, 5, 2)), value=helper.make_tensor("v", 1, [1], [2.0]))
        n.out(n.op("Neg", x))
    elif kind == "OneHot":
        index = n.input("index", [rows], np.int64, -2, 2)
        y = n.op("OneHot", index, given("depth", 0, lambda r, s, z: r.integers(2, 6)), n.const([0, 1], n.float))
        n.out(n.op("Neg", x))
    else:
        y = n.op("GatherND", x, n.input("index", [3, 1], np.int64, -2, 1))
    n.out(part.act(n, y, n.pick(["Relu", "Tanh", "Sigmoid"])))


def texts(n):
    n.need_opset(20)
    words = ["1.5", "-2", "0", "7e3", "12"]
    kind = n.pick(["to_number", "to_text", "concat", "both", "label", "regex", "equal"])
    rows = n.size("rows", 1, 6)
    text = lambda name, among: n.input(name, [rows], object, make=lambda r, s, _: r.choice(np.array(among, object), s))
    if kind == "to_text":
        x = n.input("x", [rows], n.pick([np.int64, np.int32, bool]), -5, 100)
        return n.out(n.op("StringConcat", n.op("Cast", x, to=8), n.op("Cast", x, to=8)))
    if kind in ("to_number", "both"):
        type = n.pick([1, 11, 1, 7])
        x = n.op("Cast", text("x", ["3", "-14", "0", "99"] if type == 7 else words), to=type)
        y = n.op("Mul", x, x) if n.chance(0.5) else n.op("Neg", x)
        return n.out(n.op("Abs", y))
    if kind == "label":
        x = n.op("LabelEncoder", text("x", ["a", "b", "c", "?"]), domain="ai.onnx.ml", keys_strings=["a", "b", "c"], values_int64s=[4, 5, 6], default_int64=-1)
        return n.out(n.op("Add", x, n.const(10, np.int64)))
    if kind == "regex":
        return n.out(n.op("Not", n.op("RegexFullMatch", text("x", ["ab", "a1", "Z"]), pattern="[a-z]+[0-9]?")))
    if kind == "equal":
        return n.out(n.op("Where", n.op("Equal", text("x", ["a", "b"]), text("y", ["a", "b"])), n.scalar(1), n.scalar(-1)))
    n.out(n.op("StringConcat", text("x", words), text("y", ["ü", "", " "])))


def chain(n):
    """Hundreds of nodes that do much the same."""
    n.any_float()
    x = n.input("x", [n.size("batch", 1, 3), n.int(1, 9)])
    kinds = [n.pick(["Neg", "Tanh", "Relu", "Abs", "Sigmoid", "half", "identity", "sin"]) for _ in range(n.int(1, 3))]
    for i in range(n.pick([10, 50, 200, 500])):
        kind = kinds[i % len(kinds)]
        x = n.op("Mul", x, 0.5) if kind == "half" else n.op("Identity", x) if kind == "identity" else \
            n.op("Add", n.op("Sin", x), 0.25) if kind == "sin" else n.op(kind, x)
    n.out(x)


def fake_quantized(n):
    """Quantization spelled with pairs of nodes, as quantizers write it."""
    n.step, n.off_by_one = 0.1, True
    size, scale = n.int(2, 16), n.const(0.05, np.float32)
    type = n.pick([np.int8, np.uint8])
    zero = n.const(0 if type == np.int8 else 128, type)
    around = lambda t: n.op("DequantizeLinear", n.op("QuantizeLinear", t, scale, zero), scale, zero)
    is_image = n.chance(0.5)
    x = n.input("x", [n.size("batch", 1, 3), size] + ([n.size("height", 4, 8)] * 2 if is_image and n.openness == 0 else [6, 6] if is_image else []))
    for _ in range(n.int(1, 2)):
        out = n.int(2, 8)
        shape = [out, size, 3, 3] if is_image else [size, out]
        axis = 0 if is_image else 1
        per_axis = n.chance(0.5)
        scales = n.const(n.r.uniform(0.005, 0.02, [out]) if per_axis else 0.01, np.float32)
        zeros = n.const(np.zeros([out] if per_axis else []), np.int8)
        w = n.op("DequantizeLinear", n.const(n.r.integers(-100, 100, shape), np.int8), scales, zeros, axis=axis if per_axis else None)
        y = n.op("Conv", around(x), w, pads=[1] * 4) if is_image else n.op("MatMul", around(x), w)
        x, size = n.op("Relu", y) if n.chance(0.5) else y, out
    n.out(around(x))


def quantized_products(n):
    n.off_by_one, n.step = True, 0.05
    rows, k, columns = n.size("rows", 1, 9), n.pick([1, 3, 16, 33]), n.int(1, 9)
    kind = n.pick(["dynamic", "qlinear", "integer"])
    weight = n.const(n.r.integers(-127, 127, [k, columns]), np.int8)
    if kind == "dynamic":
        q, scale, zero = n.op("DynamicQuantizeLinear", n.input("x", [rows, k]), outputs=3)
        y = n.op("MatMulInteger", q, weight, zero, n.const(0, np.int8))
        return n.out(n.op("Mul", n.op("Cast", y, to=1), n.op("Mul", scale, n.const(0.01, np.float32))))
    x = n.input("x", [rows, k], np.uint8, 0, 255)
    zero = n.const(n.int(0, 200), np.uint8)
    if kind == "integer":
        return n.out(n.op("MatMulInteger", x, weight, *n.pick([[], [zero], [zero, n.const(0, np.int8)]])))
    n.out(n.op("QLinearMatMul", x, n.const(0.02, np.float32), zero, weight, n.const(0.01, np.float32), n.const(0, np.int8),
               n.const(n.pick([0.1, 1.0]), np.float32), n.const(100, np.uint8)))


def graph_network(n):
    """Messages along edges, added up at their ends."""
    size, count = n.int(1, 5), n.int(2, 6)
    edges = n.size("edges", 1, 12)
    nodes = n.input("nodes", [count, size])
    start, end = (n.input(s, [edges], np.int64, 0, count - 1) for s in ("start", "end"))
    n.need_opset(18)
    pairs = n.op("Concat", n.op("Gather", nodes, start), n.op("Gather", nodes, end), axis=1)
    message = part.feed_forward(n, pairs, 2 * size, 2 * size, "Relu")
    message = part.linear(n, message, 2 * size, size)
    zero = n.op("Mul", nodes, 0.0)
    kind = n.pick(["ScatterElements", "ScatterND"])
    reduction = n.pick(["add", "max", "add"])
    if kind == "ScatterND":
        got = n.op("ScatterND", zero, n.op("Unsqueeze", end, n.ints(1)), message, reduction=reduction)
    else:
        wide = n.op("Expand", n.op("Unsqueeze", end, n.ints(1)), n.op("Concat", *n.shape_of(message, 0), n.ints(size), axis=0))
        got = n.op("ScatterElements", zero, wide, message, axis=0, reduction=reduction)
    n.out(n.op("Add", nodes, part.act(n, got)))


def points(n):
    """PointNet: the same layers for each point, then the largest."""
    channels, batch = 3, n.size("batch", 1, 3)
    x = n.input("points", [batch, channels, n.size("points", 1, 30)])
    if n.chance(0.5):
        turn = n.op("Reshape", part.linear(n, n.reduce("ReduceMax", x, [2], 0), 3, 9), n.ints(-1, 3, 3))
        x = n.op("Transpose", n.op("MatMul", n.op("Transpose", x, perm=[0, 2, 1]), turn), perm=[0, 2, 1])
    for _ in range(n.int(1, 3)):
        out = n.int(3, 16)
        x, channels = part.act(n, part.batch_norm(n, part.conv(n, x, channels, out, [1]), out), "Relu"), out
    n.out(part.gemm(n, n.reduce("ReduceMax", x, [2], 0), channels, 4))


def neighbours(n):
    """Distances of all pairs and the nearest."""
    size, many = n.int(1, 6), n.int(3, 9)
    a = n.input("a", [n.size("rows", 1, 9), size])
    b = n.const(n.r.normal(0, 1, [many, size]), n.float) if n.chance(0.5) else n.input("b", [many, size])
    if n.chance(0.5):
        d = n.op("Sub", n.op("Unsqueeze", a, n.ints(1)), n.op("Unsqueeze", b, n.ints(0)))
        distance = n.reduce("ReduceSum", n.op("Mul", d, d), [2], 0)
    else:
        square = lambda t: n.reduce("ReduceSum", n.op("Mul", t, t), [1])
        cross = n.op("MatMul", a, n.op("Transpose", b, perm=[1, 0]))
        distance = n.op("Add", n.op("Sub", square(a), n.op("Mul", cross, 2.0)), n.op("Transpose", square(b), perm=[1, 0]))
    n.out(distance, n.op("ArgMin", distance, axis=1) if n.chance(0.5) else n.op("TopK", distance, n.ints(2), outputs=2, largest=0)[1])


def branches(n):
    """If by data or by a size, with graphs that see outer values."""
    size = n.int(1, 6)
    x = n.input("x", [n.size("batch", 1, 4), size])
    if n.chance(0.5):
        flag = n.op("Greater", n.reduce("ReduceSum", x, [0, 1], 0), 0)
    else:
        flag = n.op("Greater", n.op("Squeeze", n.shape_of(x, 0)[0], n.ints(0)), n.const(2, np.int64))

    def one(kind):
        def build():
            y = part.act(n, part.linear(n, x, size, size) if kind else x)
            return [], [n.info(y, [None, size])]
        return n.body(build)
    n.out(part.act(n, n.op("If", flag, then_branch=one(True), else_branch=one(False))))


def sequences(n):
    """Sequences that are made, changed and joined."""
    size = n.int(2, 6)
    x = n.input("x", [n.size("batch", 1, 4), size])
    kind = n.pick(["construct", "split", "insert"])
    if kind == "split":
        s = n.op("SplitToSequence", x, n.const(1, np.int64), axis=1)
    else:
        s = n.op("SequenceConstruct", part.act(n, x), n.op("Neg", x), part.linear(n, x, size, size))
    if kind == "insert":
        s = n.op("SequenceInsert", s, n.op("Abs", x), n.const(n.int(0, 2), np.int64))
    if n.chance(0.5):
        return n.out(n.op("SequenceAt", s, n.const(-1, np.int64)), n.op("SequenceLength", s))
    n.out(n.op("ConcatFromSequence", s, axis=1))


def losses(n):
    classes, rows = n.int(2, 6), n.size("rows", 1, 6)
    scores, labels = n.input("scores", [rows, classes]), n.input("labels", [rows], np.int64, 0, classes - 1)
    reduction = n.pick(["none", "mean", "sum"])
    if n.chance(0.5):
        return n.out(n.op("SoftmaxCrossEntropyLoss", scores, labels, reduction=reduction))
    weight = [n.weight(classes, low=0.5, high=1.5)] if n.chance(0.5) else []
    n.out(n.op("NegativeLogLikelihoodLoss", n.op("LogSoftmax", scores, axis=1), labels, *weight, reduction=reduction))


def statistics(n):
    """What is computed of tables: means, spreads, ranks, running sums, clipped and selected."""
    n.any_float()
    columns = n.int(1, 7)
    x = n.input("x", [n.size("rows", 2, 30), columns], None, *SMALL)
    mean = n.reduce("ReduceMean", x, [0])
    off = n.op("Sub", x, mean)
    spread = n.op("Sqrt", n.op("Add", n.reduce("ReduceMean", n.op("Mul", off, off), [0]), 1e-3))
    z = n.op("Div", off, spread)
    for use in [n.pick(["clip", "running", "median", "log", "select", "rank", "covariance"]) for _ in range(n.int(1, 3))]:
        if use == "clip":
            n.out(n.op("Clip", z, -1, 1))
        elif use == "running":
            n.out(n.op("CumSum", x, n.const(0, np.int64), exclusive=n.int(0, 1), reverse=n.int(0, 1)))
        elif use == "median":
            n.out(n.op("TopK", x, n.ints(2), outputs=2, axis=0)[0])
        elif use == "log":
            n.out(n.op("Log", x) if n.chance(0.5) else n.op("Pow", x, n.pick([0.5, -1.0, 1.7])))
        elif use == "select":
            n.out(n.op("Where", n.op("Greater", z, 0), x, mean))
        elif use == "rank":
            n.out(n.op("ArgMax", x, axis=0))
        else:
            n.out(n.op("MatMul", n.op("Transpose", off, perm=[1, 0]), off))


def pieces(n):
    """Moves of elements: slices with steps, pads, tiles, gathers, in random order."""
    dims = [n.size("batch", 2, 5), n.int(2, 5), n.int(2, 6)]
    type = n.pick([np.float32, np.float32, np.int64, np.int32, np.uint8, bool, np.float16])
    x = n.input("x", dims, type)
    for _ in range(n.int(1, 4)):
        kind = n.pick(["Slice", "Transpose", "Pad", "Tile", "Gather", "Flip", "Concat", "Split"])
        if kind == "Slice":
            x = n.op("Slice", x, n.ints(n.int(0, 1)), n.ints(n.pick([2**63 - 1, -1, 9])), n.ints(n.int(0, 2)), n.ints(n.int(1, 2)))
        elif kind == "Flip":
            x = n.op("Slice", x, n.ints(-1), n.ints(-(2**63) + 1), n.ints(n.int(0, 2)), n.ints(-1))
        elif kind == "Transpose":
            x = n.op("Transpose", x, perm=[int(a) for a in n.r.permutation(3)])
        elif kind == "Pad" and type != bool and type != np.uint8:
            x = n.op("Pad", x, n.ints(*[n.int(0, 1) for _ in range(6)]), mode=n.pick(["constant", "edge"]))
        elif kind == "Tile":
            x = n.op("Tile", x, n.ints(1, n.int(1, 2), n.int(1, 2)))
        elif kind == "Gather":
            x = n.op("Gather", x, n.ints(*[n.int(-1, 0) for _ in range(n.int(1, 3))]), axis=n.int(0, 2))
        elif kind == "Concat":
            x = n.op("Concat", x, x, axis=n.int(-3, 2))
        elif kind == "Split" and n.opset >= 18:
            x = n.op("Split", x, outputs=2, axis=n.int(0, 2), num_outputs=2)[0]
    n.out(x)


def local_function(n):
    """A function of the model, called twice; inside are names like those outside."""
    size = n.int(1, 8)
    nodes = [helper.make_node("Mul", ["a", "b"], ["t1"]), helper.make_node("Tanh", ["t1"], ["t2"]), helper.make_node("Add", ["t2", "a"], ["y"])]
    n.functions = [helper.make_function("local", "Cell", ["a", "b"], ["y"], nodes, [helper.make_opsetid("", n.opset)])]
    x = n.input("x", [n.size("batch", 1, 5), size])
    for _ in range(n.int(1, 3)):
        x = n.op("Cell", x, n.weight(size), domain="local")
    n.out(x)


def broadcasts(n):
    """Operands of which some axes are 1, others open: which of the two may be 1 is not known."""
    names = [n.size("a", 1, 4), n.size("b", 1, 4), n.int(1, 4)]
    x = n.input("x", [names[0], names[1], names[2]])
    for i in range(n.int(1, 3)):
        dims = [d if n.chance(0.6) else 1 for d in names][n.int(0, 2):]
        y = n.input(f"y{i}", dims)
        x = n.op(n.pick(["Add", "Mul", "Sub", "Max"]), x, y)
    n.out(n.op("Less", x, 0) if n.chance(0.2) else x)


def training_step(n):
    """A gradient by hand: products with transposed operands, sums over the batch, an update."""
    size, out, batch = n.int(1, 9), n.int(1, 5), n.size("batch", 1, 9)
    x, target, w = n.input("x", [batch, size]), n.input("target", [batch, out]), n.input("w", [size, out])
    y = n.op("Sigmoid", n.op("MatMul", x, w))
    error = n.op("Mul", n.op("Sub", y, target), n.op("Mul", y, n.op("Sub", n.scalar(1), y)))
    gradient = n.op("Gemm", x, error, transA=1)
    n.out(n.op("Sub", w, n.op("Mul", gradient, n.pick([0.1, 0.01]))), n.reduce("ReduceMean", n.op("Mul", error, error), [0, 1], 0))


FAMILIES = {f.__name__: f for f in [
    mlp, nan_inside, reductions, standardized, integers, sized_by_data, sized_by_input, texts, chain, fake_quantized,
    quantized_products, graph_network, points, neighbours, branches, sequences, losses, statistics, pieces, local_function, broadcasts,
    training_step]}
