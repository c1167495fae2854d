"""Small ONNX models written field by field (onnx.proto of the ONNX project), for tests."""


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def value_info(name, dims):
    shape = b"".join(field(1, field(2 if isinstance(d, str) else 1, d)) for d in dims)
    tensor = field(1, 1) + field(2, shape)  # f32
    return field(1, name) + field(2, field(1, tensor))


def node(op, inputs, outputs, name):
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) +
            field(3, name) + field(4, op))


def model(graph_name, nodes, inputs, outputs):
    graph = (b"".join(field(1, n) for n in nodes) + field(2, graph_name) +
             b"".join(field(11, value_info(*i)) for i in inputs) +
             b"".join(field(12, value_info(*o)) for o in outputs))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))
