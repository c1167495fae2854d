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

import onnx_writer as onnx
from wrong_uses import DIFFERS, DIGITS, OK, USAGE, USER, WRONG_USES

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
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
        w.joinpath("byte.hone").write_bytes(b"a")
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
        shutil.copy(DIGITS, w / "own.onnx")
        shutil.copy(DIGITS, w / "renamed.hone")
        w.joinpath("link.onnx").symlink_to("own.onnx")
        w.joinpath("circle.hone").symlink_to("circle2.hone")
        w.joinpath("circle2.hone").symlink_to("circle.hone")
        os.mkfifo(w / "pipe")
        with zipfile.ZipFile(w / "x.npz", "w") as archive:
            archive.write(w / "x.npy", "x.npy")
        w.joinpath("cut.npz").write_bytes(w.joinpath("x.npz").read_bytes()[:-30])
        w.joinpath("named").mkdir()
        shutil.copy(w / "digits.hone", w / "named")
        shutil.copy(w / "x.npy", w / "named" / "logits.npy")

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
        if "does not run sm_90" not in done.stderr:
            self.skipTest("this machine has a GPU")
        self.assertIn("neither verified nor timed", done.stderr)
        self.assertIn("sm_90", self.hone("inspect", "gpu.hone").stdout)
        told = self.hone("explain", "gpu.hone", "--candidates", "--steps")
        self.assertEqual(told.returncode, OK, told.stderr)
        self.assertIn("sm_90", told.stdout)
        run = self.hone("run", "gpu.hone", "-i", "image=x.npy")
        self.assertEqual(run.returncode, USER, run.stderr)
        self.assertIn("libcuda.so.1", run.stderr)
        mixed = self.hone("optimize", DIGITS, "-o", "mixed.hone", "--target", "sm_90,x86-64-v3")
        self.assertIn("the targets belong to different backends", mixed.stderr)

    def test_every_listed_target_works_or_is_refused_clearly(self):
        def listed(command):
            text = " ".join(self.hone(command, "--help").stdout.split())
            words = text[text.index("--target WORD,... ") + len("--target WORD,... "):]
            return words[:words.index(", several with commas")].replace(" or ", ", ").split(", ")
        here = listed("run")
        for command in ["bench", "validate", "tune"]:
            self.assertEqual(listed(command), here)
        everywhere = listed("optimize")
        self.assertEqual(listed("explain"), everywhere)
        self.assertNotIn("any", everywhere)
        self.assertLessEqual(set(here), set(everywhere))
        for target in everywhere:
            with self.subTest(target=target):
                told = self.hone("explain", DIGITS, "--target", target)
                self.assertEqual(told.returncode, OK, told.stderr)
                run = self.hone("run", DIGITS, "-i", "x.npy", "-o", "targets", "--target", target)
                if target in here:
                    self.assertEqual(run.returncode, OK, run.stderr)
                else:
                    self.assertEqual(run.returncode, USAGE, run.stderr)
                    self.assertIn(f"--target {target}: this machine does not run it", run.stderr)
                    self.assertIn("hone optimize --target", run.stderr)
        cpus = [t for t in everywhere if t.startswith("x86-64")]
        for one in cpus:
            for other in cpus + ["native"]:
                if one == other:
                    continue
                for sizes in [[], ["--dim", "batch=4"]]:
                    with self.subTest(one=one, other=other, sizes=sizes):
                        done = self.hone("optimize", DIGITS, "-o", "pair.hone", "--rounds", 2, "--budget", 1,
                                         "--target", f"{one},{other}", *sizes)
                        self.assertEqual(done.returncode, OK, done.stderr)
                        foreign = {one, other} - set(here)
                        self.assertEqual(bool(foreign), "neither verified nor timed" in done.stderr, done.stderr)
                        told = self.hone("inspect", "pair.hone").stdout
                        for target in {one, other} - {"native"}:
                            self.assertIn(target, told)
                        if foreign != {one, other}:
                            ran = self.hone("selftest", "pair.hone")
                            self.assertEqual(ran.returncode, OK, ran.stderr)

    def test_one_model_gives_one_plan(self):
        def content():
            # On a busy machine times may contradict an earlier choice of the strategy.
            done = self.hone("optimize", DIGITS, "-o", "again.hone", "--rounds", 3, "--json",
                             "--strategies", "auto")
            self.assertEqual(done.returncode, OK, done.stderr)
            return json.loads(done.stdout)["content"]
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

    def test_precision_is_of_the_whole_model_and_its_error_is_said(self):
        worst = {"fp32": 1e-5, "tf32": 2e-3, "fp16": 2e-3, "bf16": 2e-2}
        for name, most in worst.items():
            done = json.loads(self.hone("optimize", DIGITS, "-o", f"{name}.hone", "--rounds", 3, "--budget", 2,
                                        "--precision", name, "--json").stdout)["precision"]
            self.assertEqual(done["name"], name)
            for result in done["results"]:
                self.assertLess(result["largest_error"], most * result["largest_value"])
                if name in ("fp16", "bf16"):
                    self.assertGreater(result["largest_error"], 0)
        told = self.hone("explain", DIGITS, "--precision", "bf16").stdout
        self.assertIn("bfloat16: dot, matmul, conv", told)
        self.assertIn("all others: float32", told)

    def test_optimize_says_what_verification_tried(self):
        done = self.hone("optimize", DIGITS, "-o", "told.hone", "--rounds", 3)
        self.assertRegex(done.stdout, r"verified: (\d+) of \1 nodes .*; \d+ kernels.* the model in .* batch = \d+.* 1, 2, 4, 7, 16 threads")
        told = json.loads(self.hone("optimize", DIGITS, "-o", "told.hone", "--rounds", 3, "--json").stdout)
        self.assertEqual(told["verified"]["threads"], [1, 2, 4, 7, 16])
        self.assertEqual(told["read_again"]["judged"], told["read_again"]["nodes"])
        self.assertGreater(len(told["verified"]["inputs"]), 1)

    def test_a_model_that_contradicts_itself_is_refused_unless_that_is_accepted(self):
        def model(name, sizes):
            self.work.joinpath(name).write_bytes(onnx.model(
                [onnx.node("Relu", ["x"], ["y"])], [onnx.value("x", onnx.F32, ["n", 4])],
                [onnx.value("y", onnx.F32, sizes)]))

        model("says.onnx", ["n", 5])
        done = self.hone("optimize", "says.onnx", "-o", "says.hone")
        self.assertEqual(done.returncode, USER, done.stderr)
        for words in ("output 'y' is f32[n,4], but the model declares f32[n,5]", "--accept-outputs"):
            self.assertIn(words, done.stderr)
        self.assertFalse(self.work.joinpath("says.hone").exists())
        done = self.hone("optimize", "says.onnx", "-o", "says.hone", "--accept-outputs", "--rounds", 3)
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn("the model declares f32[n,5]", done.stderr)
        self.assertIn("the model declares f32[n,5]", self.hone("bench", "says.onnx", "-t", "0.01").stderr)

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
        for run in ("seed=x", "seed=1 n=four", "seed=1 n=99999999999999999999"):
            pathlib.Path(self.work, "broken.hone-ir").write_text(f"run {run}\n")
            done = self.hone("reduce", "broken.hone-ir")
            self.assertEqual(done.returncode, USER, done.stderr)
            self.assertIn(f"a run has '{run.split()[-1]}', expected an integer", done.stderr)

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

    def test_a_device_is_tested(self):
        told = json.loads(self.hone("selftest", "--device", "cpu", "--json").stdout)
        self.assertEqual(told["failed"], [])
        self.assertGreater(told["passed"], 80)
        self.assertEqual(told["target"].count("x86-64"), 1, told)
        self.assertEqual(self.hone("selftest", "--device", "cpu:1").returncode, USER)
        self.assertEqual(self.hone("selftest", "--device", "cpu", "digits.hone").returncode, USAGE)

    def test_commands_of_the_readme_run(self):
        for name in ("digits.onnx", "images.npy"):
            shutil.copy(DIGITS.parent / name, self.work)
        lines = re.findall(r"^hone ([^#\n]+?) *#", ROOT.joinpath("README.md").read_text(), re.M)
        self.assertGreater(len(lines), 5)
        for line in lines:
            with self.subTest(line=line):
                done = self.hone(*line.split())
                self.assertEqual(done.returncode, OK, done.stderr)

    def files(self):
        return {p.relative_to(self.work): (p.is_symlink(), p.is_file() and p.read_bytes())
                for p in self.work.rglob("*") if not p.is_fifo() and "cache" not in p.parts}

    def test_errors_say_what_was_given_and_what_to_do(self):
        before = self.files()
        self.assertGreater(len(WRONG_USES), 100)
        for arguments, code, words in WRONG_USES:
            with self.subTest(" ".join(map(str, arguments))):
                done = self.hone(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertRegex(done.stdout, r"^(memory: .*\n)?$")
                for word in words:
                    self.assertIn(word, done.stderr)
                if arguments:
                    self.assertTrue(done.stderr.startswith("hone: "), done.stderr)
                self.assertLess(len(done.stderr), 2000)
                self.assertNotIn("defect:", done.stderr)
        self.assertFalse((self.work / "marker").exists())
        self.assertEqual(self.files(), before)

    def test_errors_are_json_where_that_is_asked_for(self):
        for arguments, code, words in WRONG_USES[::9]:
            if not arguments or len(arguments) < 2:
                continue
            with self.subTest(" ".join(map(str, arguments))):
                done = self.hone(*arguments, "--json")
                self.assertEqual(done.returncode, code, done.stderr)
                told = json.loads(done.stdout)
                self.assertEqual(told["exit_code"], code)
                self.assertIn(told["error"], done.stderr)

    def test_output_that_is_lost_is_an_error(self):
        for arguments in (["ops"], ["inspect", DIGITS], ["inspect", DIGITS, "--json"], ["devices"], ["--help"],
                          ["run", "digits.hone", "-i", "x.npy", "-o", "out-full"],
                          ["bench", "digits.hone", "--duration", "0.01"],
                          ["optimize", DIGITS, "-o", "full.hone", "--rounds", 3, "--strategies", "cpu"]):
            with self.subTest(arguments), open("/dev/full", "w") as full:
                done = subprocess.run([str(BUILD / "hone"), *map(str, arguments)], cwd=self.work, stdout=full,
                                      stderr=subprocess.PIPE, text=True, env=self.environment)
                self.assertEqual(done.returncode, USER, done.stderr)
                self.assertIn("No space left", done.stderr)
        done = self.hone("export", DIGITS, "-o", "/dev/full")
        self.assertEqual(done.returncode, USER, done.stderr)
        self.assertIn("/dev/full: cannot be written", done.stderr)

    def test_devices_and_links_stay_what_they_are(self):
        done = self.hone("optimize", DIGITS, "-o", "/dev/null", "--rounds", 3, "--strategies", "cpu", "-q")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        link = self.work / "link.hone"
        link.symlink_to("target.hone")
        for _ in range(2):
            done = self.hone("optimize", DIGITS, "-o", link, "--rounds", 3, "--strategies", "cpu", "-q")
            self.assertEqual(done.returncode, OK, done.stderr)
            self.assertTrue(link.is_symlink())
        self.assertEqual(self.hone("check", "target.hone").returncode, OK)

    def test_text_of_files_does_not_reach_the_terminal_as_it_is(self):
        name = "\x1b[31mred\x07"
        header = json.dumps({name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        header += b" " * (-len(header) % 8)
        self.work.joinpath("red.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
        done = self.hone("inspect", "red.safetensors")
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("\\x1b[31mred\\x07", done.stdout)
        told = json.loads(self.hone("inspect", "red.safetensors", "--json").stdout)
        self.assertEqual(told["weights"][0]["name"], name)
        done = self.hone("run", "\x1b[2J.onnx")
        self.assertNotIn("\x1b", done.stderr)

    def test_a_deadline_ends_a_command(self):
        done = self.hone("bench", "digits.hone", "--duration", 60, "--deadline", 0.2)
        self.assertEqual(done.returncode, USER, done.stderr)
        self.assertIn("deadline", done.stderr)
        done = self.hone("run", "digits.hone", "-i", "x.npy", "-o", "out", "--deadline", 60, "-q")
        self.assertEqual(done.returncode, OK, done.stderr)

    # Three tokens of a table of two rows, cut and reshaped as other inputs say.
    def lookup_model(self):
        self.work.joinpath("lookup.onnx").write_bytes(onnx.model(
            [onnx.node("Gather", ["table", "ids"], ["rows"]), onnx.node("Slice", ["rows", "start", "end"], ["part"]),
             onnx.node("Reshape", ["rows", "shape"], ["again"])],
            [onnx.value("ids", onnx.I64, [3]), onnx.value("start", onnx.I64, [1]), onnx.value("end", onnx.I64, [1]),
             onnx.value("shape", onnx.I64, [2])],
            [onnx.value("part", onnx.F32, ["a", 2]), onnx.value("again", onnx.F32, ["b", "c"])],
            [onnx.tensor("table", onnx.F32, [2, 2], onnx.floats(1, 2, 3, 4))]))

    def test_made_up_integers_satisfy_what_reads_them(self):
        self.lookup_model()
        done = self.hone("optimize", "lookup.onnx", "-o", "lookup.hone", "--rounds", 3, "--json")
        self.assertEqual(done.returncode, OK, done.stderr)
        told = json.loads(done.stdout)
        self.assertTrue(any(i.startswith("'ids' i64[3]: ") for i in told["inputs"]), told["inputs"])
        self.assertTrue(all(s["failure"] == "" or "skipped" in s["failure"] for s in told["strategies"]), told)
        self.assertTrue(all(not t["missing"] for t in told["self_tests"]), told)
        for file in ("lookup.hone", "lookup.onnx"):
            done = self.hone("bench", file, "--duration", "0.01", "--json")
            self.assertEqual(done.returncode, OK, done.stderr)
            inputs = json.loads(done.stdout)["inputs"]
            self.assertTrue(any(i.startswith("'ids' i64[3]: ") for i in inputs), inputs)

    def test_given_files_decide_sizes(self):
        self.work.joinpath("cache.onnx").write_bytes(onnx.model(
            [onnx.node("Concat", ["past", "x"], ["all"], ints=[("axis", 0)]), onnx.node("Add", ["x", "y"], ["sum"])],
            [onnx.value("past", onnx.F32, ["p", 2]), onnx.value("x", onnx.F32, ["n", 2]),
             onnx.value("y", onnx.F32, ["m", 2])],
            [onnx.value("all", onnx.F32, ["q", 2]), onnx.value("sum", onnx.F32, ["n", 2])]))
        npy(self.work / "past.npy", "<f4", (0, 2))
        npy(self.work / "three.npy", "<f4", (3, 2))
        npy(self.work / "row.npy", "<f4", (1, 2))
        given = ["-i", "past=past.npy", "-i", "x=three.npy"]
        for strategy in ("ref", "auto"):
            done = self.hone("run", "cache.onnx", *given, "-i", "y=row.npy", "-o", "sizes", "--strategy", strategy)
            self.assertEqual(done.returncode, OK, done.stderr)
            self.assertIn("note: size p is compiled for 0 to 1048576", done.stderr)
            self.assertIn("note: size m is compiled as 1", done.stderr)
            self.assertIn("sum: f32[3,2]", done.stdout)
        done = self.hone("optimize", "cache.onnx", *given, "-i", "y=three.npy", "-o", "cache.hone", "--rounds", 2)
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertNotIn("assumed to be equal", done.stderr)  # one of them may also broadcast
        self.assertEqual(self.hone("run", "cache.hone", *given, "-i", "y=three.npy", "-o", "sizes").returncode, OK)
        stated = self.hone("run", "cache.onnx", *given, "-i", "y=three.npy", "-o", "sizes", "--dim", "p=1..8")
        self.assertEqual(stated.returncode, USER, stated.stderr)
        self.assertIn("--dim p=0..8", stated.stderr)

    def test_given_files_decide_ranks(self):
        def branch(op, result):
            return onnx.graph([onnx.node(op, ["x"], [result])], [], [onnx.value(result, onnx.F32, [])])

        self.work.joinpath("ranks.onnx").write_bytes(onnx.model(
            [onnx.node("If", ["c"], ["y"], [("then_branch", branch("Identity", "t")),
                                            ("else_branch", branch("Shape", "e"))])],
            [onnx.value("c", onnx.BOOL, []), onnx.value("x", onnx.I64, [2, 3])], [onnx.value("y", onnx.I64, [])]))
        npy(self.work / "yes.npy", "|b1", (), b"\1")
        npy(self.work / "no.npy", "|b1", (), b"\0")
        npy(self.work / "whole.npy", "<i8", (2, 3))
        for name, shape in (("yes", "[2,3]"), ("no", "[2]")):
            done = self.hone("run", "ranks.onnx", "-i", f"c={name}.npy", "-i", "x=whole.npy", "-o", "ranks")
            self.assertEqual(done.returncode, OK, done.stderr)
            self.assertIn("compiled for the given values of input 'c'", done.stderr)
            self.assertIn("y: i64" + shape, done.stdout)
        done = self.hone("optimize", "ranks.onnx", "-o", "ranks.hone")
        self.assertEqual(done.returncode, USER, done.stderr)
        self.assertIn("give the inputs that decide it (--input", done.stderr)

    def test_given_files_decide_the_rank_of_an_input_without_one(self):
        self.work.joinpath("free.onnx").write_bytes(onnx.model(
            [onnx.node("Neg", ["x"], ["y"])], [onnx.value("x", onnx.F32, None)],
            [onnx.value("y", onnx.F32, None)]))
        refused = self.hone("check", "free.onnx")
        self.assertEqual(refused.returncode, USER, refused.stderr)
        self.assertIn("--shapes x:", refused.stdout + refused.stderr)
        npy(self.work / "square.npy", "<f4", (2, 2))
        done = self.hone("run", "free.onnx", "-i", "x=square.npy", "-o", "free")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn("compiled for rank 2", done.stderr)
        self.assertIn("y: f32[2,2]", done.stdout)
        fixed = self.hone("check", "free.onnx", "--shapes", "x:3x4")
        self.assertEqual(fixed.returncode, OK, fixed.stderr)
        self.assertIn("f32[3,4]", fixed.stdout)

    def test_validate_compares_the_tensors_of_a_sequence(self):
        folder = self.work / "pieces"
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        folder.joinpath("model.onnx").write_bytes(onnx.model(
            [onnx.node("SequenceConstruct", ["x", "x"], ["s"])], [onnx.value("x", onnx.F32, [2])],
            [onnx.sequence("s", onnx.F32)]))
        npy(data / "input_0.npy", "<f4", (2,), bytes(8))
        tensor = onnx.tensor("", onnx.F32, [2], bytes(8))
        data.joinpath("output_0.pb").write_bytes(onnx.sequence_of([tensor, tensor]))
        done = self.hone("validate", "pieces")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertEqual(done.stdout.count("ok"), 2, done.stdout)
        data.joinpath("output_0.pb").write_bytes(onnx.sequence_of([tensor]))
        self.assertIn("1 output, expected 2", self.hone("validate", "pieces").stderr)
        data.joinpath("output_0.pb").write_bytes(tensor[:-3])
        self.assertEqual(self.hone("validate", "pieces").returncode, USER)

    def test_a_misspelt_variable_is_told(self):
        told = self.hone("ops", HONE_TREADS="2")
        self.assertEqual(told.returncode, OK)
        self.assertIn("HONE_TREADS is not read; did you mean HONE_THREADS?", told.stderr)
        self.assertEqual(self.hone("ops", "--quiet", HONE_TREADS="2").stderr, "")
        self.assertEqual(self.hone("ops", HONE_ELSEWHERE_UNKNOWN="2").stderr, "")

    def test_sizes_that_data_decides_have_stated_limits(self):
        self.work.joinpath("many.onnx").write_bytes(onnx.model(
            [onnx.node("ConstantOfShape", ["n"], ["y"])], [onnx.value("n", onnx.I64, [1])],
            [onnx.value("y", onnx.F32, ["k"])]))
        npy(self.work / "count.npy", "<i8", (1,), struct.pack("<q", 70000))
        size = "ConstantOfShape_node.n"
        done = self.hone("run", "many.onnx", "-i", "n=count.npy", "-o", "many")
        self.assertEqual(done.returncode, USER, done.stderr)
        self.assertIn(f"--dim {size}=0..70000", done.stderr)
        done = self.hone("run", "many.onnx", "-i", "n=count.npy", "-o", "many", "--dim", f"{size}=0..70000")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertIn("y: f32[70000]", done.stdout)
        done = self.hone("run", "many.onnx", "-i", "n=count.npy", "-o", "many", "--dim", "other.n=0..9")
        self.assertIn(f"the model has no such size; its open sizes are {size}", done.stderr)

    def test_a_model_that_loops_for_ever_meets_its_deadline(self):
        body = onnx.graph([onnx.node("Identity", ["go"], ["go_on"]), onnx.node("Add", ["v", "one"], ["w"])],
                          [onnx.value("i", onnx.I64, []), onnx.value("go", onnx.BOOL, []),
                           onnx.value("v", onnx.F32, [1])],
                          [onnx.value("go_on", onnx.BOOL, []), onnx.value("w", onnx.F32, [1])])
        self.work.joinpath("endless.onnx").write_bytes(onnx.model(
            [onnx.node("Loop", ["", "go", "x"], ["y"], [("body", body)])],
            [onnx.value("go", onnx.BOOL, []), onnx.value("x", onnx.F32, [1])], [onnx.value("y", onnx.F32, [1])],
            [onnx.tensor("one", onnx.F32, [1], onnx.floats(1))]))
        npy(self.work / "go.npy", "|b1", (), b"\1")
        npy(self.work / "one.npy", "<f4", (1,))
        for strategy in ("cpu", "ref"):
            done = self.hone("run", "endless.onnx", "-i", "go=go.npy", "-i", "x=one.npy", "--strategy", strategy,
                             "-o", "out-endless", "--deadline", 3, "--json")
            self.assertEqual(done.returncode, USER, done.stderr)
            self.assertIn("deadline", done.stderr)

    def test_a_model_in_hugging_faces_cache_is_read(self):
        root = self.work / "models--a--b"
        snapshot, blobs = root / "snapshots" / "c0ffee" / "onnx", root / "blobs"
        snapshot.mkdir(parents=True)
        blobs.mkdir()
        blobs.joinpath("m").write_bytes(onnx.model(
            [onnx.node("Add", ["x", "w"], ["y"])], [onnx.value("x", onnx.F32, [2])], [onnx.value("y", onnx.F32, [2])],
            [onnx.tensor("w", onnx.F32, [2], b"", "model.onnx_data")]))
        blobs.joinpath("d").write_bytes(onnx.floats(3, 4))
        snapshot.joinpath("model.onnx").symlink_to("../../../blobs/m")
        snapshot.joinpath("model.onnx_data").symlink_to("../../../blobs/d")
        npy(self.work / "two.npy", "<f4", (2,))
        run = ("run", snapshot / "model.onnx", "-i", "two.npy", "-o", "out-hub", "-q")
        done = self.hone(*run)
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertEqual(self.work.joinpath("out-hub", "y.npy").read_bytes()[-8:], onnx.floats(3, 4))
        # A link that leads out of the cache is followed only when that is asked for.
        self.work.joinpath("elsewhere").write_bytes(onnx.floats(5, 6))
        snapshot.joinpath("model.onnx_data").unlink()
        snapshot.joinpath("model.onnx_data").symlink_to(self.work / "elsewhere")
        done = self.hone(*run)
        self.assertEqual(done.returncode, USER, done.stderr)
        for word in ("model.onnx_data", "a link leads out of it", "--allow-links"):
            self.assertIn(word, done.stderr)
        self.assertEqual(self.hone(*run, "--allow-links").returncode, OK)
        self.assertEqual(self.work.joinpath("out-hub", "y.npy").read_bytes()[-8:], onnx.floats(5, 6))
        snapshot.joinpath("model.onnx_data").unlink()
        os.link(self.work / "elsewhere", snapshot / "model.onnx_data")
        self.assertEqual(self.hone(*run).returncode, USER)
        self.assertEqual(self.hone(*run, "--allow-links").returncode, OK)

    def test_a_checkpoint_reaches_a_graph(self):
        # y = x w + b: w is an input of the model, b an initializer that it holds.
        self.work.joinpath("linear.onnx").write_bytes(onnx.model(
            [onnx.node("MatMul", ["x", "layer.weight"], ["z"]), onnx.node("Add", ["z", "layer.bias"], ["y"])],
            [onnx.value("x", onnx.F32, ["n", 2]), onnx.value("layer.weight", onnx.F32, [2, 2])],
            [onnx.value("y", onnx.F32, ["n", 2])],
            [onnx.tensor("layer.bias", onnx.F32, [2], onnx.floats(0, 0))]))
        npy(self.work / "row.npy", "<f4", (1, 2), onnx.floats(1, 1))

        def safetensors(name, tensors):
            header, data = {}, b""
            for key, (dtype, shape, content) in tensors.items():
                header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
                data += content
            head = json.dumps(header).encode()
            self.work.joinpath(name).write_bytes(struct.pack("<Q", len(head)) + head + data)
            return name
        full = safetensors("full.safetensors", {
            "layer.weight": ("F32", [2, 2], onnx.floats(1, 2, 3, 4)),
            "layer.bias": ("F16", [2], struct.pack("<2e", 10, 20)), "rest": ("F32", [1], onnx.floats(0))})
        gguf = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 12) + b"layer.weight" + struct.pack(
            "<IQQIQ", 2, 2, 2, 0, 0)
        self.work.joinpath("w.gguf").write_bytes(gguf + bytes(-len(gguf) % 32) + onnx.floats(1, 2, 3, 4))
        npy(self.work / "w.npy", "<f4", (2, 2), onnx.floats(1, 2, 3, 4))
        with zipfile.ZipFile(self.work / "w.npz", "w") as archive:
            archive.write(self.work / "w.npy", "layer.weight.npy")
        for file, expected in ((full, (14, 26)), ("w.gguf", (4, 6)), ("w.npz", (4, 6))):
            for strategy in ("auto", "ref"):
                done = self.hone("run", "linear.onnx", "--weights", file, "-i", "row.npy", "-o", "out-w",
                                 "--strategy", strategy)
                self.assertEqual(done.returncode, OK, done.stderr)
                self.assertEqual(self.work.joinpath("out-w", "y.npy").read_bytes()[-8:], onnx.floats(*expected))
                self.assertEqual("1 of 3 given weights are not in the model: rest" in done.stderr, file == full)
        done = self.hone("optimize", "linear.onnx", "--weights", full, "-o", "linear.hone", "--rounds", 3, "-q")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertEqual(self.hone("run", "linear.hone", "-i", "row.npy", "-o", "out-w", "-q").returncode, OK)
        self.assertEqual(self.work.joinpath("out-w", "y.npy").read_bytes()[-8:], onnx.floats(14, 26))
        for name, tensors, words in (
                ("shape", {"layer.weight": ("F32", [4], onnx.floats(1, 2, 3, 4))}, ["layer.weight", "f32[4]"]),
                ("kind", {"layer.bias": ("I32", [2], bytes(8))}, ["layer.bias", "only floats"]),
                ("names", {"model.layer.weight": ("F32", [2, 2], bytes(16))}, ["none of the given weights"])):
            done = self.hone("run", "linear.onnx", "--weights", safetensors(name, tensors), "-i", "row.npy")
            self.assertEqual(done.returncode, USER, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)

    def test_a_plan_of_several_functions_is_exported_for_chosen_sizes(self):
        # The rank of the result depends on whether n is 1.
        then = onnx.graph([onnx.node("Squeeze", ["x"], ["a"])], [], [onnx.value("a", onnx.F32, ["m"])])
        other = onnx.graph([onnx.node("Identity", ["x"], ["b"])], [], [onnx.value("b", onnx.F32, ["n", "m"])])
        self.work.joinpath("ranks.onnx").write_bytes(onnx.model(
            [onnx.node("Shape", ["x"], ["s"]), onnx.node("Gather", ["s", "zero"], ["n"], ints=[("axis", 0)]),
             onnx.node("Equal", ["n", "one"], ["c"]),
             onnx.node("If", ["c"], ["y"], [("then_branch", then), ("else_branch", other)])],
            [onnx.value("x", onnx.F32, ["n", 3])], [onnx.value("y", onnx.F32, ["k"])],
            [onnx.tensor("zero", onnx.I64, [], bytes(8)), onnx.tensor("one", onnx.I64, [], struct.pack("<q", 1))]))
        done = self.hone("optimize", "ranks.onnx", "-o", "ranks.hone", "--rounds", 3, "--strategies", "cpu", "-q")
        self.assertEqual(done.returncode, OK, done.stderr)
        done = self.hone("export", "ranks.hone", "-o", "ranks-again.onnx")
        self.assertEqual(done.returncode, USER, done.stderr)
        self.assertIn("--dim n=SIZE", done.stderr)
        npy(self.work / "five.npy", "<f4", (5, 3), bytes(range(60)))
        done = self.hone("export", "ranks.hone", "-o", "ranks-again.onnx", "--dim", "n=5")
        self.assertEqual(done.returncode, OK, done.stderr)
        done = self.hone("run", "ranks-again.onnx", "-i", "five.npy", "-o", "out-ranks", "-q")
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertEqual(self.work.joinpath("out-ranks", "y.npy").read_bytes()[-60:], bytes(range(60)))

    def test_files_that_others_wrote_are_not_replaced_by_a_program_in_c(self):
        place = self.work / "project"
        place.mkdir()
        place.joinpath("CMakeLists.txt").write_text("project(mine)\n")
        done = self.hone("aot", DIGITS, "-o", place, "--dim", "batch=1")
        self.assertEqual(done.returncode, USER, done.stderr)
        self.assertIn("another CMakeLists.txt", done.stderr)
        self.assertEqual(place.joinpath("CMakeLists.txt").read_text(), "project(mine)\n")

    def test_arrays_of_an_npz_are_inputs(self):
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(self.work / "named.npz", "w", compression) as archive:
                archive.write(self.work / "x.npy", "image.npy")
            for command in (["run", "digits.hone", "-o", "out"], ["bench", "digits.hone", "--duration", "0.01"],
                            ["optimize", DIGITS, "-o", "npz.hone", "--rounds", 3, "--strategies", "cpu"]):
                done = self.hone(*command, "-i", "named.npz", "-q")
                self.assertEqual(done.returncode, OK, done.stderr)

    def test_optimize_takes_samples_in_both_layouts(self):
        sets = self.work / "sets" / "test_data_set_0"
        sets.mkdir(parents=True)
        shutil.copy(self.work / "x.npy", sets / "input_0.npy")
        named = self.work / "by-name"
        named.mkdir()
        shutil.copy(self.work / "x.npy", named / "image.npy")
        for arguments in (["--inputs", sets.parent], ["--inputs", sets], ["--inputs", named], ["-i", "image=x.npy"]):
            done = self.hone("optimize", DIGITS, "-o", "s.hone", "--rounds", 3, "--strategies", "cpu", "--json",
                             *arguments)
            self.assertEqual(done.returncode, OK, done.stderr)
            self.assertEqual(json.loads(done.stdout)["inputs"], [])

    def test_the_table_says_how_it_was_timed(self):
        done = self.hone("optimize", DIGITS, "-o", "t.hone", "--rounds", 3, "--dim", "batch=3..9", "--threads", 2)
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertRegex(done.stdout, r"timed: batch = 3, 2 threads on \d+ processors?, \d+ rounds, other processes")
        self.assertRegex(done.stdout, r"'image' f32\[3,1,8,8\]: -1 to 1")
        self.assertIn("timed once", done.stdout)
        self.assertNotIn("multi", done.stdout)
        told = json.loads(self.hone("optimize", DIGITS, "-o", "t.hone", "--rounds", 3, "--json").stdout)
        self.assertEqual(told["timing"]["sizes"], "batch = 1")
        self.assertGreaterEqual(told["timing"]["busy"], 0)
        # Times that contradict the choice were taken again.
        chosen = next(s for s in told["strategies"] if s["chosen"])
        if any(0 < s["ms"] < 0.9 * chosen["ms"] for s in told["strategies"]):
            self.assertEqual(told["timing"]["repeats"], 2, told["strategies"])

    def test_hone_run_says_the_same(self):
        for arguments, code, words in WRONG_USES:
            if len(arguments) < 2 or arguments[0] != "run" or arguments[1] == DIGITS:
                continue
            if "--dim" in arguments or "--weights" in arguments or "renamed.hone" in arguments:
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
                self.assertLessEqual(len(done.stdout.splitlines()), 46)
                self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
                self.assertRegex(done.stdout, r"example(s)?:\n  (\w+=\w+ )?hone ")
                self.assertIn("exit codes: 0 success", done.stdout)
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
        self.assertEqual([(o["name"], len(o["types"])) for o in told["outputs"]], [("logits", 1)])
        self.assertIn("outputs (1)\n  logits: f32[batch,10]\n", fine.stdout)
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
        self.assertIn("writable by others", cache["problem"])
        self.assertIn("HONE_CACHE_DIR", cache["hint"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
