"""Files in unusual places and with unusual names, limits of memory, precision and rows.
usage: files_test.py BUILD_DIR"""

import json
import math
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

import onnx_writer as onnx

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits/digits.onnx"
OK, DIFFERS, USAGE, USER = 0, 1, 2, 3
FEW = ["--rounds", 2, "--budget", 1, "--strategies", "cpu"]


def npy(path, shape, numbers=None, dtype="<f4"):
    count = math.prod(shape)
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    data = struct.pack(f"<{count}{'f' if dtype == '<f4' else 'q'}", *(numbers or [0] * count))
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)
    return path


def numbers_of(path):
    data = path.read_bytes()
    data = data[10 + struct.unpack("<H", data[8:10])[0]:]
    return struct.unpack(f"<{len(data) // 4}f", data)


class Files(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="hone-files-"))
        self.addCleanup(shutil.rmtree, self.work)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("HONE_")}
        self.environment["HONE_CACHE_DIR"] = str(self.work / "cache")

    def hone(self, *arguments, code=OK, program="hone", **more):
        done = subprocess.run([str(BUILD / program), *map(str, arguments)], cwd=self.work, text=True,
                              capture_output=True, env=self.environment, timeout=300, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def write(self, name, *parts):
        self.work.joinpath(name).write_bytes(onnx.model(*parts))
        return name

    # ---- what is no file

    def test_pipes_sockets_and_directories_in_the_cache_do_not_stop_a_run(self):
        npy(self.work / "x.npy", (1, 1, 8, 8))
        run = ["run", DIGITS, "-i", "x.npy", "-o", "out", "-q"]
        self.hone(*run)
        entries = [p for kind in ("kernels", "verdicts") for p in (self.work / "cache" / kind).iterdir()]
        self.assertGreater(len(entries), 3)
        for number, entry in enumerate(entries):
            entry.unlink()
            if number % 3 == 0:
                os.mkfifo(entry)
            elif number % 3 == 1:
                entry.mkdir()
            else:
                holder = socket.socket(socket.AF_UNIX)
                here = os.open(self.work / "cache" / entry.parent.name, os.O_RDONLY)
                holder.bind(f"/proc/self/fd/{here}/{entry.name}")
                holder.close()
                os.close(here)
        self.hone(*run)
        self.assertTrue(all(p.is_file() or p.is_dir() for p in entries))
        self.hone("doctor")
        os.mkfifo(self.work / "cache" / "doctor")
        self.hone("doctor")

    def test_pipes_in_a_folder_of_a_model_are_refused(self):
        folder = self.work / "folder"
        folder.mkdir()
        os.mkfifo(folder / "model.onnx")
        for command in (["check"], ["inspect"], ["optimize"], ["run"]):
            self.assertIn("is a pipe", self.hone(*command, folder, code=USER).stderr)
        folder.joinpath("model.onnx").unlink()
        shutil.copy(DIGITS, folder / "model.onnx")
        data = folder / "test_data_set_0"
        data.mkdir()
        os.mkfifo(data / "input_0.pb")
        self.assertIn("not a regular file", self.hone("run", folder, code=USER).stderr)
        written = self.work / "written"
        written.mkdir()
        os.mkfifo(written / "digits.h")
        self.hone("aot", DIGITS, "-o", written, "--dim", "batch=1", code=USER)

    # ---- names

    def test_names_of_250_bytes(self):
        long = "m" * 250
        shutil.copy(DIGITS, self.work / (long + ".onnx"))
        npy(self.work / "x.npy", (1, 1, 8, 8))
        self.hone("optimize", long + ".onnx", *FEW, "-q")
        self.assertTrue(self.work.joinpath(long + ".hone").exists())
        self.hone("run", long + ".hone", "-i", "x.npy", "-o", "out", "-q")
        self.hone(long + ".hone", "-i", "x.npy", "-o", "out", "-q", program="hone-run")
        longest = "p" * 255
        self.hone("optimize", DIGITS, *FEW, "-o", longest, "--report", "r" * 250 + ".html", "-q")
        self.hone("check", longest)
        self.hone("export", DIGITS, "-o", "e" * 255, "--inside", 100, "-q")
        told = json.loads(self.hone("export", DIGITS, "-o", "e" * 255, "--inside", 100, "--json").stdout)
        self.assertTrue(self.work.joinpath(told["data"]).is_file())
        self.hone("run", "e" * 255, "-i", "x.npy", "-o", "out", "-q")
        self.hone("bench", longest, "-t", "0.01", "--exportTimes", "t" * 255)
        shutil.copy(DIGITS, self.work / ("n" * 255))  # no ending: the plan's name is cut
        self.hone("optimize", "n" * 255, *FEW, "-q")
        self.assertEqual(len([p for p in self.work.iterdir() if p.name.startswith("nnn") and p.suffix == ".hone"]), 1)
        self.hone("aot", long + ".onnx", "-o", "program", "--dim", "batch=1")
        self.assertEqual([p.name for p in self.work.iterdir() if ".tmp." in p.name], [])

    def test_results_with_long_names(self):
        names = ["r" * 300 + "a", "r" * 300 + "b", "r" * 251, "r/" * 140]
        model = self.write("names.onnx", [onnx.node("Mul", ["x", f"c{i}"], [n]) for i, n in enumerate(names)],
                           [onnx.value("x", onnx.F32, [1])], [onnx.value(n, onnx.F32, [1]) for n in names],
                           [onnx.tensor(f"c{i}", onnx.F32, [1], onnx.floats(i + 1)) for i in range(len(names))])
        npy(self.work / "x.npy", (1,), [2])
        told = json.loads(self.hone("run", model, "-i", "x.npy", "-o", "out", "--json").stdout)
        files = [pathlib.Path(r["file"]) for r in told["results"]]
        self.assertEqual([numbers_of(self.work / f)[0] for f in files], [2, 4, 6, 8])
        self.assertEqual(len(set(files)), len(names))

    # ---- GGUF

    def test_gguf_has_no_graph_to_run(self):
        gguf = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<II", 4, 7)
        gguf += struct.pack("<Q1sIQIQ", 1, b"a", 1, 2, 0, 0)
        gguf += bytes(-len(gguf) % 32) + bytes(8)
        self.work.joinpath("t.gguf").write_bytes(gguf)
        self.assertIn("no graph to run", self.hone("check", "t.gguf").stdout)
        self.assertFalse(json.loads(self.hone("check", "t.gguf", "--json").stdout)["has_graph"])
        self.assertTrue(json.loads(self.hone("check", DIGITS, "--json").stdout)["has_graph"])
        self.work.joinpath("empty.gguf").write_bytes(
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<QII", 0, 4, 7) + bytes(32))
        for command in ("check", "inspect"):
            done = self.hone(command, "empty.gguf", code=USER)
            self.assertIn("the key of metadata 0 is empty", done.stdout + done.stderr)

    # ---- sizes that inputs tell

    def test_run_compiles_for_the_sizes_of_its_inputs(self):
        model = self.write(
            "pooled.onnx",
            [onnx.node("MaxPool", ["x"], ["a"], ints=[("kernel_shape", [2, 2]), ("strides", [2, 2])]),
             onnx.node("Flatten", ["a"], ["b"]), onnx.node("Gemm", ["b", "w"], ["y"])],
            [onnx.value("x", onnx.F32, ["n", 3, "h", "w0"])], [onnx.value("y", onnx.F32, ["n", 10])],
            [onnx.tensor("w", onnx.F32, [147, 10], onnx.floats(*[1] * 1470))])
        npy(self.work / "x.npy", (2, 3, 14, 14), [1] * 1176)
        for command in (["run", "-o", "out"], ["bench", "-t", "0.01"], ["explain"], ["run", "-o", "out", "--strategy", "ref"]):
            self.hone(command[0], model, "-i", "x=x.npy", *command[1:])
        self.assertEqual(set(numbers_of(self.work / "out" / "y.npy")), {147.0})
        self.hone("optimize", model, "-i", "x=x.npy", *FEW, "-o", "pooled.hone", "-q")

    # ---- memory

    def stated_is_enough(self, arguments):
        peak = json.loads(self.hone("run", *arguments, "-o", "out", "--json").stdout)["memory"]["peak"]
        self.hone("run", *arguments, "-o", "out", "-q", "--max-memory", peak)
        done = self.hone("run", *arguments, "-o", "out", "-q", "--max-memory", peak - 1, code=USER)
        needed = int(re.search(r"needs (\d+) bytes", done.stderr)[1])
        self.assertEqual(needed, peak, done.stderr)

    def chosen(self, text):
        return next(s for s in json.loads(text)["strategies"] if s["chosen"])

    def test_the_stated_memory_is_what_a_run_needs(self):
        for rows in (1, 7):
            npy(self.work / f"x{rows}.npy", (rows, 1, 8, 8))
        optimize = ["optimize", DIGITS, *FEW, "-i", "x7.npy", "--json"]
        stated = self.chosen(self.hone(*optimize, "-o", "p.hone").stdout)["peak_bytes"]
        told = self.chosen(self.hone("inspect", "p.hone", "--json").stdout)
        self.assertEqual(int(told["peak_bytes"]), stated)
        run = ["p.hone", "-i", "x7.npy", "-o", "out", "-q", "--max-memory"]
        self.hone("run", *run, stated)
        self.hone(*run, stated, program="hone-run")
        self.hone("run", *run, stated - 1, code=USER)
        for rows in (1, 7):
            for threads in (0, 1, 2, 5):
                for model in (["p.hone"], [DIGITS, "--strategy", "cpu"]):
                    self.stated_is_enough([*model, "-i", f"x{rows}.npy", "--threads", threads])
        done = self.hone(*optimize, "-o", "q.hone", "--max-memory", 20000, code=USER)
        enough = int(re.search(r"needs (\d+) bytes of memory at most", done.stderr)[1])
        done = self.hone(*optimize, "-o", "q.hone", "--max-memory", enough)
        self.assertLessEqual(self.chosen(done.stdout)["peak_bytes"], enough)

    def test_self_tests_say_what_all_of_them_need(self):
        self.hone("optimize", DIGITS, "-o", "p.hone", *FEW, "-q")
        done = self.hone("selftest", "p.hone", "--max-memory", 1, code=USER)
        self.hone("selftest", "p.hone", "--max-memory", re.search(r"need (\d+) bytes", done.stderr)[1])

    # ---- precision

    def large_products(self, name, factor, data):
        """y = relu(x w) v, where x w does not fit float16."""
        folder = self.work / name
        folder.mkdir()
        folder.joinpath("model.onnx").write_bytes(onnx.model(
            [onnx.node("MatMul", ["x", "w"], ["a"]), onnx.node("Relu", ["a"], ["b"]), onnx.node("MatMul", ["b", "v"], ["y"])],
            [onnx.value("x", onnx.F32, ["n", 2])], [onnx.value("y", onnx.F32, ["n", 1])],
            [onnx.tensor("w", onnx.F32, [2, 2], onnx.floats(factor, 1, 1, factor)),
             onnx.tensor("v", onnx.F32, [2, 1], onnx.floats(1e-4, 1e-4))]))
        for number, rows in enumerate(data):
            place = folder / f"test_data_set_{number}"
            place.mkdir()
            npy(place / "input_0.npy", (len(rows) // 2, 2), rows)
        return folder

    def test_a_precision_that_overflows_is_refused(self):
        model = self.large_products("large", 200, [[1, 1], [1000, 1, 2, 3]])  # the second set alone overflows
        options = [*FEW, "-o", "large.hone"]
        done = self.hone("optimize", model, *options, "--precision", "fp16", code=USER)
        for words in ("--precision fp16", "'y'", "1 element ", "set 2", "MatMul", "f16", "--precision bf16", "--accept-overflow"):
            self.assertIn(words, done.stderr)
        self.assertFalse(self.work.joinpath("large.hone").exists())
        done = self.hone("optimize", model, *options, "--precision", "fp16", "--accept-overflow", "--json")
        told = json.loads(done.stdout)["precision"]
        self.assertEqual((told["sets"], told["results"][0]["overflowed"]), (2, 1))
        self.assertLess(told["results"][0]["largest_error"], 1)
        done = self.hone("optimize", model, *options, "--precision", "fp16", "--accept-overflow")
        self.assertIn("warning: --precision fp16: result 'y'", done.stderr)
        self.assertIn("1 element infinite or NaN", done.stdout)
        for precision in ("bf16", "tf32", "fp32"):
            self.hone("optimize", model, *options, "--precision", precision)
        self.hone("aot", model, "-o", "program", "--dim", "n=1", "--precision", "fp16", code=USER)
        # As it is, the model overflows too: that is its own.
        given = self.large_products("infinite", 3e38, [[1, 1], [30, 30]])
        self.hone("optimize", given, *FEW, "-o", "i.hone", "--precision", "bf16")

    def test_the_stated_error_is_that_of_all_sets(self):
        model = self.large_products("small", 1, [[0, 0], [3.001, 7.77, 0.1, 0.2]])
        done = self.hone("optimize", model, *FEW, "-o", "s.hone", "--precision", "bf16", "--json")
        told = json.loads(done.stdout)["precision"]
        self.assertEqual(told["sets"], 2)
        self.assertGreater(told["results"][0]["largest_error"], 0)
        self.assertIn("over 2 sets of inputs", self.hone("optimize", model, *FEW, "-o", "s.hone", "--precision", "bf16").stdout)

    # ---- rows

    def fixed_model(self):
        """Of one row, with its number in the constants of shapes."""
        return self.write(
            "fixed.onnx",
            [onnx.node("Conv", ["x", "w"], ["a"]), onnx.node("Reshape", ["a", "flat"], ["b"]),
             onnx.node("MatMul", ["b", "m"], ["c"]), onnx.node("Reshape", ["c", "heads"], ["d"]),
             onnx.node("Softmax", ["d"], ["y"])],
            [onnx.value("x", onnx.F32, [1, 1, 3, 3])], [onnx.value("y", onnx.F32, [1, 2, 2])],
            [onnx.tensor("w", onnx.F32, [2, 1, 2, 2], onnx.floats(1, 2, 3, 4, -1, 0, 1, -2)),
             onnx.tensor("flat", onnx.I64, [2], struct.pack("<2q", 1, 8)),
             onnx.tensor("m", onnx.F32, [8, 4], onnx.floats(*[((7 * i) % 5) / 10 - 0.2 for i in range(32)])),
             onnx.tensor("heads", onnx.I64, [3], struct.pack("<3q", 1, 2, 2))])

    def test_a_model_of_one_row_runs_at_several(self):
        model = self.fixed_model()
        rows = [[((3 * i + 5 * r) % 7) / 7 for i in range(9)] for r in range(4)]
        expected = []
        for row in rows:
            npy(self.work / "x.npy", (1, 1, 3, 3), row)
            self.hone("run", model, "-i", "x.npy", "-o", "one", "-q")
            expected += numbers_of(self.work / "one" / "y.npy")
        npy(self.work / "x4.npy", (4, 1, 3, 3), sum(rows, []))
        for strategy in ("ref", "cpu", "auto"):
            self.hone("run", model, "--batch", 4, "-i", "x4.npy", "-o", "many", "-q", "--strategy", strategy)
            for got, wanted in zip(numbers_of(self.work / "many" / "y.npy"), expected, strict=True):
                self.assertAlmostEqual(got, wanted, places=5)
        self.hone("optimize", model, "--batch", 4, "-o", "fixed.hone", *FEW, "-q")
        self.hone("run", "fixed.hone", "-i", "x4.npy", "-o", "many", "-q")
        self.assertIn("y: f32[4,2,2]", self.hone("check", model, "--batch", 4).stdout)
        self.hone("bench", model, "--batch", 4, "-t", "0.01")
        self.hone("explain", model, "--batch", 4)
        self.hone("export", model, "--batch", 4, "-o", "four.onnx")
        self.hone("run", "four.onnx", "-i", "x4.npy", "-o", "many", "-q")
        self.hone("run", "fixed.hone", "--batch", 4, "-i", "x4.npy", code=USAGE)
        self.hone("run", model, "--batch", 0, "-i", "x4.npy", code=USAGE)

    def test_open_rows_take_the_number_that_is_given(self):
        npy(self.work / "x.npy", (5, 1, 8, 8))
        done = self.hone("run", DIGITS, "--batch", 5, "-i", "x.npy", "-o", "out")
        self.assertIn("f32[5,", done.stdout)
        self.assertIn("f32[5,", self.hone("check", DIGITS, "--batch", 5).stdout)

    def test_why_rows_cannot_be_added_is_said_by_node(self):
        model = self.write(
            "chosen.onnx", [onnx.node("NonZero", ["x"], ["y"])], [onnx.value("x", onnx.F32, [1, 4])],
            [onnx.value("y", onnx.I64, [2, "k"])])
        done = self.hone("run", model, "--batch", 2, "-i", "x=none.npy", code=USER)
        self.assertIn("(NonZero)", done.stderr)
        self.assertIn("decides a size", done.stderr)
        self.assertIn("(NonZero)", self.hone("check", model, "--batch", 2, code=USER).stdout)
        two = self.write("two.onnx", [onnx.node("Neg", ["x"], ["y"])], [onnx.value("x", onnx.F32, [2, 3])],
                         [onnx.value("y", onnx.F32, [2, 3])])
        self.assertIn("a multiple of", self.hone("check", two, "--batch", 3, code=USER).stdout)
        self.assertIn("f32[6,3]", self.hone("check", two, "--batch", 6).stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
