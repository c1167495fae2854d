"""Rows of operators that move, select or hold elements: shapes, indices, sequences, texts, bodies."""

import numpy as np
from onnx import TensorProto, helper

from case import Reject
from values import is_integer, number, numpy_type


def moved(function):
    def row(c):
        c.exact = True
        function(c)
    return row


def first(c):
    return c.schema.inputs[0].name


def transpose(c):
    shape = c.shape(0, 5)
    c.data("data", shape)
    if c.chance(0.75):
        c.attr("perm", [int(a) for a in c.r.permutation(len(shape))])


def reshape(c):
    shape = c.shape(0, 4)
    c.data("data", shape)
    total = int(np.prod(shape))
    target = [int(n) for n in c.r.permutation(shape)] if c.chance(0.4) else [total]
    if total and len(target) == 1 and total % 2 == 0 and c.chance(0.6):
        target = [2, total // 2]
    if c.chance(0.3):
        target.insert(c.int(0, len(target)), 1)
    if total and c.chance(0.5) and target:
        target[c.int(0, len(target) - 1)] = -1
    elif total and shape and target and target[0] == shape[0] and c.chance(0.5):
        target[0] = 0
    if total == 0 and c.has("allowzero"):
        c.attr("allowzero", 1)
    elif total == 0:
        target = [0] * len(shape)
    c.ints("shape", target)


def squeeze(c):
    shape = [1 if c.chance(0.5) else n for n in c.shape(0, 5)]
    c.data("data", shape)
    ones = [i for i, n in enumerate(shape) if n == 1]
    if ones and c.chance(0.7):
        c.ints("axes", [a - (len(shape) if c.opset >= 11 and c.chance(0.3) else 0) for a in ones if c.chance(0.7)] or ones)


def unsqueeze(c):
    shape = c.shape(0, 3)
    c.data("data", shape)
    count = c.int(1, 3)
    rank = len(shape) + count
    axes = [int(a) for a in c.r.permutation(rank)[:count]]
    c.ints("axes", [a - (rank if c.opset >= 11 and c.chance(0.3) else 0) for a in axes])


def flatten(c):
    shape = c.shape(1, 4)
    c.data(first(c), shape)
    if c.chance(0.8):
        c.attr("axis", c.int(0, len(shape)) if c.opset < 11 else c.int(-len(shape), len(shape)))


def expand(c):
    a, b = c.broadcast(2)
    c.data("input", a)
    c.x("shape", np.asarray(b, np.int64), parameter=True)


def tile(c):
    if c.opset < 6:
        raise Reject("another form")
    shape = c.shape(1, 4)
    c.data("input", shape)
    c.x("repeats", np.asarray([c.pick([0, 1, 1, 2, 3]) for _ in shape], np.int64), parameter=True)


def concat(c):
    shape = c.shape(1, 4)
    axis = c.axis(len(shape))
    parts = []
    for _ in range(c.int(1, 4)):
        part = list(shape)
        part[axis] = c.pick([0, 1, 2, 3]) if c.opset >= 11 else c.int(1, 3)
        parts.append(c.draw(c.type("T"), part))
    c.attr("axis", axis)
    c.x("inputs", parts)


def split(c):
    shape = [max(n, 1) for n in c.shape(1, 4)]
    axis = c.axis(len(shape))
    count = c.int(1, 3)
    sizes = [c.int(0 if c.opset >= 13 else 1, 3) for _ in range(count)]
    if c.chance(0.5):
        sizes = [2] * count
    shape[axis] = sum(sizes)
    c.attr("axis", axis)
    equal = len(set(sizes)) == 1
    c.data("input", shape)
    if c.has("num_outputs") and equal and c.chance(0.6):
        c.attr("num_outputs", count)
        if count > 1 and c.chance(0.5):
            c.inputs.clear()
            c.feeds.clear()
            c.constants.clear()
            shape[axis] = 2 * count - 1
            c.data("input", shape)
    elif not equal or c.has("num_outputs") or c.chance(0.6):
        c.ints("split", sizes)
    c.variadic_outputs = count


def slice_(c):
    shape = c.shape(1, 4)
    axes = sorted(a % len(shape) for a in c.axes(len(shape)))
    big = [2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1]
    wide = c.opset >= 10 and c.chance(0.3)
    starts, ends, steps = [], [], []
    for a in axes:
        n = shape[a]
        starts.append(c.pick(big) if wide and c.chance(0.3) else c.int(-n - 2, n + 1))
        ends.append(c.pick(big) if c.chance(0.2 if c.opset >= 10 else 0) else c.int(-n - 2, n + 2))
        steps.append(c.pick([1, 1, 2, 3, -1, -2]) if c.opset >= 10 else 1)
    if c.opset >= 10 and c.type("Tind") == "int32":
        starts, ends = [[max(-(2**31), min(2**31 - 1, v)) for v in l] for l in (starts, ends)]
    c.data("data", shape)
    c.ints("starts", starts)
    c.ints("ends", ends)
    if axes != list(range(len(axes))) or c.chance(0.7):
        c.ints("axes", [a - (len(shape) if c.opset >= 11 and c.chance(0.3) else 0) for a in axes])
        if c.opset >= 10 and (any(s != 1 for s in steps) or c.chance(0.5)):
            c.ints("steps", steps)


def pad(c):
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if c.opset >= 19 else [])
    mode = c.pick(modes)
    shape = c.shape(1, 4)
    if mode != "constant":
        shape = [max(n, 2) for n in shape]
    axes = sorted(a % len(shape) for a in c.axes(len(shape))) if c.takes("axes") and c.chance(0.5) else None
    used = axes if axes is not None else range(len(shape))
    amounts = []
    for side in (0, 1):
        for a in used:
            most = shape[a] - 1 if mode == "reflect" else 3
            least = -min(1, shape[a] // 2) if mode == "constant" else 0
            amounts.append(c.int(least, most))
    c.attr("mode", mode)
    c.data(first(c), shape)
    c.ints("paddings" if c.has("paddings") else "pads", amounts)
    if c.has("value"):
        c.attr("value", c.pick([0.0, 1.5]))
    elif c.takes("constant_value") and mode == "constant" and c.chance(0.6):
        c.x("constant_value", c.draw(c.type("T"), []), parameter=True)
    if axes is not None:
        c.ints("axes", axes)


def center_crop_pad(c):
    shape = [max(n, 1) for n in c.shape(1, 4)]
    c.data("input_data", shape)
    axes = c.axes(len(shape)) if c.chance(0.5) else None
    c.attr("axes", axes)
    sizes = [c.int(1, 7) for _ in (axes if axes is not None else shape)]
    c.x("shape", np.asarray(sizes, numpy_type(c.input_type("shape"))), parameter=True)


def gather(c):
    shape = [max(n, 1) for n in c.shape(1, 4)]
    axis = c.axis(len(shape))
    c.attr("axis", axis)
    c.data("data", shape)
    low = -shape[axis] if c.opset >= 11 else 0
    c.data("indices", c.shape(0, 3), low=low, high=shape[axis] - 1)


def gather_elements(c):
    shape = [max(n, 1) for n in c.shape(1, 4)]
    axis = c.axis(len(shape))
    c.attr("axis", axis)
    c.data("data", shape)
    c.data("indices", [c.int(0 if c.zero_share else 1, n if i != axis % len(shape) else 5)
                       for i, n in enumerate(shape)], low=-shape[axis], high=shape[axis] - 1)


def nd_indices(c, shape, lead, depth):
    columns = [c.r.integers(-n, n - 1, lead, endpoint=True) for n in shape[:depth]]
    return np.stack(columns, axis=-1).astype(np.int64)


def gather_nd(c):
    shape = [max(n, 1) for n in c.shape(1, 4)]
    batch = c.int(0, len(shape) - 1) if c.has("batch_dims") else 0
    depth = c.int(1, len(shape) - batch)
    c.attr("batch_dims", batch)
    c.data("data", shape)
    c.x("indices", nd_indices(c, shape[batch:], shape[:batch] + c.shape(0, 2), depth))


def reductions(c):
    kinds = ["none"] + (["add", "mul"] if c.opset >= 16 else []) + (["max", "min"] if c.opset >= 18 else [])
    kind = c.pick(kinds) if c.has("reduction") else "none"
    if c.type("T") in ("string", "bool"):
        kind = "none"
    c.attr("reduction", kind if kind != "none" or c.chance(0.3) else None)
    if kind != "none":
        c.exact, c.sums = False, True
        if c.flavour == "extremes":
            c.flavour = "plain"
    return kind


def scatter_elements(c):
    """Indices repeat only where updates are joined: otherwise any of them may win."""
    kind = reductions(c)
    shape = [max(n, 1) for n in c.shape(1, 3)]
    axis = c.axis(len(shape))
    c.attr("axis", axis)
    c.data("data", shape)
    a = axis % len(shape)
    part = [c.int(1, n) if i != a else (c.int(1, 6) if kind != "none" else c.int(1, n)) for i, n in enumerate(shape)]
    if kind == "none":
        indices = np.zeros(part, np.int64)
        for place in np.ndindex(*[n for i, n in enumerate(part) if i != a]):
            key = list(place)
            key.insert(a, slice(None))
            indices[tuple(key)] = c.r.permutation(shape[a])[:part[a]]
        indices = np.where(c.r.random(part) < 0.3, indices - shape[a], indices) if c.opset >= 11 else indices
    else:
        indices = c.r.integers(-shape[a], shape[a] - 1, part, endpoint=True)
    c.x("indices", indices.astype(numpy_type(c.input_type("indices"))))
    c.data("updates", part)


def scatter_nd(c):
    kind = reductions(c)
    shape = [max(n, 1) for n in c.shape(1, 4)]
    depth = c.int(1, len(shape))
    places = int(np.prod(shape[:depth]))
    if kind == "none":
        flat = c.r.permutation(places)[:c.int(1, min(places, 5))]
        indices = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    else:
        indices = nd_indices(c, shape, [c.int(1, 6)], depth)
    c.data("data", shape)
    c.x("indices", indices)
    c.data("updates", [indices.shape[0]] + shape[depth:])


def tensor_scatter(c):
    shape = [c.int(1, 3), c.int(1, 3), c.int(2, 5), c.int(1, 3)]
    axis = c.pick([-2, 2, 1])
    c.attr("axis", axis)
    most = c.int(1, shape[axis])
    part = list(shape)
    part[axis] = most
    circular = c.chance(0.5)
    c.attr("mode", "circular" if circular else "linear")
    c.data("past_cache", shape)
    c.data("update", part)
    if c.chance(0.8):
        high = shape[axis] - (1 if circular else most)
        c.x("write_indices", c.r.integers(0, high, [shape[0]], endpoint=True).astype(np.int64))


def compress(c):
    shape = c.shape(1, 3)
    c.data("input", shape)
    length = int(np.prod(shape))
    if c.chance(0.7):
        axis = c.axis(len(shape))
        c.attr("axis", axis)
        length = shape[axis]
    c.data("condition", [c.int(0 if length == 0 else 1, length)])


def one_hot(c):
    depth = c.int(1, 5)
    shape = c.shape(0, 3)
    t = c.input_type("indices")
    c.data("indices", shape, low=-depth - (2 if c.opset >= 11 else 0) if c.opset >= 11 else 0, high=depth + 1)
    depth_type = c.input_type("depth")
    c.x("depth", np.asarray([depth] if c.chance(0.4) else depth).astype(numpy_type(depth_type)), parameter=True)
    c.data("values", [2])
    if c.chance(0.7):
        c.attr("axis", c.int(-len(shape) - 1, len(shape)) if c.opset >= 11 else c.int(0, len(shape)))


def top_k(c):
    shape = [max(n, 1) for n in c.shape(1, 4)]
    axis = c.axis(len(shape))
    c.attr("axis", axis)
    c.data("X", shape, flavour=c.pick(["plain", "ties", "ties"]))
    c.ints("k" if c.has("k") else "K", c.int(1, shape[axis]) if c.has("k") else [c.int(0, shape[axis])])


def unique(c):
    shape = [max(n, 1) for n in c.shape(1, 3)]
    if c.chance(0.6):
        c.attr("axis", c.axis(len(shape)))
    c.attr("sorted", c.int(0, 1))
    c.data("X", shape, flavour="ties")


def trilu(c):
    shape = c.shape(0, 2) + c.shape(2, 2)
    c.data("input", shape)
    if c.chance(0.7):
        c.x("k", np.asarray(c.int(-4, 4), np.int64), parameter=True)


def eye_like(c):
    c.data("input", c.shape(2, 2))
    c.attr("k", c.pick([None, -2, -1, 0, 1, 2]))
    types = c.types("T2")
    c.attr("dtype", number(c.pick(types)) if c.chance(0.6) else None)


def range_(c):
    t = c.type("T")
    start, step = c.int(-3, 3), c.pick([-2, -1, 1, 2, 3])
    limit = start + step * c.int(-1, 5)
    for name, value in [("start", start), ("limit", limit), ("delta", step)]:
        scale = 1 if is_integer(t) else 0.5
        c.x(name, np.asarray(value * scale).astype(numpy_type(t)), parameter=True)


def constant_of_shape(c):
    c.x("input", np.asarray(c.shape(0, 3), np.int64), parameter=True)
    if c.chance(0.75):
        t = c.pick(c.types("T2"))
        c.attr("value", c._tensor("value", c.draw(t, [1]), t))


def constant(c):
    kinds = ["value"] + [k for k in ("value_int", "value_ints", "value_float", "value_floats", "value_string",
                                     "value_strings") if c.has(k)]
    kind = c.pick(kinds)
    t = c.pick(c.types("T"))
    c.attr(kind, {"value": c._tensor("v", c.draw(t, c.shape(0, 3)), t), "value_int": 7, "value_ints": [1, -2],
                  "value_float": 1.5, "value_floats": [0.5, -0.0], "value_string": "ab",
                  "value_strings": ["a", ""]}[kind])


def shape_of(c):
    shape = c.shape(0, 4)
    c.data("data", shape)
    if c.has("start") and c.chance(0.7):
        c.attr("start", c.int(-5, 5))
    if c.has("end") and c.chance(0.7):
        c.attr("end", c.int(-5, 5))


def any_data(c):
    c.data(first(c), c.shape(0, 4))


def non_zero(c):
    c.data("X", c.shape(1 if c.opset < 13 else 0, 3), flavour="ties")


def reverse_sequence(c):
    shape = [c.int(1, 4), c.int(1, 4)] + c.shape(0, 2)
    time = c.int(0, 1)
    c.attr("time_axis", time)
    c.attr("batch_axis", 1 - time)
    c.data("input", shape)
    c.x("sequence_lens", c.r.integers(1, shape[time], [shape[1 - time]], endpoint=True).astype(np.int64))


def block(c):
    b = c.int(1, 3)
    c.attr("blocksize", b)
    if c.op == "DepthToSpace":
        c.data("input", [c.int(1, 2), b * b * c.int(1, 3), c.int(1, 3), c.int(1, 3)])
        c.attr("mode", c.pick(["DCR", "CRD"]))
    else:
        c.data("input", [c.int(1, 2), c.int(1, 3), b * c.int(1, 3), b * c.int(1, 3)])


# Sequences and optionals: made and taken apart within the model.
SEQUENCE_TYPES = ["float", "int64", "string", "bool", "double", "int32", "uint8"]


def sequence(c):
    """One operator on a sequence of tensors of one shape but for the first axis."""
    c.own_nodes = True
    t = c.pick(["float", "int64", "float", "string", "int32"])
    tail = c.shape(0, 2)
    count = c.int(1, 3)
    items = [c.feed(c.draw(t, [c.int(1, 3)] + tail), type_name=t) for _ in range(count)]
    place = c.feed(np.asarray(c.int(-count, count - 1), c.pick([np.int64, np.int32])), parameter=True)
    node, op = c.node, c.op
    if op == "SequenceEmpty":
        node("SequenceEmpty", [], ["s0"], dtype=number(t))
        node("SequenceInsert", ["s0", items[0]], ["s"])
    elif op == "SplitToSequence":
        sizes = c.pick([None, 1, 2, "list"])
        joined = c.draw(t, [4] + tail)
        value = c.feed(joined, type_name=t)
        more = [] if sizes is None else [c.feed(np.asarray([1, 3] if sizes == "list" else sizes, np.int64), True)]
        node(op, [value] + more, ["s"], axis=c.pick([0, -len(joined.shape)]), keepdims=c.int(0, 1))
    else:
        node("SequenceConstruct", items, ["s"])
    if op == "SequenceInsert":
        extra = c.feed(c.draw(t, [2] + tail), type_name=t)
        node(op, ["s", extra] + ([place] if c.chance(0.7) else []), ["t"])
    elif op == "SequenceErase":
        node(op, ["s"] + ([place] if c.chance(0.7) else []), ["t"])
    else:
        node("Identity", ["s"], ["t"]) if c.opset >= 14 else node("SequenceInsert", ["s", items[0]], ["t"])
    node("SequenceLength", ["t"], ["y0"])
    c.outputs = ["y0"]
    if op == "SequenceAt":
        node(op, ["t", place], ["y1"])
    elif op == "SequenceErase" and count == 1:
        return
    elif op == "SplitToSequence":
        node("SequenceAt", ["t", c.feed(np.asarray(c.pick([0, -1]), np.int64), True)], ["y1"])
    else:
        node("ConcatFromSequence", ["t"], ["y1"], axis=0)
    c.outputs.append("y1")


def sequence_map(c):
    c.own_nodes = True
    items = [c.feed(c.draw("float", [c.int(1, 3), 2])) for _ in range(c.int(1, 3))]
    extra = c.feed(c.draw("float", [2]))
    body = helper.make_graph([helper.make_node(c.pick(["Add", "Mul", "Sub"]), ["a", "b"], ["r"])], "body",
                             [helper.make_tensor_value_info("a", 1, None), helper.make_tensor_value_info("b", 1, [2])],
                             [helper.make_tensor_value_info("r", 1, None)])
    c.node("SequenceConstruct", items, ["s"])
    c.node("SequenceMap", ["s", extra], ["t"], body=body)
    c.node("ConcatFromSequence", ["t"], ["y0"], axis=0)
    c.outputs = ["y0"]


def optional(c):
    c.own_nodes = True
    t = c.pick(["float", "int64", "string"])
    x = c.feed(c.draw(t, c.shape(0, 3)), type_name=t)
    tensor = helper.make_tensor_type_proto(number(t), None)
    if c.chance(0.25):
        c.node("Optional", [], ["o"], type=tensor)
    else:
        c.node("Optional", [x], ["o"])
        if c.op != "OptionalHasElement":
            c.node("OptionalGetElement", ["o"], ["y0"])
            c.outputs = ["y0"]
            return
    c.node("OptionalHasElement", ["o"], ["y0"])
    c.outputs = ["y0"]


# Bodies.
def info(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def if_(c):
    c.own_nodes = True
    shape = c.shape(0, 3)
    cond, x = c.feed(np.asarray(c.chance(0.5)), c.chance(0.3)), c.feed(c.draw("float", shape))
    ops = ["Abs", "Neg", "Relu", "Floor", "Sqrt", "Exp", "Transpose"]
    branches = [helper.make_graph([helper.make_node(c.pick(ops), [x], ["r"])], "b", [], [info("r")]) for _ in "te"]
    c.node("If", [cond], ["y0"], then_branch=branches[0], else_branch=branches[1])
    c.outputs = ["y0"]


def loop(c):
    c.own_nodes = True
    shape = c.shape(0, 2)
    trips = c.feed(np.asarray(c.int(0, 4), np.int64), c.chance(0.7)) if c.chance(0.8) else ""
    start = c.feed(np.asarray(c.chance(0.85))) if not trips or c.chance(0.6) else ""
    x, limit = c.feed(c.draw("float", shape, low=0.5, high=2)), c.feed(np.asarray(c.pick([3.0, 9.0, 30.0]), np.float32))
    body = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["f"], to=1), helper.make_node("Add", ["v", "f"], ["w"]),
         helper.make_node("Add", ["w", "w"], ["out"]), helper.make_node("ReduceSum", ["out"], ["sum"], keepdims=0),
         helper.make_node("Less", ["sum", limit], ["more"]), helper.make_node("Neg", ["w"], ["scan"])],
        "body", [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v", 1, shape)],
        [info("more", TensorProto.BOOL, []), info("out", 1, shape), info("scan", 1, shape)])
    if not trips and int(np.prod(shape)) == 0:
        raise Reject("would not end")
    c.node("Loop", [trips, start, x], ["y0", "y1"], body=body)
    c.outputs = ["y0", "y1"]


def scan(c):
    c.own_nodes, c.sums = True, True
    if c.opset < 9:
        raise Reject("another form")
    steps, shape = c.int(1, 4), c.shape(0, 2)
    axis, out_axis = c.int(0, len(shape)), c.int(0, len(shape))
    whole = list(shape)
    whole.insert(axis, steps)
    h, x = c.feed(c.draw("float", shape)), c.feed(c.draw("float", whole))
    body = helper.make_graph(
        [helper.make_node("Mul", ["h", "h"], ["hh"]), helper.make_node("Sub", ["x", "hh"], ["d"]),
         helper.make_node("Tanh", ["d"], ["n"]), helper.make_node("Neg", ["n"], ["s"])],
        "body", [info("h", 1, shape), info("x", 1, shape)], [info("n", 1, shape), info("s", 1, shape)])
    negative = len(shape) + 1 if c.opset >= 11 and c.chance(0.3) else 0
    c.node("Scan", [h, x], ["y0", "y1"], body=body, num_scan_inputs=1, scan_input_axes=[axis - negative],
           scan_output_axes=[out_axis - negative], scan_input_directions=[c.int(0, 1)],
           scan_output_directions=[c.int(0, 1)])
    c.outputs = ["y0", "y1"]


# Texts.
def string_concat(c):
    for name, shape in zip("XY", c.broadcast(2, 3)):
        c.data(name, shape)


def regex(c):
    c.data("X", c.shape(0, 2))
    c.attr("pattern", c.pick(["a.*", "[a-z]+", "(a|b)b?", r"\d+\.\d", "", r"\s.*", "[^a]*", "h(el)+lo", "(?i)AB", "."]))


def string_split(c):
    c.data("X", c.shape(0, 2))
    c.attr("delimiter", c.pick([None, "", ",", " ", "b", "l"]))
    c.attr("maxsplit", c.pick([None, 0, 1, 2]))


def string_normalizer(c):
    shape = c.pick([[c.int(1, 6)], [1, c.int(1, 6)]])
    words = ["a", "b", "ab", "Ab", "AB", "hello", "Hello", "x"]
    c.x("X", np.array([c.pick(words) for _ in range(shape[-1])], dtype=object).reshape(shape))
    c.attr("case_change_action", c.pick(["NONE", "LOWER", "UPPER"]))
    c.attr("is_case_sensitive", c.int(0, 1))
    c.attr("stopwords", c.pick([None, ["a"], ["AB", "hello"], ["Hello", "B"]]))


def tf_idf(c):
    text = c.chance(0.3)
    words = ["a", "b", "ab", "x"] if text else [1, 2, 3, 4]
    shape = c.pick([[c.int(1, 8)], [c.int(1, 3), c.int(1, 8)]])
    pool, counts = [words[0], words[1], words[0], words[1], words[2], words[2], words[3]], [0, 2, 5]
    pool = [words[0], words[1], words[2]] + [words[0], words[1], words[2], words[2]]
    counts = [0, 3]
    flat = [c.pick(words) for _ in range(int(np.prod(shape)))]
    kind = object if text else c.pick([np.int64, np.int32])
    c.x("X", np.array(flat, dtype=kind).reshape(shape))
    c.attr("pool_strings" if text else "pool_int64s", pool)
    low = c.int(1, 2)
    for name, value in [("mode", c.pick(["TF", "IDF", "TFIDF"])), ("min_gram_length", low),
                        ("max_gram_length", c.int(low, 2)), ("max_skip_count", c.int(0, 2)),
                        ("ngram_counts", counts), ("ngram_indexes", [int(i) for i in c.r.permutation(5)]),
                        ("weights", c.pick([None, [0.5, 1.0, 2.0, 1.5, 3.0]]))]:
        c.attr(name, value)


# Of ai.onnx.ml.
def array_feature(c):
    shape = [max(n, 1) for n in c.shape(1, 3)]
    c.data("X", shape)
    c.x("Y", c.r.integers(0, shape[-1] - 1, [1, c.int(1, 4)] if c.chance(0.5) else [c.int(1, 4)],
                          endpoint=True).astype(np.int64))


def binarizer(c):
    c.data("X", c.shape(1, 3))
    c.attr("threshold", c.pick([0.0, 0.5, -1.0]))


def label_encoder(c):
    if c.version > 2 and c.chance(0.3):
        c.attr("keys_int64s", [1, 2, -3])
        c.attr("values_strings", ["a", "b", "c"])
        c.x("X", c.draw("int64", c.shape(1, 2), low=-3, high=3))
    else:
        c.attr("keys_strings", ["a", "ab", "hello"])
        c.attr("values_int64s", [5, 6, 7])
        c.x("X", c.draw("string", c.shape(1, 2)))


GROUPS = [
    (moved(transpose), 2, "Transpose"), (moved(reshape), 3, "Reshape"), (moved(squeeze), 2, "Squeeze"),
    (moved(unsqueeze), 2, "Unsqueeze"), (moved(flatten), 1, "Flatten"), (moved(expand), 2, "Expand"),
    (moved(tile), 1, "Tile"), (moved(concat), 2, "Concat"), (moved(split), 3, "Split"),
    (moved(slice_), 5, "Slice"), (moved(pad), 4, "Pad"), (moved(center_crop_pad), 1, "CenterCropPad"),
    (moved(gather), 2, "Gather"), (moved(gather_elements), 2, "GatherElements"),
    (moved(gather_nd), 2, "GatherND"), (moved(scatter_elements), 3, "ScatterElements"),
    (moved(scatter_nd), 3, "ScatterND"), (moved(tensor_scatter), 1, "TensorScatter"),
    (moved(compress), 2, "Compress"), (moved(one_hot), 2, "OneHot"), (moved(top_k), 3, "TopK"),
    (moved(unique), 2, "Unique"), (moved(trilu), 1, "Trilu"), (moved(eye_like), 1, "EyeLike"),
    (range_, 1, "Range"), (moved(constant_of_shape), 1, "ConstantOfShape"), (moved(constant), 1, "Constant"),
    (moved(shape_of), 1, "Shape"), (moved(any_data), 1, "Size"), (moved(non_zero), 1, "NonZero"),
    (moved(reverse_sequence), 1, "ReverseSequence"), (moved(block), 1, "DepthToSpace SpaceToDepth"),
    (moved(sequence), 1, "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert "
                         "SequenceLength SplitToSequence ConcatFromSequence"),
    (sequence_map, 1, "SequenceMap"), (moved(optional), 1, "Optional OptionalGetElement OptionalHasElement"),
    (if_, 1, "If"), (loop, 2, "Loop"), (scan, 2, "Scan"), (string_concat, 1, "StringConcat"),
    (regex, 1, "RegexFullMatch"), (string_split, 1, "StringSplit"), (string_normalizer, 1, "StringNormalizer"),
    (tf_idf, 1, "TfIdfVectorizer"),
    (moved(array_feature), 1, "ai.onnx.ml.ArrayFeatureExtractor"), (binarizer, 1, "ai.onnx.ml.Binarizer"),
    (moved(label_encoder), 1, "ai.onnx.ml.LabelEncoder"),
]
