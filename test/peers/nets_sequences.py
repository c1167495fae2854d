"""Families of networks over sequences: attention, recurrence, decoding."""

import numpy as np
from onnx import helper

import nets_parts as part


def tokens(n, vocabulary, batch=None, time=None):
    dims = [batch or n.size("batch", 1, 4), time or n.size("time", 1, 12)]
    return n.input("tokens", dims, np.int64, 0, vocabulary - 1), dims


def embedded(n, vocabulary, size):
    ids, dims = tokens(n, vocabulary)
    return n.op("Gather", n.weight(vocabulary, size, scale=0.7), ids), dims


def encoder(n):
    n.any_float()
    count, width = n.pick([1, 2, 3, 4]), n.pick([2, 4, 8])
    size, batch, time = count * width, n.size("batch", 1, 4), n.size("time", 1, 12)
    x, mask = n.input("x", [batch, time, size]), None
    if n.chance(0.6):
        kept = n.input("mask", [batch, time], np.int64, make=lambda r, s, _: r.integers(0, 2, s) | (np.arange(s[1]) == 0))
        wide = n.op("Unsqueeze", n.op("Cast", kept, to=helper.np_dtype_to_tensor_dtype(np.dtype(n.float))), n.ints(1, 2))
        mask = n.op("Mul", n.op("Sub", n.scalar(1), wide), n.pick([-1e4, -100.0]))
    before = n.chance(0.5)
    for _ in range(n.int(1, 3)):
        y = part.self_attention(n, part.layer_norm(n, x, size) if before else x, count, width, mask)
        x = n.op("Add", x, y)
        x = x if before else part.layer_norm(n, x, size)
        y = part.feed_forward(n, part.layer_norm(n, x, size) if before else x, size, 2 * size, n.pick(["gelu", "Relu", "tanh_gelu"]))
        x = n.op("Add", x, y)
        x = x if before else part.layer_norm(n, x, size)
    n.out(x)


def cached_decoder(n):
    """One step with keys and values of earlier ones."""
    count, width = n.pick([1, 2, 4]), n.pick([2, 4, 8])
    size, batch = count * width, n.size("batch", 1, 3)
    past, time = n.size("past", 1, 9), n.size("time", 1, 4)
    x = n.input("x", [batch, time, size])
    old_k, old_v = (n.input(s, [batch, count, past, width]) for s in ("past_key", "past_value"))
    q, k, v = (part.heads(n, part.linear(n, x, size, size), count, width) for _ in range(3))
    k, v = n.op("Concat", old_k, k, axis=2), n.op("Concat", old_v, v, axis=2)
    y = part.joined(n, part.attend(n, q, k, v, width), size)
    n.out(n.op("Add", x, part.linear(n, y, size, size)), k, v)


def causal_decoder(n):
    """Embedding, a mask of the lower triangle made from the length, logits."""
    count, width, vocabulary = n.pick([1, 2]), n.pick([2, 4]), n.int(5, 30)
    size = count * width
    x, _ = embedded(n, vocabulary, size)
    length = n.op("Squeeze", n.shape_of(x, 1)[0], n.ints(0))
    steps = n.op("Range", n.const(0, np.int64), length, n.const(1, np.int64))
    rows, columns = n.op("Unsqueeze", steps, n.ints(1)), n.op("Unsqueeze", steps, n.ints(0))
    mask = n.op("Where", n.op("Less", rows, columns), n.scalar(n.pick([-np.inf, -1e9])), n.scalar(0))
    if n.chance(0.5):
        x = n.op("Add", x, n.op("Gather", n.weight(12, size), steps))
    for _ in range(n.int(1, 2)):
        x = n.op("Add", x, part.self_attention(n, part.layer_norm(n, x, size), count, width, mask))
        x = n.op("Add", x, part.feed_forward(n, part.layer_norm(n, x, size), size, 4 * size))
    logits = n.op("MatMul", x, n.weight(size, vocabulary))
    n.out(n.op("LogSoftmax", logits, axis=-1) if n.chance(0.5) else logits)


def cross_attention(n):
    """Three open sizes."""
    k = n.pick([1, 3, 8, 16, 64, 128, 256])
    batch, rows, columns = n.size("batch", 1, 3), n.size("queries", 1, 9), n.size("keys", 1, 9)
    q, context = n.input("q", [batch, rows, k]), n.input("context", [batch, columns, k])
    kind = n.pick(["bare", "softmax", "full"])
    if kind == "bare":
        return n.out(n.op("MatMul", q, n.input("other", [batch, k, columns])), n.reduce("ReduceMean", context, [1]))
    scores = n.op("Div", n.op("MatMul", q, n.op("Transpose", context, perm=[0, 2, 1])), np.sqrt(k))
    share = n.op("Softmax", scores, axis=-1)
    n.out(share if kind == "softmax" else n.op("MatMul", share, part.linear(n, context, k, n.int(1, 5))))


def llama(n):
    groups, shared, width = n.pick([1, 2]), n.pick([1, 2]), n.pick([4, 8])
    count = groups * shared
    size, batch, time = count * width, n.size("batch", 1, 2), n.size("time", 1, 9)
    x = n.input("x", [batch, time, size])
    positions = n.input("positions", [batch, time], np.int64, 0, 50)
    h = part.layer_norm(n, x, size, rms=True)
    frequency = n.const(1 / 100 ** (np.arange(width // 2) / (width // 2)), np.float32)
    angle = n.op("Mul", n.op("Unsqueeze", n.op("Cast", positions, to=1), n.ints(2)), frequency)
    angle = n.op("Unsqueeze", n.op("Concat", angle, angle, axis=-1), n.ints(1))
    cos, sin = n.op("Cos", angle), n.op("Sin", angle)

    def rotated(t):
        left, right = n.split(t, 3, [width // 2] * 2)
        turned = n.op("Concat", n.op("Neg", right), left, axis=-1)
        return n.op("Add", n.op("Mul", t, cos), n.op("Mul", turned, sin))

    def repeated(t):
        if shared == 1:
            return t
        b, s = n.shape_of(t, 0, 2)
        wide = n.op("Expand", n.op("Unsqueeze", t, n.ints(2)), n.op("Concat", b, n.ints(groups, shared), s, n.ints(width), axis=0))
        return n.reshape(wide, b, count, s, width)
    q = rotated(part.heads(n, part.linear(n, h, size, size, False), count, width))
    k = repeated(rotated(part.heads(n, part.linear(n, h, size, groups * width, False), groups, width)))
    v = repeated(part.heads(n, part.linear(n, h, size, groups * width, False), groups, width))
    y = part.joined(n, part.attend(n, q, k, v, width), size)
    x = n.op("Add", x, part.linear(n, y, size, size, False))
    h = part.layer_norm(n, x, size, rms=True)
    gate = part.act(n, part.linear(n, h, size, 2 * size, False), "swish")
    h = n.op("Mul", gate, part.linear(n, h, size, 2 * size, False))
    n.out(n.op("Add", x, part.linear(n, h, 2 * size, size, False)))


def relative_bias(n):
    """T5: buckets of distances by a logarithm, whose embeddings are added to scores."""
    count, width, buckets = n.pick([1, 2]), n.pick([2, 4]), n.pick([8, 16])
    size, batch, time = count * width, n.size("batch", 1, 2), n.size("time", 2, 24)
    x = n.input("x", [batch, time, size])
    length = n.op("Squeeze", n.shape_of(x, 1)[0], n.ints(0))
    steps = n.op("Range", n.const(0, np.int64), length, n.const(1, np.int64))
    distance = n.op("Sub", n.op("Unsqueeze", steps, n.ints(0)), n.op("Unsqueeze", steps, n.ints(1)))
    far = n.op("Abs", distance)
    half, exact = buckets // 2, buckets // 4
    ratio = n.op("Div", n.op("Log", n.op("Div", n.op("Cast", far, to=1), exact)), np.log(64 / exact))
    large = n.op("Add", n.op("Cast", n.op("Mul", ratio, half - exact), to=7), n.const(exact, np.int64))
    large = n.op("Min", large, n.const(half - 1, np.int64))
    bucket = n.op("Where", n.op("Less", far, n.const(exact, np.int64)), far, large)
    side = n.op("Mul", n.op("Cast", n.op("Greater", distance, n.const(0, np.int64)), to=7), n.const(half, np.int64))
    bias = n.op("Gather", n.weight(buckets, count), n.op("Add", bucket, side))
    bias = n.op("Unsqueeze", n.op("Transpose", bias, perm=[2, 0, 1]), n.ints(0))
    n.out(n.op("Add", x, part.self_attention(n, x, count, width, bias)))


def attention_operator(n):
    n.need_opset(23)
    count, width = n.pick([1, 2, 4]), n.pick([2, 4, 8])
    groups = n.pick([g for g in (1, 2, 4) if count % g == 0])
    batch, rows, columns = n.size("batch", 1, 3), n.size("queries", 1, 7), n.size("keys", 1, 7)
    q = n.input("q", [batch, count, rows, width])
    k, v = (n.input(s, [batch, groups, columns, width]) for s in "kv")
    mask = [n.input("mask", [rows, columns])] if n.chance(0.5) else []
    n.out(n.op("Attention", q, k, v, *mask, is_causal=n.pick([None, 1]) if not mask else None, scale=n.pick([None, 0.3]),
               softcap=n.pick([None, None, 5.0])))


def recurrent(n, x, inputs, hidden, kind, batch, time, mixes):
    """With states and lengths whose batch may be open where that of the input is a number, and the reverse."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    direction = n.pick(["forward", "reverse", "bidirectional"])
    count = 2 if direction == "bidirectional" else 1
    draw = lambda *shape: n.const(n.r.uniform(-0.5, 0.5, shape), n.float)
    given = [x, draw(count, gates * hidden, inputs), draw(count, gates * hidden, hidden)]
    given.append(draw(count, 2 * gates * hidden) if n.chance(0.6) else "")
    given.append(n.input("lengths", [mixes()], np.int32, make=lambda r, s, z: r.integers(1, time(z), s, endpoint=True)) if n.chance(0.3) else "")
    given.append(n.input("h0", [count, mixes(), hidden]) if n.chance(0.4) else "")
    if kind == "LSTM":
        given.append(n.input("c0", [count, mixes(), hidden]) if n.chance(0.4) else "")
    while given and not given[-1]:
        given.pop()
    y = n.op(kind, *given, outputs=3 if kind == "LSTM" else 2, hidden_size=hidden, direction=direction,
             linear_before_reset=n.pick([None, 0, 1]) if kind == "GRU" else None, clip=n.pick([None, None, 2.0]))
    return y, count


def recurrent_mixes(n):
    kind, inputs, hidden, number = n.pick(["RNN", "GRU", "LSTM"]), n.int(1, 6), n.int(1, 6), n.int(1, 4)
    n.sizes["b"] = (number, number, None)
    mixes = lambda: n.pick(["b", number])
    steps = n.size("steps", 1, 6)
    x = n.input("x", [steps, mixes(), inputs])
    results, _ = recurrent(n, x, inputs, hidden, kind, None, lambda z: n.number(steps, z), mixes)
    n.out(*results[:n.int(1, len(results))])
    if not any("b" in dims for dims, *_ in n.inputs.values()):
        n.sizes.pop("b")


def lstm_classifier(n):
    vocabulary, size, hidden = n.int(5, 20), n.int(2, 8), n.int(2, 8)
    batch, time = n.size("batch", 1, 4), n.size("time", 1, 8)
    ids, _ = tokens(n, vocabulary, batch, time)
    x = n.op("Transpose", n.op("Gather", n.weight(vocabulary, size, scale=0.7), ids), perm=[1, 0, 2])
    kind = n.pick(["RNN", "GRU", "LSTM"])
    for layer in range(n.int(1, 2)):
        saved, n.inputs = n.inputs, dict(n.inputs)
        fresh = lambda: batch
        results, count = recurrent(n, x, size, hidden, kind, batch, lambda z: n.number(time, z), fresh)
        x = n.op("Reshape", n.op("Transpose", results[0], perm=[0, 2, 1, 3]), n.ints(0, 0, count * hidden))
        size = count * hidden
        if layer == 0 and len(n.inputs) > len(saved):
            break  # the names of states are taken
    last = n.op("Gather", x, n.const(-1, np.int64), axis=0) if n.chance(0.5) else n.reduce("ReduceMax", x, [0], 0)
    n.out(n.op("Softmax", part.gemm(n, last, size, n.int(2, 5)), axis=-1))


def loop_decoder(n):
    """A cell in a Loop; the number of steps is an input or a constant."""
    size, batch = n.int(2, 5), n.size("batch", 1, 3)
    state = n.input("state", [batch, size])
    count = n.input("count", [], np.int64, make=lambda r, s, _: r.integers(1, 5)) if n.chance(0.5) else n.const(n.int(1, 5), np.int64)
    weight, bias = n.weight(size, size), n.weight(size)

    def build():
        step, go, h = n.name("step"), n.name("go"), n.name("h")
        y = n.op("Tanh", n.op("Add", n.op("MatMul", h, weight), bias))
        y = n.op("Add", y, n.op("Mul", n.op("Cast", step, to=1), 0.1)) if n.chance(0.5) else y
        scanned = n.reduce("ReduceMax", y, [1], 0)
        return [n.info(step, [], np.int64), n.info(go, [], bool), n.info(h, [None, size])], \
            [n.info(n.op("Identity", go), [], bool), n.info(y, [None, size]), n.info(scanned, [None])]
    n.out(*n.op("Loop", count, n.const(True, bool), state, outputs=2, body=n.body(build)))


def scanned(n):
    """A Scan over floats, or over bytes as a quantized state."""
    size, time = n.int(1, 6), n.size("time", 1, 7)
    is_quantized = n.chance(0.5)
    x = n.input("x", [time, size])
    h = n.input("h", [size], np.int8, -100, 100) if is_quantized else n.input("h", [size])
    n.off_by_one = is_quantized
    n.step = 0.1 if is_quantized else 0
    scale, zero = n.const(0.05, np.float32), n.const(0, np.int8)

    def build():
        state, element = n.name("state"), n.name("element")
        value = n.op("DequantizeLinear", state, scale, zero) if is_quantized else state
        y = n.op(n.pick(["Tanh", "Relu", "Sigmoid"]), n.op("Add", n.op("Mul", value, n.pick([0.5, 0.9])), element))
        new = n.op("QuantizeLinear", y, scale, zero) if is_quantized else n.op("Identity", y)
        type = np.int8 if is_quantized else n.float
        return [n.info(state, [size], type), n.info(element, [size])], [n.info(new, [size], type), n.info(y, [size])]
    n.out(*n.op("Scan", h, x, outputs=2, body=n.body(build), num_scan_inputs=1,
                scan_input_directions=n.pick([None, [1]])))


def beam_step(n):
    vocabulary, beams, batch = n.int(3, 9), n.int(1, 3), n.size("batch", 1, 3)
    logits, scores = n.input("logits", [batch, beams, vocabulary]), n.input("scores", [batch, beams])
    total = n.op("Add", n.op("LogSoftmax", logits, axis=-1), n.op("Unsqueeze", scores, n.ints(2)))
    best, index = n.op("TopK", n.op("Reshape", total, n.ints(0, -1)), n.ints(beams), outputs=2)
    words = n.op("Mod", index, n.const(vocabulary, np.int64))
    parents = n.op("Div", index, n.const(vocabulary, np.int64))
    n.out(best, words, n.op("GatherElements", scores, parents, axis=1))


def joiner(n):
    """A transducer's joiner: sums of two sequences."""
    size, out = n.int(2, 8), n.int(2, 6)
    batch, t, u = n.size("batch", 1, 2), n.size("frames", 1, 7), n.size("labels", 1, 5)
    a, b = n.input("a", [batch, t, size]), n.input("b", [batch, u, size])
    y = n.op("Add", n.op("Unsqueeze", a, n.ints(2)), n.op("Unsqueeze", b, n.ints(1)))
    n.out(n.op("LogSoftmax", part.linear(n, part.act(n, y, n.pick(["Tanh", "Relu"])), size, out), axis=-1))


def conformer(n):
    size, batch, time = n.pick([4, 6, 8]), n.size("batch", 1, 2), n.size("time", 2, 14)
    x = n.input("x", [batch, time, size])
    y = n.op("Transpose", part.layer_norm(n, x, size), perm=[0, 2, 1])
    left, gate = n.split(part.conv(n, y, size, 2 * size, [1]), 1, [size] * 2)
    y = n.op("Mul", left, n.op("Sigmoid", gate))
    k = n.pick([3, 5, 7, 9])
    y = part.batch_norm(n, part.conv(n, y, size, size, [k], group=size), size)
    y = part.conv(n, part.act(n, y, "swish"), size, size, [1])
    n.out(n.op("Add", x, n.op("Transpose", y, perm=[0, 2, 1])))


def wavenet(n):
    channels, batch, time = n.int(2, 5), n.size("batch", 1, 2), n.size("time", 10, 40)
    x = n.input("x", [batch, channels, time])
    skips = []
    for level in range(n.int(1, 4)):
        dilation = 2 ** level
        padded = n.op("Pad", x, n.ints(0, 0, dilation, 0, 0, 0))
        filter, gate = (part.conv(n, padded, channels, channels, [2], pads=[0, 0], dilations=[dilation]) for _ in range(2))
        y = n.op("Mul", n.op("Tanh", filter), n.op("Sigmoid", gate))
        skips.append(part.conv(n, y, channels, 3, [1]))
        x = n.op("Add", x, part.conv(n, y, channels, channels, [1]))
    n.out(part.act(n, n.op("Sum", *skips) if n.chance(0.5) else skips[-1], "Relu"), x)


def experts(n):
    """A mixture: the best of a few experts by TopK."""
    size, count, best = n.int(2, 6), n.int(2, 5), n.int(1, 2)
    x = n.input("x", [n.size("tokens", 1, 9), size])
    weights, index = n.op("TopK", part.linear(n, x, size, count), n.ints(best), outputs=2)
    weights = n.op("Softmax", weights, axis=-1)
    outs = n.op("Concat", *[n.op("Unsqueeze", part.feed_forward(n, x, size, 2 * size, "Relu"), n.ints(1)) for _ in range(count)], axis=1)
    if n.chance(0.5):
        hot = n.op("OneHot", index, n.const(count, np.int64), n.const([0, 1], n.float))
        gate = n.reduce("ReduceSum", n.op("Mul", hot, n.op("Unsqueeze", weights, n.ints(2))), [1], 0)
        n.out(n.reduce("ReduceSum", n.op("Mul", outs, n.op("Unsqueeze", gate, n.ints(2))), [1], 0))
    else:
        places = n.op("Expand", n.op("Unsqueeze", index, n.ints(2)), n.op("Concat", *n.shape_of(x, 0), n.ints(best, size), axis=0))
        chosen = n.op("GatherElements", outs, places, axis=1)
        n.out(n.reduce("ReduceSum", n.op("Mul", chosen, n.op("Unsqueeze", weights, n.ints(2))), [1], 0))


def recommender(n):
    """Embeddings of several tables, products of all pairs, dense layers (DLRM)."""
    size, batch, fields = n.int(2, 6), n.size("batch", 1, 6), n.int(2, 4)
    dense = n.input("dense", [batch, 5])
    vectors = [part.act(n, part.gemm(n, dense, 5, size), "Relu")]
    for i in range(fields):
        ids = n.input(f"field{i}", [batch], n.pick([np.int64, np.int32]), 0, 6)
        vectors.append(n.op("Gather", n.weight(7, size, scale=0.5), ids))
    stack = n.op("Concat", *[n.op("Unsqueeze", v, n.ints(1)) for v in vectors], axis=1)
    pairs = n.op("MatMul", stack, n.op("Transpose", stack, perm=[0, 2, 1]))
    rows, columns = np.tril_indices(fields + 1, -1)
    flat = n.op("Reshape", pairs, n.ints(-1, (fields + 1) ** 2))
    flat = n.op("Gather", flat, n.const(rows * (fields + 1) + columns, np.int64), axis=1)
    y = n.op("Concat", vectors[0], flat, axis=1)
    n.out(n.op("Sigmoid", part.gemm(n, y, size + len(rows), 1)))


def einsums(n):
    batch, q, k = n.size("batch", 1, 3), n.size("queries", 1, 6), n.size("keys", 1, 6)
    h, d = n.int(1, 3), n.int(1, 5)
    a, b = n.input("a", [batch, q, h, d]), n.input("b", [batch, k, h, d])
    scores = n.op("Einsum", a, b, equation=n.pick(["bqhd,bkhd->bhqk", "bqhd,bkhd->bqhk"]))
    bare = n.op("Einsum", a, n.weight(h, d, 4), equation="bqhd,hde->bqe")
    n.out(n.op("Softmax", scores, axis=-1), bare)


FAMILIES = {f.__name__: f for f in [
    encoder, cached_decoder, causal_decoder, cross_attention, llama, relative_bias, attention_operator, recurrent_mixes,
    lstm_classifier, loop_decoder, scanned, beam_step, joiner, conformer, wavenet, experts, recommender, einsums]}
