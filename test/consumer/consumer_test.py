"""A project outside the tree against an installation in a moved prefix.
usage: consumer_test.py BUILD_DIR"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parents[1] / "examples" / "digits"
NOT_IN_RUNTIME = re.compile(r"LLVM|dnnl|protobuf|gomp|tbb|spdlog|fmt")
RUNTIME_BYTES = 3 << 20
# Of what <string> and <vector> alone come to, in lines: they take 0.2 s with GCC 12.
RUNTIME_HEADER_LINES = 1.3
# Of what <functional> and <memory> alone come to, which take half of the header's second.
MODEL_HEADER_LINES = 1.25


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


class Consumer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="hone-consumer-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        run("cmake", "--install", BUILD, "--prefix", cls.work / "first")
        cls.prefix = cls.work / "moved" / "prefix"
        cls.prefix.parent.mkdir()
        (cls.work / "first").rename(cls.prefix)
        cls.include = cls.prefix / "include"
        cls.library, = cls.prefix.glob("lib*/**/libhone_runtime.so")

    def test_the_installation_names_no_place_of_the_build(self):
        for path in self.prefix.rglob("*.cmake"):
            for place in (BUILD, HERE.parents[1], self.work / "first"):
                self.assertNotIn(str(place), path.read_text(), path)

    def build(self, source, name):
        out = self.work / name
        run("cmake", "-S", source, "-B", out, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
        run("cmake", "--build", out)
        return out

    def plan(self):
        plan = self.work / "digits.hone"
        environment = {**os.environ, "HONE_CACHE_DIR": str(self.work / "cache")}
        run(self.prefix / "bin" / "hone", "optimize", DIGITS / "digits.onnx", "-o", plan, "-q",
            env=environment)
        return plan

    def test_a_project_finds_builds_and_runs(self):
        plan, out = self.plan(), self.build(HERE, "consumer")
        logits = run(out / "load", plan)
        self.assertEqual(len(logits.split()), 10)
        self.assertEqual(run(out / "load_c", plan), logits)
        self.assertEqual(run(out / "no_exceptions", plan), logits)
        self.compile_in_a_program(out)
        example = self.build(DIGITS, "digits") / "digits"
        self.assertIn("447 of 450", run(example, plan, DIGITS / "images.npy", DIGITS / "labels.npy",
                                        DIGITS / "logits.npy"))

    def compile_in_a_program(self, out):
        """A function built in C++, compiled, run, saved, and loaded by a program without compiler."""
        saved = self.work / "linear.hone"
        lines = run(out / "compile", DIGITS / "digits.onnx", saved, env={
            **os.environ, "HONE_CACHE_DIR": str(self.work / "cache")}).splitlines()
        self.assertEqual(lines[10:12], ["loaded: equal", "imported: digits, 1 inputs"])
        self.assertRegex(lines[12], r"^graph: matmul: .*3.*4")
        self.assertRegex(lines[13], r"^file: /nowhere/model.hone: cannot be opened: ")
        self.assertEqual(run(out / "load", saved).split(), lines[:10])
        self.assertGreater(sum(float(x) for x in lines[:10]), 0)
        self.assertRegex(run("ldd", out / "compile"), "libhone_runtime.so.*(.|\n)*libLLVM")
        self.assertNotRegex(run("ldd", out / "load"), "libhone.so|LLVM")

    def test_headers_are_whole_and_need_no_third_party(self):
        headers = {h.relative_to(self.include).as_posix(): h.read_text()
                   for h in self.include.rglob("*.h")}
        for header, text in headers.items():
            for name in re.findall(r"#\s*include\s*<(\S+)>", text):
                self.assertTrue(name in headers or re.fullmatch(r"std\w+\.h|\w+", name),
                                f"{header}: {name}")
            self.assertNotRegex(text, r'#\s*include\s*"', header)
        strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", self.include]
        for compiler in ("g++", "clang++-19"):
            for header in ("hone/hone.h", "hone/compiler.h", "hone/runtime.h"):
                run(compiler, "-std=c++20", *strict, "-x", "c++", "-", input=f"#include <{header}>\n")
            for source in [*HERE.glob("*.cpp"), DIGITS / "main.cpp"]:
                run(compiler, "-std=c++20", *strict, source)
        for compiler in ("gcc", "clang-19"):
            run(compiler, "-std=c11", *strict, "-x", "c", "-", input="#include <hone/c.h>\n")
            run(compiler, "-std=c11", *strict, HERE / "load.c")

    def test_the_runtime_is_small_and_links_no_compiler(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", self.library))
        self.assertIn("libc.so.6", needed)
        self.assertEqual([n for n in needed if NOT_IN_RUNTIME.search(n)], [])
        stripped = self.work / "stripped.so"
        run("strip", "-o", stripped, self.library)
        self.assertLessEqual(stripped.stat().st_size, RUNTIME_BYTES)

    def test_libraries_export_our_names_only(self):
        for library in self.library.parent.glob("libhone*.so"):
            for line in run("nm", "-DC", "--defined-only", library).splitlines():
                self.assertRegex(line.split(" ", 2)[2],
                                 r"^(hone_|(typeinfo (name )?for |vtable for )?hone::|HONE_)", library)

    def lines(self, text):
        return len(run("g++", "-std=c++20", "-E", "-P", "-I", self.include, "-x", "c++", "-",
                       input=text).splitlines())

    def test_the_runtime_header_is_light(self):
        self.assertLessEqual(self.lines("#include <hone/runtime.h>\n"), RUNTIME_HEADER_LINES *
                             self.lines("#include <string>\n#include <vector>\n"))

    def test_the_header_for_models_is_light_and_shows_no_compiler(self):
        own = re.findall(r"include/hone/(\S+)", run(
            "g++", "-std=c++20", "-MM", "-I", self.include, "-x", "c++", "-",
            input="#include <hone/hone.h>\n"))
        self.assertLessEqual(len(own), 25)
        self.assertEqual([h for h in own if not re.match(r"(base|type|tensor|nn)/|[^/]*$", h)], [])
        self.assertLessEqual(self.lines("#include <hone/hone.h>\n"), MODEL_HEADER_LINES *
                             self.lines("#include <functional>\n#include <memory>\n"))


unittest.main(argv=sys.argv[:1])
