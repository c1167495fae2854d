"""When two results agree.

Integers, bools and texts are equal, and so are floats of operators that move elements (zeros with
their sign). Other floats agree within

    |a - b| <= 64 eps |b| + 16 eps scale     (f16 and bf16: 8 and 4 in place of 64 and 16; f64: eps 2^-40)

of every element, with eps of the widest spacing among the float types of the case, and scale 0, but
for operators that sum the larger of the largest result and the product of the largest of each operand
(at least 1). NaN agrees with NaN, an infinity with the same one. Integers that an operator rounds from
floats it computed may differ by 1: then a rounding before decides.
"""

import numpy as np

import values

NARROW = ("float16", "bfloat16")


def spacing(case):
    names = {t for _, t in list(case.feeds.values()) + list(case.constants.values())}
    names |= {values.name_of(o.type.tensor_type.elem_type) for o in case.model.graph.output}
    # What is computed in f64 holds constants of f32 in some programs.
    spaces = [max(values.EPS[n], 2.0**-40) for n in names if n in values.EPS]
    return max(spaces, default=2.0**-23), any(n in names for n in NARROW)


def largest(array):
    if array.dtype.kind not in "iuf" and array.dtype.kind != "V":
        return 1.0
    wide = np.abs(array.astype(np.float64))
    wide = wide[np.isfinite(wide)]
    return float(wide.max()) if wide.size else 1.0


def scale_of(case, expected):
    if not case.sums:
        return 0.0
    scale = 1.0
    for array, name in list(case.feeds.values()) + list(case.constants.values()):
        if name in values.FLOATS:
            scale *= max(1.0, largest(array))
    return max(scale, largest(expected))


def is_float(name):
    return name in values.FLOATS or name.startswith("float")


def difference(case, got, expected, least=0.0):
    """None, or what differs first, in words. The spacing is taken to be `least` at least."""
    for output, a, b in zip(case.model.graph.output, got, expected):
        name = output.name.removesuffix("_wide")
        type_name = values.name_of(output.type.tensor_type.elem_type)
        if a.shape != b.shape:
            return f"{name}: shape {list(a.shape)} against {list(b.shape)}"
        if is_float(type_name) and "float" not in str(b.dtype) and b.dtype.kind != "f":
            return f"{name}: dtype {a.dtype} against {b.dtype}"
        wrong = differing(case, a, b, type_name, least)
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            return (f"{name}{list(place)} of {type_name}{list(a.shape)}: {a[place]!s} against {b[place]!s}, "
                    f"{int(wrong.sum())} of {a.size} differ")
    return None


def are_other_numbers(a, b):
    """Of two texts made from numbers, which may be written in several ways: 0, 0.0."""
    if a == b:
        return False
    try:
        return float(a) != float(b)
    except ValueError:
        return True


def differing(case, a, b, type_name, least):
    if type_name == "string":
        a, b = a.astype(str), b.astype(str)
        if case.op in ("Cast", "CastLike"):
            return np.asarray(np.vectorize(are_other_numbers, otypes=[bool])(a, b))
        return np.asarray(a != b)
    if not is_float(type_name):
        if case.off_by_one and type_name != "bool":
            return np.abs(a.astype(np.float64) - b.astype(np.float64)) > 1
        if type_name in values.SMALL:
            return a.astype(np.int64) != b.astype(np.int64)
        return np.asarray(a != b)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if case.exact:
            return ~(same & ((np.signbit(x) == np.signbit(y)) | np.isnan(x)))
        eps, narrow = spacing(case)
        eps = max(eps, least)
        relative, absolute = (8, 4) if narrow else (64, 16)
        tiny = {"float16": 2.0**-24, "bfloat16": 1e-38}.get(type_name, 1e-37)
        limit = relative * eps * np.abs(y) + absolute * eps * scale_of(case, y) + 2 * tiny
        return ~(same | (np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= limit)))
