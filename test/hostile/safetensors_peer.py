#!/usr/bin/env python3
"""Files that are nearly safetensors, read by hone and by the package `safetensors`, whose reader is in
Rust: hone must refuse what it refuses, and accept what it accepts but for what is listed here.

usage: safetensors_peer.py HONE [COUNT [SEED]]      needs: pip install safetensors numpy
"""
import collections
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import safetensors

# What hone refuses and the other reader takes: part of hone's message, and why.
STRICTER = {
    "appears twice": "the format forbids a name twice",
    "is not supported": "elements that hone has no dtype for",
    "does not start with": "the format has the header begin with {",
    "does not fit in 64 bits": "a number of a tensor whose name appears twice",
}
BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "I16": 2, "U16": 2, "F16": 2,
    "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8, "C64": 8,
}


def entries_of(r):
    """Names and descriptions of some tensors, and how many bytes they take."""
    entries, at = [], 0
    for i in range(r.randint(0, 4)):
        dtype = r.choice(list(BYTES))
        shape = [r.choice([0, 1, 2, 3, 5]) for _ in range(r.randint(0, 3))]
        size = BYTES[dtype]
        for n in shape:
            size *= n
        name = r.choice(["a", "b", f"w{i}", f"x.{i}"])
        entries.append((name, {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}))
        at += size
    if r.random() < 0.3:
        entries.insert(r.randint(0, len(entries)), ("__metadata__", {"k": "v"}))
    return entries, at


# Changes of one tensor's description.
def move(r, e): e["data_offsets"][r.randint(0, 1)] += r.choice([-1, 1, 4])
def other_dtype(r, e): e["dtype"] = r.choice(["F33", "f32", "", "F4", "F6_E2M3", 3])
def other_shape(r, e):
    e["shape"] = r.choice([[-1], [2**63], [2**32, 2**32], "x", None, [1.0], [1, 2], [[1]]])
def other_key(r, e): e["more"] = 1
def offsets(r, e): e["data_offsets"] = r.choice([[-4, 0], [0.0, 4.0], [0, 2**64 + 1]])
def missing(r, e): del e[r.choice(list(e))]
def null(r, e): e[r.choice(list(e))] = None
def turned(r, e):
    items = list(e.items())
    r.shuffle(items)
    e.clear()
    e.update(items)


TENSOR_CHANGES = [move, other_dtype, other_shape, other_key, offsets, missing, null, turned]


def file_of(r):
    entries, size = entries_of(r)
    change = r.choice(TENSOR_CHANGES + ["", "", "twice", "order", "metadata", "begin", "end", "escape",
                                        "length", "data", "cut", "byte"])
    tensors = [e for e in entries if e[0] != "__metadata__"]
    if callable(change) and tensors:
        change(r, r.choice(tensors)[1])
    if change == "twice" and entries:
        entries.append(r.choice(entries))
    if change == "order":
        r.shuffle(entries)
    if change == "metadata":
        entries.append(("__metadata__", r.choice([{"a": 1}, {"a": None}, [], "x", {"a": {"b": "c"}}, {}])))
    name = json.dumps
    if change == "escape":
        name = lambda text: '"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"'
    header = ("{" + ",".join(name(k) + ":" + json.dumps(v) for k, v in entries) + "}").encode()
    if change == "begin":
        header = r.choice([b" ", b"\n"]) + header
    if change == "end":
        header += r.choice([b" ", b"   ", b"\n", b"\t", b"\0", b"x"])
    length = len(header)
    if change == "length":
        length = max(0, length + r.choice([-1, 1, 100, 2**40, -length]))
    out = struct.pack("<Q", length) + header + r.randbytes(size)
    if change == "data":
        out = out + b"\0" * 8 if r.random() < 0.5 else out[:-r.randint(1, 4)]
    if change == "cut":
        out = out[:r.randint(0, len(out))]
    if change == "byte":
        at = r.randint(8, 8 + len(header) - 1)
        out = out[:at] + r.randbytes(1) + out[at + 1:]
    return out


def accepts(path):
    try:
        with safetensors.safe_open(path, "numpy") as f:
            f.keys()
        return True
    except Exception:
        return False


def main():
    hone = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    r = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    found, wrong = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as directory:
        for i in range(count):
            path = pathlib.Path(directory) / f"{i}.safetensors"
            path.write_bytes(file_of(r))
            ours = subprocess.run([hone, "inspect", path], capture_output=True, text=True)
            theirs = accepts(path)
            if (ours.returncode == 0) == theirs:
                found["both accept" if theirs else "both refuse"] += 1
                continue
            why = [w for part, w in STRICTER.items() if theirs and part in ours.stderr]
            found["hone refuses: " + why[0] if why else "WRONG"] += 1
            if not why:
                wrong += 1
                print(path.read_bytes()[:300], ours.stderr)
            path.unlink()
    print(f"safetensors {safetensors.__version__}, {count} files: ",
          "; ".join(f"{n} {what}" for what, n in found.most_common()))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
