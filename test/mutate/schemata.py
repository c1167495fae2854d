"""Small changes of C++ sources, all of them in one build, each behind a switch.

A change is a `Change`: a range of a file's text and what takes its place. `sites` finds every change that
the operators below can make in a file, from its syntax tree (libclang, Debian's python3-clang-19). `weave` puts
chosen ones into the text as `hone_mutant::is(N) ? changed : original`, lines staying where they are, and
`compiling` leaves out those that do not compile. `support` writes the header and the source which read the
environment: HONE_MUTANT=N turns on one change; the file that HONE_MUTANT_REACHED names gets a byte 1 at N
for each change whose place was reached, by this process and those that it starts."""

import collections
import dataclasses
import re
import subprocess
import sys

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian puts it, for other interpreters
import clang.cindex
from clang.cindex import CursorKind as K, TypeKind as T

HEADER = """#pragma once
namespace hone_mutant {
extern int active;
extern unsigned char* reached;
inline bool is(int n) {
  reached[n] = 1;
  return active == n;
}
}  // namespace hone_mutant
"""

SOURCE = """#include "mutant.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdlib>
namespace hone_mutant {
int active = -1;
static unsigned char own[COUNT];
unsigned char* reached = own;
// Before all constructors of objects: tables are mutated, too.
__attribute__((constructor(101))) static void read_environment() {
  if (const char* n = std::getenv("HONE_MUTANT")) active = std::atoi(n);
  const char* file = std::getenv("HONE_MUTANT_REACHED");
  if (!file) return;
  const int f = ::open(file, O_RDWR | O_CREAT, 0600);
  if (f < 0 || ::ftruncate(f, COUNT) != 0) ::abort();
  void* p = ::mmap(nullptr, COUNT, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  if (p == MAP_FAILED) ::abort();
  ::close(f);
  reached = static_cast<unsigned char*>(p);
}
}  // namespace hone_mutant
"""


@dataclasses.dataclass(frozen=True)
class Change:
    kind: str
    start: int  # bytes of the file
    end: int
    new: str
    is_statement: bool = False
    line: int = 0


COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/"}
INTEGERS = {T.SHORT, T.INT, T.LONG, T.LONGLONG, T.USHORT, T.UINT, T.ULONG, T.ULONGLONG, T.CHAR_S, T.UCHAR, T.SCHAR}
# What only says something, or asserts it.
SILENT = re.compile(r"^\s*(#|template|static_assert|HONE_ASSERT|throw\b|using\b|\"|case\b)|\bHONE_ASSERT\b")


class Finder:
    def __init__(self, path, data, unit):
        self.path, self.data, self.unit, self.out = str(path), data, unit, set()
        self.starts = [0]
        for m in re.finditer(b"\n", data):
            self.starts.append(m.end())
        self.lines = data.decode().split("\n")

    def text(self, start, end):
        return self.data[start:end].decode()

    def span(self, c):
        return c.extent.start.offset, c.extent.end.offset

    def is_here(self, c):
        s, e = c.extent.start, c.extent.end
        return s.file is not None and s.file.name == self.path and e.file is not None and e.file.name == self.path

    def add(self, kind, c, new, statement=False, span=None):
        start, end = span or self.span(c)
        line = c.extent.start.line
        old = self.text(start, end)
        if end <= start or old == new or SILENT.search(self.lines[line - 1]) or "#" in old or "[&" in new and len(new) > 400:
            return
        if not statement and new.startswith("{"):
            return
        self.out.add(Change(kind, start, end, new, statement, line))

    def walk(self, c, scope):
        """`scope` holds declarations of variables that are visible, innermost function's only."""
        if c.kind == K.CXX_THROW_EXPR or c.kind == K.STATIC_ASSERT:
            return
        if c.kind in (K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.LAMBDA_EXPR, K.FUNCTION_TEMPLATE):
            scope = list(scope) if c.kind == K.LAMBDA_EXPR else []
            if c.kind != K.LAMBDA_EXPR and self.text(*self.span(c)).lstrip().startswith(("constexpr", "consteval")):
                return
        elif c.kind == K.COMPOUND_STMT:
            scope = list(scope)
        children = list(c.get_children())
        if self.is_here(c):
            rule = RULES.get(c.kind)
            if rule:
                rule(self, c, children, scope)
        if c.kind in (K.VAR_DECL, K.PARM_DECL) and c.spelling:
            for x in children:
                self.walk(x, scope)
            scope.append((c.spelling, plain_type(c.type), c.extent.start.offset))
            return
        for x in children:
            self.walk(x, scope)


def plain_type(t):
    t = t.get_canonical()
    if t.kind in (T.LVALUEREFERENCE, T.RVALUEREFERENCE):
        t = t.get_pointee()
    return t.spelling.removeprefix("const ").strip()


def operator_of(f, left, right):
    """The operator between two operands and where it stands, or nothing."""
    a, b = f.span(left)[1], f.span(right)[0]
    between = f.text(a, b)
    return between.strip() if a <= b and re.fullmatch(r"\s*[-+*/%<>=!&|]+\s*", between) else None


def binary(f, c, children, scope):
    operands = [children[0], children[2]] if c.kind == K.CALL_EXPR else children
    op = operator_of(f, *operands)
    if not op or not all(f.is_here(x) for x in operands):
        return
    a, b = (f.text(*f.span(x)) for x in operands)
    if op in COMPARISONS:
        f.add("comparison", c, f"{a} {COMPARISONS[op]} {b}")
        if op in ("<", ">", "<=", ">="):
            f.add("swapped operands", c, f"({b}) {op} ({a})")
    if op in ("&&", "||"):
        f.add("connective", c, f"{a} {'||' if op == '&&' else '&&'} {b}")
    if op in ARITHMETIC and '"' not in a + b:
        f.add("arithmetic", c, f"({a}) {ARITHMETIC[op]} ({b})")
        if op in "-/%":
            f.add("swapped operands", c, f"({b}) {op} ({a})")
        if op in "+-" and b == "1":
            f.add("off by one", c, a)
        elif op in "+-*/":
            f.add("operand dropped", c, a)
    if op in ("+=", "-=", "*=") and c.kind != K.CALL_EXPR:
        pass  # statements are dropped below


def call(f, c, children, scope):
    if len(children) == 3 and children[1].spelling.startswith("operator") and operator_of(f, children[0], children[2]):
        binary(f, c, children, scope)
        return
    args = [a for a in c.get_arguments() if a is not None]
    if not args or not all(f.is_here(a) for a in args):
        return
    start, end = f.span(c)
    for i in range(len(args) - 1):
        a, b = args[i], args[i + 1]
        (a0, a1), (b0, b1) = f.span(a), f.span(b)
        if not (start <= a0 < a1 <= b0 < b1 <= end) or plain_type(a.type) != plain_type(b.type) or not plain_type(a.type):
            continue
        ta, tb = f.text(a0, a1), f.text(b0, b1)
        if '"' not in ta + tb and ta != tb:
            f.add("swapped arguments", c, f.text(start, a0) + tb + f.text(a1, b0) + ta + f.text(b1, end))
    name = c.spelling
    if name in ("min", "max"):
        old = f.text(start, end)
        f.add("least and most", c, re.sub(rf"\b{name}\b", {"min": "max", "max": "min"}[name], old, count=1))
    owner = f.text(max(0, start - 2000), start)
    if name in ("cat", "hash128", "hash") and len(args) > 2 and re.search(r"\b\w*(key|hash)\w*\b", owner[-300:]):
        for i, a in enumerate(args[:-1]):
            (a0, a1), b0 = f.span(a), f.span(args[i + 1])[0]
            if '"' not in f.text(a0, a1):
                f.add("part of a key dropped", c, f.text(start, a0) + f.text(b0, end))


def literal(f, c, children, scope):
    old = f.text(*f.span(c))
    if re.fullmatch(r"\d{1,6}", old) and not f.text(0, f.span(c)[0]).endswith("case "):
        f.add("constant", c, str(int(old) + 1))
        if int(old) > 0:
            f.add("constant", c, str(int(old) - 1))


def truth(f, c, children, scope):
    old = f.text(*f.span(c))
    if old in ("true", "false"):
        f.add("constant", c, "false" if old == "true" else "true")


def unary(f, c, children, scope):
    old = f.text(*f.span(c))
    if old.startswith("!") and not old.startswith("!="):
        f.add("negation dropped", c, f"static_cast<bool>({old[1:]})")
    elif old.startswith("-") and not old.startswith("--"):
        f.add("sign", c, old[1:])


def statements(f, c, children, scope):
    for s in children:
        if not f.is_here(s):
            continue
        start, end = f.span(s)
        if f.text(end, end + 1) != ";":
            continue
        if s.kind in (K.CALL_EXPR, K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.UNARY_OPERATOR, K.UNEXPOSED_EXPR):
            f.add("statement dropped", s, "", statement=True, span=(start, end + 1))


def condition(f, c, children, scope):
    head = f.text(*f.span(c))
    if re.match(r"if\s+constexpr", head) or not children or children[0].kind in (K.DECL_STMT, K.VAR_DECL):
        return
    test = children[0]
    if ";" in f.text(f.span(c)[0], f.span(test)[0]) or not f.is_here(test):
        return
    old = f.text(*f.span(test))
    f.add("condition dropped", test, "false")
    f.add("condition always", test, f"(static_cast<void>({old}), true)" if "(" in old else "true")


def reference(f, c, children, scope):
    d = c.referenced
    if d is None or not c.spelling or f.text(*f.span(c)) != c.spelling:
        if d is not None and d.kind == K.ENUM_CONSTANT_DECL:
            enumerator(f, c, d)
        return
    if d.kind == K.ENUM_CONSTANT_DECL:
        enumerator(f, c, d)
    if d.kind not in (K.VAR_DECL, K.PARM_DECL):
        return
    mine = plain_type(d.type)
    if not mine or mine == "auto":
        return
    others = [n for n, t, _ in scope if t == mine and n != c.spelling]
    for other in dict.fromkeys(others[-3:]):
        f.add("wrong variable", c, other)


def enumerator(f, c, d):
    all_ = [x.spelling for x in d.semantic_parent.get_children() if x.kind == K.ENUM_CONSTANT_DECL]
    old = f.text(*f.span(c))
    if len(all_) < 2 or d.spelling not in all_ or not old.endswith(d.spelling):
        return
    other = all_[(all_.index(d.spelling) + 1) % len(all_)]
    f.add("wrong enumerator", c, old[: len(old) - len(d.spelling)] + other)


def member(f, c, children, scope):
    d = c.referenced
    if d is None or d.kind != K.FIELD_DECL:
        return
    old = f.text(*f.span(c))
    if not old.endswith(d.spelling):
        return
    fields = [x for x in d.semantic_parent.get_children() if x.kind == K.FIELD_DECL]
    same = [x.spelling for x in fields if x.spelling != d.spelling and plain_type(x.type) == plain_type(d.type)]
    for other in same[:2]:
        f.add("wrong field", c, old[: len(old) - len(d.spelling)] + other)


def cast(f, c, children, scope):
    old = f.text(*f.span(c))
    m = re.match(r"static_cast<(std::(?:u?int(?:64|32)_t|size_t)|int)>", old)
    if m:
        # Narrow enough for models that are small.
        f.add("narrowed integer", c, f"static_cast<{m[1]}>(static_cast<std::int8_t>({old[m.end():]}))")


def index(f, c, children, scope):
    if len(children) < 2 or not f.is_here(children[-1]):
        return
    i = children[-1]
    old = f.text(*f.span(i))
    if i.type.get_canonical().kind in INTEGERS and old and not re.fullmatch(r"\d+", old):
        f.add("wrong index", i, f"({old}) - ({old})")


RULES = {
    K.BINARY_OPERATOR: binary, K.CALL_EXPR: call, K.INTEGER_LITERAL: literal, K.CXX_BOOL_LITERAL_EXPR: truth,
    K.UNARY_OPERATOR: unary, K.COMPOUND_STMT: statements, K.IF_STMT: condition, K.DECL_REF_EXPR: reference,
    K.MEMBER_REF_EXPR: member, K.CXX_STATIC_CAST_EXPR: cast, K.ARRAY_SUBSCRIPT_EXPR: index,
}


class Unreadable(Exception):
    """A file in which libclang finds errors."""


class Sources:
    """Files of a tree, parsed with the arguments that the compiler gets."""

    def __init__(self, root, scratch, arguments, library):
        if library and not clang.cindex.Config.loaded:
            clang.cindex.Config.set_library_file(library)
        self.arguments, self.index = list(arguments), clang.cindex.Index.create()
        # Headers that many files include are read once: a file then takes a tenth of the time.
        headers, ready = scratch / "all.h", scratch / "all.pch"
        included = collections.Counter(
            name for f in (root / "src").rglob("*.cpp") for name in set(re.findall(r'#include ([<"].*[">])', f.read_text())))
        headers.write_text("".join(f"#include {name}\n" for name, n in sorted(included.items()) if n >= 8 and
                                   ("<" in name and ("." not in name or "llvm" in name) or "/" in name)))
        subprocess.run(["clang++-19", *arguments, "-x", "c++-header", headers, "-o", ready], check=True)
        self.ready = ["-include-pch", str(ready)]
        self.apart = {}  # of files: whether they cannot be read after those headers

    def parse(self, path, text=None):
        unsaved = [(str(path), text)] if text is not None else []
        if path not in self.apart:
            unit = self.index.parse(str(path), args=self.arguments + self.ready)
            self.apart[path] = any(d.severity >= 3 for d in unit.diagnostics)
            if text is None and not self.apart[path]:
                return unit
        more = [] if self.apart[path] else self.ready
        return self.index.parse(str(path), args=self.arguments + more, unsaved_files=unsaved)

    def sites(self, path):
        data = path.read_bytes()
        unit = self.parse(path)
        if errors := [d for d in unit.diagnostics if d.severity >= 3]:
            raise Unreadable(f"{path}: {errors[0]}")
        finder = Finder(path, data, unit)
        for c in unit.cursor.get_children():
            if finder.is_here(c):
                finder.walk(c, [])
        return sorted(finder.out, key=lambda x: (x.start, -x.end, x.kind, x.new))

    def errors(self, path, text):
        """Where the compiler finds errors: lists of offsets, the error's own first, then its notes'."""
        unit = self.parse(path, text)  # diagnostics live as long as it does
        out = []
        for d in unit.diagnostics:
            if d.severity >= 3:
                at = [d.location] + [n.location for n in d.children]
                out.append([x.offset for x in at if x.file is not None and x.file.name == str(path)])
        return out

    def compiling(self, path, chosen):
        """The numbered changes (a dict) without those that the compiler refuses."""
        data = path.read_bytes()
        while True:
            text, places = weave(data, chosen)
            chosen = {n: chosen[n] for n, _, _ in places}  # without those that overlap others
            errors = self.errors(path, text)
            if not errors:
                return chosen
            bad = {n for at in errors for n in innermost(places, at)}
            if not bad:  # the closest one without which there are fewer
                at = errors[0][0] if errors[0] else 0
                for _, n in sorted((abs(start - at), n) for n, start, _ in places):
                    if len(self.errors(path, weave(data, {k: c for k, c in chosen.items() if k != n})[0])) < len(errors):
                        bad = {n}
                        break
            if not bad:
                return {}
            chosen = {n: c for n, c in chosen.items() if n not in bad}


def innermost(places, offsets):
    """The smallest change around the first offset that any lies around."""
    for at in offsets:
        if holding := [(end - start, n) for n, start, end in places if start <= at <= end]:
            return [min(holding)[1]]
    return []


def one_line(text):
    return re.sub(r"\s*\n\s*", " ", re.sub(r"//[^\n]*", "", text))


def weave(data, chosen):
    """The text with the changes {number: Change} behind switches, and [(number, start, end)] in it."""
    byte = sorted(chosen.items(), key=lambda x: (x[1].start, -x[1].end, x[0]))
    out, places = bytearray(b'#include "mutant.h" // \n#line 1\n'), []

    def put(start, end, rest):
        """Writes data[start:end], in which the changes `rest` lie; returns those that do not fit."""
        at = start
        while rest:
            n, c = rest[0]
            inner = [x for x in rest[1:] if x[1].start >= c.start and x[1].end <= c.end]
            after = [x for x in rest[1:] if x[1].start >= c.end]
            out.extend(data[at:c.start])
            begin = len(out)
            if c.is_statement:
                out.extend(f"if (!hone_mutant::is({n})) {{ ".encode())
                put(c.start, c.end, inner)
                out.extend(b" }")
            else:
                out.extend(f"(hone_mutant::is({n}) ? ({one_line(c.new)}) : (".encode())
                put(c.start, c.end, inner)
                out.extend(b"))")
            places.append((n, begin, len(out)))
            at, rest = c.end, after
        out.extend(data[at:end])

    put(0, len(data), byte)
    return out.decode(), places


def support(folder, count):
    (folder / "mutant.h").write_text(HEADER)
    (folder / "base/mutant.cpp").write_text(SOURCE.replace("COUNT", str(count)))
