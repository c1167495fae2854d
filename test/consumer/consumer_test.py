"""A project outside the tree against an installation in a moved prefix.
usage: consumer_test.py BUILD_DIR"""

import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parents[1] / "examples" / "digits"
NOT_IN_RUNTIME = re.compile(r"LLVM|dnnl|protobuf|gomp|tbb|spdlog|fmt")
RUNTIME_BYTES = 3 << 20
RUNTIME_HEADER_SECONDS = 0.3


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def cpu_seconds(*command, **options):
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before = spent()
    run(*command, **options)
    return spent() - before


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
            f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
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
        example = self.build(DIGITS, "digits") / "digits"
        self.assertIn("447 of 450", run(example, plan, DIGITS / "images.npy", DIGITS / "labels.npy",
                                        DIGITS / "logits.npy"))

    def test_every_header_compiles_alone_and_needs_no_third_party(self):
        headers = sorted(self.include.rglob("*.h"))
        self.assertGreaterEqual(len(headers), 2)
        for header in headers:
            for name in re.findall(r"#\s*include\s*(\S+)", header.read_text()):
                self.assertRegex(name, r"^<(hone/[\w/]+\.h|std\w+\.h|\w+)>$", header)
            name = header.relative_to(self.include)
            run("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", self.include,
                "-x", "c++", "-", input=f"#include <{name}>\n")
        run("gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I",
            self.include, "-x", "c", "-", input="#include <hone/c.h>\n")

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

    def test_the_runtime_header_compiles_fast(self):
        def median(text):
            return statistics.median(
                cpu_seconds("g++", "-std=c++20", "-fsyntax-only", "-I", self.include, "-x", "c++", "-",
                            input=text) for _ in range(5))
        # On a busy machine both figures grow: 0.3 s is four times what <vector> alone takes.
        limit = max(RUNTIME_HEADER_SECONDS, 4 * median("#include <vector>\n"))
        self.assertLessEqual(median("#include <hone/runtime.h>\n"), limit)


unittest.main(argv=sys.argv[:1])
