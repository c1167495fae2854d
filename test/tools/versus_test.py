"""tools/versus on programs that print known times: equal ones pass, a slower one is named and fails."""

import json
import pathlib
import subprocess
import tempfile

VERSUS = pathlib.Path(__file__).resolve().parents[2] / "tools/versus"


def program(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def versus(old, new):
    done = subprocess.run([VERSUS, old, new, "one.onnx", "two.onnx", "--rounds", "3", "--threads", "1"],
                          capture_output=True, text=True, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


with tempfile.TemporaryDirectory() as folder:
    one = program(folder, "one", """echo '{"median_ms": 2.0}'""")
    slow = program(folder, "slow", """case "$2" in two*) echo '{"median_ms": 3.0}';;
*) echo '{"median_ms": 2.0}';; esac""")
    broken = program(folder, "broken", "echo no such model >&2; exit 3")

    code, lines, _ = versus(one, one)
    assert code == 0 and [line.get("ratio") for line in lines] == [1.0, 1.0, None], lines
    code, lines, _ = versus(one, slow)
    assert code == 1 and lines[1]["model"] == "two" and lines[1]["ratio"] == 1.5, lines
    assert lines[2] == {"geometric_mean": 1.225, "worst": 1.5}, lines
    code, lines, text = versus(one, broken)
    assert code == 2 and "no such model" in text, text
print("versus: ok")
