"""libhone_runtime against NumPy and PyTorch through DLPack, in both directions: the same addresses, strides, dtypes,
read-only memory, and who frees what when. It loads the library with ctypes and knows c.h alone.
usage: dlpack.py PATH_OF_HONE"""

import ctypes
import gc
import itertools
import pathlib
import resource
import subprocess
import sys
import tempfile
import weakref

import numpy as np
import torch
from onnx import TensorProto, checker, helper, save

C = ctypes
MOST_AXES = 16
DTYPES = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"]


class Layout(C.Structure):
    _fields_ = [("dtype", C.c_int), ("rank", C.c_int32), ("dims", C.c_int64 * MOST_AXES),
                ("strides", C.c_int64 * MOST_AXES), ("bytes", C.c_size_t), ("is_read_only", C.c_int32),
                ("device", C.c_char_p), ("data", C.c_void_p)]


class Hone:
    """The functions of c.h; a status that is not 0 becomes an exception with its reason."""

    def __init__(self, path):
        self.library = C.CDLL(str(path))
        self.library.hone_last_error.restype = C.c_char_p
        for name in ("executable", "session", "tensor"):
            getattr(self.library, f"hone_{name}_free").argtypes = [C.c_void_p]

    def __getattr__(self, name):
        function = getattr(self.library, "hone_" + name)
        if name.endswith("_free"):
            return function

        def call(*arguments):
            if function(*arguments) != 0:
                raise ValueError(self.library.hone_last_error().decode())
        return call


new_capsule = C.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = C.py_object, [C.c_void_p, C.c_char_p, C.c_void_p]
pointer_of = C.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
is_capsule = C.pythonapi.PyCapsule_IsValid
is_capsule.argtypes = [C.py_object, C.c_char_p]
rename = C.pythonapi.PyCapsule_SetName
rename.argtypes = [C.py_object, C.c_char_p]
is_named = C.pythonapi.PyCapsule_IsValid
NEW, OLD = b"dltensor_versioned", b"dltensor"
USED = {NEW: b"used_dltensor_versioned", OLD: b"used_dltensor"}
# DLManagedTensorVersioned and DLManagedTensor: where the deleter lies, in bytes.
DELETER_AT = {NEW: 16, OLD: 56}


@C.PYFUNCTYPE(None, C.c_void_p)
def free_capsule(capsule):
    """Nobody took the tensor out of this capsule. Called while it is destroyed: it must not be referred to."""
    for name in (NEW, OLD):
        raw = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p)(("PyCapsule_IsValid", C.pythonapi))
        if raw(capsule, name):
            get = C.CFUNCTYPE(C.c_void_p, C.c_void_p, C.c_char_p)(("PyCapsule_GetPointer", C.pythonapi))
            address = get(capsule, name)
            deleter = C.cast(address + DELETER_AT[name], C.POINTER(C.c_void_p))[0]
            C.CFUNCTYPE(None, C.c_void_p)(deleter)(address)


class Tensor:
    """A hone_tensor, and what the protocol of Python asks of one."""

    def __init__(self, hone, handle):
        self.hone, self.handle = hone, handle

    @classmethod
    def zeros(cls, hone, executable, dtype, dims):
        out = C.c_void_p()
        hone.tensor_create(executable, DTYPES.index(dtype), (C.c_int64 * len(dims))(*dims), len(dims), 0,
                           C.byref(out))
        return cls(hone, out)

    @classmethod
    def of(cls, hone, executable, producer, version=NEW):
        asked = {"max_version": (1, 1)} if version == NEW else {}
        capsule = producer.__dlpack__(**asked)
        name = NEW if is_capsule(capsule, NEW) else OLD
        out = C.c_void_p()
        take = hone.tensor_from_dlpack if name == NEW else hone.tensor_from_dlpack_unversioned
        take(executable, C.c_void_p(pointer_of(capsule, name)), C.byref(out))
        rename(capsule, USED[name])
        return cls(hone, out)

    @property
    def layout(self):
        out = Layout()
        self.hone.tensor_describe(self.handle, C.byref(out))
        return out

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, max_version=None, **_):
        name = NEW if max_version and max_version[0] >= 1 else OLD
        out = C.c_void_p()
        give = self.hone.tensor_to_dlpack if name == NEW else self.hone.tensor_to_dlpack_unversioned
        give(self.handle, C.byref(out))
        return new_capsule(out, name, C.cast(free_capsule, C.c_void_p))

    def free(self):
        if self.handle:
            self.hone.tensor_free(self.handle)
            self.handle = None

    def __del__(self):
        self.free()


class Plan:
    """y = x + x for a dtype and dims, compiled, and a session of it."""

    def __init__(self, hone, program, directory, dtype, dims):
        kinds = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16,
                 "i64": TensorProto.INT64, "bool": TensorProto.BOOL}
        x, y = (helper.make_tensor_value_info(n, kinds[dtype], dims) for n in "xy")
        operator = "Not" if dtype == "bool" else "Add"
        node = helper.make_node(operator, ["x"] if dtype == "bool" else ["x", "x"], ["y"])
        model = helper.make_model(helper.make_graph([node], "twice", [x], [y]),
                                  opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        checker.check_model(model)
        stem = pathlib.Path(directory) / f"{dtype}_{'_'.join(map(str, dims))}"
        save(model, stem.with_suffix(".onnx"))
        subprocess.run([program, "optimize", stem.with_suffix(".onnx"), "-o", stem.with_suffix(".hone"), "-q",
                        "--strategies", "cpu", "--budget", "0.2", "--rounds", "1"], check=True, capture_output=True)
        self.hone, self.executable, self.session = hone, C.c_void_p(), C.c_void_p()
        hone.load(str(stem.with_suffix(".hone")).encode(), C.byref(self.executable))
        hone.session_create(self.executable, None, C.byref(self.session))

    def run(self, x, y):
        self.hone.bind_input_tensor(self.session, 0, x.handle)
        self.hone.bind_output_tensor(self.session, 0, y.handle)
        self.hone.run(self.session)

    def free(self):
        self.hone.session_free(self.session)
        self.hone.executable_free(self.executable)
        self.session = self.executable = None


checks = 0


def check(condition, *what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"dlpack: wrong: {what}")


def refusal(f):
    try:
        f()
    except (ValueError, BufferError, RuntimeError) as e:
        return str(e)
    return "accepted"


def addresses(plan):
    """What is taken over and given away lies where it lay, in its own order."""
    hone, e = plan.hone, plan.executable
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    views = [base, base.T, base[::2], base[:, ::-1], base[1:, 2:5], base[2:2], base[0, 0:0], base[1, 2], base[::-1, ::3],
             np.float32(3).reshape(()), base[:, None, :], np.broadcast_to(base[0], (3, 6))]
    for a, version in itertools.product(views, (NEW, OLD)):
        a = np.asarray(a)
        if version == OLD and not a.flags.writeable:
            check("readonly" in refusal(lambda: a.__dlpack__()).replace("-", ""), "an old capsule of read-only memory")
            continue
        t = Tensor.of(hone, e, a, version)
        l = t.layout
        check(tuple(l.dims[:l.rank]) == a.shape, a.shape)
        check(a.size == 0 or l.data == a.ctypes.data, "address", a.shape, a.strides)
        check(a.size == 0 or all(s * 4 == b or n == 1 for s, b, n in zip(l.strides[:l.rank], a.strides, a.shape)), a.strides)
        check(bool(l.is_read_only) == (not a.flags.writeable), "read-only", a.flags.writeable)
        back = np.from_dlpack(t)
        check(np.array_equal(back, a) and back.shape == a.shape, "values")
        check(a.size == 0 or back.ctypes.data == a.ctypes.data, "address back")
        check(back.flags.writeable == a.flags.writeable, "writeable back")
    for t in (torch.arange(24.).reshape(4, 6).t(), torch.arange(24.)[3::5], torch.tensor(2.5), torch.empty(0, 3)):
        for version in (NEW, OLD):
            h = Tensor.of(hone, e, t, version)
            l = h.layout
            check(l.data == t.data_ptr() or t.numel() == 0, "data_ptr")
            check(tuple(l.dims[:l.rank]) == tuple(t.shape), t.shape)
            back = torch.from_dlpack(h)
            check(torch.equal(back, t) and (t.numel() == 0 or back.data_ptr() == t.data_ptr()), "torch back")
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64",
                 "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
        t = torch.zeros(5, dtype=torch.float32).to(getattr(torch, name))
        said = refusal(lambda: Tensor.of(hone, e, t))
        if "float8" in name and said != "accepted":
            continue  # a PyTorch that does not give them
        check(said == "accepted", name, said)
        back = torch.from_dlpack(Tensor.of(hone, e, t))
        check(back.dtype == t.dtype and back.data_ptr() == t.data_ptr(), name)
    for name in ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"):
        ours = Tensor.zeros(hone, e, name, (2, 3))
        a = np.from_dlpack(ours)
        check(a.ctypes.data == ours.layout.data and a.shape == (2, 3) and not a.any(), name)
    ours = Tensor.zeros(hone, e, "bf16", (2, 3))
    check(torch.from_dlpack(ours).dtype == torch.bfloat16, "bf16")
    check("complex" in refusal(lambda: Tensor.of(hone, e, np.zeros(3, np.complex64))), "complex")


def runs(plans):
    """Plans compute on tensors of others in place, and on their views."""
    for dtype, plan in plans.items():
        np_dtype = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "bool": bool}.get(dtype)
        hone, e = plan.hone, plan.executable
        x = torch.arange(12).reshape(4, 3).to(getattr(torch, {"f32": "float32", "f16": "float16", "bf16": "bfloat16",
                                                              "i64": "int64", "bool": "bool"}[dtype]))
        expected = ~x if dtype == "bool" else x + x
        y = torch.zeros_like(x)
        plan.run(Tensor.of(hone, e, x), Tensor.of(hone, e, y))
        check(torch.equal(y, expected), dtype)
        # Views: transposed in, every second column out.
        xt, room = x.t().contiguous().t(), torch.zeros(4, 6, dtype=x.dtype)
        plan.run(Tensor.of(hone, e, xt), Tensor.of(hone, e, room[:, ::2]))
        check(torch.equal(room[:, ::2], expected) and not room[:, 1::2].any(), "views of", dtype)
        ours = Tensor.zeros(hone, e, dtype, (4, 3))
        plan.run(Tensor.of(hone, e, x), ours)
        check(torch.equal(torch.from_dlpack(ours), expected), "our result of", dtype)
        if np_dtype:
            a = x.numpy().astype(np_dtype)
            a.flags.writeable = False
            plan.run(Tensor.of(hone, e, a), Tensor.of(hone, e, y))
            check(torch.equal(y, expected), "read-only input of", dtype)
            check("read-only" in refusal(lambda: plan.run(Tensor.of(hone, e, y), Tensor.of(hone, e, a))), "read-only output")


def lifetimes(program, hone, directory):
    """In whatever order the parts are deleted, memory lives as long as one that uses it, and no longer."""
    class Array(np.ndarray):
        """Can be referred to weakly."""

    for order in itertools.permutations(("array", "tensor", "session")):
        plan = Plan(hone, program, directory, "f32", (4, 3))
        have = {"array": np.ones((4, 3), np.float32).view(Array)}
        gone = weakref.ref(have["array"])
        have["tensor"] = Tensor.of(hone, plan.executable, have["array"])
        y = Tensor.zeros(hone, plan.executable, "f32", (4, 3))
        plan.run(have["tensor"], y)
        for i, name in enumerate(order):
            if name == "session":
                plan.free()
            else:
                del have[name]
            gc.collect()
            check((gone() is None) == (i == 2), order, i)
            if plan.session:
                hone.run(plan.session)
        check(np.from_dlpack(y).sum() == 24, "the result outlives its session")
        if plan.session:
            plan.free()
    # What is given away outlives all of ours; a capsule that nobody takes frees it.
    plan = Plan(hone, program, directory, "f32", (4, 3))
    ours = Tensor.zeros(hone, plan.executable, "f32", (4, 3))
    mine, theirs, capsule = np.from_dlpack(ours), torch.from_dlpack(ours), ours.__dlpack__(max_version=(1, 1))
    plan.free()
    ours.free()
    theirs[1, 1] = 5
    check(mine[1, 1] == 5, "shared")
    del mine, theirs, capsule
    gc.collect()
    # A refused tensor stays its producer's.
    plan = Plan(hone, program, directory, "f32", (4, 3))
    a = np.zeros(3, np.complex64).view(Array)
    gone = weakref.ref(a)
    check(refusal(lambda: Tensor.of(hone, plan.executable, a)) != "accepted", "complex")
    del a
    gc.collect()
    check(gone() is None, "a refused array is freed")
    plan.free()


def growth(plan):
    """1,000 times in both directions, with NumPy and PyTorch: no object and no memory is left."""
    hone, e = plan.hone, plan.executable

    def trips(count):
        for _ in range(count):
            a = np.ones((4, 3), np.float32)
            big = torch.ones(1 << 18)
            x, y = Tensor.of(hone, e, a), Tensor.zeros(hone, e, "f32", (4, 3))
            plan.run(x, y)
            check(np.from_dlpack(y)[3, 2] == 2, "result")
            check(torch.from_dlpack(Tensor.of(hone, e, big)).data_ptr() == big.data_ptr(), "big")
            del a, x, y, big
    trips(50)
    gc.collect()
    objects, peak = len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    trips(1000)
    gc.collect()
    check(abs(len(gc.get_objects()) - objects) < 50, "objects", len(gc.get_objects()) - objects)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    check(grown < 4096, "KiB", grown)
    return grown


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    hone = Hone(program.parent / "libhone_runtime.so")
    with tempfile.TemporaryDirectory() as directory:
        plans = {d: Plan(hone, program, directory, d, (4, 3)) for d in ("f32", "f16", "bf16", "i64", "bool")}
        addresses(plans["f32"])
        runs(plans)
        lifetimes(program, hone, directory)
        grown = growth(plans["f32"])
        for plan in plans.values():
            plan.free()
    print(f"dlpack: {checks} checks with NumPy {np.__version__} and PyTorch {torch.__version__}: all right; "
          f"1,000 round trips grew the process by {grown} KiB")


main()
