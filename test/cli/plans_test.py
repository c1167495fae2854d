"""What the commands make of a model and its inputs: plans for targets and precisions, limits, sizes and ranks that
inputs decide, weights from other files, samples.
usage: plans_test.py BUILD_DIR"""

import json
import os
import shutil
import struct
import sys
import unittest
import zipfile

import onnx_writer as onnx
from command_case import CommandCase, npy
from wrong_uses import DIGITS, OK, USAGE, USER


class Plans(CommandCase):
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

    def test_inputs_become_states(self):
        def model(name, sizes):
            self.work.joinpath(name).write_bytes(onnx.model(
                [onnx.node("Add", ["x", "past"], ["y"]), onnx.node("Mul", ["y", "half"], ["present"])],
                [onnx.value("x", onnx.F32, sizes), onnx.value("past", onnx.F32, sizes)],
                [onnx.value("y", onnx.F32, sizes), onnx.value("present", onnx.F32, sizes)],
                [onnx.tensor("half", onnx.F32, [], onnx.floats(0.5))]))

        model("memory.onnx", [2])
        done = self.hone("optimize", "memory.onnx", "-o", "memory.hone", "--state", "past=present", "--rounds", 3,
                         "--budget", 1)
        self.assertEqual(done.returncode, OK, done.stderr)
        shown = json.loads(self.hone("inspect", "memory.hone", "--json").stdout)
        self.assertEqual([s["name"] for s in shown["states"]], ["past"])
        self.assertEqual([i["name"] for i in shown["inputs"]], ["x"])
        self.assertEqual([o["name"] for o in shown["outputs"]], ["y"])
        npy(self.work / "x2.npy", "<f4", (2,), struct.pack("<2f", 1, 2))
        state = []
        for number, wanted in enumerate([[1, 2], [1.5, 3], [1.75, 3.5]]):
            done = self.hone("run", "memory.hone", "-i", "x2.npy", "-o", "memory", *state, "--save-state", "s")
            self.assertEqual(done.returncode, OK, done.stderr)
            data = (self.work / "memory" / "y.npy").read_bytes()
            self.assertEqual(list(struct.unpack("<2f", data[-8:])), wanted, number)
            state = ["--state", "s"]
        for words, says in {("past=presence",): "no output 'presence'", ("passed=present",): "no input 'passed'",
                            ("past=present", "--state", "past=y"): "named twice"}.items():
            done = self.hone("optimize", "memory.onnx", "-o", "no.hone", "--state", *words)
            self.assertEqual(done.returncode, USER, done.stderr)
            self.assertIn(says, done.stderr)
        self.assertEqual(self.hone("optimize", "memory.onnx", "-o", "no.hone", "--state", "past").returncode, USAGE)
        model("open.onnx", ["n"])
        done = self.hone("optimize", "open.onnx", "-o", "no.hone", "--state", "past=present")
        self.assertIn("the other sizes of a state are fixed; give them with --dim", done.stderr)

    def test_caches_grow(self):
        parts = [["past.a", "x", "present.a"], ["past.b", "y", "present.b"]]
        self.work.joinpath("cache.onnx").write_bytes(onnx.model(
            [onnx.node("Neg", ["x"], ["y"]),
             *[onnx.node("Concat", [past, new], [now], ints=[("axis", 1)]) for past, new, now in parts],
             onnx.node("ReduceSum", ["present.b", "axes"], ["sum"], ints=[("keepdims", 0)])],
            [onnx.value("x", onnx.F32, [1, 1]), *[onnx.value(p, onnx.F32, [1, "past"]) for p, _, _ in parts]],
            [onnx.value("sum", onnx.F32, [1]), *[onnx.value(p, onnx.F32, [1, "now"]) for _, _, p in parts]],
            [onnx.tensor("axes", onnx.I64, [1], struct.pack("<q", 1))]))
        done = self.hone("optimize", "cache.onnx", "-o", "cache.hone", "--state", "past.*=present.*", "--dim", "past=0..3",
                         "--rounds", 3, "--budget", 1)
        self.assertEqual(done.returncode, OK, done.stderr)
        shown = json.loads(self.hone("inspect", "cache.hone", "--json").stdout)
        self.assertEqual([(s["name"], s["type"], s["start"]) for s in shown["states"]],
                         [(p, "f32[1,4], up to 4 along axis 1", "empty") for p, _, _ in parts])
        state = []
        for number, wanted in enumerate([-1, -3, -6, -10, None]):
            npy(self.work / "row.npy", "<f4", (1, 1), struct.pack("<f", number + 1))
            done = self.hone("run", "cache.hone", "-i", "x=row.npy", "-o", "cache", *state, "--save-state", "s")
            if wanted is None:
                self.assertEqual(done.returncode, USER)
                self.assertIn("state 'past.a' holds 4 along axis 1, but entry 'main' takes 0 to 3", done.stderr)
                break
            self.assertEqual(done.returncode, OK, done.stderr)
            self.assertEqual(struct.unpack("<f", (self.work / "cache" / "sum.npy").read_bytes()[-4:])[0], wanted)
            state = ["--state", "s"]
        for words, says in {("past.*=present",): "a * on one side only", ("old.*=present.*",): "no input is named like",
                            ("past.*=now.*",): "no output 'now.a'"}.items():
            done = self.hone("optimize", "cache.onnx", "-o", "no.hone", "--dim", "past=0..3", "--state", *words)
            self.assertEqual(done.returncode, USER, done.stderr)
            self.assertIn(says, done.stderr)
        done = self.hone("optimize", "cache.onnx", "-o", "no.hone", "--state", "past.*=present.*")
        self.assertIn("give past a range whose end says how much the state can hold", done.stderr)
        done = self.hone("optimize", "cache.onnx", "-o", "no.hone", "--dim", "past=2", "--state", "past.*=present.*")
        self.assertIn("along which it may grow", done.stderr)

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

    def test_inputs_by_name_in_three_spellings_and_raw(self):
        name = json.loads(self.hone("inspect", "digits.hone", "--json").stdout)["inputs"][0]["name"]
        for given in (f"{name}=x.npy", f"{name}:x.npy", "x.npy", f"{name}=x.raw", "x.raw"):
            done = self.hone("run", "digits.hone", "-i", given, "-o", "out", "-q")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (OK, "", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
