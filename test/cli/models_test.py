"""Models whose sizes, numbers or warnings the programs must treat well.
usage: models_test.py BUILD_DIR"""

import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import onnx_writer as onnx

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits/digits.onnx"
SILERO = pathlib.Path(os.environ.get("HONE_MODELS") or ROOT / "../shared/models") / "silero_vad/model.onnx"
OK, DIFFERS, USER = 0, 1, 3


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="hone-models-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.environment = {k: v for k, v in os.environ.items() if not k.startswith("HONE_")}
        cls.environment["HONE_CACHE_DIR"] = str(cls.work / "cache")

    def hone(self, *arguments, code=OK, **more):
        done = subprocess.run([str(BUILD / "hone"), *map(str, arguments)], cwd=self.work, text=True,
                              capture_output=True, env=self.environment, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def write(self, name, *parts):
        self.work.joinpath(name).write_bytes(onnx.model(*parts))
        return name

    # ---- sizes that the model demands

    def optimize_keeps_auto(self, model, *options):
        told = json.loads(self.hone("optimize", model, "-o", "demanded.hone", "--rounds", 2, "--json",
                                    *options).stdout)
        auto = next(s for s in told["strategies"] if s["name"] == "auto")
        self.assertEqual(auto["failure"], "")
        self.assertTrue(all(not t["missing"] for t in told["self_tests"]), told)

    def test_two_open_sizes_that_a_constant_demands(self):
        model = self.write(
            "added.onnx", [onnx.node("Add", ["x", "table"], ["y"])], [onnx.value("x", onnx.F32, ["h", "w"])],
            [onnx.value("y", onnx.F32, ["h", "w"])],
            [onnx.tensor("table", onnx.F32, [3, 14], onnx.floats(*range(42)))])
        self.optimize_keeps_auto(model)
        self.optimize_keeps_auto(model, "--shapes", "x:3x14")

    def test_two_open_sizes_whose_product_is_demanded(self):
        model = self.write(
            "flat.onnx", [onnx.node("Flatten", ["x"], ["f"]), onnx.node("Gemm", ["f", "w"], ["y"])],
            [onnx.value("x", onnx.F32, [1, 2, "h", "v"])], [onnx.value("y", onnx.F32, [1, 3])],
            [onnx.tensor("w", onnx.F32, [24, 3], onnx.floats(*range(72)))])
        self.optimize_keeps_auto(model, "--shapes", "x:1x2x3x4")
        raw = self.work / "x.raw"
        raw.write_bytes(onnx.floats(*range(24)))
        done = self.hone("run", model, "-i", f"x={raw}", "--shapes", "x:1x2x3x4", "-o", "flat")
        self.assertIn("y: f32[1,3]", done.stdout)

    def test_few_of_many_inputs_are_listed_unless_all_are_asked_for(self):
        names = [f"x{i}" for i in range(20)]
        model = self.write("many.onnx", [onnx.node("Sum", names, ["y"])], [onnx.value(n, onnx.F32, [2]) for n in names],
                           [onnx.value("y", onnx.F32, [2])])
        for command in (["optimize", "--strategies", "cpu"], ["bench", "--duration", "0.01"]):
            done = self.hone(command[0], model, *command[1:], "-q", "--verbose")
            self.assertNotIn("inputs: random", done.stdout, "quiet")
            for arguments, shown in ([], 8), (["--verbose"], 20):
                done = self.hone(command[0], model, *command[1:], *arguments)
                self.assertEqual(len(re.findall(r"^  'x\d+' f32\[2\]: -1 to 1$", done.stdout, re.M)), shown)
                self.assertEqual("and 12 more inputs (--verbose prints all)" in done.stdout, shown == 8)
                if command[0] == "optimize":
                    self.assertEqual("x7 f32[2] and 12 more" in done.stdout, shown == 8)

    def test_a_tile_by_data_is_verified_in_time(self):
        model = self.write(
            "tile.onnx", [onnx.node("Tile", ["x", "n"], ["y"])],
            [onnx.value("x", onnx.F32, [2, 3]), onnx.value("n", onnx.I64, [2])],
            [onnx.value("y", onnx.F32, ["a", "b"])])
        done = self.hone("optimize", model, "-o", "tile.hone", "--rounds", 2, "--deadline", 60, "--json")
        told = json.loads(done.stdout)
        self.assertTrue(any(s["chosen"] and not s["failure"] for s in told["strategies"]), told)

    def test_open_sizes_beside_a_number_of_axes_are_compiled_in_time(self):
        """The variant for three axes serves no power of two, whatever the other sizes are."""
        model = self.write(
            "unsqueeze.onnx", [onnx.node("Unsqueeze", ["x", "axes"], ["y"])],
            [onnx.value("x", onnx.F32, [0, "a", "b"]), onnx.value("axes", onnx.I64, ["k"])],
            [onnx.value("y", onnx.F32, ["p", "q", "r", "s", "t"])])
        told = json.loads(self.hone("optimize", model, "-o", "unsqueeze.hone", "--strategies", "auto", "--rounds", 2,
                                    "--deadline", 60, "--json").stdout)
        self.assertEqual([t["missing"] for t in told["self_tests"] if t["missing"]], [])

    def test_each_number_of_axes_has_a_self_test(self):
        """Axes that differ for Squeeze, a shape that fits for Reshape."""
        for op, sizes, most in (("Squeeze", [1, "a", 1, "b"], 4), ("Reshape", ["a", "b"], 8)):
            model = self.write(f"{op}.onnx", [onnx.node(op, ["x", "which"], ["y"])],
                               [onnx.value("x", onnx.F32, sizes), onnx.value("which", onnx.I64, ["k"])],
                               [onnx.value("y", onnx.F32, None)])
            told = json.loads(self.hone("optimize", model, "-o", f"{op}.hone", "--strategies", "cpu", "--rounds", 2,
                                        "--json").stdout)
            self.assertEqual([t["missing"] for t in told["self_tests"] if t["missing"]], [])
            tested = set(re.findall(r"which i64\[(\d)\]", " ".join(t["inputs"] for t in told["self_tests"])))
            self.assertEqual(tested, set(map(str, range(1, most + 1))))

    # ---- steps that rounding decides

    def test_a_quantized_network_with_numbers_on_the_edge_of_a_step_is_optimized(self):
        model = ROOT / "test/stored/models/changed_dynamic_transformers_vit_edges.onnx"
        told = json.loads(self.hone("optimize", model, "-o", "edges.hone", "--json").stdout)
        for name in ("cpu", "auto"):
            self.assertEqual(next(s for s in told["strategies"] if s["name"] == name)["failure"], "")

    def validate_rounded(self, expected, code):
        """Of 3 x, rounded to whole numbers: 2.5, which is 2 or 3, and 1.2."""
        folder = self.work / "rounded"
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        folder.joinpath("model.onnx").write_bytes(onnx.model(
            [onnx.node("Mul", ["x", "three"], ["z"]), onnx.node("Round", ["z"], ["y"])],
            [onnx.value("x", onnx.F32, [2])], [onnx.value("y", onnx.F32, [2])],
            [onnx.tensor("three", onnx.F32, [1], onnx.floats(3))]))
        data.joinpath("input_0.pb").write_bytes(onnx.tensor("x", onnx.F32, [2], onnx.floats(2.5 / 3, 0.4)))
        data.joinpath("output_0.pb").write_bytes(onnx.tensor("y", onnx.F32, [2], onnx.floats(*expected)))
        return json.loads(self.hone("validate", folder, "--strategy", "ref,cpu", "--json", code=code).stdout)

    def test_a_step_that_rounding_decides_is_no_difference(self):
        rows = self.validate_rounded((2, 1), OK) + self.validate_rounded((3, 1), OK)
        self.assertEqual({r["rounding_decides_a_step"] for r in rows}, {True, False})
        self.assertTrue(all(not r["ok"] for r in self.validate_rounded((3, 2), DIFFERS)))

    # ---- limits of the machine

    def test_little_address_space_is_told(self):
        """Whatever fits runs, and what does not is a message: never a signal."""
        codes = set()
        for megabytes in (64, 128, 192, 256, 384, 512, 1024, 4096):
            def limit():
                resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
            done = subprocess.run([str(BUILD / "hone"), "bench", DIGITS, "--duration", "0.01"], cwd=self.work,
                                  capture_output=True, text=True, env=self.environment, preexec_fn=limit)
            with self.subTest(megabytes):
                # 127: the loader of programs found no place for the libraries.
                self.assertIn(done.returncode, (OK, USER, 127), done.stderr)
                self.assertNotIn("defect", done.stderr)
                if done.returncode != OK:
                    self.assertRegex(done.stderr, "(?i)memory|shared object")
            codes.add(done.returncode)
        self.assertIn(OK, codes)

    # ---- silero_vad, whose branches hold for some sizes only

    @unittest.skipUnless(SILERO.is_file(), "NOTHING WAS TESTED: no silero_vad")
    def test_warnings_of_silero_are_one_line_in_words(self):
        few = ("--strategies", "cpu", "--rounds", 2, "--verify", "none")
        done = self.hone("optimize", SILERO, "-o", "silero.hone", *few)
        told = [l for l in done.stderr.splitlines() if "warning" in l and "no second reading" not in l]
        self.assertEqual(len(told), 1, done.stderr)
        self.assertIn("for some input sizes a branch of this model cannot run", told[0])
        self.assertIn("--verbose prints", told[0])
        full = self.hone("optimize", SILERO, "-o", "silero.hone", *few, "--verbose")
        self.assertIn("warning: for sizes with ", full.stderr)
        self.assertNotIn("--verbose", full.stderr)
        refused = self.hone("export", "silero.hone", "-o", "silero.onnx", code=USER)
        self.assertIn("choose it with --dim input_d0=SIZE --dim input_d1=SIZE", refused.stderr)
        self.hone("export", "silero.hone", "-o", "silero.onnx", "--dim", "input_d0=1", "--dim", "input_d1=576")
        self.hone("check", "silero.onnx")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
