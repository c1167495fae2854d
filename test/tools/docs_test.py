"""The code in docs/api.md is code that tests compile: blocks are in the files they name, and the right column
of the table is in test/nn/pytorch_table_test.cpp."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/api.md").read_text()


def plain(text):
    return " ".join(text.split())


class Docs(unittest.TestCase):
    def test_blocks_are_in_the_files_they_name(self):
        blocks = re.findall(r"<!-- from (\S+) -->\n```cpp\n(.*?)```", PAGE, re.S)
        self.assertEqual(len(blocks), PAGE.count("```cpp"))
        for path, block in blocks:
            self.assertIn(plain(block), plain((ROOT / path).read_text()), path)

    def test_the_table_is_compiled(self):
        test = plain((ROOT / "test/nn/pytorch_table_test.cpp").read_text())
        rows = re.findall(r"^\| `.*` \| `(.*)` \|$", PAGE, re.M)
        self.assertGreater(len(rows), 15)
        for code in rows:
            self.assertIn(plain(code), test)


unittest.main()
