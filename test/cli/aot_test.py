"""`hone aot`: what it writes compiles everywhere without a warning, needs libc and libm only, and gives
the results of the model. usage: aot_test.py BUILD_DIR"""

import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
MODELS = ROOT.parent / "shared" / "models"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
COMPILERS = [["gcc", "-std=c11"], ["clang-19", "-std=c11"],
             ["g++", "-x", "c++", "-std=c++17"], ["clang++-19", "-x", "c++", "-std=c++17"]]


def run(*command, code=0):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def aot(model, to, *options, code=0):
    return run(BUILD / "hone", "aot", model, "-o", to, *options, code=code)


def npy_bytes(path):
    data = path.read_bytes()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


# ---- ONNX, as much of it as a model with a loop needs

FLOAT, INT64, BOOL = 1, 7, 9


def varint(n):
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def message(*fields):
    """Fields as (number, value): a number, text, or bytes of a message."""
    out = b""
    for number, value in fields:
        value = value.encode() if isinstance(value, str) else value
        out += varint(number << 3) + varint(value) if isinstance(value, int) else \
            varint(number << 3 | 2) + varint(len(value)) + value
    return out


def tensor(dtype, dims, raw, name=""):
    return message(*[(1, d) for d in dims], (2, dtype), (8, name), (9, raw))


def typed(name, dtype, dims):
    shape = message(*[(1, message((1, d))) for d in dims])
    return message((1, name), (2, message((1, message((1, dtype), (2, shape))))))


def node(op, inputs, outputs, **attributes):
    """Attributes are graphs or integers."""
    def attribute(name, value):
        return message((1, name), (3, value), (20, 2)) if isinstance(value, int) else \
            message((1, name), (6, value), (20, 5))
    attributes = [(5, attribute(*a)) for a in attributes.items()]
    return message(*[(1, i) for i in inputs.split()], *[(2, o) for o in outputs.split()], (4, op),
                   *attributes)


def graph(nodes, inputs, outputs, numbers=()):
    return message(*[(1, n) for n in nodes], (2, "g"), *[(5, n) for n in numbers],
                   *[(11, i) for i in inputs], *[(12, o) for o in outputs])


def number(name, value):
    return tensor(FLOAT, [], struct.pack("<f", value), name)


def loop_and_choice():
    """y = x, until its largest is at least limit: y = 1.5 y + 0.25; then y if x's sum is positive, else -y."""
    rows = (FLOAT, [3, 5])
    body = graph([node("Mul", "y_in growth", "grown"), node("Add", "grown step", "y_next"),
                  node("ReduceMax", "y_next", "y_most", keepdims=0), node("Less", "y_most limit", "more_next")],
                 [typed("turn", INT64, []), typed("more_in", BOOL, []), typed("y_in", *rows)],
                 [typed("more_next", BOOL, []), typed("y_next", *rows)],
                 [number("growth", 1.5), number("step", 0.25)])
    same = graph([node("Identity", "y", "y_same")], [], [typed("y_same", *rows)])
    less = graph([node("Neg", "y", "y_less")], [], [typed("y_less", *rows)])
    whole = graph([node("ReduceMax", "x", "most", keepdims=0), node("Less", "most limit", "more"),
                   node("Loop", "turns more x", "y", body=body), node("ReduceSum", "x", "sum", keepdims=0),
                   node("Greater", "sum zero", "is_positive"),
                   node("If", "is_positive", "z", then_branch=same, else_branch=less)],
                  [typed("x", *rows), typed("limit", FLOAT, [])], [typed("z", *rows)],
                  [number("zero", 0), tensor(INT64, [], struct.pack("<q", 100), "turns")])
    return message((1, 8), (7, whole), (8, message((2, 13))))


class Aot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="hone-aot-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        aot(DIGITS / "digits.onnx", cls.work / "digits", "--dim", "batch=450")

    def compiles_everywhere(self, source):
        for compiler in COMPILERS:
            for machine in ("-march=x86-64", "-march=x86-64-v3", "-march=x86-64-v4"):
                with self.subTest(compiler=compiler, machine=machine, source=source.name):
                    run(*compiler, *WARNINGS, machine, "-O1", "-c", source, "-o", self.work / "out.o")

    def test_compiles_as_c_and_inside_cpp_without_warnings(self):
        self.compiles_everywhere(self.work / "digits" / "digits.c")

    def test_example_gives_the_model_s_results(self):
        source, build = self.work / "digits", self.work / "build"
        run("cmake", "-S", source, "-B", build, "-G", "Ninja")
        run("cmake", "--build", build)
        (self.work / "in.raw").write_bytes(npy_bytes(DIGITS / "images.npy"))
        run(build / "digits_example", source / "digits.weights", self.work / "in.raw",
            self.work / "out.raw")
        got = floats((self.work / "out.raw").read_bytes())
        expected = floats(npy_bytes(DIGITS / "logits.npy"))
        self.assertEqual(len(got), len(expected))
        most = max(map(abs, expected))
        self.assertLess(max(abs(g - e) for g, e in zip(got, expected)), 1e-5 * most)
        libraries = set(re.findall(r"^\s*(\S+\.so\S*) =>", run("ldd", build / "digits_example").stdout,
                                   re.M))
        self.assertLessEqual(libraries, {"libc.so.6", "libm.so.6", "linux-vdso.so.1"})

    def test_damaged_weights_are_refused(self):
        source = self.work / "digits"
        run("gcc", "-O1", source / "digits.c", source / "example.c", "-lm", "-o", self.work / "bad")
        data = bytearray((source / "digits.weights").read_bytes())
        data[len(data) // 2] ^= 4
        (self.work / "bad.weights").write_bytes(data)
        (self.work / "in.raw").write_bytes(npy_bytes(DIGITS / "images.npy"))
        done = run(self.work / "bad", self.work / "bad.weights", self.work / "in.raw", code=1)
        self.assertIn("weights", done.stderr)

    def test_open_sizes_are_refused_all_by_name(self):
        done = aot(DIGITS / "digits.onnx", self.work / "open", code=3)
        for word in ("image", "logits", "--dim batch=NUMBER"):
            self.assertIn(word, done.stderr)
        self.assertFalse((self.work / "open").exists())

    def test_weights_may_be_part_of_the_source(self):
        to = self.work / "one"
        aot(DIGITS / "digits.onnx", to, "--dim", "batch=1", "--embed-weights", "--check")
        self.compiles_everywhere(to / "digits.c")

    def test_loops_and_choices_are_those_of_the_model(self):
        for case, (low, limit) in enumerate([(-1.0, 50.0), (-3.0, 2.0), (0.5, 0.0)]):
            model = self.work / f"loop{case}"
            data = model / "test_data_set_0"
            data.mkdir(parents=True)
            (model / "model.onnx").write_bytes(loop_and_choice())
            x = [low + 0.25 * i for i in range(15)]
            for i, (dims, values) in enumerate([([3, 5], x), ([], [limit])]):
                raw = struct.pack(f"<{len(values)}f", *values)
                (data / f"input_{i}.pb").write_bytes(tensor(FLOAT, dims, raw, "x"))
                (self.work / f"in{i}.raw").write_bytes(raw)
            z, turns = x, 0
            while max(z) < limit:
                z, turns = [1.5 * v + 0.25 for v in z], turns + 1
            z = z if sum(x) > 0 else [-v for v in z]
            self.assertEqual(turns, [7, 3, 0][case])
            for cc in ("gcc", "clang-19"):
                with self.subTest(case=case, cc=cc):
                    to = self.work / f"loop{case}_{cc}"
                    self.assertIn("equals the plan's",
                                  aot(model, to, "--name", "loop", "--check", "--cc", cc).stdout)
                    text = (to / "loop.c").read_text()
                    self.assertIn("for (;;)", text)
                    self.assertIn("} else {", text)
                    run(cc, "-std=c11", *WARNINGS, "-O2", to / "loop.c", to / "example.c", "-lm", "-o",
                        self.work / "loop")
                    run(self.work / "loop", to / "loop.weights", self.work / "in0.raw",
                        self.work / "in1.raw", self.work / "out.raw")
                    for got, wanted in zip(floats((self.work / "out.raw").read_bytes()), z, strict=True):
                        self.assertAlmostEqual(got, wanted, delta=1e-5 * max(map(abs, z)))

    def test_real_models_equal_their_plans(self):
        if not MODELS.is_dir():
            self.skipTest(f"NOTHING WAS TESTED: no models at {MODELS}")
        for name, options in (("ultraface_rfb_320", []), ("magika_v3_3", ["--dim", "unk__214=8"]),
                              ("silero_vad", ["--dim", "input_d0=1", "--dim", "input_d1=576", "--dim",
                                              "state_d1=1"])):  # an If
            with self.subTest(name):
                done = aot(MODELS / name / "model.onnx", self.work / name, *options, "--check")
                self.assertIn("equals the plan's", done.stdout)
                source = next((self.work / name).glob(name + ".c"))
                run("gcc", "-std=c11", *WARNINGS, "-O0", "-c", source, "-o", self.work / "out.o")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
