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
