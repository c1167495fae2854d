"""What a core elementwise operation costs, shown for erf: its Op, its word in the list of operations,
and a function in each of the two renderers. Fails when another source file starts to name it."""

import pathlib
import re
import unittest

SRC = pathlib.Path(__file__).parents[2] / "src"
# What must be written for the operation, and its word in the list.
OWN = {"ops/unary.cpp", "codegen/llvm/math.cpp", "codegen/c/helpers_math.cpp"}
LIST = {"ops/ops.h"}
# What uses the operation for something else: gelu is made of it, and found again in a graph. The probits
# of classifiers are its inverse. The policy of precision lists it; an operation that it does not list is
# computed in f32. ONNX has erf of integers, too.
USERS = {"ops/activation.cpp", "pass/raise.cpp", "pass/precision.cpp", "import/onnx/operators/ml_models.cpp",
         "import/onnx/operators/elementwise.cpp"}
# A faster form for one machine, which no operation needs to have.
FASTER = {"codegen/llvm/math_pieces.cpp", "codegen/llvm/math_detail.h"}
# The second reading of models, which shares no code with what it judges.
JUDGE = {"verify/onnx/elementwise.cpp", "verify/onnx/contrib.cpp"}
# What people build models with shows it under the field's name; no operation needs that.
API = {"tensor/functions.h", "tensor/elementwise.cpp"}
# Functions of the C library that kernels may call, whether an operation needs them or not, and those of
# doubles that a language without that library has instead.
C_LIBRARY = {"plan/binary.cpp", "backend/cpu/device/helpers.cpp", "backend/vulkan/target/glsl_math.cpp"}
# erf, ops::erf, "Erf", erf_f32, hone_erf_f32, but not erfc.
NAME = re.compile(r"(?<![A-Za-z])(?:[Ee]rf)(?![A-Za-bd-z]|c)")


class OpCost(unittest.TestCase):
    def test_erf(self):
        named = {f.relative_to(SRC).as_posix() for f in [*SRC.rglob("*.h"), *SRC.rglob("*.cpp")]
                 if NAME.search(f.read_text())}
        self.assertEqual(named - USERS - FASTER - JUDGE - API - C_LIBRARY, OWN | LIST)
        self.assertLessEqual(len(OWN), 3)


unittest.main()
