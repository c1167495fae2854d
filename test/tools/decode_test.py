"""Decoding by plans of ONNX models of GPT-2's form, through the runtime library alone (bench_decode): caches as states,
several over one copy of the weights, against the plan whose caller keeps them. Its results must have the same bits, and
only what the caller gives and takes may cross to the device.

usage: decode_test.py HONE BENCH_DECODE MODELS_PY"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

WORDS, MOST = 500, 255


def run(*command, env=None):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}\nended with {done.returncode}")
    return done.stdout


def main():
    hone, decode, models = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="hone_decode_") as folder:
        work = pathlib.Path(folder)
        run(sys.executable, models, "gpt2-decode", work / "m.onnx", "--layers", 2, "--width", 96, "--words", WORDS)
        for name, more in {"kept": ["--state", "past.*=present.*"], "given": []}.items():
            run(hone, "optimize", work / "m.onnx", "-o", work / f"{name}.hone", "--dim", f"past=0..{MOST}", *more,
                "--strategies", "cpu", "--budget", 1, "--rounds", 3, env={"HONE_CACHE_DIR": str(work / "cache")})
        told = json.loads(run(decode, work / "kept.hone", work / "given.hone", 200, 8, 1))
        assert told["different"] == 0, told
        # Keys and values of two layers.
        assert told["state_bytes"] == 4 * 4 * (MOST + 1) * 96, told
    print(told)


main()
