"""Small models and commands that people reported, of this project or of others. See docs/testing.md.

A model is read, run with `ref` and `cpu`, optimized, and its plan run; all results must agree with a peer or with NumPy.
A command must end as its function says."""

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np
import onnx

import net
import optimize
import subjects

MODELS, COMMANDS = {}, {}


def model(source, opset=17):
    """A function that builds a network and returns its runs; None: they are drawn. `source` is where it was reported."""
    def add(function):
        MODELS[function.__name__] = (function, source, opset)
        return function
    return add


def command(function):
    """A function that is given a Hone and returns what is wrong, or None."""
    COMMANDS[function.__name__] = function
    return function


class Report(subjects.Random):
    def __init__(self, name):
        build, source, opset = MODELS[name]
        n = self.net = net.Net("report", name, 0)
        n.opset, n.openness, n.expected = opset, 1, None
        runs = build(n)
        self.model, self.runs = n.model(), runs or n.draw()
        self.text, self.results = f"{build.__doc__ or name} ({source})", {}
        if n.expected:
            self.results = {"NumPy": [[n.expected(r)] for r in self.runs]}


def normal(n, *shape):
    return n.r.normal(0, 1, shape).astype(np.float32)


# Windows.
def convolution(name, channels, spatial, kernel, **attrs):
    def build(n):
        x = n.input("x", [1, channels, *spatial])
        n.out(n.op("Conv", x, n.weight(4, channels, *kernel), **attrs))
    build.__doc__, build.__name__ = f"Conv whose last window lies in the padding: {name}", name
    model("tracel-ai/burn-onnx conv2d_asymmetric_padding")(build)


convolution("padded_1x1", 3, [8, 8], [1, 1], pads=[1] * 4)
convolution("padded_3d", 2, [4, 4, 4], [1, 1, 1], pads=[1] * 6)
convolution("temporal", 3, [32], [3], pads=[2, 2])
convolution("lenet", 1, [28, 28], [5, 5], pads=[2] * 4)
convolution("right_only", 16, [128], [3], pads=[0, 2])
convolution("uneven", 4, [10, 15], [3, 3], pads=[1, 1, 3, 2])


@model("a user of this project", 13)
def padded_integer(n):
    """ConvInteger of 1x1 with padding"""
    x = n.input("x", [1, 3, 8, 8], np.uint8, 0, 255)
    n.out(n.op("ConvInteger", x, n.const(n.r.integers(0, 255, (4, 3, 1, 1)), np.uint8), pads=[1] * 4))


def down_and_up(n, kind):
    x = n.input("x", ["n", 3, "h", "w"])
    conv = lambda t, channels, **how: n.op("Conv", t, n.weight(8, channels, 3, 3), pads=[1] * 4, **how)
    a = n.op("Relu", conv(x, 3))
    b = n.op("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2]) if kind == "pool" else conv(a, 8, strides=[2, 2])
    c = conv(b, 8)
    e = n.op("Resize", conv(c, 8, strides=[2, 2]), "", n.const([1, 1, 2, 2], np.float32), mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    up = n.op("ConvTranspose", n.op("Add", e, c), n.weight(8, 8, 2, 2), strides=[2, 2])
    n.out(n.op("Concat", up, a, axis=1))
    return [{"x": normal(n, *s)} for s in [(1, 3, 64, 64), (2, 3, 96, 32), (1, 3, 4, 4), (1, 3, 12, 20)]]


@model("opencv/opencv#26141", 13)
def skip_over_pool(n):
    """Skip connections over a path down and up, open height and width"""
    return down_and_up(n, "pool")


@model("opencv/opencv#26141", 13)
def skip_over_stride(n):
    """The same with a convolution of stride 2"""
    return down_and_up(n, "stride")


@model("opencv/opencv#26141")
def transposed_open(n):
    """ConvTranspose of stride 2, open height and width"""
    n.out(n.op("ConvTranspose", n.input("x", ["n", 8, "h", "w"]), n.weight(8, 8, 2, 2), strides=[2, 2]))
    return [{"x": normal(n, 1, 8, 6, 6)}, {"x": normal(n, 2, 8, 9, 4)}]


@model("pytorch/pytorch#183546", 18)
def antialiased(n):
    """Resize with antialias, 5x7 to 3x4"""
    n.out(n.op("Resize", n.input("x", [1, 1, 5, 7]), "", "", n.ints(1, 1, 3, 4), mode="linear", antialias=1,
               coordinate_transformation_mode="pytorch_half_pixel"))


@model("microsoft/onnxruntime#2057", 11)
def nearest_of_tensorflow(n):
    """Resize-11, nearest, tf_half_pixel_for_nn"""
    n.out(n.op("Resize", n.input("x", [1, 2, 5, 7]), n.const([], np.float32), n.const([1, 1, 2, 3], np.float32), mode="nearest",
               coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor"))


# Open sizes.
@model("unslothai/unsloth-zoo#1055", 18)
def ragged_parts(n):
    """18 parts of a product of two open sizes"""
    parts = n.op("Split", n.op("Reshape", n.input("x", ["b", "t", 4]), n.ints(-1, 4)), outputs=18, axis=0, num_outputs=18)
    weight = n.weight(4, 6)
    n.out(n.op("Concat", *[n.op("MatMul", p, weight) for p in parts], axis=0), n.op("Shape", parts[-1]))
    return [{"x": normal(n, *s)} for s in [(2, 9, 4), (5, 7, 4), (3, 24, 4)]]


@model("microsoft/onnxruntime#17653", 18)
def largest_updates(n):
    """ScatterElements with maximum, open rows"""
    x, i, u = n.input("x", ["n", 3]), n.input("i", ["k", 3], np.int64), n.input("u", ["k", 3])
    n.out(n.op("ScatterElements", x, i, u, axis=0, reduction="max"))
    return [{"x": normal(n, rows, 3), "i": n.r.integers(-4, 4, (updates, 3)), "u": normal(n, updates, 3)}
            for rows, updates in [(4, 6), (9, 433)]]


@model("masks [b,1] or [b,t]")
def either_may_be_one(n):
    """Add of [n,4] and [2,m] at 1, too"""
    n.out(n.op("Add", n.input("a", ["n", 4]), n.input("b", [2, "m"])))
    return [{"a": normal(n, rows, 4), "b": normal(n, 2, columns)} for rows, columns in [(2, 4), (1, 1), (1, 4), (2, 1)]]


@model("attention of two sequences")
def three_open_sizes(n):
    """MatMul of [b,q,512] and [b,512,k]"""
    n.out(n.op("MatMul", n.input("a", ["b", "q", 512]), n.input("b", ["b", 512, "k"])))
    return [{"a": normal(n, b, q, 512), "b": normal(n, b, 512, k)} for b, q, k in [(1, 1, 1), (2, 3, 7)]]


@model("a user of this project")
def state_of_one_batch(n):
    """LSTM with an open batch and a state of batch 2"""
    x, h = n.input("x", ["s", "b", 5]), n.input("h", [1, 2, 3])
    n.out(n.op("LSTM", x, n.weight(1, 12, 5), n.weight(1, 12, 3), "", "", h, outputs=3, hidden_size=3)[0])
    return [{"x": normal(n, s, 2, 5), "h": normal(n, 1, 2, 3)} for s in (3, 1)]


@model("a user of this project")
def sizes_by_the_inputs(n):
    """MaxPool, Flatten, Gemm: only some sizes fit the weights"""
    pooled = n.op("MaxPool", n.input("x", ["n", 3, "h", "w"]), kernel_shape=[2, 2], strides=[2, 2])
    n.out(n.op("Gemm", n.op("Flatten", pooled), n.weight(147, 10)))
    return [{"x": normal(n, 2, 3, 14, 14)}]


@model("a user of this project", 20)
def distinct_then_norm(n):
    """LayerNormalization of what Unique leaves"""
    distinct = n.op("Unique", n.input("x", [16, 9]), outputs=4, axis=1)[0]
    n.out(n.op("LayerNormalization", distinct, n.input("scale", [16, 9]), axis=0))


# Numbers.
@model("PINTO0309/onnx2tf BatchNorm3D")
def long_means(n):
    """Means of 315,000 elements each"""
    n.out(n.op("ReduceMean", n.input("x", [20, 100, 15750]), axes=[0, 2]))
    n.expected = lambda inputs: inputs["x"].astype(np.float64).mean((0, 2), keepdims=True).astype(np.float32)
    return [{"x": normal(n, 20, 100, 15750)}]


@model("microsoft/onnxruntime#7563", 13)
def mean_of_nothing(n):
    """ReduceMean over an axis without elements"""
    n.out(n.op("ReduceMean", n.input("x", [2, 0, 3]), axes=[1]))


@model("a random model", 13)
def groups_of_one(n):
    """MeanVarianceNormalization where each group is one number"""
    n.out(n.op("MeanVarianceNormalization", n.input("x", [1, 2, 4, 3]), axes=[0]))
    n.expected = lambda inputs: np.zeros((1, 2, 4, 3), np.float32)


@model("a random model", 13)
def constant_groups(n):
    """MeanVarianceNormalization of zeros"""
    n.out(n.op("MeanVarianceNormalization", n.op("Mul", n.input("x", [2, 3, 4, 4]), 0), axes=[0, 2, 3]))


@model("the page of Slice", 13)
def slice_before_the_start(n):
    """x[-12:-20:-1] of five numbers is the first number"""
    n.out(n.op("Slice", n.input("x", [5]), n.ints(-12), n.ints(-20), n.ints(0), n.ints(-1)))


@model("PINTO0309/onnx2tf Inverse_11", 11)
def inverse(n):
    """Inverse of com.microsoft"""
    y = n.op("Inverse", n.input("x", [2, 4, 4]), domain="com.microsoft")
    n.out(y)
    n.types[y] = n.info(y, [2, 4, 4])
    n.expected = lambda inputs: np.linalg.inv(inputs["x"])
    return [{"x": normal(n, 2, 4, 4) + 4 * np.eye(4, dtype=np.float32)}]


@model("a user of this project")
def text_to_number(n):
    """Cast of texts"""
    n.out(n.op("Cast", n.input("x", [3], object, make=lambda r, s, _: r.choice(np.array(["1.5", "-2", "7e3"], object), s)), to=1))


def of_nan(name, build):
    def logarithm(n):
        n.out(*build(n, n.op("Log", n.input("x", [7], None, 0.2, 3))))
    logarithm.__doc__, logarithm.__name__ = f"{name} of a logarithm", "nan_" + name.lower()
    model("a user of this project")(logarithm)


of_nan("TopK", lambda n, x: n.op("TopK", x, n.ints(3), outputs=2))
of_nan("Sign", lambda n, x: [n.op("Sign", x)])
of_nan("Celu", lambda n, x: [n.op("Celu", x)])
of_nan("QuantizeLinear", lambda n, x: [n.op("QuantizeLinear", x, n.const(0.1, np.float32), n.const(0, np.int8))])


# Commands.
def saved(hone, n, name="model.onnx"):
    onnx.save(n.model(), hone.path(name))


def built(build, opset=17):
    n = net.Net("report", build.__name__, 0)
    n.opset = opset
    build(n)
    return n


def optimize_quickly(hone, source, *more):
    """Exit code, the JSON result if there is one, and the message."""
    code, out, error = hone("optimize", hone.path(source), "-o", hone.path("plan.hone"), "--rounds", "2", "--budget", "1", "--json", *more)
    return code, json.loads(out) if out.startswith("{") else {}, error


def with_sets(hone, n, sets):
    """A folder with a model and test_data_set_K; each set is (x, y)."""
    for k, arrays in enumerate(sets):
        folder = hone.path(f"folder/test_data_set_{k}")
        os.makedirs(folder)
        for word, array in zip(("input_0", "output_0"), arrays):
            with open(os.path.join(folder, word + ".pb"), "wb") as file:
                file.write(subjects.tensor(word, array).SerializeToString())
    saved(hone, n, "folder/model.onnx")


@command
def integers_are_not_shifted(hone):
    """ONNX shifts unsigned integers only: `check` says so."""
    @built
    def n(n):
        n.op("Abs", n.input("x", [4], np.int32))
    node = onnx.helper.make_node("BitShift", ["x", "x"], ["y"], direction="RIGHT")
    graph = onnx.helper.make_graph([node], "g", [n.info("x", [4], np.int32)], [n.info("y", [4], np.int32)])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), hone.path("model.onnx"))
    code, out, error = hone("check", hone.path("model.onnx"))
    return None if code == 3 else f"check: exit {code}"


@command
def overflow_is_said(hone):
    """A model whose numbers f16 does not hold: refused, or a warning."""
    @built
    def n(n):
        x = n.input("x", [4, 64])
        n.out(n.op("MatMul", n.op("Relu", n.op("MatMul", x, n.const(normal(n, 64, 64) * 200))), n.const(normal(n, 64, 8) * np.float32(1e-4))))
    a, b = (net.numpy_helper.to_array(t) for t in n.model().graph.initializer)
    x = normal(n, 4, 64) * np.float32(200)
    with_sets(hone, n, [(x, np.maximum(x @ a, 0) @ b)])
    code, _, error = optimize_quickly(hone, "folder", "--precision", "fp16")
    return None if code in (1, 3) or "warn" in error else f"exit {code} without a warning"


@command
def error_of_all_sets(hone):
    """The stated error of a precision is that of the worst set."""
    @built
    def n(n):
        x = n.input("x", ["n", 8])
        n.sizes["n"] = (1, 4, None)
        n.out(n.op("Exp", n.op("Add", n.op("MatMul", x, n.weight(8, 8)), 0)))
    weight = net.numpy_helper.to_array(n.model().graph.initializer[0])
    inputs = [np.zeros((1, 8), np.float32), normal(n, 3, 8) * 2]
    with_sets(hone, n, [(x, np.exp(x @ weight)) for x in inputs])
    code, result, error = optimize_quickly(hone, "folder", "--precision", "bf16")
    if code != 0:
        return f"exit {code}: {error}"
    said = result["precision"]["results"][0]["largest_error"]
    np.save(hone.path("x.npy"), inputs[1])
    hone("run", hone.path("plan.hone"), "-q", "-i", f"x={hone.path('x.npy')}", "-o", hone.path("out"))
    name = n.outputs[0]
    error = float(np.abs(np.load(hone.path(f"out/{name}.npy")) - np.exp(inputs[1] @ weight)).max())
    return None if error <= 1.1 * said + 1e-6 else f"said {said}, the second set has {error}"


@command
def pipes_in_the_cache(hone):
    """A FIFO in the place of a cached file does not block."""
    @built
    def n(n):
        n.out(n.reduce("ReduceSum", n.op("Exp", n.input("x", [7, 5])), [0, 1]))
    saved(hone, n)
    np.save(hone.path("x.npy"), normal(n, 7, 5))
    words = ("run", hone.path("model.onnx"), "-q", "-i", f"x={hone.path('x.npy')}", "-o", hone.path("out"))
    hone(*words)
    kept = [os.path.join(folder, f) for folder, _, files in os.walk(hone.path("cache")) for f in files]
    for file in kept:
        os.unlink(file)
        os.mkfifo(file)
    code, _, error = hone(*words, seconds=20)
    return f"no file in {hone.path('cache')}" if not kept else None if code == 0 else f"exit {code}: {error}"


@command
def open_sizes_on_vulkan(hone):
    """ConvTranspose with open sizes is right on Mesa's software device, where there is one."""
    if "llvmpipe" not in hone("devices")[1]:
        return None
    onnx.save(Report("transposed_open").model, hone.path("model.onnx"))
    code, _, error = hone("optimize", hone.path("model.onnx"), "-o", hone.path("plan.hone"), "--rounds", "2", "--budget", "1",
                          "--target", "vulkan1.2", "--strategies", "vulkan", HONE_VULKAN_DEVICE="llvmpipe")
    return f"exit {code}: {error}" if code else None


@command
def long_chain(hone):
    """20,000 nodes take less than 5 s of processor time."""
    @built
    def n(n):
        x = n.input("x", [4])
        for k in range(20000):
            x = n.op("Relu" if k % 2 else "Neg", x)
        n.out(x)
    saved(hone, n)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    code, _, error = optimize_quickly(hone, "model.onnx", "--strategies", "cpu")
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return f"exit {code}: {error}" if code else f"{took:.1f} s" if took > 5 else None


@command
def exports_of_bytes(hone):
    """ConvInteger is exported as a model that ONNX's checker and ONNX Runtime accept."""
    @built
    def n(n):
        x = n.input("x", [1, 3, 8, 8], np.uint8)
        n.out(n.op("Cast", n.op("ConvInteger", x, n.const(n.r.integers(0, 9, (4, 3, 3, 3)), np.uint8)), to=1))
    saved(hone, n)
    code, _, error = hone("export", hone.path("model.onnx"), "-o", hone.path("other.onnx"))
    if code:
        return f"export: exit {code}: {error}"
    onnx.checker.check_model(hone.path("other.onnx"), full_check=True)
    inputs = n.draw(1)[0]
    import executors
    a, b = (executors.run_arrays("onnxruntime", onnx.load(hone.path(f)), inputs)[0] for f in ("model.onnx", "other.onnx"))
    return subjects.differs(b, a)


# How they are judged.
def judge_model(hone, name, options):
    report = Report(name)
    report.ask(frozenset(), lambda _: None)
    if not report.results:
        return "no peer runs it"
    onnx.save(report.model, hone.path("model.onnx"))
    code, out, error = hone("check", hone.path("model.onnx"))
    problems = [f"check: exit {code}: {error}"] if code else []
    for strategy in ("ref", "cpu"):
        for run in range(len(report.runs)):
            code, out, error = hone("run", hone.path("model.onnx"), "-q", "--json", "--strategy", strategy, "-o", hone.path("out"),
                                    *optimize.given(hone, report, run))
            wrong = f"exit {code}: {error or out}" if code else report.wrong(run, optimize.results_of(hone, report, out), lambda _: None)
            problems += [f"{strategy}, run {run}: {wrong}"] if wrong else []
    status, message = optimize.judge(hone, report, options, lambda _: None)
    problems += [f"optimize: {status}: {message}"] if status != "ok" else []
    return "; ".join(problems) or None


def judged(name, hone, options):
    try:
        return judge_model(hone, name, options) if name in MODELS else COMMANDS[name](hone)
    except Exception as e:  # a file that is not there, or not what it should be
        return f"{type(e).__name__}: {e}"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("hone", help="the program `hone`")
    p.add_argument("--only", nargs="*", default=[], metavar="NAME")
    p.add_argument("--keep", metavar="DIR", help="leaves the models there")
    options = p.parse_args()
    options.budget, options.further, options.hone = 0.5, "", os.path.abspath(options.hone)
    names = [n for n in [*MODELS, *COMMANDS] if not options.only or n in options.only]
    root, wrong = tempfile.mkdtemp(prefix="reports"), {}
    for name in names:
        directory = os.path.join(options.keep or root, name)
        if problem := judged(name, optimize.Hone(options.hone, directory), options):
            wrong[name] = problem
            print(f"\nWRONG {name}: {(MODELS[name][0] if name in MODELS else COMMANDS[name]).__doc__}\n    {problem[:1500]}", flush=True)
    shutil.rmtree(root)
    print(f"\n{len(names)} reports, {len(wrong)} wrong")
    sys.exit(1 if wrong or not names else 0)


if __name__ == "__main__":
    main()
