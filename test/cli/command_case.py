"""What the tests of the command line share: a folder with a plan and an input, and how they call a program.
A test that imports this is called with BUILD_DIR."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from wrong_uses import DIGITS

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]


def npy(path, dtype, shape, data=None):
    """A .npy file of zeros, or of the bytes given."""
    count = 1
    for n in shape:
        count *= n
    size = int(dtype[2:])
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head +
                     (data or bytes(count * size)))
    return path


class CommandCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="hone-cli-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.environment = {k: v for k, v in os.environ.items() if not k.startswith("HONE_")}
        cls.environment["HONE_CACHE_DIR"] = str(cls.work / "cache")
        npy(cls.work / "x.npy", "<f4", (1, 1, 8, 8))
        cls.work.joinpath("x.raw").write_bytes(bytes(256))
        done = cls.hone("optimize", DIGITS, "-o", cls.work / "digits.hone", "--rounds", 3, "-q")
        assert done.returncode == 0, done.stderr

    @classmethod
    def hone(cls, *arguments, program="hone", **environment):
        return subprocess.run([str(BUILD / program), *map(str, arguments)], cwd=cls.work, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**cls.environment, **environment})
