"""tools/replay finds no difference between a program and itself, and every difference that an option
makes. usage: replay_test.py HONE"""

import pathlib
import re
import subprocess
import sys
import tempfile

REPLAY = pathlib.Path(__file__).resolve().parents[2] / "tools/replay"
HONE = pathlib.Path(sys.argv[1]).resolve()


def replay(other):
    done = subprocess.run([REPLAY, "--programs", HONE, other, "--only", "digits", "--diff", "5"],
                          capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def expect(condition, text):
    if not condition:
        sys.exit(text)


with tempfile.TemporaryDirectory() as name:
    other = pathlib.Path(name) / "other"
    code, text = replay(HONE)
    expect(code == 0 and ": same, " in text and "1 of 1" in text, f"with itself: {code}\n{text}")
    # What differs first must be named: a pass, the groups, or a model that fails.
    for option, wanted in (("--passes-off layout", r"graph 6-layout: \d gone"),
                           ("--one-op-groups", r"plans: \d changed"),
                           ("--dim nonsense", "before: compiles")):
        other.write_text(f'#!/bin/sh\nexec {HONE} "$@" {option}\n')
        other.chmod(0o755)
        code, text = replay(other)
        expect(code == 1 and re.search(wanted, text) and "0 of 1" in text, f"{option}: {code}\n{text}")
print("replay: ok")
