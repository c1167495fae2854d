"""What the schema does not say of each operator: shapes that fit and values that mean something.
One row an operator or a family; attributes that a row leaves out come from `case.ATTRS`."""

import numpy as np

import rows_layers
import rows_structure
from case import Reject
from values import FLOATS, is_integer, limits, numpy_type


def unary(c):
    for formal in c.schema.inputs[:1]:
        c.data(formal.name, c.shape(0, 4))


def within(low, high):
    def row(c):
        c.data(c.schema.inputs[0].name, c.shape(0, 4), low=low, high=high)
    return row


def moderate(c):
    """Functions of floats where the last bits of huge arguments are not the question."""
    c.sums = c.op in ("Gelu", "Mish", "Tan", "Softplus")
    c.data(c.schema.inputs[0].name, c.shape(0, 4), flavour=c.pick(["plain", "ties", "specials"]))


def elementwise(c):
    formals = list(c.schema.inputs)
    for formal, shape in zip(formals, c.broadcast(len(formals))):
        c.data(formal.name, shape)


def division(c):
    """Of integers nothing says what x / 0 is, nor lowest / -1."""
    a, b = c.broadcast(2)
    x = c.data(c.schema.inputs[0].name, a)
    divisor = c.draw(c.input_type(c.schema.inputs[1].name), b)
    if divisor.dtype.kind in "iu":
        divisor = np.where((divisor == 0) | (divisor.astype(object) == -1), 3, divisor).astype(x.dtype)
    c.x(c.schema.inputs[1].name, divisor)


def modulo(c):
    division(c)
    c.attr("fmod", c.int(0, 1) if is_integer(c.bound["T"]) or c.opset >= 28 else 1)


def gate(c):
    shape = c.shape(0, 4)
    for formal in c.schema.inputs:
        c.data(formal.name, shape)
    if c.chance(0.6):
        c.attr("alpha", c.pick([0.5, 1.0, 1.7]))


def power(c):
    a, b = c.broadcast(2)
    names = [i.name for i in c.schema.inputs]
    base, exponent = c.input_type(names[0]), c.input_type(names[1])
    if is_integer(base) or is_integer(exponent):  # exact only while results fit
        c.data(names[0], a, low=0 if limits_unsigned(base) else -3, high=3)
        c.data(names[1], b, low=0, high=3)
    else:
        c.data(names[0], a, flavour=c.pick(["plain", "ties", "specials"]))
        c.data(names[1], b, flavour=c.pick(["plain", "ties", "specials"]))


def limits_unsigned(type_name):
    return is_integer(type_name) and limits(type_name)[0] == 0


def shift(c):
    a, b = c.broadcast(2)
    c.data("X", a)
    any_number = c.opset >= 28 and not c.bound["T"].startswith("uint")
    c.data("Y", b, low=-3 if any_number else 0, high=70 if any_number else 7)
    c.attr("direction", c.pick(["LEFT", "RIGHT"]))


def variadic(c):
    c.sums = c.op in ("Sum", "Mean")
    count = c.int(1, 4)
    shapes = c.broadcast(count) if c.opset >= 8 else [c.shape(0, 4)] * count
    name = c.schema.inputs[0].name
    c.x(name, [c.draw(c.input_type(name), s) for s in shapes])


def clip(c):
    shape = c.shape(0, 4)
    c.data("input", shape)
    if c.has("min"):
        c.attr("min", c.pick([None, -1.0, 0.0]))
        c.attr("max", c.pick([None, 1.0, 6.0, 0.5]))
        return
    t = c.input_type("input")
    for name, among in [("min", [-1, 0, 1, 2]), ("max", [0, 1, 3, 6])]:
        if c.chance(0.75):
            value = c.pick([v for v in among if not limits_unsigned(t) or v >= 0])
            c.x(name, np.asarray(value, dtype=numpy_type(t)), parameter=True)


def prelu(c):
    shape = c.shape(0, 4)
    c.data("X", shape)
    slope = [1 if c.chance(0.3) else n for n in shape][c.int(0, len(shape)):] if c.opset >= 7 else [1]
    c.data("slope", slope)


def where(c):
    for name, shape in zip(["condition", "X", "Y"], c.broadcast(3)):
        c.data(name, shape)
    c.exact = True


def reduction(c, low=None, high=None):
    c.sums = True
    shape = c.shape(0 if c.opset >= 13 else 1, 4)
    if c.op in ("ReduceMax", "ReduceMin") and c.flavour == "extremes" and c.opset < 20:
        c.zero_share = 0
    t = c.input_type("data")
    if is_integer(t) and c.op in ("ReduceProd", "ReduceSumSquare", "ReduceL2"):
        c.data("data", shape, low=-3, high=3)
    elif is_integer(t) and c.op in ("ReduceMax", "ReduceMin", "ReduceSum"):
        c.data("data", shape)
    elif is_integer(t):
        c.data("data", shape, low=1 if c.op.startswith("ReduceLog") else -9, high=9)
    else:
        c.data("data", shape, low=low, high=high, flavour=c.pick(["plain", "ties", "plain", "specials"]))
    if c.chance(0.8):
        c.ints("axes", c.axes(len(shape), low=0 if c.takes("axes") else 1))


def arg_reduction(c):
    shape = c.shape(1, 4)
    if c.r.random() < 0.9:
        shape = [max(n, 1) for n in shape]
    c.data("data", shape, flavour=c.pick(["plain", "ties", "ties"]))
    if c.chance(0.8):
        c.attr("axis", c.axis(len(shape)))


def along_axis(c):
    """Softmax and its kind."""
    shape = c.shape(1, 4)
    c.data("input", shape, flavour=c.pick(["plain", "ties", "plain", "specials"]))
    if c.chance(0.8):
        c.attr("axis", c.axis(len(shape)))
    c.sums = True


def hardmax(c):
    shape = [max(n, 1) for n in c.shape(1, 4)]
    c.data("input", shape, flavour=c.pick(["plain", "ties"]))
    c.attr("axis", c.axis(len(shape)))


def lp_normalization(c):
    shape = c.shape(1, 4)
    c.data("input", shape, flavour=c.pick(["plain", "ties"]))
    c.attr("axis", c.axis(len(shape)))
    c.attr("p", c.int(1, 2))


def cumulative(c):
    c.sums = True
    shape = c.shape(1, 4)
    c.data("x", shape, flavour=c.pick(["plain", "ties"]), low=-2, high=2)
    axis_type = numpy_type(c.input_type("axis"))
    c.x("axis", np.asarray(c.axis(len(shape)), dtype=axis_type), parameter=True)


CASTS = ["float", "double", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16",
         "uint32", "uint64", "bool"]


def cast_array(c, source, target):
    """Of floats only numbers whose integer part the target holds: nothing says what the rest becomes."""
    shape = c.shape(0, 3)
    if source == "string":
        words = ["1", "-2", "3.5", "0", "1e2", "+7"] if target in FLOATS else ["1", "12", "0", "7"]
        return np.array([c.pick(words) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape)
    if is_integer(target) and not is_integer(source) and source != "bool":
        low, high = limits(target)
        return c.draw(source, shape, low=max(low, -100), high=min(high, 100))
    if target == "string":
        return c.draw(source, shape, flavour="ties")
    return c.draw(source, shape)


def cast(c):
    from values import number
    source = c.input_type("input")
    target = c.pick(c.types("T2") + c.types("T2", CASTS))
    c.attr("to", number(target) if c.opset >= 6 else target.upper())
    c.x("input", cast_array(c, source, target))
    c.exact = True


def cast_like(c):
    source, target = c.input_type("input"), c.input_type("target_type")
    c.x("input", cast_array(c, source, target))
    c.data("target_type", c.shape(0, 2))
    c.exact = True


def bit_cast(c):
    from values import SMALL, number
    source = c.type("T1", [t for t in c.types("T1") if t not in ("bool", "int4", "uint4", "int2", "uint2", "float4e2m1")])
    c.data("input", c.shape(0, 3))
    size = numpy_type(source).itemsize
    fits = [t for t in c.types("T2") if t not in ("bool", "string", "int4", "uint4", "int2", "uint2", "float4e2m1")
            and numpy_type(t).itemsize == size]
    c.attr("to", number(c.pick(fits)))
    c.exact = True


# Contractions.
def matmul(c):
    c.sums = True
    m, n, k = c.int(1, 5), c.int(1, 5), c.pick([0, 1, 2, 3, 7, 17]) if c.zero_share else c.pick([1, 2, 3, 7, 17])
    first, second = c.broadcast(2, 2)
    a, b = first + [m, k], second + [k, n]
    if c.chance(0.15):
        a = [k]
    if c.chance(0.15):
        b = [k]
    names = [i.name for i in c.schema.inputs]
    x = c.data(names[0], a)
    y = c.data(names[1], b)
    if c.op == "MatMulInteger":
        if c.chance(0.7):
            rows = [a[-2]] if len(a) == 2 and c.chance(0.3) else []
            c.x("a_zero_point", c.draw(c.bound["T1"], rows), parameter=True)
        if c.chance(0.7):
            columns = [b[-1]] if len(b) == 2 and c.chance(0.3) else []
            c.x("b_zero_point", c.draw(c.bound["T2"], columns), parameter=True)
    return x, y


def gemm(c):
    c.sums = True
    m, n, k = c.int(1, 5), c.int(1, 5), c.pick([1, 2, 3, 7, 17])
    ta, tb = c.int(0, 1), c.int(0, 1)
    c.attr("transA", ta)
    c.attr("transB", tb)
    c.data("A", [k, m] if ta else [m, k])
    c.data("B", [n, k] if tb else [k, n])
    t = c.bound["T"]
    if is_integer(t):
        c.attr("alpha", 1.0)
        c.attr("beta", 1.0)
    if c.opset < 7:
        c.data("C", [m, n])
        return
    if c.opset < 11 or c.chance(0.75):
        c.data("C", c.pick([[m, n], [n], [1, n], [m, 1], [1], []]))


EQUATIONS = ["ij,jk->ik", "ij->ji", "ij->i", "ij->", "ii->i", "ii->", "bij,bjk->bik", "i,j->ij", "i,i->",
             "...ij,...jk->...ik", "ij,jk", "ji", "bii->bi", "ij,ij->ij", "...i->...", "ij,k->ijk",
             "abc,cd,be->ade", "a b, b c -> a c", "ij,j", "iji->ij", "...,...->...", "i...->...i", "ij,kj->ik"]


def einsum(c):
    c.sums = True
    equation = c.pick(EQUATIONS)
    sizes, lead = {}, c.shape(0, 2)
    operands = []
    for term in equation.replace(" ", "").split("->")[0].split(","):
        shape = []
        for letter in term.replace("...", "*"):
            shape += lead if letter == "*" else [sizes.setdefault(letter, c.int(1, 4))]
        operands.append(c.draw(c.type("T"), shape, flavour=c.pick(["plain", "ties"]), low=-4, high=4))
    c.attr("equation", equation)
    c.x("Inputs", operands)


def det(c):
    c.sums = True
    n = c.int(1, 4)
    c.data(c.schema.inputs[0].name, c.shape(0, 2) + [n, n], flavour=c.pick(["plain", "ties"]))


# Quantization.
def quantize(c, name="QuantizeLinear"):
    shape = c.shape(1, 4)
    per_axis = c.chance(0.5) and c.has("axis")
    axis = c.axis(len(shape)) if per_axis else None
    scales = [shape[axis]] if per_axis else []
    if per_axis:
        c.attr("axis", axis)
    x, scale, zero = [i.name for i in c.schema.inputs]
    if name == "DequantizeLinear":
        c.data(x, shape)
    else:
        c.data(x, shape, flavour=c.pick(["plain", "ties"]), low=-40 if c.chance(0.5) else None)
    scale_type = c.input_type(scale)
    c.x(scale, np.asarray(c.r.choice([1, 2, 4] if is_integer(scale_type) else [0.25, 0.5, 1.0, 2.0], scales)).astype(numpy_type(scale_type)), parameter=True)
    wanted = c.input_type(zero)
    if wanted.startswith("float") or wanted == "int32":
        c.x(zero, np.zeros(scales, numpy_type(wanted)), parameter=True)
    elif wanted != "uint8" or c.chance(0.8):
        c.x(zero, c.draw(wanted, scales, flavour="plain"), parameter=True)
    for attribute in ("block_size", "output_dtype", "precision"):
        c.attr(attribute, None)


def dynamic_quantize(c):
    c.off_by_one = True
    c.data("x", [max(n, 1) for n in c.shape(1, 3)], flavour="plain")


def quantized_matmul(c):
    c.off_by_one = True
    m, n, k = c.int(1, 4), c.int(1, 4), c.pick([1, 2, 5, 9])
    lead = c.shape(0, 1)
    for x, shape, type_str in [("a", lead + [m, k], "T1"), ("b", lead + [k, n], "T2"), ("y", None, "T3")]:
        if shape is not None:
            c.data(x, shape, flavour="plain")
        scale = c.pick([0.25, 0.5, 0.1])
        c.x(x + "_scale", np.asarray(scale, numpy_type(c.input_type(x + "_scale"))), parameter=True)
        c.x(x + "_zero_point", c.draw(c.type(type_str), [], low=0, high=5), parameter=True)


def fresh(function, **how):
    def row(c):
        function(c, **how)
    return row


def table():
    """Operator to (row, weight)."""
    groups = [
        (unary, 1, "Abs Ceil Floor Neg Relu Sign Not BitwiseNot IsNaN IsInf Round LeakyRelu Identity "
                   "HardSigmoid Shrink ThresholdedRelu"),
        (moderate, 1, "Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Exp Log Sigmoid Sin Sinh Softplus "
                      "Softsign Sqrt Tan Tanh Reciprocal Elu Celu Selu Gelu Mish HardSwish Swish"),
        (elementwise, 2, "Add Sub Mul And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual BitwiseAnd "
                         "BitwiseOr BitwiseXor"),
        (division, 2, "Div"), (modulo, 2, "Mod"), (power, 2, "Pow"), (shift, 1, "BitShift"), (gate, 1, "SwiGLU"),
        (variadic, 2, "Max Min Sum Mean"), (clip, 2, "Clip"), (prelu, 1, "PRelu"), (where, 2, "Where"),
        (reduction, 2, "ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
                       "ReduceSumSquare ReduceLogSumExp"),
        (fresh(reduction, low=0.1, high=4), 1, "ReduceLogSum"),
        (arg_reduction, 2, "ArgMax ArgMin"), (along_axis, 2, "Softmax LogSoftmax"), (hardmax, 1, "Hardmax"),
        (lp_normalization, 1, "LpNormalization"), (cumulative, 2, "CumSum CumProd"),
        (cast, 5, "Cast"), (cast_like, 2, "CastLike"), (bit_cast, 1, "BitCast"),
        (matmul, 2, "MatMul MatMulInteger"), (gemm, 2, "Gemm"), (einsum, 2, "Einsum"), (det, 1, "Det"),
        (quantize, 2, "QuantizeLinear"), (fresh(quantize, name="DequantizeLinear"), 2, "DequantizeLinear"),
        (dynamic_quantize, 1, "DynamicQuantizeLinear"), (quantized_matmul, 1, "QLinearMatMul"),
    ]
    out = {}
    for row, weight, names in groups + rows_structure.GROUPS + rows_layers.GROUPS:
        for name in names.split():
            out[name] = (row, weight)
    return out


# Without a row, and why.
SKIPPED = {
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial":
        "draws of another generator are not comparable",
    "ImageDecoder": "no peer has its codecs without further packages",
    "Scatter Upsample": "deprecated; ScatterElements and Resize have rows",
    "Adagrad Adam Gradient Momentum FlexAttention": "of preview domains, which no peer runs",
}
