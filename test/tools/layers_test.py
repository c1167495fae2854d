"""Plants each kind of violation in a small tree and expects tools/layers to name it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

LAYERS = pathlib.Path(__file__).parents[2] / "tools" / "layers"
CMAKE = """
function(hone_folder name)
endfunction()
hone_folder(base LINK Threads::Threads)
hone_folder(type DEPENDS base)
hone_folder(plan
  DEPENDS type)
hone_folder(ops DEPENDS type LINK plan)
hone_folder(backend/x/device DEPENDS plan)
hone_folder(backend DEPENDS backend/x/device)
hone_folder(compile DEPENDS ops backend)
"""
ROWS = (("base", "nothing"), ("type", "base"), ("plan", "type"), ("ops", "type"),
        ("backend/x/device", "plan"), ("backend", "backend/x/device"), ("compile", "ops, backend"))
README = "".join(f"| `{name}/` | what | {folders} |\n" for name, folders in ROWS)
CLEAN = {
    "src/base/a.h": "#include <sys/mman.h>\n",
    "src/type/t.h": '#include "base/a.h"\n#include <vector>\n',
    "src/plan/p.cpp": '#include "plan/p.h"\n#include "base/a.h"\n',
    "src/plan/p.h": '#include "type/t.h"\n',
    "src/ops/o.h": '#include "type/t.h"\n',
    "src/backend/x/device/d.h": '#include "plan/p.h"\n#include <dlfcn.h>\n',
    "src/backend/backend.h": '#include "backend/x/device/d.h"\n',
    "src/compile/c.cpp": '#include "backend/backend.h"\n#include <nlohmann/json.hpp>\n',
}


def run(changes, *options, cmake=CMAKE, readme=README):
    with tempfile.TemporaryDirectory() as root:
        files = {**CLEAN, **changes, "src/CMakeLists.txt": cmake, "src/README.md": readme}
        for name, text in files.items():
            path = pathlib.Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        result = subprocess.run([sys.executable, LAYERS, *options, root], capture_output=True,
                                text=True)
        return result.returncode, result.stdout


def includes(edges):
    """Files of src/ops/ for edges such as "a.h b": ops/a.h includes ops/b.h."""
    files = {}
    for edge in edges:
        file, unit = edge.split()
        files.setdefault(f"src/ops/{unit}.h", "")
        name = f"src/ops/{file}"
        files[name] = files.get(name, "") + f'#include "ops/{unit}.h"\n'
    return files


class Layers(unittest.TestCase):
    def refuses(self, expected, changes, **tables):
        code, out = run(changes, **tables)
        self.assertEqual(code, 1, out)
        self.assertIn(expected, out)
        self.assertEqual(out.count("\n"), 1, out)

    def test_a_clean_tree_passes(self):
        self.assertEqual(run({}), (0, "layers: ok\n"))

    def test_a_folder_that_the_line_does_not_list(self):
        self.refuses("src/type/u.cpp: includes", {"src/type/u.cpp": '#include "plan/p.h"\n'})

    def test_a_linked_library_is_not_an_include(self):
        self.refuses("src/ops/q.cpp: includes", {"src/ops/q.cpp": '# include "plan/p.h"\n'})

    def test_an_os_header_above_base(self):
        self.refuses("<unistd.h>", {"src/plan/q.cpp": "#include <unistd.h>\n"})

    def test_a_backend_half_outside_backend(self):
        self.refuses("only backend/backend.h and",
                     {"src/compile/q.cpp": '#include "backend/x/device/d.h"\n'})

    def test_llvm_in_cpp(self):
        self.refuses("llvm-c", {"src/compile/q.cpp": "#include <llvm/IR/Module.h>\n"})

    def test_a_heavy_header_in_a_header(self):
        self.refuses("one .cpp", {"src/compile/q.h": "#include <spdlog/spdlog.h>\n"})

    def test_a_heavy_header_twice(self):
        self.refuses("keep it in one", {"src/plan/q.cpp": "#include <nlohmann/json.hpp>\n"})

    def test_a_path_not_spelled_from_src(self):
        self.refuses("spell the path from src/", {"src/plan/q.cpp": '#include "p.h"\n'})

    def test_rings_of_units(self):
        for edges, expected in (
                (["a.cpp b", "b.cpp a"],
                 "ops/a, ops/b; a shortest way around: ops/a -> ops/b -> ops/a\n"),
                (["a.h b", "b.cpp a"],
                 "ops/a, ops/b; a shortest way around: ops/a -> ops/b -> ops/a\n"),
                (["a.cpp b", "b.h c", "c.cpp a"],
                 "ops/a, ops/b, ops/c; a shortest way around: ops/a -> ops/b -> ops/c -> ops/a\n"),
                # A long way and a short one, which does not begin at the first member.
                (["a.cpp b", "b.cpp c", "c.cpp d", "d.cpp a", "d.h b"],
                 "ops/a, ops/b, ops/c, ops/d; a shortest way around: "
                 "ops/b -> ops/c -> ops/d -> ops/b\n"),
                # Two rings of which one needs the other.
                (["c.cpp d", "d.h c", "d.cpp a", "a.h b", "b.cpp a"],
                 "ops/a, ops/b; a shortest way around: ops/a -> ops/b -> ops/a\n"
                 "ops/c, ops/d; a shortest way around: ops/c -> ops/d -> ops/c\n")):
            self.assertEqual(run(includes(edges), "--cycles"), (0, expected))
            code, out = run(includes(edges))
            self.assertEqual((code, out.count("\n")), (1, expected.count("\n")), out)
            for ring in expected.splitlines():
                self.assertIn(f"units need each other: {ring}; move what", out)

    def test_units_without_a_ring(self):
        edges = ["a.cpp a", "a.cpp b", "a.h c", "b.h d", "c.h d", "d.cpp d", "d.cpp e"]
        self.assertEqual(run(includes(edges), "--cycles"), (0, ""))
        chain = [f"u{i}.h u{i + 1}" for i in range(1500)]
        self.assertEqual(run(includes(chain), "--cycles"), (0, ""))

    def test_a_folder_of_too_many_units(self):
        files = {f"src/ops/u{i}.{end}": "" for i in range(44) for end in ("h", "cpp")}
        self.assertEqual(run(files), (0, "layers: ok\n"))  # 45 with ops/o.h
        self.refuses("src/ops/: holds 46 units (a header and its source count as one), at most 45",
                     {**files, "src/ops/v.cpp": ""})

    def test_names_of_a_backend_outside_backend(self):
        named = 'if (name == "cpu") open("onednn");\n// made for x86-64\n'
        self.refuses("src/ops/q.cpp: names a processor or library in 2 lines (1, 2)",
                     {"src/ops/q.cpp": named})
        self.assertEqual(run({"src/backend/x/device/q.cpp": named}), (0, "layers: ok\n"))
        self.assertEqual(run({"src/ops/q.cpp": "cpu_set_t processors;\n"}), (0, "layers: ok\n"))

    def test_a_folder_outside_the_table(self):
        self.refuses("its folder is not in", {"src/stray/q.cpp": "int x;\n"})

    def test_a_line_that_lists_a_folder_below(self):
        self.refuses("not above it", {}, cmake=CMAKE + "hone_folder(tensor DEPENDS nn)\n",
                     readme=README + "| `tensor/` | what | nn |\n")

    def test_tables_that_differ(self):
        row = "| `plan/` | what | type |\n"
        self.refuses("differ in plan", {}, readme=README.replace(row, ""))
        self.refuses("differ in plan", {}, readme=README.replace(row, row.replace("type", "base")))
        self.refuses("differ in their order", {}, readme=README.replace(row, "") + row)


unittest.main()
