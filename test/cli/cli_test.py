"""The programs as a user meets them: help, every error with its code and what to do, what they print, JSON.
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
import unittest
import zipfile

from command_case import BUILD, ROOT, CommandCase, npy
from wrong_uses import DIFFERS, DIGITS, OK, USAGE, USER, WRONG_USES

COMMANDS = ["optimize", "run", "bench", "selftest", "reduce", "validate", "explain", "aot", "export", "inspect", "check", "ops", "devices",
            "doctor", "flags"]


class RunsWhenRead:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


class Cli(CommandCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
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
        npy(w / "x2.npy", "<f4", (1, 1, 8, 9))
        npy(w / "rank.npy", "<f4", (64,))
        npy(w / "x64.npy", "<f8", (1, 1, 8, 8))
        w.joinpath("short.raw").write_bytes(bytes(10))
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

    def test_a_strategy_without_a_part_says_why(self):
        done = self.hone("optimize", DIGITS, "-o", "multi.hone", "--rounds", 3, "--json",
                         "--strategies", "multi,auto")
        self.assertEqual(done.returncode, OK, done.stderr)
        multi, auto = json.loads(done.stdout)["strategies"]
        self.assertIn("skipped: needs at least two devices", multi["failure"])
        self.assertTrue(auto["chosen"])

    def test_optimize_says_what_verification_tried(self):
        done = self.hone("optimize", DIGITS, "-o", "told.hone", "--rounds", 3)
        self.assertRegex(done.stdout, r"verified: (\d+) of \1 nodes .*; \d+ kernels.* the model in .* batch = \d+.* 1, 2, 4, 7, 16 threads")
        told = json.loads(self.hone("optimize", DIGITS, "-o", "told.hone", "--rounds", 3, "--json").stdout)
        self.assertEqual(told["verified"]["threads"], [1, 2, 4, 7, 16])
        self.assertEqual(told["read_again"]["judged"], told["read_again"]["nodes"])
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
        for run in ("seed=x", "seed=1 n=four", "seed=1 n=99999999999999999999"):
            pathlib.Path(self.work, "broken.hone-ir").write_text(f"run {run}\n")
            done = self.hone("reduce", "broken.hone-ir")
            self.assertEqual(done.returncode, USER, done.stderr)
            self.assertIn(f"a run has '{run.split()[-1]}', expected an integer", done.stderr)

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

    def test_a_misspelt_variable_is_told(self):
        told = self.hone("ops", HONE_TREADS="2")
        self.assertEqual(told.returncode, OK)
        self.assertIn("HONE_TREADS is not read; did you mean HONE_THREADS?", told.stderr)
        self.assertEqual(self.hone("ops", "--quiet", HONE_TREADS="2").stderr, "")
        self.assertEqual(self.hone("ops", HONE_ELSEWHERE_UNKNOWN="2").stderr, "")

    def test_files_that_others_wrote_are_not_replaced_by_a_program_in_c(self):
        place = self.work / "project"
        place.mkdir()
        place.joinpath("CMakeLists.txt").write_text("project(mine)\n")
        done = self.hone("aot", DIGITS, "-o", place, "--dim", "batch=1")
        self.assertEqual(done.returncode, USER, done.stderr)
        self.assertIn("another CMakeLists.txt", done.stderr)
        self.assertEqual(place.joinpath("CMakeLists.txt").read_text(), "project(mine)\n")

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
