"""Small ONNX models as bytes, for tests of the programs: what they need of the format, written by hand."""

import struct

F32, I64, BOOL = 1, 7, 9


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def text(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def value(name, dtype, sizes):
    """Without sizes (None) its rank is open."""
    shape = b""
    if sizes is not None:
        shape = text(2, b"".join(text(1, number(1, s) if isinstance(s, int) else text(2, s)) for s in sizes))
    return text(1, name) + text(2, text(1, number(1, dtype) + shape))


def sequence(name, dtype):
    return text(1, name) + text(2, text(4, text(1, text(1, number(1, dtype)))))


def sequence_of(tensors):
    """A SequenceProto."""
    return number(2, 1) + b"".join(text(3, t) for t in tensors)


def tensor(name, dtype, dims, data, location=None):
    out = b"".join(number(1, d) for d in dims) + number(2, dtype) + text(8, name)
    if location is None:
        return out + text(9, data)
    return out + text(13, text(1, "location") + text(2, location)) + number(14, 1)


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def node(op, inputs, outputs, graphs=(), ints=()):
    out = b"".join(text(1, i) for i in inputs) + b"".join(text(2, o) for o in outputs)
    out += text(3, op + "_node") + text(4, op)
    for name, g in graphs:
        out += text(5, text(1, name) + text(6, g) + number(20, 5))
    for name, n in ints:  # one number, or a list
        held = number(3, n) + number(20, 2) if isinstance(n, int) else b"".join(number(8, k) for k in n) + number(20, 7)
        out += text(5, text(1, name) + held)
    return out


def graph(nodes, inputs, outputs, tensors=()):
    return (b"".join(text(1, n) for n in nodes) + text(2, "g") + b"".join(text(5, t) for t in tensors) +
            b"".join(text(11, i) for i in inputs) + b"".join(text(12, o) for o in outputs))


def model(*arguments, opset=21):
    return number(1, 10) + text(7, graph(*arguments)) + text(8, text(1, "") + number(2, opset))
