"""The programs as a user meets them: help, every error with its code and what to do, JSON.
usage: cli_test.py BUILD_DIR"""

import json
import os
import pathlib
import pickle
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
OK, DIFFERS, USAGE, USER = 0, 1, 2, 3
COMMANDS = ["optimize", "run", "bench", "selftest", "reduce", "validate", "explain", "aot", "export", "inspect", "check", "ops", "devices",
            "doctor", "flags"]


def npy(path, dtype, shape, data=None):
    """A .npy file of zeros, or of the bytes given."""
    count = 1
    for n in shape:
        count *= n
    size = int(dtype[2:])
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head +
                     (data or bytes(count * size)))
    return path


class RunsWhenRead:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


class Cli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="hone-cli-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.environment = {**os.environ, "HONE_CACHE_DIR": str(cls.work / "cache")}
        for name in list(cls.environment):
            if name.startswith("HONE_") and name != "HONE_CACHE_DIR":
                del cls.environment[name]
        w = cls.work
        w.joinpath("empty.onnx").touch()
        w.joinpath("text.onnx").write_text("hello, this is text\n")
        w.joinpath("lfs.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid x\n")
        w.joinpath("page.onnx").write_text("<!DOCTYPE html><html></html>\n")
        harmful = pickle.dumps(RunsWhenRead(f"touch {w / 'marker'}"), 2)
        w.joinpath("pickle.pt").write_bytes(harmful)
        with zipfile.ZipFile(w / "zip.pt", "w") as archive:
            archive.writestr("archive/data.pkl", harmful)
        w.joinpath("noise.onnx").write_bytes(bytes(range(1, 255)) * 9)
        w.joinpath("directory").mkdir()
        w.joinpath("tensors.safetensors").write_bytes(struct.pack("<Q", 66) + json.dumps(
            {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).ljust(66).encode() + bytes(8))
        w.joinpath("begins.safetensors").write_bytes(struct.pack("<Q", 3) + b" {}")
        w.joinpath("t.safetensors.index.json").write_text(json.dumps(
            {"metadata": {"total_size": 8}, "weight_map": {"w": "tensors.safetensors"}}))
        w.joinpath("lost.safetensors.index.json").write_text(json.dumps(
            {"weight_map": {"v": "tensors.safetensors"}}))
        gguf = b"GGUF" + struct.pack("<IQQ", 3, 2, 1) + struct.pack("<Q", 1) + b"k" + struct.pack(
            "<IIQ1sIQIQQ1sIQQIQ", 4, 7, 1, b"a", 1, 32, 8, 0, 1, b"b", 2, 2, 3, 0, 64)
        gguf += bytes(-len(gguf) % 32) + bytes(64 + 24)
        w.joinpath("tensors.gguf").write_bytes(gguf)
        w.joinpath("cut.gguf").write_bytes(gguf[:-1])
        npy(w / "x.npy", "<f4", (1, 1, 8, 8))
        npy(w / "x2.npy", "<f4", (1, 1, 8, 9))
        npy(w / "rank.npy", "<f4", (64,))
        npy(w / "x64.npy", "<f8", (1, 1, 8, 8))
        w.joinpath("x.raw").write_bytes(bytes(256))
        w.joinpath("short.raw").write_bytes(bytes(10))
        done = cls.hone("optimize", DIGITS, "-o", w / "digits.hone", "--rounds", 3, "-q")
        assert done.returncode == 0, done.stderr
        plan = w.joinpath("digits.hone").read_bytes()
        w.joinpath("cut.hone").write_bytes(plan[:3000])
        w.joinpath("flipped.hone").write_bytes(plan[:-100] + bytes([plan[-100] ^ 4]) + plan[-99:])
        w.joinpath("other.bin").write_bytes(plan)

    @classmethod
    def hone(cls, *arguments, program="hone", **environment):
        return subprocess.run([str(BUILD / program), *map(str, arguments)], cwd=cls.work, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**cls.environment, **environment})

    def test_a_strategy_without_a_part_says_why(self):
        done = self.hone("optimize", DIGITS, "-o", "multi.hone", "--rounds", 3, "--json",
                         "--strategies", "multi,auto")
        self.assertEqual(done.returncode, OK, done.stderr)
        multi, auto = json.loads(done.stdout)["strategies"]
        self.assertIn("skipped: needs at least two devices", multi["failure"])
        self.assertTrue(auto["chosen"])

    def test_a_plan_is_made_for_a_gpu_that_is_not_here(self):
        if "sm_90" not in self.hone("optimize", "--help").stdout:
            self.skipTest("the build has no such backend: tools/setup installs its headers")
        done = self.hone("optimize", DIGITS, "-o", "gpu.hone", "--target", "sm_90")
        self.assertEqual(done.returncode, OK, done.stderr)
        if "no device" not in done.stderr:
            self.skipTest("this machine has a GPU")
        self.assertIn("neither verified nor timed", done.stderr)
        self.assertIn("sm_90", self.hone("inspect", "gpu.hone").stdout)
        run = self.hone("run", "gpu.hone", "-i", "image=x.npy")
        self.assertEqual(run.returncode, USER, run.stderr)
        self.assertIn("libcuda.so.1", run.stderr)
        mixed = self.hone("optimize", DIGITS, "-o", "mixed.hone", "--target", "sm_90,x86-64-v3")
        self.assertIn("targets of different backends", mixed.stderr)

    def test_one_model_gives_one_plan(self):
        def content():
            done = self.hone("optimize", DIGITS, "-o", "again.hone", "--rounds", 3, "--json")
            self.assertEqual(done.returncode, OK, done.stderr)
            return json.loads(done.stdout)["content"]
        content()  # what the first one learns is kept
        first = content()
        for _ in range(3):
            self.assertEqual(content(), first)
        told = json.loads(self.hone("inspect", "again.hone", "--json").stdout)
        self.assertEqual(told["content"], first)
        times = json.loads(self.hone("bench", "again.hone", "--duration", "0.01", "--json").stdout)
        self.assertEqual(times["content"], first)
        shown = self.hone("bench", "again.hone", "--duration", "0.01").stdout
        self.assertIn(f"content: {first}", shown)
        self.assertLess(shown.index("self-test: "), shown.index("runs "))

    def test_optimize_says_what_verification_tried(self):
        done = self.hone("optimize", DIGITS, "-o", "told.hone", "--rounds", 3)
        self.assertRegex(done.stdout, r"verified: \d+ kernels.* the model in .* batch = \d+.* 1, 2, 4 threads")
        told = json.loads(self.hone("optimize", DIGITS, "-o", "told.hone", "--rounds", 3, "--json").stdout)
        self.assertEqual(told["verified"]["threads"], [1, 2, 4])
        self.assertGreater(len(told["verified"]["inputs"]), 1)

    def test_reduce_finds_nothing_in_a_case_that_shows_nothing(self):
        pathlib.Path(self.work, "fine.hone-ir").write_text(
            "run seed=1 ordinary n=3\nsymbol n 1 34\n%0: f32[n] = param index=0 \"x0\"\n"
            "%1: f32[n] = tanh %0\nreturn %1 \"y0\"\n")
        done = self.hone("reduce", "fine.hone-ir", "--strategy", "cpu")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn("nothing to reduce", done.stdout)
        pathlib.Path(self.work, "broken.hone-ir").write_text("no case\n")
        done = self.hone("reduce", "broken.hone-ir")
        self.assertEqual(done.returncode, USER)
        self.assertIn("run seed=1 ordinary", done.stderr)

    def test_what_needs_more_memory_than_allowed_is_not_written(self):
        limit = ("--max-memory", 20000)
        done = self.hone("optimize", DIGITS, "-o", "large.hone", "--rounds", 3, *limit)
        self.assertEqual(done.returncode, USER, done.stdout)
        for part in ("bytes of memory", "arena", "the limit is 20000", "raise --max-memory"):
            self.assertIn(part, done.stderr)
        self.assertFalse(self.work.joinpath("large.hone").exists())
        for command in (["bench", "digits.hone", "--duration", "0.01"], ["bench", DIGITS],
                        ["run", "digits.hone", "-i", "x.npy"], ["run", DIGITS, "-i", "x.npy"]):
            done = self.hone(*command, *limit)
            self.assertEqual(done.returncode, USER, (command, done.stdout, done.stderr))
            self.assertIn("raise ", done.stderr)
            self.assertNotIn("runs ", done.stdout)
        done = self.hone("digits.hone", "-i", "x.npy", *limit, program="hone-run")
        self.assertEqual(done.returncode, USER, done.stderr)

    def test_a_plan_tests_itself(self):
        told = json.loads(self.hone("selftest", "digits.hone", "--json").stdout)
        self.assertTrue(told["passed"], told)
        self.assertTrue(all(not t["skipped"] for t in told["tests"]), told)
        done = self.hone("--selftest", "digits.hone", program="hone-run")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn("as verified, with 1, 2 and 4 threads", done.stdout)
        self.assertEqual(self.hone("selftest", "flipped.hone").returncode, USER)

    def test_commands_of_the_readme_run(self):
        for name in ("digits.onnx", "images.npy"):
            shutil.copy(DIGITS.parent / name, self.work)
        lines = re.findall(r"^hone ([^#\n]+?) *#", ROOT.joinpath("README.md").read_text(), re.M)
        self.assertGreater(len(lines), 5)
        for line in lines:
            with self.subTest(line=line):
                done = self.hone(*line.split())
                self.assertEqual(done.returncode, OK, done.stderr)

    # arguments, exit code, what the message must hold: what was given, what is allowed, what to do
    ERRORS = [
        ([], USAGE, ["usage: hone COMMAND", "example", "exit codes"]),
        (["frobnicate"], USAGE, ["'frobnicate'", "not a command", "hone --help"]),
        (["optimise", "m.onnx"], USAGE, ["did you mean optimize"]),
        (["optimize"], USAGE, ["MODEL is missing", "hone optimize --help"]),
        (["run", "a", "b"], USAGE, ["'b'", "one argument too many"]),
        (["run", "digits.hone", "--treads", "2"], USAGE, ["--treads", "did you mean --threads"]),
        (["run", "digits.hone", "--threads"], USAGE, ["--threads", "needs a value"]),
        (["run", "digits.hone", "--threads", "two"], USAGE, ["--threads", "'two'", "whole number"]),
        (["run", "digits.hone", "--threads", "-1"], USAGE, ["--threads", "'-1'", "whole number"]),
        (["run", "digits.hone", "--json=1"], USAGE, ["--json", "takes no value"]),
        (["run", DIGITS, "--strategy", "fast"], USAGE, ["'fast'", "ref, cpu, onednn, multi or auto"]),
        (["bench", DIGITS, "--strategy", "multi"], USER, ["'multi'", "devices", "at least two devices", "auto"]),
        (["validate", "digits.hone"], USER, [".: holds no test_data_set_0", "input_K.pb"]),
        (["optimize", DIGITS, "--strategies", "cpu,ato"], USAGE, ["'ato'", "did you mean auto"]),
        (["optimize", DIGITS, "--target", "sparc"], USAGE, ["'sparc'", "x86-64-v3"]),
        (["optimize", DIGITS, "--verify", "all"], USAGE, ["'all'", "none, kernels or model"]),
        (["optimize", DIGITS, "--passes-off", "fuse"], USAGE, ["'fuse'", "simplify"]),
        (["optimize", DIGITS, "--dim", "n"], USAGE, ["--dim", "'n'", "NAME=LOW..HIGH"]),
        (["optimize", DIGITS, "--dim", "n=9..4"], USAGE, ["--dim", "empty"]),
        (["optimize", DIGITS, "--shapes", "image"], USAGE, ["--shapes", "image:1x3x224x224"]),
        (["optimize", DIGITS, "--shapes", "image:1xy"], USAGE, ["--shapes", "'y'", "not a size"]),
        (["bench", "digits.hone", "--duration", "long"], USAGE, ["--duration", "'long'", "number"]),
        (["run", "digits.hone", "--dim", "n=4"], USAGE, ["--dim", "digits.hone", "plan"]),
        (["explain", DIGITS, "--strategy", "ref"], USAGE, ["--strategy ref", "no plan"]),

        (["optimize", "nowhere.onnx"], USER, ["nowhere.onnx", "does not exist", "model.onnx"]),
        (["optimize", "directory"], USER, ["directory", "model.onnx", "give the file"]),
        (["optimize", "empty.onnx"], USER, ["empty.onnx", "is empty"]),
        (["optimize", "text.onnx"], USER, ["text.onnx", "text file", "hello", "ONNX"]),
        (["optimize", "lfs.onnx"], USER, ["lfs.onnx", "git lfs pull"]),
        (["optimize", "page.onnx"], USER, ["page.onnx", "HTML"]),
        (["optimize", "zip.pt"], USER, ["zip.pt", "zip archive", "torch.onnx.export"]),
        (["inspect", "pickle.pt"], USER, ["pickle.pt", "is a pickle", "never read", "safetensors"]),
        (["optimize", "noise.onnx"], USER, ["noise.onnx", "damaged"]),
        (["optimize", "tensors.safetensors"], USER, ["tensors.safetensors", "no graph", "inspect"]),
        (["optimize", "tensors.gguf"], USER, ["tensors.gguf", "no graph", "inspect"]),
        (["inspect", "begins.safetensors"], USER, ["begins.safetensors", "header does not start with '{'"]),
        (["optimize", "t.safetensors.index.json"], USER, ["index.json", "no graph", "inspect"]),
        (["inspect", "cut.gguf"], USER, ["cut.gguf", "'b'", "cut off"]),
        (["optimize", "digits.hone"], USER, ["digits.hone", "is a plan", "model"]),
        (["optimize", DIGITS, "-o", "directory"], USER, ["--output directory", "is a directory"]),
        (["optimize", DIGITS, "-o", "/proc/x.hone"], USER, ["--output /proc/x.hone", "written"]),
        (["optimize", DIGITS, "-o", "text.onnx/x.hone"], USER, ["--output", "text.onnx", "cannot"]),
        (["optimize", DIGITS, "--inputs", "directory"], USER, ["--inputs directory", "input_0.pb"]),
        (["run", "cut.hone"], USER, ["cut.hone", "cut off"]),
        (["run", "flipped.hone"], USER, ["flipped.hone", "damaged", "again"]),
        (["run", "digits.hone"], USER, ["f32[batch,1,8,8]", "missing", "--input", "=FILE"]),
        (["run", "digits.hone", "-i", "nowhere.npy"], USER, ["nowhere.npy", "cannot be opened"]),
        (["run", "digits.hone", "-i", "y=x.npy"], USER, ["no input 'y'", "the inputs are"]),
        (["run", "digits.hone", "-i", "x.npy", "-i", "x.npy"], USER, ["too many", "inputs are"]),
        (["run", "digits.hone", "-i", "x2.npy"], USER, ["f32[1,1,8,9]", "f32[batch,1,8,8]", "shape"]),
        (["run", "digits.hone", "-i", "rank.npy"], USER, ["f32[64]", "f32[batch,1,8,8]", "shape"]),
        (["run", "digits.hone", "-i", "x64.npy"], USER, ["f64[1,1,8,8]", "f32[batch,1,8,8]", "convert"]),
        (["run", "digits.hone", "-i", "short.raw"], USER, ["short.raw", "10 bytes", "256"]),
        (["run", "digits.hone", "-i", "text.onnx"], USER, ["text.onnx", "20 bytes", "256"]),
        (["run", "digits.hone", "-i", "x.npy", "-o", "x.raw"], USER, ["--output-dir x.raw"]),
        (["run", "digits.hone", "-i", "x.npy", "--max-memory", "10"], USER, ["bytes", "raise"]),
        (["run", DIGITS, "-i", "x64.npy"], USER, ["f64[1,1,8,8]", "convert"]),
        (["run", DIGITS, "-i", "x.npy", "--dump", "nothing"], USER, ["nothing"]),
        (["bench", "digits.hone", "--exportTimes", "directory"], USER, ["--exportTimes", "directory"]),
        (["validate", "digits.hone"], USER, ["test_data_set_0", "input_K.pb"]),
        (["inspect", "text.onnx"], USER, ["text.onnx", "text file"]),
    ]

    def test_errors_say_what_was_given_and_what_to_do(self):
        for arguments, code, words in self.ERRORS:
            with self.subTest(" ".join(map(str, arguments))):
                done = self.hone(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertRegex(done.stdout, r"^(memory: .*\n)?$")
                for word in words:
                    self.assertIn(word, done.stderr)
                if arguments:
                    self.assertTrue(done.stderr.startswith("hone: "), done.stderr)
                self.assertLess(len(done.stderr), 2000)
        self.assertFalse((self.work / "marker").exists())

    def test_hone_run_says_the_same(self):
        for arguments, code, words in self.ERRORS:
            if len(arguments) < 2 or arguments[0] != "run" or arguments[1] == DIGITS:
                continue
            if "--dim" in arguments:
                continue
            with self.subTest(" ".join(map(str, arguments))):
                done = self.hone(*arguments[1:], program="hone-run")
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertTrue(done.stderr.startswith("hone-run: "), done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)

    def test_help_is_short_and_has_an_example_and_the_exit_codes(self):
        for arguments in [["--help"], *([c, "--help"] for c in COMMANDS)]:
            with self.subTest(" ".join(arguments)):
                done = self.hone(*arguments)
                self.assertEqual((done.returncode, done.stderr), (OK, ""))
                self.assertLessEqual(len(done.stdout.splitlines()), 40)
                self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
                self.assertRegex(done.stdout, r"example(s)?:\n  (\w+=\w+ )?hone ")
                self.assertIn("exit codes: 0 done", done.stdout)
                self.assertIn("--json", done.stdout)
        self.assertEqual(self.hone("run", "--help", program="hone-run").returncode, OK)
        for command in COMMANDS:
            self.assertIn(f"  {command} ", self.hone("--help").stdout)
        self.assertRegex(self.hone("--version").stdout, r"^hone \d+\.\d+\.\d+")

    def test_run_writes_npy_and_says_where(self):
        for program, command in [("hone", ["run"]), ("hone-run", [])]:
            out = self.work / f"out-{program}"
            done = self.hone(*command, "digits.hone", "-i", "x.npy", "-o", out, "--json", "--time", program=program)
            self.assertEqual(done.returncode, OK, done.stderr)
            told = json.loads(done.stdout)
            result, = told["results"]
            self.assertEqual(result["type"], "f32[1,10]")
            self.assertEqual(pathlib.Path(result["file"]).read_bytes()[:6], b"\x93NUMPY")
            self.assertGreater(told["memory"]["peak"], 0)
            self.assertGreater(told["open_ms"], 0)
            self.assertGreater(told["first_run_ms"], 0)
            told = self.hone(*command, "digits.hone", "-i", "x.npy", "-o", out, program=program).stdout
            self.assertRegex(told, r"^memory: .*\n\w+: f32\[1,10\] -> .*\.npy\nresident: .*\n$")
        one, two = (next((self.work / f"out-{p}").glob("*.npy")) for p in ("hone", "hone-run"))
        self.assertEqual(one.read_bytes(), two.read_bytes())

    def test_inputs_by_name_in_three_spellings_and_raw(self):
        name = json.loads(self.hone("inspect", "digits.hone", "--json").stdout)["inputs"][0]["name"]
        for given in (f"{name}=x.npy", f"{name}:x.npy", "x.npy", f"{name}=x.raw", "x.raw"):
            done = self.hone("run", "digits.hone", "-i", given, "-o", "out", "-q")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (OK, "", ""))

    def test_a_plan_is_known_by_its_content(self):
        self.assertEqual(self.hone("run", "other.bin", "-i", "x.npy", "-o", "out").returncode, OK)

    def test_inspect_shows_every_kind_of_file(self):
        seen = json.loads(self.hone("inspect", DIGITS, "--json", "--weights").stdout)
        self.assertEqual((seen["kind"], seen["inputs"]),
                         ("ONNX model", [{"name": "image", "type": "f32[batch,1,8,8]"}]))
        self.assertIn("ai.onnx ", seen["opsets"])
        self.assertIn({"name": "Conv", "count": "2"}, seen["operators"])
        self.assertEqual(sum(int(o["count"]) for o in seen["operators"]), seen["nodes"])
        self.assertEqual(sum(int(w["bytes"]) for w in seen["weights"]), seen["weight_bytes"])
        plan = json.loads(self.hone("inspect", "digits.hone", "--json").stdout)
        self.assertEqual((plan["kind"], plan["inputs"][0]["type"]), ("plan", "f32[batch,1,8,8]"))
        self.assertGreaterEqual(len(plan["variants"]), 1)
        self.assertIn("cpu", [s["name"] for s in plan["strategies"]])
        tensors = json.loads(self.hone("inspect", "tensors.safetensors", "--json").stdout)
        self.assertEqual(tensors["weights"], [{"name": "w", "type": "f32[2]", "bytes": "8"}])
        shards = json.loads(self.hone("inspect", "t.safetensors.index.json", "--json").stdout)
        self.assertEqual(shards["weights"], tensors["weights"])
        self.assertEqual(shards["files"], [{"name": "tensors.safetensors"}])
        gguf = json.loads(self.hone("inspect", "tensors.gguf", "--json").stdout)
        self.assertEqual((gguf["kind"], gguf["format_version"], gguf["metadata"]),
                         ("GGUF", 3, [{"name": "k", "value": "7"}]))
        self.assertEqual(gguf["weights"], [{"name": "a", "type": "Q8_0[32]", "bytes": "34"},
                                           {"name": "b", "type": "f32[3,2]", "bytes": "24"}])
        for file in (DIGITS, "digits.hone", "tensors.safetensors", "tensors.gguf"):
            self.assertIn("weight", self.hone("inspect", file).stdout)

    def test_export_writes_what_can_be_run(self):
        for given in (DIGITS, "digits.hone"):
            done = self.hone("export", given, "-o", "again.onnx", "--json")
            self.assertEqual((done.returncode, done.stderr), (OK, ""))
            self.assertEqual(json.loads(done.stdout)["data"], "")
            self.assertEqual(self.hone("check", "again.onnx").returncode, OK)
            outs = []
            for model in (DIGITS, "again.onnx"):
                done = self.hone("run", model, "-i", "x.npy", "-o", "out-again", "--json")
                self.assertEqual(done.returncode, OK, done.stderr)
                result, = json.loads(done.stdout)["results"]
                outs.append(pathlib.Path(self.work / result["file"]).read_bytes())
            self.assertEqual(outs[0], outs[1])
        self.assertEqual(self.hone("export", "again.onnx", "-o", "again.onnx").returncode, USER)

    def test_check_tells_everything_in_one_report(self):
        fine = self.hone("check", DIGITS)
        self.assertEqual((fine.returncode, fine.stderr), (OK, ""))
        self.assertRegex(fine.stdout, r"digits.onnx: fine")
        self.assertIn("batch, 1 to ", fine.stdout)
        told = json.loads(self.hone("check", DIGITS, "--json", "--dim", "batch=1..8").stdout)
        self.assertTrue(told["ok"])
        self.assertEqual([(s["name"], s["high"], s["given"]) for s in told["open_sizes"]],
                         [("batch", 8, True)])
        for file, code, kind in [("noise.onnx", USER, "ONNX model"), ("digits.hone", OK, "plan"),
                                 ("cut.hone", USER, "plan"), ("flipped.hone", USER, "plan"),
                                 ("tensors.safetensors", OK, "safetensors"),
                                 ("t.safetensors.index.json", OK, "sharded safetensors"),
                                 ("lost.safetensors.index.json", USER, "sharded safetensors"),
                                 ("tensors.gguf", OK, "GGUF"), ("cut.gguf", USER, "GGUF")]:
            with self.subTest(file):
                done = self.hone("check", file, "--json")
                self.assertEqual((done.returncode, done.stderr), (code, ""))
                told = json.loads(done.stdout)
                self.assertEqual((told["kind"], told["ok"]), (kind, code == OK))
                self.assertEqual(bool(told["wrong"]), code == USER)
                shown = self.hone("check", file)
                self.assertEqual(shown.returncode, code)
                self.assertIn("fine" if code == OK else "1 problem\n", shown.stdout)

    def test_ops_come_from_the_code(self):
        told = json.loads(self.hone("ops", "--json").stdout)
        ops = {o["name"]: o for o in told["operations"]}
        self.assertTrue(ops["add"]["core"] and not ops["softmax"]["core"])
        self.assertIn("Softmax", ops["softmax"]["onnx"])
        self.assertIn("Conv", ops["conv"]["onnx"])
        self.assertTrue(all(o["doc"] for o in ops.values()))
        onnx = told["onnx"]
        self.assertGreater(len(onnx), 100)
        self.assertGreater(sum(bool(o["becomes"]) for o in onnx), 0.7 * len(onnx))
        table = self.hone("ops", "--table").stdout
        self.assertEqual(len(table.splitlines()), len(onnx) + len(ops) + 5)
        page = (ROOT / "docs" / "operators.md").read_text()
        self.assertTrue(page.endswith(table), "docs/operators.md is old: see its first lines")

    def test_flags_and_devices(self):
        flags = {f["name"]: f for f in json.loads(
            self.hone("flags", "--json", HONE_THREADS="3").stdout)}
        self.assertEqual((flags["HONE_THREADS"]["value"], flags["HONE_THREADS"]["set"]), ("3", True))
        self.assertFalse(flags["HONE_DEBUG"]["set"])
        told = json.loads(self.hone("devices", "--json", HONE_THREADS="3").stdout)
        self.assertEqual((told["devices"][0]["name"], told["devices"][0]["threads"]), ("cpu", 3))
        self.assertGreater(told["devices"][0]["memory_bytes"], 0)

    def doctor(self, **environment):
        done = self.hone("doctor", "--json", **environment)
        told = json.loads(done.stdout)
        self.assertEqual(done.returncode, OK if told["ok"] else DIFFERS)
        self.assertEqual(told["ok"], all(c["ok"] for c in told["checks"]))
        self.assertTrue(all(c["ok"] or (c["problem"] and c["hint"]) for c in told["checks"]))
        return {c["what"]: c for c in told["checks"]}

    def test_doctor_finds_what_is_missing(self):
        checks = self.doctor()
        self.assertTrue(checks["compile and run (cpu)"]["ok"], checks)
        self.assertTrue(checks["compile cache"]["ok"], checks)

        hidden = self.work / "hidden"
        hidden.mkdir()
        hidden.joinpath("libdnnl.so.2").touch()  # the loader takes it for the library
        onednn = self.doctor(LD_LIBRARY_PATH=str(hidden))["onednn"]
        self.assertFalse(onednn["ok"])
        for word in ("libdnnl.so.2", str(hidden), "looked for"):
            self.assertIn(word, onednn["problem"])
        self.assertIn("apt-get install libdnnl2", onednn["hint"])

        self.assertIn("did you mean HONE_THREADS?", self.doctor(HONE_TREADS="2")["HONE_TREADS"]["problem"])
        self.assertIn("HONE_CPU_ISA", self.doctor(HONE_CPU_ISA="sparc")["device cpu"]["problem"])
        self.assertIn("HONE_THREADS", self.doctor(HONE_THREADS="many")["threads"]["hint"])
        shared = self.work / "shared-cache"
        shared.mkdir()
        shared.chmod(0o777)
        cache = self.doctor(HONE_CACHE_DIR=str(shared))["compile cache"]
        self.assertIn("others may write", cache["problem"])
        self.assertIn("HONE_CACHE_DIR", cache["hint"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
