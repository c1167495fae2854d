"""The changes that tools/mutate --campaign makes: planted ones in a small program are found, stand behind
their switches in one build, say that they were reached, and what does not compile is left out. That a
campaign works as a whole only a build of the whole tree shows, which is not done here."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutate"))
import campaign
import prepare
import schemata

PROGRAM = """
#include <algorithm>
#include <cstdio>
#include <vector>
struct Sizes { int rows = 3, columns = 4; };
int order(int a, int b) { return a * 10 + b; }
constexpr int fixed() { return 7; }
int sum(const std::vector<int>& v, const Sizes& s, int first, int last) {
  int out = 0;
  for (int i = first; i < last; ++i)
    out += v[static_cast<std::size_t>(i)];
  if (out > 1000) return -1;
  out += s.columns;
  return order(out,
               first) + static_cast<int>(fixed());
}
void never() { std::puts("never"); }
int main() {
  std::printf("%d", sum({1, 2, 3, 500}, {}, 1, 3));
  return 0;
}
"""


class Mutate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.scratch.name)
        (cls.root / "src/base").mkdir(parents=True)
        cls.file = cls.root / "src/program.cpp"
        cls.file.write_text(PROGRAM)
        sources = prepare.sources(cls.root, cls.root)
        schemata.support(cls.root / "src", 1000)
        every = dict(enumerate(sources.sites(cls.file)))
        cls.wrong = len(every)
        at = PROGRAM.index("first; i <")
        every[cls.wrong] = schemata.Change("wrong variable", at, at + 5, "nothing_of_this_name", line=10)
        cls.kept = sources.compiling(cls.file, every)
        text, _ = schemata.weave(cls.file.read_bytes(), cls.kept)
        cls.file.write_text(text)
        cls.program = cls.root / "program"
        subprocess.run(["g++", "-std=c++20", "-w", f"-I{cls.root}/src", cls.file, cls.root / "src/base/mutant.cpp",
                        "-o", cls.program], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def run_with(self, n=None, reached=None):
        switches = {} if n is None else {"HONE_MUTANT": str(n)}
        if reached:
            switches["HONE_MUTANT_REACHED"] = str(reached)
        return subprocess.run([self.program], capture_output=True, text=True, env=os.environ | switches).stdout

    def number(self, kind, old, new):
        found = [n for n, c in self.kept.items()
                 if c.kind == kind and PROGRAM[c.start:c.end] == old and c.new == new]
        self.assertEqual(len(found), 1, f"{kind}: {old} -> {new}")
        return found[0]

    def test_changes(self):
        self.assertEqual(self.run_with(), "98")  # (2 + 3 + 4) * 10 + 1 + 7
        for kind, old, new, expected in (
                ("comparison", "i < last", "i <= last", "5098"),
                ("wrong field", "s.columns", "s.rows", "88"),
                ("condition always", "out > 1000", "true", "-1"),
                ("sign", "-1", "1", "98"),
                ("statement dropped", "out += s.columns;", "", "58"),
                ("wrong variable", "last", "first", "48"),
                ("swapped arguments", "order(out,\n               first)", "order(first,\n               out)", "26")):
            self.assertEqual(self.run_with(self.number(kind, old, new)), expected, f"{kind}: {old} -> {new}")

    def test_reached(self):
        file = self.root / "reached"
        self.run_with(reached=file)
        reached = file.read_bytes()
        self.assertEqual(reached[self.number("comparison", "i < last", "i <= last")], 1)
        never = [n for n, c in self.kept.items() if PROGRAM[c.start:c.end] == 'std::puts("never");']
        self.assertEqual([reached[n] for n in never], [0])

    def test_what_does_not_compile_is_left_out(self):
        self.assertNotIn(self.wrong, self.kept)
        self.assertGreater(len(self.kept), 30)
        for c in self.kept.values():
            self.assertNotIn("fixed() {", PROGRAM[c.start:c.end])  # a constant expression

    def test_lines_stay(self):
        text = self.file.read_text().split("#line 1\n")[1]
        self.assertEqual(text.count("\n"), PROGRAM.count("\n"))

    def test_choice_follows_from_the_seed(self):
        sites = {"a.cpp": list(self.kept.values())}
        self.assertEqual(prepare.choose(sites, 20, 1), prepare.choose(sites, 20, 1))
        self.assertNotEqual(prepare.choose(sites, 20, 1), prepare.choose(sites, 20, 2))
        self.assertEqual(len(set(prepare.choose(sites, 20, 1).values())), 20)

    def test_verdicts(self):
        same, wrong = {"m": ("same", "")}, {"m": ("differs", "set 0")}
        refusal = {"m": ("none", "hone: no strategy gave a plan: refused: result 0 differs from the reference")}
        for plain, optimized, expected in (
                (same, same, "equal"), (wrong, same, "avoided"), (wrong, refusal, "refused"), (same, wrong, "wrong"),
                (wrong, wrong, "wrong"), (wrong, {"m": ("dies", "")}, "stopped"), (wrong, {"m": ("dies-run", "")}, "wrong"),
                (wrong, refusal | {"n": ("differs", "")}, "wrong"),
                (wrong, {"m": ("none", "hone: node 0 'a' (Conv): is not supported")}, "stopped")):
            self.assertEqual(campaign.verdict(plain, optimized), expected, f"{plain} {optimized}")


unittest.main()
