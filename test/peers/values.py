"""Element types of ONNX and arrays of them at random, with the edges that each type has."""

import numpy as np
from onnx import TensorProto, helper

# Types that every interpreter here can make an array of. Complex numbers are left out: neither
# Hone nor most kernels of ONNX Runtime take them.
TYPES = ["float", "double", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
         "uint16", "uint32", "uint64", "bool", "string", "float8e4m3fn", "float8e4m3fnuz",
         "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1", "int4", "uint4", "int2", "uint2"]
WEIGHTS = {"float": 8, "int64": 4, "int32": 3, "double": 3, "float16": 2, "uint8": 2, "int8": 2,
           "bool": 2}
FLOATS = ("float", "double", "float16", "bfloat16")
SMALL = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0",
         "float4e2m1", "int4", "uint4", "int2", "uint2")
BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
EPS = {"float": 2.0**-23, "double": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}
WORDS = ["", "a", "b", "ab", "Ab", "AB", "hello", " x ", "1.5", "a,b", "ü", "Straße", "日本", "a b  c"]


def number(name):
    """The TensorProto number of a type that is written as in `tensor(name)`."""
    return getattr(TensorProto, name.upper())


def numpy_type(name):
    return np.dtype(object) if name == "string" else helper.tensor_dtype_to_np_dtype(number(name))


def name_of(type_number):
    return TensorProto.DataType.Name(type_number).lower()


def limits(name):
    """The lowest and the highest integer of a type."""
    if name in BITS:
        bits, signed = BITS[name], name[0] == "i"
    else:
        bits, signed = numpy_type(name).itemsize * 8, name[0] == "i"
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def is_integer(name):
    return name.startswith(("int", "uint"))


def array(r, name, shape, flavour="plain", low=None, high=None):
    """An array of random elements. Flavours: plain numbers; ties, which are few different ones with
    both zeros; specials, with NaN and infinities; extremes, with the ends of the type too. With
    `low` or `high` all lie between these."""
    shape = tuple(int(n) for n in shape)
    if name == "string":
        return np.array([WORDS[i] for i in r.integers(0, len(WORDS), int(np.prod(shape)))],
                        dtype=object).reshape(shape)
    if name == "bool":
        return r.integers(0, 2, shape).astype(bool)
    if is_integer(name):
        return integers(r, name, shape, flavour, low, high)
    if low is not None or high is not None:
        low, high = (-4.0 if low is None else low), (4.0 if high is None else high)
        return np.asarray(r.uniform(low, high, shape)).astype(numpy_type(name))
    values = np.asarray(r.normal(0, 2, shape))
    if flavour == "ties":
        values = np.asarray(r.choice([-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5], shape))
    specials = [np.nan, np.inf, -np.inf, -0.0, 0.0]
    if flavour == "extremes" and name in FLOATS:
        info = np.finfo(np.float32) if name == "bfloat16" else np.finfo(numpy_type(name))
        specials += [float(info.max), float(info.min), float(info.tiny), float(info.tiny) / 4,
                     88.0, -88.0, 1e4, 0.5, -2.5, 1.0, -1.0]
    if flavour in ("specials", "extremes"):
        values = np.where(r.random(shape) < 0.3, r.choice(specials, shape), values)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(numpy_type(name))


def integers(r, name, shape, flavour, low, high):
    lowest, highest = limits(name)
    if low is None and high is None and flavour == "extremes":
        edges = [lowest, highest, lowest + 1, highest - 1, 0, 1, max(lowest, -1), highest // 2]
        values = [edges[i] for i in r.integers(0, len(edges), int(np.prod(shape)))]
        return np.array(values, dtype=object).reshape(shape).astype(numpy_type(name))
    span = 3 if flavour == "ties" else 12
    low = max(lowest, -span if low is None else int(low))
    high = min(highest, span if high is None else int(high))
    return r.integers(low, high, shape, endpoint=True).astype(numpy_type(name))
